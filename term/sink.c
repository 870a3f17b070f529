/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - the slow path of a sink, when its buffer is full. */
#include "term/sink.h"

int tw_sink_put_slowly(struct tw_sink *sink, const void *bytes, size_t count)
{
	const char *from = bytes;

	for (;;) {
		size_t capacity = (size_t)(sink->end - sink->at);
		size_t step = count < capacity ? count : capacity;
		int error;

		if (step)
			memcpy(sink->at, from, step);
		sink->at += step;
		from += step;
		count -= step;
		if (count == 0)
			return 0;
		if (!sink->drain)
			return TW_ENOSPC;
		error = sink->drain(sink);
		if (error)
			return error;
		TW_ASSERT(sink->at < sink->end);
	}
}
