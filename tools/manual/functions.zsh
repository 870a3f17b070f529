# The program whose functions are meant: the one to record, which may follow, or that of a process.
_tracewheel_program() {
	local word
	integer i
	for ((i = CURRENT + 1; i <= $#words; i++)); do
		word=${(Q)words[i]}
		if [[ " $valued " == *" $word "* ]]; then
			((i++))
			continue
		fi
		case $word in
		'' | -*) continue ;;
		[0-9]*) [[ $words[1] == record ]] || { print -r -- /proc/$word/exe; return } ;;
		esac
		whence -p -- $word || print -r -- $word
		return
	done
}

# Modules of that program, and behind a colon functions. It is asked for two seconds at most, and once.
_tracewheel_functions() {
	local program
	[[ $words[1] == (record|top|attach|functions) ]] || return 1
	program=$(_tracewheel_program)
	[[ -e $program ]] || return 1
	if [[ $program != "${_tracewheel_asked-}" ]]; then
		typeset -ga _tracewheel_names
		_tracewheel_names=(${(f)"$(timeout 2 ${tracewheel:-tracewheel} functions --no-pager $program 2>/dev/null |
			awk '$2 ~ /^[A-Za-z0-9_.+-]+:[A-Za-z0-9_.:~]+$/ { print $2 }')"})
		typeset -g _tracewheel_asked=$program
	fi
	if [[ $PREFIX == *:* ]]; then
		compadd "$@" -- $_tracewheel_names
	else
		compadd "$@" -S : -q -- ${(u)_tracewheel_names%%:*}
	fi
}
