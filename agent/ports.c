/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports.c - the calls of libc by which a program uses descriptors, and their arguments.
 *
 * `record --ports` traces these functions with their returns. Their layouts stand here, because libc rarely comes with
 * debug information, and because a return of type `d` describes the descriptors that the call has made, which no
 * debug information says. Readers know the meaning of an argument by its name:
 *
 *	fd, in_fd, out_fd	a descriptor
 *	stream			a FILE; stdin, stdout and stderr by name
 *	first, last		a range of descriptors
 *	size, count		items of so many bytes, where the result is a number of items
 */
#include "agent/agent.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX      256
#define COPY_BYTES_MAX 4096

/* In layouts of the table: the enumerators of a stream. */
#define STREAM(argument) " stream:e8/FILE%@" #argument "-"
#define FD		 " fd:i4@0-"
#define PATH(argument)	 " path:s@" #argument "-"
#define FLAGS(argument)	 " flags:i4@" #argument "-"
#define BYTES		 ":i8@6-"
#define DONE		 ":i4@6-"
#define RESULT		 ":d1@6-"
#define ACCEPTED	 ":d8@6-"
#define NEW_STREAM	 ":d2@6-"
#define ITEMS(argument)	 ":u8@6- size:u8@" #argument "-"

/* Functions with one layout, separated by blanks. */
static const struct {
	const char *names;
	const char *layout;
} rows[] = {
	{"open open64 __open_2 __open64_2", RESULT PATH(0) FLAGS(1)},
	{"openat openat64 __openat_2 __openat64_2", RESULT " directory:i4@0-" PATH(1) FLAGS(2)},
	{"creat creat64 mkstemp mkstemp64 mkostemp mkostemp64 mkstemps memfd_create shm_open", RESULT PATH(0)},
	{"fopen fopen64", NEW_STREAM PATH(0) " mode:s@1-"},
	{"fdopen", NEW_STREAM FD " mode:s@1-"},
	{"freopen freopen64", NEW_STREAM PATH(0) " mode:s@1-" STREAM(2)},
	{"popen", NEW_STREAM " command:s@0- mode:s@1-"},
	{"tmpfile tmpfile64", NEW_STREAM},
	{"socket", RESULT " domain:i4@0- type:i4@1- protocol:i4@2-"},
	{"accept", ACCEPTED FD},
	{"accept4", ACCEPTED FD FLAGS(3)},
	{"connect", ":d5@6-" FD},
	{"bind", ":d6@6-" FD},
	{"listen", ":d6@6-" FD " backlog:i4@1-"},
	{"pipe", ":d3@6-"},
	{"pipe2", ":d3@6-" FLAGS(1)},
	{"socketpair", ":d4@6- domain:i4@0- type:i4@1-"},
	{"dup", RESULT FD},
	{"dup2", RESULT FD " to:i4@1-"},
	{"dup3", RESULT FD " to:i4@1-" FLAGS(2)},
	{"fcntl fcntl64", ":d7@6-" FD " command:i4@1-"},
	{"epoll_create epoll_create1 inotify_init inotify_init1 timerfd_create eventfd", RESULT},
	{"signalfd", RESULT},
	{"epoll_wait epoll_pwait epoll_pwait2", DONE FD},
	{"timerfd_settime", DONE FD},
	{"read __read_chk readv preadv preadv64 preadv2 preadv64v2 pread pread64 __pread_chk __pread64_chk recv "
	 "__recv_chk recvfrom __recvfrom_chk recvmsg",
	 BYTES FD},
	{"write writev pwritev pwritev64 pwritev2 pwritev64v2 pwrite pwrite64 send sendto sendmsg vmsplice", BYTES FD},
	{"recvmmsg sendmmsg", DONE FD},
	{"sendfile sendfile64", BYTES " out_fd:i4@0- in_fd:i4@1-"},
	{"splice copy_file_range", BYTES " in_fd:i4@0- out_fd:i4@2-"},
	{"eventfd_read eventfd_write", DONE FD},
	{"shutdown", DONE FD " how:i4@1-"},
	{"close", DONE FD},
	{"close_range", DONE " first:u4@0- last:u4@1-" FLAGS(2)},
	{"fork _Fork vfork posix_spawn posix_spawnp wait waitpid wait3 wait4", DONE},
	{"closefrom", ":v@-- first:u4@0-"},
	{"fclose pclose", DONE STREAM(0)},
	{"fread fwrite fread_unlocked fwrite_unlocked", ITEMS(1) " count:u8@2-" STREAM(3)},
	{"__fread_chk __fread_unlocked_chk", ITEMS(2) " count:u8@3-" STREAM(4)},
	{"fgets fgets_unlocked getline __getline", ":i8@6-" STREAM(2)},
	{"__fgets_chk __fgets_unlocked_chk getdelim __getdelim", ":i8@6-" STREAM(3)},
	{"fgetc getc _IO_getc getc_unlocked fgetc_unlocked", DONE STREAM(0)},
	{"fputs fputs_unlocked fputc putc _IO_putc putc_unlocked fputc_unlocked", DONE STREAM(1)},
	{"fprintf vfprintf __fprintf_chk __vfprintf_chk", DONE STREAM(0)},
	{"fscanf vfscanf __isoc99_fscanf __isoc99_vfscanf", DONE STREAM(0)},
	{"__uflow __underflow __overflow", DONE STREAM(0)},
	{"printf vprintf __printf_chk __vprintf_chk puts putchar putchar_unlocked", DONE},
	{"getchar getchar_unlocked scanf __isoc99_scanf", DONE},
	{"dprintf vdprintf __dprintf_chk __vdprintf_chk", DONE FD},
};

/* All names, sorted; made once. */
static struct name {
	const char *text;
	const char *layout;
} names[NAMES_MAX];
static size_t name_count;
static char copies[COPY_BYTES_MAX];

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

void tw_agent_ports_init(void)
{
	char *at = copies;

	if (name_count)
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t bytes = strlen(rows[i].names) + 1;
		char *rest = at, *name;

		TW_ASSERT(bytes <= (size_t)(copies + sizeof copies - at));
		memcpy(at, rows[i].names, bytes);
		at += bytes;
		while ((name = strsep(&rest, " "))) {
			TW_ASSERT(name_count < NAMES_MAX);
			names[name_count++] = (struct name){name, rows[i].layout};
		}
	}
	qsort(names, name_count, sizeof *names, by_text);
}

static const char *layout_of(const char *function)
{
	const struct name key = {function, NULL}, *found = bsearch(&key, names, name_count, sizeof *names, by_text);

	return found ? found->layout : NULL;
}

/* The table's text with the addresses of this process's streams. */
static const char *with_streams(const char *layout, char *text, size_t room)
{
	const char *mark = strchr(layout, '%');

	if (!mark)
		return layout;
	snprintf(text, room, "%.*s{stdin=%lld,stdout=%lld,stderr=%lld}%s", (int)(mark - layout), layout,
		 (long long)(intptr_t)stdin, (long long)(intptr_t)stdout, (long long)(intptr_t)stderr, mark + 1);
	return text;
}

bool tw_agent_is_port_function(const struct tw_agent_config *config, const char *name)
{
	return config->has_ports && layout_of(name);
}

bool tw_agent_is_port_module(const struct tw_agent_config *config, const char *soname)
{
	return config->has_ports && soname && !strcmp(soname, "libc.so.6");
}

const char *tw_agent_port_layout(const struct tw_agent_config *config, const char *soname, const char *name,
				 char text[TW_PORT_LAYOUT_BYTES])
{
	const char *layout = tw_agent_is_port_module(config, soname) ? layout_of(name) : NULL;

	return layout ? with_streams(layout, text, TW_PORT_LAYOUT_BYTES) : NULL;
}
