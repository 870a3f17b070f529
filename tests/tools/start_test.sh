#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Programs that cannot be started or traced are refused before any file is created, with the reason and the
#         codes of env(1).
build=$1
. "$(dirname "$0")/lib.sh"

expect 127 "$tw" record -- no-such-program-anywhere
says "there is no program 'no-such-program-anywhere' in any folder of PATH"
expect 127 "$tw" record -- ./missing
says "there is no program './missing'"
echo text >plain
expect 126 "$tw" record -- ./plain
says "may not be executed"
mkdir folder
expect 126 "$tw" record -- ./folder
says "is a folder"
printf '#!/no/such/interpreter\n' >script
chmod +x script
expect 126 "$tw" record -- ./script
says "/no/such/interpreter"
head -c 64 /bin/true >stub
chmod +x stub
expect 126 "$tw" record -- ./stub
says "stub"

echo 'int main(void) { return 0; }' >main.c
gcc -static -o static main.c || fail "no static program"
expect 125 "$tw" record -- ./static
says "statically linked"
printf '#!%s/static\n' "$work" >static-script
chmod +x static-script
expect 125 "$tw" record -- ./static-script
says "statically linked"

if [ "$(id -u)" = 0 ]; then
	cp /bin/true set-uid
	chown nobody set-uid
	chmod 4755 set-uid
	expect 125 "$tw" record -- ./set-uid
else
	expect 125 "$tw" record -- su --version
fi
says "set-uid"

expect 125 "$tw" record -o no/such/folder/x.tw -- true
says "its folder does not exist"
mkdir elsewhere && ln -s elsewhere link.tw
expect 125 "$tw" record --force -o link.tw -- true
says "it is a symbolic link"
rm link.tw
echo precious >file.tw
expect 125 "$tw" record --force -o file.tw -- true
says "file.tw"
is "$(cat file.tw)" precious "a file is never replaced"
mkdir others.tw
echo precious >others.tw/file
expect 125 "$tw" record --force -o others.tw -- true
says "others.tw"
is "$(cat others.tw/file)" precious "a folder that is no capture is never replaced"
if [ "$(id -u)" != 0 ]; then
	mkdir -m 555 locked
	expect 125 "$tw" record -o locked/x.tw -- true
	says "may not write to its folder"
fi
ls -d ./*.tw | sort >found
printf './file.tw\n./others.tw\n' | cmp -s - found || fail "a refusal left something behind: $(cat found)"
