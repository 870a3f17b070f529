#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# machine.sh FOLDER ARCHIVES FORM SHM-SIZE COMMAND - the first process of a fresh machine (fresh.sh): makes FOLDER the root of its name
# space, with the file systems and the names that a Debian has, and runs readme.sh there as the form's user. FORM `enter` opens a shell.
# ARCHIVES keeps downloaded packages for the next machine.
set -eu
folder=$1 archives=$2 form=$3 shm=$4 command=$5
name=newcomer

mount_all() {
	local device
	# Nothing that is mounted here is seen outside, and no mount of outside is left inside.
	mount --make-rprivate /
	mount --bind "$folder" "$folder"
	cd "$folder"
	mount -t proc proc proc
	mount -t sysfs sysfs sys
	mount -t tmpfs -o mode=755 run run
	mkdir run/lock
	mount -t tmpfs -o mode=755 dev dev
	mkdir dev/pts dev/shm
	for device in null zero full random urandom tty loop-control loop{0..15}; do
		[ ! -e "/dev/$device" ] || cp -a "/dev/$device" dev
	done
	mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
	ln -s pts/ptmx dev/ptmx
	ln -s /proc/self/fd dev/fd
	ln -s fd/0 dev/stdin
	ln -s fd/1 dev/stdout
	ln -s fd/2 dev/stderr
	mount -t tmpfs -o "mode=1777,nosuid,nodev${shm:+,size=$shm}" shm dev/shm
	[ -z "$archives" ] || mount --bind "$archives" var/cache/apt/archives
	# A root by chroot would forbid name spaces of users, and mounts in name spaces of their own.
	mkdir -p .outside
	pivot_root . .outside
	cd /
	umount -l .outside
	rmdir .outside
}

# As Debian's installer writes them.
set_names() {
	hostname $name
	echo $name >/etc/hostname
	cat >/etc/hosts <<-HOSTS
		127.0.0.1	localhost
		127.0.1.1	$name

		# The following lines are desirable for IPv6 capable hosts
		::1     localhost ip6-localhost ip6-loopback
		ff02::1 ip6-allnodes
		ff02::2 ip6-allrouters
	HOSTS
}

# A user who may become root by sudo, without a password since nobody could type it here.
make_user() {
	user=user
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends sudo
	useradd --create-home --shell /bin/bash --groups sudo $user
	echo "$user ALL=(ALL:ALL) NOPASSWD: ALL" >/etc/sudoers.d/$user
	mv /root/tracewheel /home/$user
	chown -R $user: /home/$user/tracewheel
}

mount_all
set_names
user=root
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [ "$form" = enter ]; then
	exec env -i HOME=/root PATH="$PATH" TERM="${TERM:-dumb}" bash -l
fi
[ "$form" != user ] || make_user
# A login: of this environment only what makes the tests shorter.
short=
for variable in TW_FUZZ_SECONDS CTEST_PARALLEL_LEVEL; do
	short+=${!variable:+$variable=$(printf %q "${!variable}") }
done
runuser -l $user -c "cd tracewheel && $short tests/fresh/readme.sh $command"
