#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Captures that are cut off or damaged, and files that are no captures, get one clear sentence, and never a
#         crash.
build=$1
. "$(dirname "$0")/lib.sh"
make_work

expect 0 bash -c "'$tw' record -q -t 'libsqlite3:_' -t 'libc:_' -o good.tw -- sqlite3 a.db < work.sql"
expect 0 "$tw" info --json good.tw
whole=$(json 'd["events"]')
mkdir empty.tw
for command in info report print; do
	expect 1 "$tw" "$command" empty.tw
	says "is not a capture"
	expect 1 "$tw" "$command" /etc/hostname
	says "hostname"
done
cp -r good.tw cut.tw
segment=$(find cut.tw -type f -size +1k | head -n 1)
truncate -s $(($(stat -c %s "$segment") * 2 / 3)) "$segment"
expect 1 "$tw" info --json cut.tw
says "cut off"
is "$(json 'd["complete"]')" False
some=$(json 'd["events"]')
[ "$some" -lt "$whole" ] || fail "a cut capture has all its events"
expect 1 "$tw" report cut.tw
shows "not complete"

# Any byte may be hostile: many mutations, no crash, no hang.
python3 -I -S - good.tw bad.tw "$tw" "$(rounds 15 40)" <<'EOT' || fail "a mutated capture was too much"
import os, random, shutil, subprocess, sys
good, bad, tw, rounds = sys.argv[1:]
seed = int(os.environ.get("TW_SEED", "1"))
print("seed", seed)
rng = random.Random(seed)
for round in range(int(rounds)):
    shutil.rmtree(bad, ignore_errors=True)
    shutil.copytree(good, bad)
    files = sorted(f for f in os.listdir(bad) if os.path.getsize(os.path.join(bad, f)))
    path = os.path.join(bad, rng.choice(files))
    data = bytearray(open(path, "rb").read())
    for _ in range(rng.choice([1, 4, 64])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.3:
        del data[rng.randrange(len(data)):]
    open(path, "wb").write(data)
    for words in (["info", "--json"], ["report"], ["print"], ["print", "--format", "erlang"]):
        done = subprocess.run([tw, *words, bad], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
        if done.returncode not in (0, 1):
            sys.exit(f"round {round}, {words}: exit {done.returncode}: {done.stderr[-500:]}")
        if done.returncode == 1 and not done.stderr.startswith(b"tracewheel: "):
            sys.exit(f"round {round}, {words}: failed without a word")
EOT
