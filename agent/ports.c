/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports.c - the calls of libc by which a program uses descriptors, and their arguments.
 *
 * `record --ports` traces these functions with their returns. Their layouts stand here, because libc rarely comes with
 * debug information, and because a return of type `d` describes the descriptors that the call has made, which no
 * debug information says. Readers know what a call does by the type name of its result (views/ports/native_calls.c):
 *
 *	open, reopen, accept, dup	makes descriptors		memory	makes a stream without a descriptor
 *	in, out, both, tee		transfers as many bytes as it returns
 *	in_items, out_items		items of `size` bytes		in_one, out_one, in_eight, out_eight: as many bytes
 *	in_some, out_some, error_some	bytes, and the result does not say how many
 *	close, close_range, directory, close_directory
 *	fork, spawn, vfork, execute, exit, wait
 *	use				none of these
 *
 * and the meaning of an argument by its name:
 *
 *	fd, in_fd, out_fd	a descriptor
 *	stream			a FILE or DIR; stdin, stdout and stderr by name
 *	first, last		a range of descriptors
 *	size, count		items of so many bytes, where the result is a number of items
 *
 * A transfer with neither uses a standard descriptor.
 */
#include "agent/agent.h"

#include "base/assert.h"
#include "base/filter.h"
#include "pipeline/format/definitions.h"
#include "pipeline/hit/described.h"
#include "session/definitions.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX      512
#define COPY_BYTES_MAX 4096
/* Described at the start; a program that inherits more is asked about these only. */
#define INHERITED_MAX 1024

/* In layouts of the table: the enumerators of a stream. */
#define STREAM(argument)    " stream:e8/FILE%@" #argument "-"
#define DIRECTORY(argument) " stream:u8@" #argument "-"
#define FD		    " fd:i4@0-"
#define PATH(argument)	    " path:s@" #argument "-"
#define FLAGS(argument)	    " flags:i4@" #argument "-"
/* Results: of 4 or 8 bytes, a description of enum tw_layout_descriptor. */
#define INT(does)		":i4/" #does "@6-"
#define LONG(does)		":i8/" #does "@6-"
#define WORD(does)		":u8/" #does "@6-"
#define MADE(descriptors, does) ":d" #descriptors "/" #does "@6-"
#define NEVER(does)		":v/" #does "@--"

/* Functions with one layout, separated by blanks. */
static const struct {
	const char *names;
	const char *layout;
} rows[] = {
	{"open open64 __open __open64 __open_2 __open64_2", MADE(1, open) PATH(0) FLAGS(1)},
	{"openat openat64 __openat_2 __openat64_2", MADE(1, open) " directory:i4@0-" PATH(1) FLAGS(2)},
	{"creat creat64 mkstemp mkstemp64 mkostemp mkostemp64 mkstemps mkstemps64 mkostemps mkostemps64 memfd_create "
	 "shm_open mq_open __mq_open_2",
	 MADE(1, open) PATH(0)},
	{"fopen fopen64 _IO_fopen", MADE(2, open) PATH(0) " mode:s@1-"},
	{"fdopen _IO_fdopen", MADE(2, open) FD " mode:s@1-"},
	{"freopen freopen64", MADE(2, reopen) PATH(0) " mode:s@1-" STREAM(2)},
	{"popen _IO_popen", MADE(2, open) " command:s@0- mode:s@1-"},
	{"tmpfile tmpfile64", MADE(2, open)},
	{"fmemopen open_memstream open_wmemstream fopencookie", WORD(memory)},
	{"fdopendir", WORD(directory) FD},
	{"closedir", INT(close_directory) DIRECTORY(0)},
	{"socket __socket", MADE(1, open) " domain:i4@0- type:i4@1- protocol:i4@2-"},
	{"accept", MADE(8, accept) FD},
	{"accept4", MADE(8, accept) FD FLAGS(3)},
	{"connect __connect", MADE(5, open) FD},
	{"bind", MADE(6, open) FD},
	{"listen", MADE(6, open) FD " backlog:i4@1-"},
	{"pipe __pipe", MADE(3, open)},
	{"pipe2", MADE(3, open) FLAGS(1)},
	{"socketpair", MADE(4, open) " domain:i4@0- type:i4@1-"},
	{"dup", MADE(1, dup) FD},
	{"dup2 __dup2", MADE(1, dup) FD " to:i4@1-"},
	{"dup3", MADE(1, dup) FD " to:i4@1-" FLAGS(2)},
	{"fcntl fcntl64 __fcntl", MADE(7, dup) FD " command:i4@1-"},
	{"epoll_create epoll_create1 inotify_init inotify_init1 fanotify_init timerfd_create eventfd posix_openpt getpt "
	 "pidfd_open pidfd_getfd open_by_handle_at signalfd",
	 MADE(1, open)},
	{"epoll_wait epoll_pwait epoll_pwait2 timerfd_settime", INT(use) FD},
	{"read __read __read_chk readv preadv preadv64 preadv2 preadv64v2 pread pread64 __pread64 __pread_chk "
	 "__pread64_chk recv __recv __recv_chk recvfrom __recvfrom_chk recvmsg mq_receive mq_timedreceive",
	 LONG(in) FD},
	{"write __write writev pwritev pwritev64 pwritev2 pwritev64v2 pwrite pwrite64 __pwrite64 send __send sendto "
	 "sendmsg vmsplice",
	 LONG(out) FD},
	{"mq_send mq_timedsend", INT(out_some) FD},
	{"recvmmsg", INT(in_some) FD},
	{"sendmmsg __sendmmsg", INT(out_some) FD},
	{"sendfile sendfile64", LONG(both) " out_fd:i4@0- in_fd:i4@1-"},
	{"splice copy_file_range", LONG(both) " in_fd:i4@0- out_fd:i4@2-"},
	{"tee", LONG(tee) " in_fd:i4@0- out_fd:i4@1-"},
	{"eventfd_read", INT(in_eight) FD},
	{"eventfd_write", INT(out_eight) FD},
	{"shutdown", INT(use) FD " how:i4@1-"},
	{"close __close mq_close", INT(close) FD},
	{"close_range", INT(close_range) " first:u4@0- last:u4@1-" FLAGS(2)},
	{"closefrom", NEVER(close_range) " first:u4@0-"},
	{"fork __fork _Fork", INT(fork)},
	{"vfork __vfork", INT(vfork)},
	{"posix_spawn posix_spawnp", INT(spawn)},
	{"wait __wait waitpid __waitpid wait3 wait4", INT(wait)},
	{"execve execv execvp execvpe execl execlp execle execveat fexecve", INT(execute)},
	{"_exit _Exit", NEVER(exit)},
	{"fclose _IO_fclose pclose", INT(close) STREAM(0)},
	{"fread fread_unlocked _IO_fread", WORD(in_items) " size:u8@1- count:u8@2-" STREAM(3)},
	{"fwrite fwrite_unlocked _IO_fwrite", WORD(out_items) " size:u8@1- count:u8@2-" STREAM(3)},
	{"__fread_chk __fread_unlocked_chk", WORD(in_items) " size:u8@2- count:u8@3-" STREAM(4)},
	{"fgets fgets_unlocked _IO_fgets fgetws fgetws_unlocked", LONG(in_some) STREAM(2)},
	{"__fgets_chk __fgets_unlocked_chk __fgetws_chk __fgetws_unlocked_chk", LONG(in_some) STREAM(3)},
	{"getline", LONG(in) STREAM(2)},
	{"getdelim __getdelim", LONG(in) STREAM(3)},
	{"fgetc getc _IO_getc getc_unlocked fgetc_unlocked", INT(in_one) STREAM(0)},
	{"fputc putc _IO_putc putc_unlocked fputc_unlocked", INT(out_one) STREAM(1)},
	{"fputs fputs_unlocked _IO_fputs fputwc putwc fputwc_unlocked putwc_unlocked fputws fputws_unlocked putw",
	 INT(out_some) STREAM(1)},
	{"fprintf vfprintf _IO_fprintf _IO_vfprintf __fprintf_chk __vfprintf_chk", INT(out) STREAM(0)},
	{"fwprintf vfwprintf __fwprintf_chk __vfwprintf_chk __overflow __woverflow", INT(out_some) STREAM(0)},
	{"fscanf vfscanf __isoc99_fscanf __isoc99_vfscanf fwscanf vfwscanf __isoc99_fwscanf __isoc99_vfwscanf fgetwc "
	 "getwc fgetwc_unlocked getwc_unlocked getw __uflow __underflow __wuflow __wunderflow",
	 INT(in_some) STREAM(0)},
	{"printf vprintf _IO_printf __printf_chk __vprintf_chk", INT(out)},
	{"puts _IO_puts wprintf vwprintf __wprintf_chk __vwprintf_chk putwchar putwchar_unlocked", INT(out_some)},
	{"putchar putchar_unlocked", INT(out_one)},
	{"getchar getchar_unlocked", INT(in_one)},
	{"gets __gets_chk scanf vscanf __isoc99_scanf __isoc99_vscanf wscanf vwscanf __isoc99_wscanf __isoc99_vwscanf "
	 "getwchar getwchar_unlocked",
	 INT(in_some)},
	{"perror psignal psiginfo error error_at_line warn warnx vwarn vwarnx", NEVER(error_some)},
	{"dprintf vdprintf __dprintf_chk __vdprintf_chk", INT(out) FD},
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
static const char *with_streams(const char *layout, char *text, size_t capacity)
{
	const char *mark = strchr(layout, '%');

	if (!mark)
		return layout;
	snprintf(text, capacity, "%.*s{stdin=%lld,stdout=%lld,stderr=%lld}%s", (int)(mark - layout), layout,
		 (long long)(intptr_t)stdin, (long long)(intptr_t)stdout, (long long)(intptr_t)stderr, mark + 1);
	return text;
}

bool tw_agent_is_port_function(const struct tw_agent_config *config, const char *name)
{
	return config->has_ports && layout_of(name);
}

bool tw_agent_is_port_transfer(const char *name, bool *is_stream)
{
	const char *layout = layout_of(name);

	if (!layout)
		return false;
	*is_stream = strstr(layout, "stream:") != NULL;
	return strstr(layout, "/in") || strstr(layout, "/out") || strstr(layout, "/both");
}

static void define_descriptor(int fd)
{
	struct {
		struct tw_def_descriptor fixed;
		uint64_t words[TW_LAYOUT_DESCRIPTOR_WORDS_MAX];
	} record;
	unsigned bytes = 8 * tw_described_one(fd, record.words);

	if (!bytes)
		return;
	record.fixed = (struct tw_def_descriptor){.fd = (uint32_t)fd, .word_bytes = bytes};
	tw_define(tw_agent_session, TW_DEF_DESCRIPTOR, &record, sizeof record.fixed + bytes);
}

void tw_agent_ports_inherited(void)
{
	DIR *open = tw_thread_may_call_system() ? opendir("/proc/self/fd") : NULL;
	unsigned count = 0;

	for (const struct dirent *entry; open && count < INHERITED_MAX && (entry = readdir(open));) {
		char *end;
		long fd = strtol(entry->d_name, &end, 10);

		if (end == entry->d_name || *end || fd == dirfd(open))
			continue;
		define_descriptor((int)fd);
		count++;
	}
	if (open)
		closedir(open);
}

void tw_agent_ports_pointer(const char *module, const char *function, bool is_stream)
{
	struct {
		struct tw_def_pointer fixed;
		char text[512];
	} record;
	int bytes = snprintf(record.text, sizeof record.text, "%s%s", module, function);

	if (bytes >= (int)sizeof record.text)
		return;
	record.fixed = (struct tw_def_pointer){.module_bytes = (uint16_t)strlen(module),
					       .function_bytes = (uint16_t)strlen(function),
					       .is_stream = is_stream};
	tw_define(tw_agent_session, TW_DEF_POINTER, &record, sizeof record.fixed + (size_t)bytes);
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
