# SPDX-License-Identifier: Apache-2.0
# parse.awk - what --help says, taken apart; the END of another file makes something of it.
#
#	names[1..name_count]		the commands, in order; summary[NAME] in the table of commands
#	usage[NAME], about[NAME]	behind the name in "Usage:"; the text below, lines
#	examples[NAME]			lines
#	count[NAME], and of each option NAME, i in 1..count[NAME]:
#	short[NAME, i]			a letter, or ""
#	long[NAME, i]			without its dashes
#	value[NAME, i]			its value's name, or ""; "[=WORD]": it may have one
#	says[NAME, i]			lines
#	top_usage, top_tail		of the command itself; from "Exit codes:" on

# Where the explanations start: HELP_COLUMN in tools/options.c.
function take_option(line,	head, text) {
	i = ++count[name]
	head = line
	text = ""
	if (substr(line, 26, 1) == " ") {
		head = substr(line, 1, 25)
		text = substr(line, 27)
	}
	sub(/^ +/, "", head)
	sub(/ +$/, "", head)
	if (head ~ /^-[A-Za-z], /) {
		short[name, i] = substr(head, 2, 1)
		head = substr(head, 5)
	}
	head = substr(head, 3)
	if (match(head, /[ \[]/)) {
		value[name, i] = substr(head, RSTART)
		sub(/^ /, "", value[name, i])
		head = substr(head, 1, RSTART - 1)
	}
	long[name, i] = head
	says[name, i] = text
}

# The words of "a|b|c", separated by blanks; "": the value is no choice of words.
function choices(name, i,	text) {
	text = value[name, i]
	if (text !~ /^[a-z][a-z-]*(\|[a-z-]+)+$/)
		return ""
	gsub(/\|/, " ", text)
	return text
}

# "captures", "files", "processes", "command" or "nothing": the arguments behind the options.
function arguments_of(name) {
	if (usage[name] ~ /COMMAND/) return "command"
	if (usage[name] ~ /PID/) return "processes"
	if (usage[name] ~ /NAME\.tw/) return "captures"
	if (usage[name] ~ /PROGRAM|FILE/) return "files"
	return "nothing"
}

# The same of an option's value.
function value_of(name, i) {
	if (value[name, i] ~ /NAME\.tw/) return "captures"
	if (value[name, i] ~ /FILE|CASES/) return "files"
	return "nothing"
}

# The first line of what an option says, as one phrase.
function brief(name, i,	text) {
	text = says[name, i]
	gsub(/\n/, " ", text)
	if (match(text, /[;:.] | \(|\.$/))
		text = substr(text, 1, RSTART - 1)
	return text
}

/^\f/ { name = substr($0, 2); names[++name_count] = name; part = ""; next }

name == "" && /^Usage: / { top_usage = substr($0, 8) }
name == "" && /^Commands:/ { part = "commands"; next }
name == "" && /^$/ && part == "commands" { part = "" }
name == "" && part == "commands" { word = $1; sub(/^ +[a-z-]+ +/, ""); summary[word] = $0 }
name == "" && /^Exit codes:/ { part = "tail" }
name == "" && part == "tail" { top_tail = top_tail $0 "\n" }
name == "" { next }

part == "" && /^Usage: / {
	usage[name] = $0
	sub(/^Usage: tracewheel [a-z-]+ ?/, "", usage[name])
	part = "about"
	next
}
part == "about" && /^Options:$/ { part = "options"; next }
part == "about" { about[name] = about[name] $0 "\n"; next }
part == "options" && /^$/ { next }
part == "options" && /^Examples:$/ { part = "examples"; next }
# Words to choose from that are too many for a line.
part == "options" && /^ +-.*\|$/ && (getline rest) > 0 { sub(/^ +/, "", rest); $0 = $0 rest }
part == "options" && (/^  -[A-Za-z], --/ || /^      --/) { take_option($0); next }
part == "options" {
	line = $0
	sub(/^ +/, "", line)
	says[name, i] = says[name, i] (says[name, i] == "" ? "" : "\n") line
	next
}
part == "examples" { examples[name] = examples[name] $0 "\n" }
