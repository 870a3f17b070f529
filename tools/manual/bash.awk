# SPDX-License-Identifier: Apache-2.0
# bash.awk - completions for bash of what parse.awk took apart.

function flags(name, i) {
	return (short[name, i] == "" ? "" : "-" short[name, i] " ") "--" long[name, i]
}

END {
	print "# Completions for tracewheel in bash, made by tools/manual/make.sh of what --help says."
	while ((getline line < (here "/functions.bash")) > 0)
		print line
	print "_tracewheel()\n{"
	print "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]-}"
	print "\tlocal options= valued= arguments=nothing words= i"
	print "\tCOMPREPLY=()"
	print "\tif [ -n \"${COMP_LINE-}\" ]; then"
	print "\t\t# Bash divides words at colons."
	print "\t\tlocal whole=() at=0\n\t\t_tracewheel_words"
	print "\t\tlocal COMP_WORDS=(\"${whole[@]}\") COMP_CWORD=$at"
	print "\t\tcurrent=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n\tfi"
	print "\tif [ \"$COMP_CWORD\" -le 1 ]; then"
	line = ""
	for (n = 1; n <= name_count; n++)
		line = line names[n] " "
	print "\t\tCOMPREPLY=($(compgen -W '" line "--help --version' -- \"$current\"))\n\t\treturn\n\tfi"
	print "\tcase $command in"
	for (n = 1; n <= name_count; n++) {
		name = names[n]
		options = valued = ""
		for (i = 1; i <= count[name]; i++) {
			options = options " " flags(name, i)
			if (value[name, i] != "" && value[name, i] !~ /^\[/)
				valued = valued " " flags(name, i)
		}
		print "\t" name ") options='" substr(options, 2) "' valued='" substr(valued, 2) "' arguments=" \
		      arguments_of(name) " ;;"
	}
	print "\t*) return ;;\n\tesac"
	print "\t# The words before this one: the value of an option, or the program to record?"
	print "\tfor ((i = 2; i < COMP_CWORD; i++)); do"
	print "\t\tcase \" $valued \" in *\" ${COMP_WORDS[i]} \"*) i=$((i + 1)); continue ;; esac"
	print "\t\tcase ${COMP_WORDS[i]} in"
	print "\t\t--) i=$((i + 1)); break ;;\n\t\t-?*) ;;\n\t\t*) break ;;\n\t\tesac\n\tdone"
	print "\tif [ \"$i\" -gt \"$COMP_CWORD\" ]; then"
	print "\t\tcase $command,$previous in"
	for (n = 1; n <= name_count; n++) {
		name = names[n]
		for (i = 1; i <= count[name]; i++) {
			both = name "," flags(name, i)
			sub(/ /, " | " name ",", both)
			if (choices(name, i) != "")
				print "\t\t" both ") words='" choices(name, i) "' ;;"
			else if (value[name, i] == "PATTERN")
				print "\t\t" both ") _tracewheel_functions; return ;;"
			else if (value_of(name, i) != "nothing")
				print "\t\t" both ") COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames 2>/dev/null ;;"
		}
	}
	print "\t\tesac"
	print "\t\t[ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n\t\treturn\n\tfi"
	print "\tif [[ $i -eq $COMP_CWORD && $current == -* && ${COMP_WORDS[i-1]} != -- ]]; then"
	print "\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n\t\treturn\n\tfi"
	print "\tcase $arguments in"
	print "\tcommand)"
	print "\t\tif declare -F _command_offset >/dev/null; then\n\t\t\t_command_offset \"$i\""
	print "\t\telif [ \"$i\" -eq \"$COMP_CWORD\" ]; then\n\t\t\tCOMPREPLY=($(compgen -c -f -- \"$current\"))"
	print "\t\telse\n\t\t\tCOMPREPLY=($(compgen -f -- \"$current\"))\n\t\tfi ;;"
	print "\tcaptures)\n\t\t# Where there is none, streams and folders on the way."
	print "\t\tCOMPREPLY=($(compgen -f -X '!*.tw' -- \"$current\"))"
	print "\t\t[ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$current\"))"
	print "\t\tcompopt -o filenames 2>/dev/null ;;"
	print "\tprocesses) COMPREPLY=($(compgen -W \"$(ps -u \"$UID\" -o pid= 2>/dev/null)\" -- \"$current\")) ;;"
	print "\tfiles) COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames 2>/dev/null ;;"
	print "\tesac\n}"
	print "complete -F _tracewheel tracewheel"
}
