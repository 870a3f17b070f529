# The words of the line as they were typed: whole, at.
_tracewheel_words()
{
	local line=$COMP_LINE i rest
	for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
		rest=${line#"${line%%[![:space:]]*}"}
		if [ "$i" -gt 0 ] && [ "$rest" = "$line" ] && [ -n "${COMP_WORDS[i]}" ]; then
			whole[${#whole[@]}-1]+=${COMP_WORDS[i]}
		else
			whole+=("${COMP_WORDS[i]}")
		fi
		[ "$i" != "$COMP_CWORD" ] || at=$((${#whole[@]} - 1))
		[ -z "${COMP_WORDS[i]}" ] || line=${rest#"${COMP_WORDS[i]}"}
	done
}

# The program whose functions are meant: the one to record, which may follow, or that of a process.
_tracewheel_program()
{
	local i word
	for ((i = COMP_CWORD + 1; i < ${#COMP_WORDS[@]}; i++)); do
		word=${COMP_WORDS[i]}
		case " $valued " in *" $word "*) i=$((i + 1)); continue ;; esac
		case $word in
		--) continue ;;
		-*) continue ;;
		[0-9]*) [ "$command" = record ] || { echo "/proc/$word/exe"; return; } ;;
		esac
		[ -z "$word" ] || { type -P -- "$word" || echo "$word"; return; }
	done
}

# Modules of that program, and behind a colon functions. It is asked for two seconds at most, and once.
_tracewheel_functions()
{
	local typed=${current#[\"\']} program names
	case $command in record | top | attach | functions) ;; *) return ;; esac
	program=$(_tracewheel_program)
	[ -e "$program" ] || return
	if [ "$program" != "${_tracewheel_asked-}" ]; then
		_tracewheel_names=$(timeout 2 "${COMP_WORDS[0]}" functions --no-pager "$program" 2>/dev/null |
			awk '$2 ~ /^[A-Za-z0-9_.+-]+:[A-Za-z0-9_.:~]+$/ { print $2 }')
		_tracewheel_asked=$program
	fi
	if [[ $typed == *:* ]]; then
		names=$(grep -F -- "$typed" <<<"$_tracewheel_names")
	else
		names=$(cut -d: -f1 <<<"$_tracewheel_names" | sort -u | sed 's/$/:/')
		compopt -o nospace 2>/dev/null
	fi
	COMPREPLY=($(compgen -W "$names" -- "$typed"))
	# Without a quote only what is behind the last colon is replaced.
	if [[ $current == "$typed" && $typed == *:* && $COMP_WORDBREAKS == *:* ]]; then
		COMPREPLY=("${COMPREPLY[@]#"${typed%"${typed##*:}"}"}")
	fi
}
