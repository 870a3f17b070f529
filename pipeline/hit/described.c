/* SPDX-License-Identifier: Apache-2.0 */
/* described.c - asking the kernel what a descriptor is.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/described.h"
#include "base/filter.h"
#include "base/sys.h"
#include "base/sys_descriptor.h"

#include <stdio.h>
#include <stdbool.h>

_Static_assert(TW_LAYOUT_DESCRIPTOR_WORDS_MAX == 3 + 2 * TW_LAYOUT_ADDRESS_BYTES_MAX / 8 + TW_LAYOUT_PATH_BYTES_MAX / 8,
	       "a head, two addresses and a path");

/* Pads the bytes behind `at` with zeros to a word; returns the words. */
static unsigned pad(uint64_t *at, long bytes)
{
	uint8_t *text = (uint8_t *)at;
	unsigned words = (unsigned)(bytes + 7) / 8;

	for (unsigned i = (unsigned)bytes; i < 8 * words; i++)
		text[i] = 0;
	return words;
}

/* The address that connect() was given, where the kernel names no peer: not connected yet, or in vain. */
static long copy_given(const uint64_t *words, uint64_t *out)
{
	uint64_t bytes = words[2] < TW_LAYOUT_ADDRESS_BYTES_MAX ? words[2] : TW_LAYOUT_ADDRESS_BYTES_MAX;

	return bytes ? tw_sys_read_own_memory((long)tw_sys_descriptor_call(SYS_getpid, 0, 0, 0, 0, 0), out, words[1],
					      bytes)
		     : 0;
}

/* One descriptor; @given: the registers of a call of connect(), else NULL.  Returns its words; 0: there is no such descriptor. */
static unsigned describe(int fd, const uint64_t *given, uint64_t *out)
{
	long local = 0, peer = 0, path = 0, type = 0;
	unsigned count = 3;
	struct stat status;

	if (fd < 0 || tw_sys_descriptor_status(fd, &status) < 0)
		return 0;
	if ((status.st_mode & S_IFMT) == S_IFSOCK) {
		type = tw_sys_socket_type(fd);
		local = tw_sys_socket_address(fd, 0, out + count, TW_LAYOUT_ADDRESS_BYTES_MAX);
		local = local > 0 ? local : 0;
		count += pad(out + count, local);
		peer = tw_sys_socket_address(fd, 1, out + count, TW_LAYOUT_ADDRESS_BYTES_MAX);
		if (peer <= 0 && given)
			peer = copy_given(given, out + count);
		peer = peer > 0 ? peer : 0;
		count += pad(out + count, peer);
	} else {
		path = tw_sys_descriptor_path(fd, (char *)(out + count), TW_LAYOUT_PATH_BYTES_MAX);
		path = path > 0 ? path : 0;
		count += pad(out + count, path);
	}
	out[0] =
		(uint32_t)fd | (uint64_t)(status.st_mode & S_IFMT) << 32 | (uint64_t)(type > 0 ? type & 0xff : 0) << 48;
	out[1] = status.st_ino;
	out[2] = (uint64_t)local | (uint64_t)peer << 16 | (uint64_t)path << 32;
	return count;
}

unsigned tw_described_one(int fd, uint64_t *out)
{
	return describe(fd, NULL, out);
}

/* Two descriptors, which lie there. */
static unsigned describe_pair(uint64_t address, uint64_t *out)
{
	int fds[2];
	unsigned first;

	if (tw_sys_read_own_memory((long)tw_sys_descriptor_call(SYS_getpid, 0, 0, 0, 0, 0), fds, address, sizeof fds) !=
	    (long)sizeof fds)
		return 0;
	first = describe(fds[0], NULL, out);
	return first ? first + describe(fds[1], NULL, out + first) : 0;
}

unsigned tw_described_return(unsigned how, uint64_t value, const uint64_t *words, uint64_t *out)
{
	bool is_kept = words != NULL;
	int result = (int)value;

	out[0] = value;
	if (!tw_thread_may_call_system())
		return 1;
	switch (how) {
	case TW_LAYOUT_DESCRIPTOR_RESULT:
	case TW_LAYOUT_DESCRIPTOR_ACCEPTED: return 1 + describe(result, NULL, out + 1);
	case TW_LAYOUT_DESCRIPTOR_STREAM:
		/* A stream that libc has just opened is a valid one. */
		return 1 + (value ? describe(((const FILE *)(uintptr_t)value)->_fileno, NULL, out + 1) : 0);
	case TW_LAYOUT_DESCRIPTOR_PAIR_FIRST: return 1 + (is_kept && !result ? describe_pair(words[0], out + 1) : 0);
	case TW_LAYOUT_DESCRIPTOR_PAIR_FOURTH: return 1 + (is_kept && !result ? describe_pair(words[3], out + 1) : 0);
	case TW_LAYOUT_DESCRIPTOR_CONNECTED: return 1 + (is_kept ? describe((int)words[0], words, out + 1) : 0);
	case TW_LAYOUT_DESCRIPTOR_BOUND: return 1 + (is_kept && !result ? describe((int)words[0], NULL, out + 1) : 0);
	case TW_LAYOUT_DESCRIPTOR_FCNTL:
		/* F_DUPFD, F_DUPFD_CLOEXEC: other commands return something else. */
		return 1 + (is_kept && (words[1] == 0 || words[1] == 1030) ? describe(result, NULL, out + 1) : 0);
	default: return 1;
	}
}
