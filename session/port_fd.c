/* SPDX-License-Identifier: Apache-2.0 */
/* port_fd.c - file descriptors that a program declares as ports: their descriptions, and the port of each. */
#include "session/session.h"
#include "session/port_table.h"
#include "tracewheel/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CHUNK_FDS  1024
#define CHUNKS	   1024
#define NAME_BYTES 32

/* The port of each declared descriptor, which may be closed by now. Chunks are never freed. */
static _Atomic uint64_t *_Atomic chunks[CHUNKS];

struct description {
	char driver[32];
	char name[NAME_BYTES]; /* empty: none */
};

/* ---- the table ---- */

static _Atomic uint64_t *port_of(int fd)
{
	_Atomic uint64_t *chunk;

	if (fd < 0 || fd >= CHUNKS * CHUNK_FDS)
		return NULL;
	/* PAIR port.fds: acquire; release in make_port_of(). */
	chunk = tw_load_acquire(&chunks[fd / CHUNK_FDS]);
	return chunk ? &chunk[fd % CHUNK_FDS] : NULL;
}

static _Atomic uint64_t *make_port_of(int fd)
{
	_Atomic uint64_t *none = NULL;
	void *chunk;

	if (port_of(fd))
		return port_of(fd);
	chunk = mmap(NULL, CHUNK_FDS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (chunk == MAP_FAILED)
		return NULL;
	/* PAIR port.fds: release; acquire in port_of(). */
	if (!tw_cas_acq_rel(&chunks[fd / CHUNK_FDS], &none, chunk))
		munmap(chunk, CHUNK_FDS * sizeof(uint64_t));
	return port_of(fd);
}

TW_API tw_port tw_port_of_fd(int fd)
{
	_Atomic uint64_t *at = port_of(fd);
	/* RELAXED port.of_fd: the program orders its use of a descriptor. */
	uint64_t port = at ? tw_load_relaxed(at) : 0;

	return tw_port_is_open(port) ? port : 0;
}

/* ---- describing a descriptor ---- */

/* Keeps the end of a long name, which is more specific than its beginning. */
static void set_name(struct description *out, const char *name)
{
	size_t bytes = strlen(name);

	if (bytes < NAME_BYTES)
		memcpy(out->name, name, bytes + 1);
	else
		snprintf(out->name, NAME_BYTES, "...%s", name + bytes - (NAME_BYTES - 4));
}

static void name_address(const struct sockaddr_storage *address, struct description *out)
{
	char host[INET6_ADDRSTRLEN] = "", text[INET6_ADDRSTRLEN + 16];

	if (address->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)address;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
		snprintf(text, sizeof text, "%s:%u", host, ntohs(in->sin_port));
		set_name(out, text);
	} else if (address->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)address;

		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
		snprintf(text, sizeof text, "[%s]:%u", host, ntohs(in->sin6_port));
		set_name(out, text);
	} else if (address->ss_family == AF_UNIX) {
		set_name(out, ((const struct sockaddr_un *)address)->sun_path);
	}
}

static void describe_socket(int fd, struct description *out)
{
	int domain = 0, type = 0;
	socklen_t bytes = sizeof domain;
	struct sockaddr_storage address;
	const char *driver = "socket";

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes);
	bytes = sizeof type;
	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes);
	if (domain == AF_UNIX)
		driver = "unix";
	else if ((domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM)
		driver = "tcp_inet";
	else if ((domain == AF_INET || domain == AF_INET6) && type == SOCK_DGRAM)
		driver = "udp_inet";
	strcpy(out->driver, driver);
	memset(&address, 0, sizeof address);
	bytes = sizeof address - 1;
	if (getpeername(fd, (struct sockaddr *)&address, &bytes) == 0) {
		name_address(&address, out);
		return;
	}
	memset(&address, 0, sizeof address);
	bytes = sizeof address - 1;
	if (getsockname(fd, (struct sockaddr *)&address, &bytes) == 0)
		name_address(&address, out);
}

/* anon_inode:[timerfd] and similar. */
static void describe_other(const char *path, struct description *out)
{
	const char *from = strchr(path, '['), *to = from ? strchr(from, ']') : NULL;
	size_t bytes = to ? (size_t)(to - from - 1) : 0;

	strcpy(out->driver, "fd");
	if (bytes && bytes < sizeof out->driver) {
		memcpy(out->driver, from + 1, bytes);
		out->driver[bytes] = 0;
	}
}

static int describe(int fd, struct description *out)
{
	char link[64], path[4096] = "";
	struct stat status;
	ssize_t bytes;

	memset(out, 0, sizeof *out);
	if (fstat(fd, &status))
		return TW_EBADARG;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	bytes = readlink(link, path, sizeof path - 1);
	path[bytes > 0 ? bytes : 0] = 0;
	switch (status.st_mode & S_IFMT) {
	case S_IFSOCK: describe_socket(fd, out); return 0;
	case S_IFREG: strcpy(out->driver, "file"); break;
	case S_IFDIR: strcpy(out->driver, "directory"); break;
	case S_IFIFO: strcpy(out->driver, "pipe"); break;
	case S_IFCHR: strcpy(out->driver, isatty(fd) ? "tty" : "device"); break;
	case S_IFBLK: strcpy(out->driver, "device"); break;
	default: describe_other(path, out); return 0;
	}
	set_name(out, path);
	return 0;
}

/* ---- the call ---- */

TW_API int tw_port_declare_fd(int fd, struct tw_process *opener, tw_port *out)
{
	struct description description;
	struct tw_port_options options = {.driver = description.driver, .opener = opener, .is_linked = opener != NULL};
	int kept_errno = errno, error;
	_Atomic uint64_t *at;
	tw_port before;

	if (!out || fd < 0 || fd >= CHUNKS * CHUNK_FDS)
		return TW_EBADARG;
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	error = describe(fd, &description);
	errno = kept_errno;
	if (error)
		return error;
	at = make_port_of(fd);
	if (!at)
		return TW_ENOMEM;
	/* The descriptor number was reused: its old port is closed before the new one is opened. */
	before = tw_port_of_fd(fd);
	if (before)
		tw_port_close(before, tw_term_atom_z("reused"));
	options.name = description.name[0] ? description.name : NULL;
	error = tw_port_open(&options, out);
	if (error)
		return error;
	/* RELAXED port.of_fd: as above; two threads that declare one descriptor leave one port. */
	before = tw_exchange_acq_rel(at, *out);
	if (tw_port_is_open(before))
		tw_port_close(before, tw_term_atom_z("reused"));
	return 0;
}
