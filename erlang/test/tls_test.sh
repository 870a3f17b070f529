#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --erlang --ssl-opts` traces a node whose distribution is by TLS, by its name and by its process; a certificate that is not trusted,
#         on either side, a file of no options, and TLS where there is none are one sentence each.
# Method  A node with a certificate of an authority of the test, that asks for one of the other end; certificates of another authority.
build=$1 modules=(attach)
. "$(dirname "$0")/lib.sh"
for program in epmd openssl; do
	command -v $program >/dev/null || { echo "no $program here: not tested" && exit 77; }
done
erl -noshell -eval 'halt(case code:lib_dir(ssl) of {error, _} -> 1; _ -> 0 end)' || { echo "this erl has no ssl: not tested" && exit 77; }
a_home

# options NAME AUTHORITY TRUSTED: NAME.conf, with a certificate that AUTHORITY has signed, and trust in those of TRUSTED.
options() {
	local key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes) name
	local ours="{certfile, \"$PWD/$1.crt\"}, {keyfile, \"$PWD/$1.key\"}, {cacertfile, \"$PWD/$3.crt\"}, {verify, verify_peer}"
	for name in "$2" "$3"; do
		[ -e "$name.crt" ] || openssl req -x509 "${key[@]}" -days 2 -subj "/CN=$name" -keyout "$name.key" -out "$name.crt" 2>>openssl.out
	done
	openssl req "${key[@]}" -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2>>openssl.out &&
		openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -days 2 -extfile <(echo subjectAltName=DNS:localhost) -out "$1.crt" \
			2>>openssl.out || fail "openssl: $(cat openssl.out)"
	echo "[{server, [$ours, {fail_if_no_peer_cert, true}]}, {client, [$ours]}]." >"$1.conf"
}
options node ours ours
options stranger other ours
options doubting ours other

start_node -proto_dist inet_tls -ssl_dist_optfile "$PWD/node.conf" -sname shop@localhost -setcookie secret
ours=(-q --force --cookie-file cookie -t attach:step --events 10 -o a.tw)
for target in shop@localhost $node; do
	expect 0 "$tw" record --erlang "${ours[@]}" --ssl-opts node.conf "$target"
	expect 0 "$tw" info --json a.tw
	is "$(json 'd["events"], d["complete"]')" "10 True"
done
none=(--cookie-file cookie -t attach:step -o none.tw)
refused 125 "one with distribution by TLS (--ssl-opts)" "${none[@]}" shop@localhost
refused 125 "'shop@localhost' does not answer at localhost, port [0-9]* (127.0.0.1: TLS: .*" --ssl-opts stranger.conf "${none[@]}" shop@localhost
refused 125 "'shop@localhost' does not answer at localhost, port [0-9]* (127.0.0.1: TLS: .*" --ssl-opts doubting.conf "${none[@]}" shop@localhost
refused 2 "$PWD/cookie does not hold options of TLS" --ssl-opts cookie "${none[@]}" shop@localhost
refused 2 "$PWD/missing does not hold options of TLS" --ssl-opts missing "${none[@]}" shop@localhost
kill $node
# A node that waits for its own handshake does not answer.
if [ -n "${TW_TEST_LONG:-}" ]; then
	start_node -sname shop@localhost -setcookie secret
	refused 125 "127.0.0.1: no answer by TLS within 5 seconds" --ssl-opts node.conf "${none[@]}" shop@localhost
fi
exit 0
