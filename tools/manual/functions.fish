# Modules of the program to record, which may follow, or of a process, and behind a colon functions. It is asked for two seconds at most,
# and once. The arguments are the options that have a value.
function __tracewheel_functions
    set -l before (commandline -opc)
    set -l count (count $before)
    set -l rest (commandline -op)
    set -e rest[1..$count]
    set -l typed (commandline -ct)
    # The word that is being completed.
    test -z "$typed"; or set -e rest[1]
    set -l program
    set -l is_value no
    for word in $rest
        if test $is_value = yes
            set is_value no
        else if contains -- $word $argv
            set is_value yes
        else if not string match -q -- '-*' $word
            if test "$before[2]" != record; and string match -qr '^[0-9]+$' -- $word
                set program /proc/$word/exe
            else
                set program (command -s -- $word; or echo $word)
            end
            break
        end
    end
    test -e "$program"; or return
    if test "$program" != "$__tracewheel_asked"
        set -g __tracewheel_names (timeout 2 $before[1] functions --no-pager $program 2>/dev/null |
            awk '$2 ~ /^[A-Za-z0-9_.+-]+:[A-Za-z0-9_.:~]+$/ { print $2 }')
        set -g __tracewheel_asked $program
    end
    if string match -q '*:*' -- "$typed"
        printf '%s\n' $__tracewheel_names
    else
        string replace -r ':.*' ':' -- $__tracewheel_names | sort -u
    end
end

