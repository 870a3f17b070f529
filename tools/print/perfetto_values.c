/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_values.c - see perfetto_values.h. */
#include "tools/print/perfetto_values.h"

static const char *const annotation_names[TW_PERFETTO_NAMES] =
	{[TW_PERFETTO_ARGUMENTS] = "arguments", [TW_PERFETTO_RESULT] = "result", [TW_PERFETTO_EXCEPTION] = "exception",
	 [TW_PERFETTO_WHAT] = "what",		[TW_PERFETTO_ENDED] = "end",	 [TW_PERFETTO_BEFORE] = "before_ns",
	 [TW_PERFETTO_LOSSY] = "lossy",		[TW_PERFETTO_OWN] = "own_ns",	 [TW_PERFETTO_COMMAND] = "command"};

const char *tw_perfetto_name(uint32_t number)
{
	return annotation_names[number];
}

void tw_perfetto_text(struct tw_proto *packet, uint32_t name, enum tw_perfetto_annotation kind, const char *text,
		      size_t bytes)
{
	size_t annotation = tw_proto_open(packet, TW_PERFETTO_ANNOTATIONS);
	tw_proto_u64(packet, TW_ANNOTATION_NAME_IID, name);
	tw_proto_bytes(packet, kind, text, bytes);
	tw_proto_close(packet, annotation);
}

void tw_perfetto_number(struct tw_proto *packet, uint32_t name, enum tw_perfetto_annotation kind, uint64_t value)
{
	size_t annotation = tw_proto_open(packet, TW_PERFETTO_ANNOTATIONS);
	tw_proto_u64(packet, TW_ANNOTATION_NAME_IID, name);
	tw_proto_u64(packet, kind, value);
	tw_proto_close(packet, annotation);
}

/* A whole number of 64 bits, all of the text.  strtoull() takes as long as all that is written of a call. */
static bool read_digits(const char *text, size_t bytes, unsigned base, uint64_t *out)
{
	uint64_t value = 0;
	for (size_t i = 0; i < bytes; i++) {
		unsigned digit = text[i] <= '9' ? (unsigned)(text[i] - '0') : (unsigned)(text[i] - 'a' + 10);
		if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	*out = value;
	return bytes;
}

/* A value of JSON: numbers, and addresses, which are strings in hexadecimal, are sent as numbers. */
static void put_value(struct tw_proto *packet, uint32_t name, const char *json, size_t bytes)
{
	uint64_t value;
	if (bytes > 4 && memcmp(json, "\"0x", 3) == 0 && read_digits(json + 3, bytes - 4, 16, &value))
		tw_perfetto_number(packet, name, TW_ANNOTATION_POINTER, value);
	else if (bytes && *json == '-' && read_digits(json + 1, bytes - 1, 10, &value) && value <= UINT64_C(1) << 63)
		tw_perfetto_number(packet, name, TW_ANNOTATION_INT, -value);
	else if (read_digits(json, bytes, 10, &value))
		tw_perfetto_number(packet, name, TW_ANNOTATION_UINT, value);
	else
		tw_perfetto_text(packet, name, TW_ANNOTATION_JSON, json, bytes);
}

/* A member of an object, "NAME":VALUE. */
void tw_perfetto_member(struct tw_proto *packet, const char *member, size_t bytes)
{
	for (uint32_t i = 1; i < TW_PERFETTO_NAMES; i++) {
		size_t length = strlen(annotation_names[i]);
		if (bytes > length + 3 && memcmp(member + 1, annotation_names[i], length) == 0 &&
		    member[length + 1] == '"') {
			put_value(packet, i, member + length + 3, bytes - length - 3);
			return;
		}
	}
}
