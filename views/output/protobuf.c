/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf.c - writes messages of Protocol Buffers: protobuf.h. */
#include "views/output/protobuf.h"
#include "base/grow.h"

#include <stdlib.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };

#define VARINT_BYTES_MAX 10
/* Of messages up to 127 bytes, as most are. */
#define LENGTH_BYTES 1

void tw_proto_free(struct tw_proto *proto)
{
	free(proto->data);
	*proto = (struct tw_proto){0};
}

bool tw_proto_reserve(struct tw_proto *proto, size_t bytes)
{
	proto->has_no_memory = proto->has_no_memory || !tw_grow_by(proto->data, proto->used, proto->capacity, bytes);
	return !proto->has_no_memory;
}

static void put_key(struct tw_proto *proto, uint32_t field, enum wire_type type)
{
	proto->used += tw_proto_varint(proto->data + proto->used, (uint64_t)field << 3 | type);
}

void tw_proto_put_u64(struct tw_proto *proto, uint32_t field, uint64_t value)
{
	if (!tw_proto_reserve(proto, 2 * VARINT_BYTES_MAX))
		return;
	put_key(proto, field, WIRE_VARINT);
	proto->used += tw_proto_varint(proto->data + proto->used, value);
}

void tw_proto_fixed64(struct tw_proto *proto, uint32_t field, uint64_t value)
{
	if (!tw_proto_reserve(proto, VARINT_BYTES_MAX + sizeof value))
		return;
	put_key(proto, field, WIRE_FIXED64);
	/* The lowest byte first, as in memory. */
	memcpy(proto->data + proto->used, &value, sizeof value);
	proto->used += sizeof value;
}

void tw_proto_bytes(struct tw_proto *proto, uint32_t field, const void *data, size_t bytes)
{
	if (!tw_proto_reserve(proto, 2 * VARINT_BYTES_MAX + bytes))
		return;
	put_key(proto, field, WIRE_LENGTH);
	proto->used += tw_proto_varint(proto->data + proto->used, bytes);
	if (bytes)
		memcpy(proto->data + proto->used, data, bytes);
	proto->used += bytes;
}

size_t tw_proto_put_open(struct tw_proto *proto, uint32_t field)
{
	if (!tw_proto_reserve(proto, 2 * VARINT_BYTES_MAX))
		return 0;
	put_key(proto, field, WIRE_LENGTH);
	proto->used += LENGTH_BYTES;
	return proto->used;
}

void tw_proto_put_close(struct tw_proto *proto, size_t opened)
{
	uint8_t length[VARINT_BYTES_MAX];
	size_t bytes, length_bytes;

	if (!tw_proto_reserve(proto, VARINT_BYTES_MAX))
		return;
	bytes = proto->used - opened;
	length_bytes = tw_proto_varint(length, bytes);
	if (length_bytes > LENGTH_BYTES) {
		memmove(proto->data + opened + length_bytes - LENGTH_BYTES, proto->data + opened, bytes);
		proto->used += length_bytes - LENGTH_BYTES;
	}
	memcpy(proto->data + opened - LENGTH_BYTES, length, length_bytes);
}
