# SPDX-License-Identifier: Apache-2.0
# zsh.awk - completions for zsh of what parse.awk took apart.

# Inside of '...' and [...] of _arguments.
function quoted(text) {
	gsub(/'/, "'\\''", text)
	gsub(/\[|\]|:/, "\\\\&", text)
	return text
}

function flags(name, i) {
	return (short[name, i] == "" ? "" : "-" short[name, i] " ") "--" long[name, i]
}

function action(kind) {
	return kind == "nothing" ? " " : "_files"
}

END {
	print "#compdef tracewheel"
	print "# Completions for tracewheel in zsh, made by tools/manual/make.sh of what --help says."
	while ((getline line < (here "/functions.zsh")) > 0)
		print line
	print "_tracewheel() {\n\tlocal context state state_descr line valued tracewheel=$words[1]\n\ttypeset -A opt_args"
	print "\tlocal -a commands=("
	for (n = 1; n <= name_count; n++)
		print "\t\t'" names[n] ":" quoted(summary[names[n]]) "'"
	print "\t)"
	print "\t_arguments -C '(- *)--help[explain]' '(- *)--version[version and build]' '1:command:->command' '*::argument:->argument'"
	print "\tcase $state in\n\tcommand) _describe command commands ;;\n\targument)\n\t\tcase $words[1] in"
	for (n = 1; n <= name_count; n++) {
		name = names[n]
		valued = ""
		for (i = 1; i <= count[name]; i++)
			if (value[name, i] != "" && value[name, i] !~ /^\[/)
				valued = valued " " flags(name, i)
		printf "\t\t%s)\n\t\t\tvalued='%s'\n\t\t\t_arguments -s -S", name, substr(valued, 2)
		for (i = 1; i <= count[name]; i++) {
			word = value[name, i]
			tail = "[" quoted(brief(name, i)) "]"
			equals = ""
			if (word ~ /^\[/) {
				equals = "=-"
				gsub(/\[|\]|=/, "", word)
				tail = tail "::" quoted(word) ": "
			} else if (word != "") {
				equals = "="
				tail = tail ":" quoted(word) ":" \
				       (choices(name, i) != "" ? "(" choices(name, i) ")" : \
					word == "PATTERN" ? "_tracewheel_functions" : action(value_of(name, i)))
			}
			printf " \\\n\t\t\t\t'*--%s%s%s'", long[name, i], equals, tail
			if (short[name, i] != "")
				printf " '*-%s%s%s'", short[name, i], equals == "" ? "" : "+", tail
		}
		if (arguments_of(name) == "command")
			printf " \\\n\t\t\t\t'(-)1:program:_command_names -e' '*::argument:_normal'"
		else if (arguments_of(name) != "nothing")
			printf " \\\n\t\t\t\t'*:%s'", arguments_of(name) == "captures" ? "capture:_files -g \"*.tw\"" : \
			       arguments_of(name) == "processes" ? "process:_pids" : "file:_files"
		print " ;;"
	}
	print "\t\tesac ;;\n\tesac\n}\n_tracewheel \"$@\""
}
