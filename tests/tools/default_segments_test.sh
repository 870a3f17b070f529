#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A recording without --rotate stays small in memory: the recorder keeps the list of the blocks of one segment, and a segment
#         ends by itself after 256 MiB. A user who wants one file asks for it.
# Method  A program whose arguments cannot be compressed fills a little more than one segment; files and their sizes are looked
#         at. With --rotate 1G the same calls stand in one file.
build=$1
. "$(dirname "$0")/lib.sh"

[ "$(df -k --output=avail . | tail -n 1)" -gt 2000000 ] || { echo "no space for 600 MB here: not tested"; exit 77; }
cat >noise.c <<'C'
#include <stdint.h>
#include <stdlib.h>
__attribute__((noipa)) uint64_t mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return a ^ b ^ c ^ d ^ e ^ f;
}
static uint64_t state = 88172645463325252;
static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}
int main(int argc, char **argv)
{
	uint64_t sum = 0;
	for (long i = 0; i < atol(argv[1]); i++)
		sum += mix(next(), next(), next(), next(), next(), next());
	return sum == 0;
}
C
gcc -w -O2 -fpatchable-function-entry=9 -o noise noise.c || fail "gcc"
calls=5800000 # of 50 bytes each
expect 0 "$tw" record -q --args=raw --on-full block -t noise:mix -o a.tw -- ./noise $calls
expect 0 "$tw" info --json a.tw
is "$(json 'd["events"], d["segments"]')" "$calls 2"
largest=$(stat -c %s a.tw/*.tws | sort -n | tail -n 1)
# A block and the index of what came before stand behind the 256 MiB.
[ "$largest" -lt $((260 << 20)) ] || fail "a segment of $largest bytes"
rm -r a.tw
expect 0 "$tw" record -q --args=raw --on-full block --rotate 1G -t noise:mix -o a.tw -- ./noise $calls
expect 0 "$tw" info --json a.tw
is "$(json 'd["events"], d["segments"]')" "$calls 1"
