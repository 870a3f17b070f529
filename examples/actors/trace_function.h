/* SPDX-License-Identifier: Apache-2.0 */
/* trace_function.h - a function's data for tracing; with ACTORS_NO_TRACE only its name. */
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

#define traced_function			     tw_declared_function
#define traced_frame			     tw_frame
#define TRACED_FUNCTION(module, name, arity) TW_DECLARED_FUNCTION(module, name, arity)
#define TRACED_LOCAL_FUNCTION(module_, name_, arity_)                                               \
	{                                                                                           \
		.arity = (arity_), .module = (module_), .name = (name_), .flags = TW_DECLARED_LOCAL \
	}

#endif

#endif
