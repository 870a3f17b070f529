/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_descriptor.h - what a descriptor of this process is, by bare system calls.
 *
 * In a header, because returns of traced calls ask, and are compiled without vector registers.
 * Threads  any.  Keep errno.  Each function is one system call; a negative result is -errno.
 */
#ifndef TW_BASE_SYS_DESCRIPTOR_H
#define TW_BASE_SYS_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static inline long tw_sys_descriptor_call(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long tw_sys_descriptor_status(int fd, struct stat *out)
{
	return tw_sys_descriptor_call(SYS_fstat, fd, (long)out, 0, 0, 0);
}

/* SOCK_STREAM, ...; negative: no socket. */
static inline long tw_sys_socket_type(int fd)
{
	int type = 0;
	uint32_t bytes = sizeof type;
	long error = tw_sys_descriptor_call(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&type, (long)&bytes);

	return error < 0 ? error : type;
}

/* The address of a socket, or of its peer; returns its bytes, at most so many. */
static inline long tw_sys_socket_address(int fd, int is_peer, void *out, uint32_t bytes_max)
{
	uint32_t bytes = bytes_max;
	long error =
		tw_sys_descriptor_call(is_peer ? SYS_getpeername : SYS_getsockname, fd, (long)out, (long)&bytes, 0, 0);

	return error < 0 ? error : bytes < bytes_max ? bytes : bytes_max;
}

/* Reads the link in /proc/self/fd. Returns its length, at most bytes_max; the text is not terminated by a zero. */
static inline long tw_sys_descriptor_path(int fd, char *out, size_t bytes_max)
{
	char path[32] = "/proc/self/fd/", digits[12];
	unsigned length = 14, count = 0, number = (unsigned)fd;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		path[length++] = digits[--count];
	path[length] = '\0';
	return tw_sys_descriptor_call(SYS_readlink, (long)path, (long)out, (long)bytes_max, 0, 0);
}

#endif
