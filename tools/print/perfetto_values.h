/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_values.h - values beside the names of events in Perfetto's format: arguments, results, and what else is told of a slice. */
#ifndef TW_TOOLS_PERFETTO_VALUES_H
#define TW_TOOLS_PERFETTO_VALUES_H

#include "tools/print/print.h"
#include "views/output/protobuf.h"

/* The field of an event that holds them, and fields of one. */
enum { TW_PERFETTO_ANNOTATIONS = 4 };
enum tw_perfetto_annotation {
	TW_ANNOTATION_NAME_IID = 1,
	TW_ANNOTATION_BOOL = 2,
	TW_ANNOTATION_UINT = 3,
	TW_ANNOTATION_INT = 4,
	TW_ANNOTATION_TEXT = 6,
	TW_ANNOTATION_POINTER = 7,
	TW_ANNOTATION_JSON = 9
};

/* Their names, by number from 1 on. */
enum {
	TW_PERFETTO_ARGUMENTS = 1,
	TW_PERFETTO_RESULT,
	TW_PERFETTO_EXCEPTION,
	TW_PERFETTO_WHAT,
	TW_PERFETTO_ENDED,
	TW_PERFETTO_BEFORE,
	TW_PERFETTO_LOSSY,
	TW_PERFETTO_OWN,
	TW_PERFETTO_COMMAND,
	TW_PERFETTO_NAMES
};
const char *tw_perfetto_name(uint32_t number);

void tw_perfetto_text(struct tw_proto *packet, uint32_t name, enum tw_perfetto_annotation kind, const char *text,
		      size_t bytes);
void tw_perfetto_number(struct tw_proto *packet, uint32_t name, enum tw_perfetto_annotation kind, uint64_t value);
/* A member of an object, "NAME":VALUE; of another name nothing is written. */
void tw_perfetto_member(struct tw_proto *packet, const char *member, size_t bytes);

static inline enum tw_perfetto_annotation tw_perfetto_kind_of(const struct tw_print_word *word)
{
	return word->is_address ? TW_ANNOTATION_POINTER : word->is_negative ? TW_ANNOTATION_INT : TW_ANNOTATION_UINT;
}

#endif
