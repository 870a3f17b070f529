/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.c - passes our environment variables to the programs that are to be traced.
 *
 *	no follow_fork	Children are not traced: our variables are removed before main(), so the program's children run
 *			untraced.  If the root process itself executes another program, exec's wrappers (preload/exec.c)
 *			add them again.
 *	follow_fork	The variables stay for what libc starts by itself (system(), popen()), and exec's wrappers pass
 *			them on to programs, even if the program builds an environment of its own.
 *
 * In both cases only programs that can be traced get them: one linked to musl would not start with our LD_PRELOAD.
 * Programs that are not traced are counted by cause.
 *
 * AddressSanitizer's run-time library ends a program in which another library was loaded before it, unless ASAN_OPTIONS
 * has verify_asan_link_order=0.  The command appends that with a colon after it, by which we recognise it as ours.
 *
 * Only our entry of LD_PRELOAD is added and removed; the user's stay in their order.  Strings are changed in place,
 * without setenv(): shells define their own setenv, and a child of vfork() cannot allocate.
 */
#include "agent/agent.h"

#include "base/assert.h"
#include "base/sys.h"

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_NAME "libtracewheel-agent.so"
#define PRELOAD	 "LD_PRELOAD="
#define AGENT	 "TRACEWHEEL_AGENT="
#define ROOT	 "TRACEWHEEL_ROOT="
#define ASAN	 "ASAN_OPTIONS="
#define ORDER	 "verify_asan_link_order=0:"
/* Set if the number of variables that strip() removes would be odd otherwise. */
#define EVEN "TRACEWHEEL_EVEN="

extern char **environ;

/* Constant since tw_agent_environment_init(). */
static enum { INERT, ROOT_ONLY, FOLLOWING } mode;
static int root_id;
static char agent_text[PATH_MAX + sizeof AGENT], root_text[sizeof ROOT + 16];
static char own_entry[PATH_MAX];

static bool starts_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* ---- LD_PRELOAD ---- */

/* The length of the first entry of a list, and whether it is ours. */
static size_t entry_bytes(const char *list, bool *is_own)
{
	size_t bytes = strcspn(list, ": "), own = strlen(OWN_NAME);

	*is_own = bytes >= own && !strncmp(list + bytes - own, OWN_NAME, own) &&
		  (bytes == own || list[bytes - own - 1] == '/');
	return bytes;
}

/* Copies a list without our entry, possibly in place.  Returns the length. */
static size_t copy_others(char *out, const char *list)
{
	size_t used = 0;

	while (*list) {
		bool is_own;
		size_t bytes = entry_bytes(list, &is_own);

		if (bytes && !is_own) {
			if (used)
				out[used++] = ':';
			memmove(out + used, list, bytes);
			used += bytes;
		}
		list += bytes;
		list += *list != '\0';
	}
	out[used] = '\0';
	return used;
}

/* ---- ASAN_OPTIONS ---- */

/* The length without our part; 0: empty. */
static size_t asan_bytes(const char *options)
{
	size_t bytes = strlen(options), own = strlen(ORDER);

	if (bytes < own || strcmp(options + bytes - own, ORDER) != 0)
		return bytes;
	bytes -= own;
	return bytes && options[bytes - 1] == ':' ? bytes - 1 : bytes;
}

/* Copies the variable with or without our part; NULL: empty. */
static char *copy_asan(char *out, const char *options, bool is_ours)
{
	size_t bytes = asan_bytes(options), at = strlen(ASAN);

	if (!bytes && !is_ours)
		return NULL;
	memcpy(out, ASAN, at);
	memcpy(out + at, options, bytes);
	at += bytes;
	out[at] = '\0';
	/* A setting by the user takes precedence. */
	if (is_ours && !strstr(out, "verify_asan_link_order")) {
		if (bytes)
			out[at++] = ':';
		strcpy(out + at, ORDER);
	}
	return out;
}

static void remember(const char *list)
{
	while (*list) {
		bool is_own;
		size_t bytes = entry_bytes(list, &is_own);

		if (is_own && bytes < sizeof own_entry) {
			memcpy(own_entry, list, bytes);
			own_entry[bytes] = '\0';
		}
		list += bytes;
		list += *list != '\0';
	}
}

/* ---- at the beginning ---- */

/* The sanitizer's run-time library may still read the kernel's copy (/proc/self/environ), which stays unchanged. */
static void strip(char **variables)
{
	static char asan[PATH_MAX];
	char **to = variables, **from;

	for (from = variables; *from; from++) {
		if (starts_with(*from, AGENT) || starts_with(*from, ROOT) || starts_with(*from, EVEN))
			continue;
		if (starts_with(*from, PRELOAD) && !copy_others(*from + strlen(PRELOAD), *from + strlen(PRELOAD)))
			continue;
		if (starts_with(*from, ASAN) && strlen(*from) < sizeof asan) {
			char *others = copy_asan(asan, *from + strlen(ASAN), false);

			if (others)
				*to++ = others;
			continue;
		}
		*to++ = *from;
	}
	*to++ = NULL;
	/*
	 * Programs that do without libc (Go) find the auxiliary vector behind the end of the environment: the words in
	 * between, of an even number of variables, become pairs of it that have no meaning.
	 */
	for (; to < from; to += 2) {
		to[0] = (char *)(uintptr_t)AT_IGNORE;
		to[1] = NULL;
	}
}

void tw_agent_environment_init(bool follows)
{
	for (char **variable = environ; variable && *variable; variable++) {
		if (starts_with(*variable, AGENT) && strlen(*variable) < sizeof agent_text)
			strcpy(agent_text, *variable);
		if (starts_with(*variable, ROOT) && strlen(*variable) < sizeof root_text)
			strcpy(root_text, *variable);
		if (starts_with(*variable, PRELOAD))
			remember(*variable + strlen(PRELOAD));
	}
	/* The agent was loaded by other means, which will load it again. */
	if (!*agent_text || !*own_entry)
		return;
	mode = follows ? FOLLOWING : ROOT_ONLY;
	root_id = tw_sys_process_id();
	if (!follows)
		strip(environ);
}

/* ---- for another program ---- */

bool tw_agent_environment_is_ours(void)
{
	/* False in a forked child, and in one of vfork(), which shares this memory. */
	return mode == FOLLOWING || (mode == ROOT_ONLY && tw_sys_process_id() == root_id);
}

bool tw_agent_environment_is_followed(void)
{
	return mode == FOLLOWING;
}

size_t tw_agent_environment_bytes(char *const *variables)
{
	size_t count = 6, text = sizeof PRELOAD + sizeof own_entry + sizeof ASAN + sizeof ORDER;

	for (; variables && *variables; variables++) {
		count++;
		if (starts_with(*variables, PRELOAD) || starts_with(*variables, ASAN))
			text += strlen(*variables) + sizeof ORDER;
	}
	return count * sizeof *variables + text;
}

static bool has_ours(enum tw_program_kind program)
{
	/* A program that is not found here may be found with other privileges or in another folder. */
	if (program == TW_PROGRAM_TRACED || program == TW_PROGRAM_UNKNOWN)
		return true;
	tw_agent_count_untraced(program);
	return false;
}

char **tw_agent_environment_for(enum tw_program_kind program, char *const *variables, void *memory)
{
	char **out = memory, *text, *preload, *asan;
	const char *options = "";
	size_t count = 0, used;
	bool is_ours = has_ours(program), is_odd = true;

	for (char *const *variable = variables; variable && *variable; variable++)
		count++;
	/* The string is stored after the pointers. */
	preload = text = (char *)(out + count + 6);
	strcpy(text, PRELOAD);
	used = strlen(PRELOAD);
	if (is_ours) {
		strcpy(text + used, own_entry);
		used += strlen(own_entry);
	}
	count = 0;
	for (char *const *variable = variables; variable && *variable; variable++) {
		if (starts_with(*variable, PRELOAD)) {
			size_t bytes = copy_others(text + used + is_ours, *variable + strlen(PRELOAD));

			if (bytes && is_ours)
				text[used] = ':';
			else
				text[used + bytes] = '\0';
			used += bytes ? bytes + is_ours : 0;
		} else if (starts_with(*variable, ASAN)) {
			options = *variable + strlen(ASAN);
		} else if (!starts_with(*variable, AGENT) && !starts_with(*variable, ROOT) &&
			   !starts_with(*variable, EVEN)) {
			out[count++] = *variable;
		}
	}
	text[used] = '\0';
	if (is_ours) {
		out[count++] = agent_text;
		if (*root_text) {
			out[count++] = root_text;
			is_odd = !is_odd;
		}
		is_odd ^= used == strlen(PRELOAD) + strlen(own_entry);
	}
	if (used > strlen(PRELOAD))
		out[count++] = preload;
	asan = copy_asan(text + used + 1, options, is_ours);
	if (asan)
		out[count++] = asan;
	is_odd ^= asan && !asan_bytes(options);
	if (is_ours && is_odd)
		out[count++] = EVEN;
	out[count] = NULL;
	return out;
}
