# SPDX-License-Identifier: Apache-2.0
# fish.awk - completions for fish of what parse.awk took apart.

function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/'/, "\\'", text)
	return "'" text "'"
}

END {
	print "# Completions for tracewheel in fish, made by tools/manual/make.sh of what --help says."
	while ((getline line < (here "/functions.fish")) > 0)
		print line
	print "complete -c tracewheel -f"
	print "complete -c tracewheel -n __fish_use_subcommand -l help -d 'explain'"
	print "complete -c tracewheel -n __fish_use_subcommand -l version -d 'version and build'"
	for (n = 1; n <= name_count; n++)
		print "complete -c tracewheel -n __fish_use_subcommand -a " names[n] " -d " quoted(summary[names[n]])
	for (n = 1; n <= name_count; n++) {
		name = names[n]
		seen = "complete -c tracewheel -n '__fish_seen_subcommand_from " name "'"
		if (arguments_of(name) == "command")
			print seen " -x -a '(__fish_complete_subcommand --fcs-skip=2)'"
		else if (arguments_of(name) == "processes")
			print seen " -x -a '(__fish_complete_pids)'"
		else if (arguments_of(name) == "captures")
			print seen " -k -F -a '(__fish_complete_suffix .tw)'"
		else if (arguments_of(name) != "nothing")
			print seen " -F"
		valued = ""
		for (i = 1; i <= count[name]; i++)
			if (value[name, i] != "" && value[name, i] !~ /^\[/)
				valued = valued " " (short[name, i] == "" ? "" : "-" short[name, i] " ") "--" long[name, i]
		for (i = 1; i <= count[name]; i++) {
			line = seen (short[name, i] == "" ? "" : " -s " short[name, i]) " -l " long[name, i]
			if (choices(name, i) != "")
				line = line " -x -a " quoted(choices(name, i))
			else if (value[name, i] == "PATTERN")
				line = line " -x -a " quoted("(__tracewheel_functions" valued ")")
			else if (value_of(name, i) != "nothing")
				line = line " -r -F"
			else if (value[name, i] != "" && value[name, i] !~ /^\[/)
				line = line " -x"
			print line " -d " quoted(brief(name, i))
		}
	}
}
