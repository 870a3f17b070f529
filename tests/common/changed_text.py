# SPDX-License-Identifier: Apache-2.0
"""changed_text.py PID - how many bytes of the files that the process has mapped executable differ in its memory."""
import sys
differ = 0
with open(f"/proc/{sys.argv[1]}/mem", "rb") as memory:
    for line in open(f"/proc/{sys.argv[1]}/maps"):
        fields = line.split()
        if "x" not in fields[1] or len(fields) < 6 or not fields[5].startswith("/"):
            continue
        low, high = (int(x, 16) for x in fields[0].split("-"))
        memory.seek(low)
        found = memory.read(high - low)
        # The agent, brought into a program that ran, has no file.
        if fields[5].startswith("/memfd:libtracewheel-agent"):
            continue
        with open(fields[5], "rb") as file:
            file.seek(int(fields[2], 16))
            wanted = file.read(high - low)
        differ += found != wanted and sum(a != b for a, b in zip(found, wanted))
print(differ)
