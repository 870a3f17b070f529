/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erlang_helper.h - the helper VM of `record --erlang NODE` and `top --erlang NODE`: its start, and the signals that it is told of.
 *
 * There is one helper in a process.  The end of its standard input is the order to stop; the line `snapshot` there asks for one.
 *
 * Threads  one.
 */
#ifndef TW_RECORD_ERLANG_HELPER_H
#define TW_RECORD_ERLANG_HELPER_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

/* The most arguments of a helper. */
#define TW_ERLANG_ARGUMENTS_MAX 256

struct tw_command;

struct tw_erlang_helper {
	char folder[PATH_MAX]; /* of the application */
	char *target;	       /* NODE or PID */
	char *tls;	       /* the file of --ssl-opts; NULL: not by TLS */
	char **arguments;      /* KEY=VALUE each; ends with NULL */
};

/* Sets the folder, and @self, the path of this command. False: it is not known, which has been reported. */
bool tw_erlang_helper_find(struct tw_erlang_helper *helper, char self[PATH_MAX]);

/* The value of an option that names a file: the helper and the node have other folders than this process. False: it is none, which has been reported. */

bool tw_erlang_helper_path(const struct tw_command *command, char whole[2 * PATH_MAX], const char *path);

/*
 * tw_erlang_helper_begin - start it, in the network of the target if that is a process.
 *
 * @lines	gives its standard output.
 *
 * Returns 0 or an exit code, which has been reported.
 */
int tw_erlang_helper_begin(const struct tw_erlang_helper *helper, FILE **lines);

/* For handlers of signals; zeroed: nothing of these. */
struct tw_erlang_helper_calls {
	bool asks_for_snapshots; /* USR2 asks for one */
	bool (*has_ended)(void); /* a child has ended: is it one without which the helper is to stop? */
	void (*kill)(void);	 /* a second signal kills more than the helper */
};

/* From here on signals stop the helper, and a second one kills it. */
void tw_erlang_helper_catch_signals(const struct tw_erlang_helper_calls *calls);

/* Writes a line to its standard input, from a handler of a signal as well. A helper that takes none has ended, or has more than it can do. */
void tw_erlang_helper_tell(const char *line);

/* The order to stop. */
void tw_erlang_helper_stop(void);

/* The trace has begun: from here on an order to stop has all the time that it takes. */
void tw_erlang_helper_set_tracing(void);

/* Has a signal asked it to stop? */
bool tw_erlang_helper_was_stopped(void);

/* Waits for its end. */
void tw_erlang_helper_wait(void);

#endif
