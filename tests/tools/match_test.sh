#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `tracewheel match' answers like erlang:match_spec_test/3, and points at errors.
build=$1
here=$(realpath "$(dirname "$0")")
. "$here/lib.sh"
vectors=$here/../vectors/match_spec

# The recorded cases: errors have our own words; one map is printed in another order of its keys.
expect 0 "$tw" match --file "$vectors/cases.term"
sed 's/^{error,.*/{error}/' out >ours
sed 's/^{error,.*/{error}/; s/#{b => \[x\],a => {a}}/#{a => {a},b => [x]}/' "$vectors/expected.term" >theirs
diff theirs ours >out || fail "answers differ"

answers() {
	expect 0 "$tw" match "$1" --args "$2"
	is "$(cat out)" "$3" "$1 over $2"
}
answers "[{['\$1'],[{'>','\$1',5}],[{message,{'*','\$1',2}}]}]" '[9]' '{ok,18,[]}.'
answers "[{['\$1'],[{'>','\$1',5}],[]}]" '[5]' '{ok,false,[]}.'
answers "[{'_',[],[{return_trace},{exception_trace}]}]." '[]' '{ok,true,[return_trace,exception_trace]}.'
answers "[{['_','\$1'|'_'],[],[{message,'\$1'}]}]" '[a,b,c]' '{ok,b,[]}.'

expect 0 "$tw" match --when '$1 > 4096 and $2 == "users"' --args '[5000, "users"]'
is "$(cat out)" '{ok,true,[]}.'
expect 0 "$tw" match --when '$1 > 4096'
shows "^\[{\['\$1'|'_'\],\[{'>','\$1',4096}\],\[\]}\]\.$"
shows 'range .*arg 1 4097 \.\.'
shows '^tested fused'
expect 0 "$tw" match "[{'_',[],[{message,{caller}}]}]" --show
shows 'call .*caller/0'
shows 'byte code$'
expect 0 "$tw" match --target send "[{['_',stop],[],[]}]" --args '[x,stop]'
is "$(cat out)" '{ok,true,[]}.'
expect 0 "$tw" match -t table "[{{a,'\$1'},[],['\$1']}]" -a '{a,7}'
is "$(cat out)" '{ok,7,[]}.'

expect 1 "$tw" match "[{['\$1'],
 [{is_atom,'\$1'}, {foo,'\$1'}],[]}]"
says "line 2, column 19: clause 1, guard 2: an unknown function: {foo,'\$1'}"
is "$(tail -n 1 err)" '                    ^'
expect 1 "$tw" match --target send "[{'_',[],[{caller}]}]"
says 'no meaning for send'
expect 1 "$tw" match --when '$1 < $2 < 3'
says 'cannot be chained'
expect 1 "$tw" match --when '$1 < 2' --args '[1,'
says 'column 4'
expect 1 "$tw" match --when '$1 < 2' --args 'a'
says 'is not a list'
expect 1 "$tw" match --file missing
says 'No such file'
printf '{[1],[{x}]}.\n{[1],[{_,[],[]}]}.\n' >cases
expect 1 "$tw" match --file cases
shows '^{error,\["clause 1: '
says 'cases:2:8'
echo '{[1],[]}. {k,[{[],[],[]}]}.' >cases
expect 0 "$tw" match --file cases
is "$(tail -n 1 out)" '{raised,badarg}.'
expect 1 sh -c "'$tw' match --when true > /dev/full"
says 'No space left'

expect 2 "$tw" match
expect 2 "$tw" match "[]" "[]"
expect 2 "$tw" match "[]" --when true
expect 2 "$tw" match --file cases --show
expect 2 "$tw" match "[]" --target moon
says 'call, send, receive or table'
