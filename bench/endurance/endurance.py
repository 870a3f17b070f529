#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""endurance.py BUILD [--seconds N] [--rate EVENTS_PER_S] [--on-full POLICY] [--gigabytes N] [--folder DIR]

Question  Does a long recording stay as it is: nothing lost, constant memory, the same CPU for each event? How long does
          a large capture take to open, and a second of it to read?
Method    1 A program of two threads makes calls at a steady rate, recorded with --rotate 64M --keep 8. The recorder is
            measured each second through /proc. Growth is that of its anonymous memory from the end of the first quarter
            to the end, by a line through all measurements; CPU is user and system time of the recorder.
          2 A program whose arguments cannot be compressed makes a capture of some gigabytes; `info`, and `report` of one
            second in its middle, five times each.
Unit      kB a minute; ns of CPU an event; ms, median (least .. most).
"""
import argparse, json, os, resource, shutil, signal, statistics, subprocess, sys, tempfile, time

def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--seconds", type=float, default=180)
    p.add_argument("--rate", type=float, default=5e6)
    p.add_argument("--on-full", default="block", choices=("block", "drop"))
    p.add_argument("--gigabytes", type=float, default=10, help="of the capture that is opened; 0: none")
    p.add_argument("--folder", default=None, help="where captures are made; removed afterwards")
    return p.parse_args()

def status(pid, key):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0

def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

def slope(points):
    """The slope of a line through all points, per unit of x."""
    if len(points) < 2:
        return 0.0
    x, y = [p[0] for p in points], [p[1] for p in points]
    mx, my = statistics.fmean(x), statistics.fmean(y)
    return sum((a - mx) * (b - my) for a, b in points) / (sum((a - mx) ** 2 for a in x) or 1)

def info(tracewheel, capture):
    return json.loads(subprocess.run([tracewheel, "info", "--json", capture], stdout=subprocess.PIPE).stdout)

def long_recording(tracewheel, load, folder, a):
    capture = f"{folder}/long.tw"
    recorder = subprocess.Popen([tracewheel, "record", "-q", "-o", capture, "-t", "load:*_call", "--rotate", "64M", "--keep", "8",
                                 "--on-full", a.on_full, "--", load, str(a.seconds), str(a.rate), "2", "plain"],
                                stdout=subprocess.PIPE, text=True)
    begun, samples, cpu = time.monotonic(), [], 0
    while recorder.poll() is None:
        time.sleep(1)
        try:
            samples.append((time.monotonic() - begun, status(recorder.pid, "RssAnon")))
            cpu = cpu_seconds(recorder.pid)
        except (OSError, IndexError):
            break
    calls = int(recorder.communicate()[0].split()[-1])
    d = info(tracewheel, capture)
    gone = d["account"]["missing"]["removed"]
    lost, removed = sum(d["lost"].values()) + gone["lost"], gone["events"]
    late = [p for p in samples[:-1] if p[0] > a.seconds / 4]
    growth = slope(late) * 60
    print(f"recorded      {calls:,} calls in {a.seconds:.0f} s ({calls / a.seconds / 1e6:.2f} M/s); lost {lost:,}; "
          f"in the capture {d['events']:,}, before them {removed:,} removed by --keep")
    if calls != d["events"] + lost + removed:
        print(f"WRONG         {calls - d['events'] - lost - removed:,} calls are nowhere")
    print(f"memory        {samples[0][1]:,} kB at first, {max(p[1] for p in samples):,} kB at most; growth {growth:+.1f} kB a minute "
          f"(goal: at most 20)")
    print(f"CPU           {cpu / max(calls, 1) * 1e9:.1f} ns of the recorder an event (goal: at most 36)")
    shutil.rmtree(capture)
    return calls == d["events"] + lost + removed and (a.on_full != "block" or not lost)

def size(folder):
    return sum(e.stat().st_size for e in os.scandir(folder))

def middle(command):
    times, cpu = [], []
    for _ in range(5):
        begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((time.monotonic() - begun) * 1e3)
        cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    return f"{statistics.median(times):.0f} ms ({min(times):.0f} .. {max(times):.0f}), CPU {statistics.median(cpu):.0f} ms"

def large_capture(tracewheel, load, folder, a):
    capture, wanted = f"{folder}/large.tw", a.gigabytes * 1e9
    free = shutil.disk_usage(folder).free
    if free < wanted * 1.2:
        wanted = free / 2
        print(f"the disk holds {wanted / 1e9:.1f} GB only")
    recorder = subprocess.Popen([tracewheel, "record", "-q", "-o", capture, "-t", "load:noise_call", "--args=raw", "--on-full", "block",
                                 "--", load, "1000", str(a.rate), "2", "noise"], stdout=subprocess.PIPE, text=True)
    while recorder.poll() is None and (not os.path.isdir(capture) or size(capture) < wanted):
        time.sleep(0.2)
    recorder.send_signal(signal.SIGTERM)  # passed on to the program
    calls = int(recorder.communicate()[0].split()[-1])
    d = info(tracewheel, capture)
    seconds = d["seconds"]
    print(f"large         {size(capture) / 1e9:.2f} GB, {d['events']:,} events of {calls:,} calls, {d['segments']} segments, {seconds:.0f} s")
    print(f"info          {middle([tracewheel, 'info', capture])} (goal: at most 100)")
    half = int(seconds / 2)
    print(f"one second    {middle([tracewheel, 'report', '--from', str(half), '--to', str(half + 1), capture])} for report --from {half} "
          f"--to {half + 1} (goal: at most 200)")
    shutil.rmtree(capture)
    return d["events"] == calls

def main():
    a = arguments()
    tracewheel = os.path.abspath(f"{a.build}/bin/tracewheel")
    folder = tempfile.mkdtemp(prefix="tracewheel-endurance-", dir=a.folder)
    try:
        load = f"{folder}/load"
        subprocess.run(["cc", "-O2", "-o", load, f"{os.path.dirname(os.path.abspath(__file__))}/load.c", "-lpthread"], check=True)
        is_right = long_recording(tracewheel, load, folder, a)
        if a.gigabytes:
            is_right &= large_capture(tracewheel, load, folder, a)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if is_right else 1)

main()
