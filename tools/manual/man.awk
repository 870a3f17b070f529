# SPDX-License-Identifier: Apache-2.0
# man.awk - manual pages of what parse.awk took apart: tracewheel.1 and one for each command, into `folder`.

function roff(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/'/, "\\(aq", text)
	gsub(/`/, "\\(ga", text)
	gsub(/\^/, "\\(ha", text)
	gsub(/~/, "\\(ti", text)
	if (text ~ /^\./)
		text = "\\&" text
	return text
}

# Lines as paragraphs; those that are indented stay as they are.
function put_text(to, text,	lines, n, i, is_kept) {
	sub(/\n+$/, "", text)
	n = split(text, lines, "\n")
	for (i = 1; i <= n; i++) {
		if ((lines[i] ~ /^ /) != is_kept) {
			is_kept = !is_kept
			print (is_kept ? ".nf" : ".fi") > to
		}
		print (lines[i] == "" ? ".PP" : roff(lines[i])) > to
	}
	if (is_kept)
		print ".fi" > to
}

function put_head(to, page, line) {
	print ".\\\" Made by tools/manual/make.sh of what --help says." > to
	print ".TH " toupper(page) " 1 \"\" \"" version "\" \"User Commands\"" > to
	print ".SH NAME\n" roff(page) " \\- " roff(line) > to
	print ".SH SYNOPSIS" > to
}

function put_command(name,	to, i, head, word) {
	to = folder "/tracewheel-" name ".1"
	put_head(to, "tracewheel-" name, summary[name])
	print ".B tracewheel " name "\n" roff(usage[name]) > to
	print ".SH DESCRIPTION" > to
	put_text(to, about[name])
	print ".SH OPTIONS" > to
	for (i = 1; i <= count[name]; i++) {
		head = short[name, i] == "" ? "" : "\\fB\\-" short[name, i] "\\fR, "
		head = head "\\fB\\-\\-" roff(long[name, i]) "\\fR"
		word = value[name, i]
		if (word != "")
			head = head (word ~ /^\[/ ? "" : " ") "\\fI" roff(word) "\\fR"
		print ".TP\n" head > to
		put_text(to, says[name, i])
	}
	print ".SH EXAMPLES\n.nf" > to
	put_lines(to, examples[name])
	print ".fi\n.SH SEE ALSO\n.BR tracewheel (1)" > to
	close(to)
}

function put_lines(to, text,	lines, n, i) {
	n = split(text, lines, "\n")
	for (i = 1; i < n; i++)
		print roff(lines[i]) > to
}

function put_top(	to, i) {
	to = folder "/tracewheel.1"
	put_head(to, "tracewheel", "which functions a native program calls, when, and for how long")
	print roff(top_usage) > to
	print ".SH DESCRIPTION" > to
	print "Records calls of functions in programs as they are, and shows what was recorded." > to
	print ".SH COMMANDS" > to
	for (i = 1; i <= name_count; i++)
		print ".TP\n.BR tracewheel\\-" names[i] " (1)\n" roff(summary[names[i]]) > to
	print ".SH EXIT STATUS" > to
	sub(/^Exit codes: /, "", top_tail)
	put_text(to, top_tail)
	print ".SH ENVIRONMENT" > to
	print ".TP\n.B NO_COLOR\nNo colour, also on terminals, where it is set and not empty." > to
	print ".TP\n.B COLUMNS\nThe width to which lines are fitted." > to
	print ".TP\n.B TRACEWHEEL_SHM\nThe folder for rings, instead of /dev/shm." > to
	print ".SH SEE ALSO" > to
	for (i = 1; i <= name_count; i++)
		print ".BR tracewheel\\-" names[i] " (1)" (i < name_count ? "," : "") > to
	close(to)
}

END {
	put_top()
	for (n = 1; n <= name_count; n++)
		put_command(names[n])
}
