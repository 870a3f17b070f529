/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate.h - options of `record` that sum calls up in the program: --by, --sum, --histogram, --quantiles. */
#ifndef TW_TOOLS_AGGREGATE_H
#define TW_TOOLS_AGGREGATE_H

#include "tools/record/config.h"
#include "tools/tool.h"

#include "tracewheel/counts.h"

struct tw_aggregate_request {
	struct tw_aggregation what;
	bool is_wanted;
	const char *of_option; /* the option that has set `of`; NULL: none */
};

/* Sets what the option of that name says. False: the value is refused, which has been reported. */
bool tw_aggregate_set(struct tw_aggregate_request *request, const struct tw_command *command, const char *option,
		      const char *value);
/* Is it known only when calls return? */
bool tw_aggregate_needs_returns(const struct tw_aggregate_request *request);
/* Does it depend on the types of arguments and results? */
bool tw_aggregate_needs_types(const struct tw_aggregate_request *request);
/* Appends the lines for agents; @has_counted: --count names functions, else all that are selected are counted. False: no memory. */
bool tw_aggregate_config(const struct tw_aggregate_request *request, bool has_counted, struct tw_config *config);

#endif
