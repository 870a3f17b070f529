#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo_store.sh FOLDER [--ceph] [PID] - an object store on loopback with a bucket `traces`, until SIGTERM or the end of the process PID.
# FOLDER/environment is what ship and fleet need to know of it. Without --ceph it is the strict stand-in of the tests.
set -eu
here=$(dirname "$(realpath "$0")")
folder=$(realpath "$1")
kind=${2:-} parent=${3:-}
pids=()
# The last first: an OSD waits for its monitor.
stop() {
	trap '' TERM
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill "${pids[i]}" 2>/dev/null || continue
		for _ in {1..50}; do
			kill -0 "${pids[i]}" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "${pids[i]}" 2>/dev/null || true
	done
}
trap stop EXIT
trap 'exit 0' TERM INT
environment() {
	cat >"$folder/environment.new" <<-TEXT
		export AWS_ENDPOINT_URL=http://127.0.0.1:$1 AWS_ACCESS_KEY_ID=TWACCESS AWS_SECRET_ACCESS_KEY=TWSECRET AWS_REGION=eu-central-1
	TEXT
	mv "$folder/environment.new" "$folder/environment"
}
port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
# until COMMAND...: for a minute.
until_is() {
	for _ in {1..300}; do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.2
	done
	echo "in vain: $*"
	return 1
}

if [ "$kind" = --ceph ]; then
	# One monitor, one OSD in memory, one gateway: of this folder, without any of the machine's services.
	monitor=$(port) gateway=$(port) id=$(cat /proc/sys/kernel/random/uuid)
	mkdir -p "$folder/ceph/mon" "$folder/ceph/osd"
	cat >"$folder/ceph.conf" <<-TEXT
		[global]
		fsid = $id
		mon host = v1:127.0.0.1:$monitor
		public network = 127.0.0.0/8
		auth cluster required = none
		auth service required = none
		auth client required = none
		osd pool default size = 1
		osd pool default min size = 1
		osd pool default pg num = 1
		mon allow pool size one = true
		mon data = $folder/ceph/mon
		osd data = $folder/ceph/osd
		osd objectstore = memstore
		memstore device bytes = 1073741824
		osd crush chooseleaf type = 0
		run dir = $folder/ceph
		log file = $folder/ceph/\$name.log
		admin socket = $folder/ceph/\$name.asok
		keyring = $folder/ceph/keyring
		rgw dns name = 127.0.0.1
		rgw frontends = beast endpoint=127.0.0.1:$gateway
	TEXT
	export CEPH_CONF=$folder/ceph.conf
	monmaptool --create --addv a "[v1:127.0.0.1:$monitor]" --fsid "$id" "$folder/ceph/monmap"
	ceph-mon --mkfs -i a --monmap "$folder/ceph/monmap"
	ceph-mon -f -i a &
	pids+=($!)
	until_is ceph --connect-timeout 5 mon stat
	osd=$(cat /proc/sys/kernel/random/uuid)
	ceph osd new "$osd" 0
	ceph-osd -i 0 --mkfs --osd-uuid "$osd"
	ceph-osd -f -i 0 &
	pids+=($!)
	ceph osd crush add osd.0 1.0 root=default host=here
	radosgw -f -n client.rgw &
	pids+=($!)
	until_is radosgw-admin user create --uid tracewheel --display-name tracewheel --access-key TWACCESS --secret-key TWSECRET
	until_is curl -fsS -o /dev/null -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' --aws-sigv4 aws:amz:eu-central-1:s3 --user TWACCESS:TWSECRET -X PUT "http://127.0.0.1:$gateway/traces"
	environment "$gateway"
else
	python3 -I -S "$here/../tests/tools/fake_s3.py" "$folder/store" >"$folder/port" &
	pids+=($!)
	until_is test -s "$folder/port"
	environment "$(cat "$folder/port")"
fi
while [ -z "$parent" ] || kill -0 "$parent" 2>/dev/null; do
	sleep 1 &
	wait $!
done
