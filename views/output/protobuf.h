/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf.h - messages of Protocol Buffers, written field by field.
 *
 * Fields are numbered from 1 to 536,870,911.  A message inside another is written between tw_proto_open() and tw_proto_close().
 *
 * Threads  one.
 * Memory   grows with the largest message; after a failed allocation has_no_memory is set, and nothing more is written.
 * Source   "Encoding", protobuf.dev: variable-length integers, fixed fields of eight bytes, and fields with a length.
 */
#ifndef TW_VIEWS_PROTOBUF_H
#define TW_VIEWS_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A number as it stands in front of a message in a file: at most ten bytes. Returns how many. */
static inline size_t tw_proto_varint(uint8_t *at, uint64_t value)
{
	size_t bytes = 0;

	for (; value >= 0x80; value >>= 7)
		at[bytes++] = (uint8_t)value | 0x80;
	at[bytes++] = (uint8_t)value;
	return bytes;
}

/* Zeroed at first; tw_proto_free() ends it. used = 0 begins the next message. */
struct tw_proto {
	uint8_t *data;
	size_t used, capacity;
	bool has_no_memory;
};

void tw_proto_free(struct tw_proto *proto);
/* Space for `bytes` more. False: no memory. */
bool tw_proto_reserve(struct tw_proto *proto, size_t bytes);

/* Of any field and value, and after any failure. */
void tw_proto_put_u64(struct tw_proto *proto, uint32_t field, uint64_t value);
size_t tw_proto_put_open(struct tw_proto *proto, uint32_t field);
void tw_proto_put_close(struct tw_proto *proto, size_t opened);

/* Two bytes, of a field below 16, without a check? Most of what is written is so. */
static inline bool tw_proto_is_short(const struct tw_proto *proto, uint32_t field)
{
	return field < 16 && proto->capacity - proto->used >= 2 && !proto->has_no_memory;
}

/* int32, int64, uint32, uint64, bool and enums; negative values as the ten bytes of their 64 bits. */
static inline void tw_proto_u64(struct tw_proto *proto, uint32_t field, uint64_t value)
{
	if (value >= 0x80 || !tw_proto_is_short(proto, field)) {
		tw_proto_put_u64(proto, field, value);
		return;
	}
	proto->data[proto->used++] = (uint8_t)(field << 3);
	proto->data[proto->used++] = (uint8_t)value;
}
void tw_proto_fixed64(struct tw_proto *proto, uint32_t field, uint64_t value);
void tw_proto_bytes(struct tw_proto *proto, uint32_t field, const void *data, size_t bytes);
static inline void tw_proto_text(struct tw_proto *proto, uint32_t field, const char *text)
{
	tw_proto_bytes(proto, field, text, strlen(text));
}

/* Returns what tw_proto_close() of the same message is given. */
static inline size_t tw_proto_open(struct tw_proto *proto, uint32_t field)
{
	if (!tw_proto_is_short(proto, field))
		return tw_proto_put_open(proto, field);
	proto->data[proto->used] = (uint8_t)(field << 3 | 2);
	return proto->used += 2;
}

static inline void tw_proto_close(struct tw_proto *proto, size_t opened)
{
	/* A failed tw_proto_open() has returned 0. */
	if (opened && proto->used - opened < 0x80 && !proto->has_no_memory)
		proto->data[opened - 1] = (uint8_t)(proto->used - opened);
	else
		tw_proto_put_close(proto, opened);
}

#endif
