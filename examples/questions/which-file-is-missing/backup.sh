#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copies a few files, and says of one failure only that there was one.
mkdir -p saved
for file in backup.sh README.md settings.conf; do
	cp $file saved 2>/dev/null || failed=1
done
[ -z "$failed" ] || echo "backup: not everything was saved"
