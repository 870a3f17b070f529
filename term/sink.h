/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - writes bytes into a struct tw_sink: directly if there is space, otherwise piece by piece. */
#ifndef TW_TERM_SINK_H
#define TW_TERM_SINK_H

#include "term/term.h"

int tw_sink_put_slowly(struct tw_sink *sink, const void *bytes, size_t count);

static inline bool tw_sink_has(const struct tw_sink *sink, size_t bytes)
{
	return (size_t)(sink->end - sink->at) >= bytes;
}

static inline int tw_sink_put(struct tw_sink *sink, const void *bytes, size_t count)
{
	if (tw_unlikely(!tw_sink_has(sink, count)))
		return tw_sink_put_slowly(sink, bytes, count);
	if (count)
		memcpy(sink->at, bytes, count);
	sink->at += count;
	return 0;
}

static inline int tw_sink_put_byte(struct tw_sink *sink, char byte)
{
	if (tw_unlikely(!tw_sink_has(sink, 1)))
		return tw_sink_put_slowly(sink, &byte, 1);
	*sink->at++ = byte;
	return 0;
}

#endif
