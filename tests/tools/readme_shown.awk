# SPDX-License-Identifier: Apache-2.0
# readme_shown.awk - compares what README shows behind the command `line` with what the command has printed: the same lines, in the same
# order. Times and addresses may differ, and a line of README with ... alone stands for any number of lines.
#	awk -v line=COMMAND -f readme_shown.awk README.md OUTPUT
function normal(text) {
	sub(/^[0-9]+\.[0-9]+ +([0-9.]+ (ns|us|ms|s) +)?\|/, "|", text)
	gsub(/0x[0-9a-f]+/, "ADDRESS", text)
	return text
}
FNR == NR {
	if ($0 == "```")
		inside = 0
	if (inside)
		expected[++count] = $0
	if ($0 == "$ " line)
		inside = 1
	next
}
{ printed[++lines] = normal($0) }
END {
	at = 1
	for (i = 1; i <= count; i++) {
		if (expected[i] ~ /^ *\.\.\.$/) {
			gap = 1
			continue
		}
		want = normal(expected[i])
		while (gap && at <= lines && printed[at] != want)
			at++
		if (printed[at] != want) {
			print "README shows a line that is not printed " (gap ? "after the one before" : "here") ": " expected[i]
			exit 1
		}
		at++
		gap = 0
	}
	if (!count) {
		print "README shows nothing behind: " line
		exit 1
	}
}
