#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    After `tracewheel compact`, every sled can be armed while threads run the functions, wherever it lies.
# Method  late_test.sh FOLDER VARIANT TRACEWHEEL: copies of sled_stress_VARIANT and its library, made compact; without
#         that the same program must report that a sled cannot be armed.
set -eu
folder=$1 name=$2 tracewheel=$3
copies=$(mktemp -d)
trap 'rm -rf "$copies"' EXIT
cp "$folder/sled_stress_$name" "$copies/program"
cp "$folder/libsledwork_$name.so" "$copies/"
if LD_LIBRARY_PATH=$copies "$copies/program" 0.1 1 late 2>"$copies/err" || ! grep -q "cannot be armed" "$copies/err"; then
	echo "FAILED: sleds of several instructions were armed beside other threads: $(cat "$copies/err")"
	exit 1
fi
"$tracewheel" compact --quiet "$copies/program" "$copies/libsledwork_$name.so"
LD_LIBRARY_PATH=$copies "$copies/program" 1 1 late
