/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c - descriptions of descriptors as text. */
#include "views/names/descriptors.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static sa_family_t family_of(const struct tw_layout_description *what)
{
	struct sockaddr head = {.sa_family = AF_UNSPEC};
	const void *from = what->local_bytes >= sizeof head.sa_family ? what->local : what->peer;
	if (what->local_bytes >= sizeof head.sa_family || what->peer_bytes >= sizeof head.sa_family)
		memcpy(&head.sa_family, from, sizeof head.sa_family);
	return head.sa_family;
}

static const char *socket_kind(const struct tw_layout_description *what)
{
	sa_family_t family = family_of(what);
	if (family == AF_INET || family == AF_INET6)
		return what->socket_type == SOCK_STREAM ? "tcp" : what->socket_type == SOCK_DGRAM ? "udp" : "ip";
	return family == AF_UNIX ? "unix" : family == AF_NETLINK ? "netlink" : "socket";
}

/* anon_inode:[eventfd] and anon_inode:inotify: the name. */
static const char *anonymous_kind(const struct tw_layout_description *what)
{
	static const char *const names[][2] = {{"eventfd", "eventfd"}, {"eventpoll", "epoll"},
					       {"timerfd", "timer"},   {"signalfd", "signal"},
					       {"inotify", "inotify"}, {"io_uring", "io_uring"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (memmem(what->path, what->path_bytes, names[i][0], strlen(names[i][0])))
			return names[i][1];
	return "other";
}

const char *tw_descriptor_kind(const struct tw_layout_description *what)
{
	static const char anonymous[] = "anon_inode:";
	if (what->path_bytes >= sizeof anonymous - 1 && !memcmp(what->path, anonymous, sizeof anonymous - 1))
		return anonymous_kind(what);
	switch (what->mode) {
	case S_IFSOCK: return socket_kind(what);
	case S_IFIFO: return what->path_bytes && *what->path == '/' ? "fifo" : "pipe";
	case S_IFDIR: return "directory";
	case S_IFCHR: return "device";
	case S_IFBLK: return "disk";
	default: return "file";
	}
}

/* @with_port: else the address alone. Returns false for an address that names nothing. */
static bool put_address(char *text, size_t capacity, const void *address, uint32_t bytes, bool with_port)
{
	struct sockaddr_storage any = {0};
	char number[INET6_ADDRSTRLEN] = "", port[8] = "";
	if (bytes > sizeof any)
		bytes = sizeof any;
	memcpy(&any, address, bytes);
	if (any.ss_family == AF_INET && bytes >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&any;
		inet_ntop(AF_INET, &in->sin_addr, number, sizeof number);
		snprintf(port, sizeof port, ":%u", ntohs(in->sin_port));
		snprintf(text, capacity, "%s%s", number, with_port ? port : "");
		return true;
	}
	if (any.ss_family == AF_INET6 && bytes >= sizeof(struct sockaddr_in6)) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&any;
		inet_ntop(AF_INET6, &in->sin6_addr, number, sizeof number);
		snprintf(port, sizeof port, ":%u", ntohs(in->sin6_port));
		snprintf(text, capacity, with_port ? "[%s]%s" : "%s%s", number, with_port ? port : "");
		return true;
	}
	if (any.ss_family == AF_UNIX && bytes > offsetof(struct sockaddr_un, sun_path)) {
		const char *path = (const char *)&any + offsetof(struct sockaddr_un, sun_path);
		size_t length = bytes - offsetof(struct sockaddr_un, sun_path);
		bool is_abstract = !*path;
		snprintf(text, capacity, "%s%.*s", is_abstract ? "@" : "",
			 (int)strnlen(path + is_abstract, length - is_abstract), path + is_abstract);
		return true;
	}
	return false;
}

bool tw_descriptor_address(const void *address, size_t bytes, char *text, size_t capacity)
{
	return put_address(text, capacity, address, (uint32_t)(bytes < UINT32_MAX ? bytes : UINT32_MAX), true);
}

static bool is_unbound(const char *address)
{
	return !*address || !strcmp(address, "0.0.0.0:0") || !strcmp(address, "[::]:0");
}

static void put_socket(const struct tw_layout_description *what, enum tw_descriptor_form form, bool is_accepted,
		       char *text)
{
	bool is_whole = form == TW_DESCRIPTOR_WHOLE;
	char local[160] = "", peer[160] = "";
	bool has_peer = put_address(peer, sizeof peer, what->peer, what->peer_bytes, is_whole || !is_accepted);
	bool has_local = put_address(local, sizeof local, what->local, what->local_bytes, true) && !is_unbound(local);
	const char *kind = socket_kind(what);
	/* The port that the kernel chose for a connection says nothing. */
	if (has_peer && !is_accepted && !is_whole)
		has_local = false;
	snprintf(text, TW_DESCRIPTOR_TEXT_BYTES, "%s%s%s%s%s", kind, has_local ? " " : "", has_local ? local : "",
		 has_peer ? (is_accepted ? " <- " : " -> ") : "", has_peer ? peer : "");
	if (!has_local && !has_peer && is_whole)
		snprintf(text, TW_DESCRIPTOR_TEXT_BYTES, "%s %llu", kind, (unsigned long long)what->inode);
}

size_t tw_descriptor_text(const struct tw_layout_description *what, enum tw_descriptor_form form, bool is_accepted,
			  char *text)
{
	const char *kind = tw_descriptor_kind(what);
	if (what->mode == S_IFSOCK)
		put_socket(what, form, is_accepted, text);
	else if (what->path_bytes && *what->path == '/')
		snprintf(text, TW_DESCRIPTOR_TEXT_BYTES, "%s %.*s", kind, (int)what->path_bytes, what->path);
	else if (form == TW_DESCRIPTOR_WHOLE && what->mode)
		snprintf(text, TW_DESCRIPTOR_TEXT_BYTES, "%s %llu", kind, (unsigned long long)what->inode);
	else
		snprintf(text, TW_DESCRIPTOR_TEXT_BYTES, "%s", kind);
	return strlen(text);
}
