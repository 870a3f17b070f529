/* SPDX-License-Identifier: Apache-2.0 */
/* tracer.c - reads --tracer FILE.so[:STATE]. */
#include "tools/record/tracer.h"
#include "tools/tool.h"

#include "base/file.h"
#include "tracewheel/error.h"
#include "tracewheel/symbols.h"
#include "tracewheel/term.h"
#include "tracewheel/tracer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A state is Erlang text, and may be many lines long: a line end in it is only white space. */
static bool add_state(const struct tw_command *command, const char *text, struct tw_config *config)
{
	struct tw_arena arena;
	struct tw_term state;
	struct tw_parse_error error = {0};
	char *line = strdup(text);

	tw_arena_init(&arena, SIZE_MAX);
	bool is_right = line && tw_term_parse(&arena, text, strlen(text), &state, &error) == 0;
	tw_arena_fini(&arena);
	if (!is_right)
		tw_usage(command, "the state '%s' of --tracer is not an Erlang term: %s.", text,
			 error.message ? error.message : "there is no memory");
	for (char *c = line; c && (c = strchr(c, '\n')) != NULL;)
		*c = ' ';
	is_right = is_right && tw_config_add(config, "tracer_state", line);
	free(line);
	return is_right;
}

/* Does the file contain the name of the structure that a tracer module exports? */
static bool has_symbol(const char *path)
{
	static const char name[] = TW_TRACER_MODULE_SYMBOL;
	struct stat status;
	int fd = tw_file_open(path, &status), c;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	size_t matched = 0;

	if (!file) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	/* The first letter is not found again in the name, so that a failed match begins anew with the same letter or none. */
	while (matched < sizeof name && (c = getc(file)) != EOF)
		matched = c == name[matched] ? matched + 1 : c == name[0];
	fclose(file);
	return matched == sizeof name;
}

static bool check_file(const struct tw_command *command, const char *path)
{
	struct tw_symbols *symbols;
	int error = tw_symbols_open(path, &symbols);

	if (error)
		return tw_refuse(command, "--tracer: '%s' cannot be used: %s.", path,
				 error == TW_EFORMAT   ? "it is not a shared object"
				 : error == TW_ENOTSUP ? "it is made for another machine"
				 : error == TW_EPERM   ? "it may not be read by you"
						       : "it cannot be read");
	tw_symbols_close(symbols);
	if (has_symbol(path))
		return true;
	return tw_refuse(command,
			 "--tracer: '%s' is not a tracer module: it does not export " TW_TRACER_MODULE_SYMBOL
			 " (docs/tracer-modules.md).",
			 path);
}

bool tw_tracer_file_set(struct tw_tracer_file *tracer, const struct tw_command *command, const char *value,
			struct tw_config *config)
{
	char name[PATH_MAX];
	/* A file may have a colon in its name. */
	const char *colon = access(value, F_OK) == 0 ? NULL : strchr(value, ':');
	size_t bytes = colon ? (size_t)(colon - value) : strlen(value);

	if (tracer->path[0])
		return tw_refuse(command, "--tracer: one of them.");
	snprintf(name, sizeof name, "%.*s", (int)(bytes < sizeof name ? bytes : sizeof name - 1), value);
	if (!realpath(name, tracer->path) || strchr(tracer->path, '\n')) {
		tw_usage(command, "--tracer: there is no '%s'.", name);
		tracer->path[0] = '\0';
		return false;
	}
	return check_file(command, tracer->path) && tw_config_add(config, "tracer", tracer->path) &&
	       (!colon || add_state(command, colon + 1, config));
}
