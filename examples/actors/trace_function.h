/* SPDX-License-Identifier: Apache-2.0 */
/* trace_function.h - data for tracing of functions, calls and signals; with ACTORS_NO_TRACE only the function's name. */
#ifndef ACTORS_TRACE_FUNCTION_H
#define ACTORS_TRACE_FUNCTION_H

#ifdef ACTORS_NO_TRACE

struct traced_function {
	unsigned arity;
	const char *module, *name;
};
/* The data of an open call. */
struct traced_frame {
	char nothing[1];
};
struct traced_signal {
	char nothing[1];
};
#define TRACED_FUNCTION(module, name, arity) \
	{                                    \
		arity, module, name          \
	}
#define TRACED_LOCAL_FUNCTION(module, name, arity) \
	{                                          \
		arity, module, name                \
	}

#else

#include <tracewheel/function.h>
#include <tracewheel/seq.h>

#include <stdbool.h>

/* The token of sequential tracing that passes with a message or exit signal. */
struct traced_signal {
	struct tw_seq_token token; /* empty: none */
	bool is_carrier; /* false: a message of a port, a monitor or a timer, which leaves the receiver's as it is */
};

#define traced_function			     tw_declared_function
#define traced_frame			     tw_frame
#define TRACED_FUNCTION(module, name, arity) TW_DECLARED_FUNCTION(module, name, arity)
#define TRACED_LOCAL_FUNCTION(module_, name_, arity_)                                               \
	{                                                                                           \
		.arity = (arity_), .module = (module_), .name = (name_), .flags = TW_DECLARED_LOCAL \
	}

#endif

#endif
