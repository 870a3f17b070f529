/* SPDX-License-Identifier: Apache-2.0 */
/* erlang_nodes.h - `record --erlang` of several nodes at once. */
#ifndef TW_RECORD_ERLANG_NODES_H
#define TW_RECORD_ERLANG_NODES_H

#include <stdbool.h>

struct tw_erlang_nodes {
	const char *self; /* this command */
	char **options;	  /* `record` and what came behind it, as far as the last option */
	int option_count;
	char **targets; /* NODE or PID each */
	int target_count;
	const char *merged; /* a capture of all; NULL: none */
	bool force, is_quiet;
};

/*
 * tw_erlang_nodes_record - a command for each node, with the same options, until all have ended; then their captures, each named like its
 * node and beside the merged one, become that.
 *
 * Signals go to all of them.  If one cannot begin, the others end.  Returns the exit code.
 */
int tw_erlang_nodes_record(const struct tw_erlang_nodes *nodes);

#endif
