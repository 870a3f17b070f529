/* SPDX-License-Identifier: Apache-2.0 */
/* functions.h - the list that `tracewheel functions` makes (functions.c) and shows (functions_text.c). */
#ifndef TW_TOOLS_FUNCTIONS_H
#define TW_TOOLS_FUNCTIONS_H

#include "tools/common/entries.h"
#include "tools/common/patterns.h"
#include "tools/record/config.h"
#include "tools/tool.h"

#include "tracewheel/debug.h"

struct tw_functions_row {
	struct tw_symbols_place place;
	const char *module;
	uint32_t arity; /* known if a pattern asks for it */
	bool is_chosen; /* an entry of code that the loader chooses: which one, is known when the program runs */
};

struct tw_functions_request {
	struct tw_patterns patterns;
	struct tw_config config; /* the request as lines of a configuration */
	const char *alias;
	bool is_json;
	bool wants_refused, wants_probes;
	int process_id; /* with wants_probes: whose files are listed; 0: those of a program */
	bool is_local, is_global;
	bool is_careful;
};

struct tw_functions {
	const struct tw_functions_request *request;
	const struct tw_symbols *symbols;
	struct tw_entries *entries; /* NULL: --global */
	struct tw_debug *debug;	    /* of the module that was looked up last */
	const struct tw_symbols_object *debug_module;
	struct tw_functions_row *rows;
	size_t count;
	size_t capacity;
};

extern struct tw_out tw_functions_out;

/* Does a pattern select functions of this object? */
bool tw_functions_wants_module(const struct tw_functions *list, size_t index);
/* The number of rows from here on that belong to one function. */
size_t tw_functions_run(const struct tw_functions *list, size_t at);
/* "sled", "entry" or "slot". */
const char *tw_functions_way(const struct tw_functions_row *row);
/* Shows the probes that the objects bring themselves.  An error: nothing was shown. */
int tw_functions_put_probes(const struct tw_functions *list);
void tw_functions_put_text(const struct tw_functions *list, const struct tw_symbols *symbols);

#endif
