/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - columns of whole bytes. */
#include "pipeline/codec/columns.h"

#define MODE_PLAIN 0
#define MODE_DELTA 1

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

static void put_1(uint8_t *out, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (uint8_t)values[i];
}

static void put_2(uint8_t *out, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint16_t value = (uint16_t)values[i];

		memcpy(out + 2 * i, &value, 2);
	}
}

static void put_4(uint8_t *out, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t value = (uint32_t)values[i];

		memcpy(out + 4 * i, &value, 4);
	}
}

/* Each store of 8 bytes is overwritten by the next: the last writes up to 8 bytes after the column. */
static void put_any(uint8_t *out, const uint64_t *values, size_t count, unsigned width)
{
	for (size_t i = 0; i < count; i++)
		tw_put64(out + width * i, values[i]);
}

static uint8_t *put_numbers(uint8_t *out, const uint64_t *values, size_t count, unsigned width)
{
	switch (width) {
	case 0: break;
	case 1: put_1(out, values, count); break;
	case 2: put_2(out, values, count); break;
	case 4: put_4(out, values, count); break;
	default: put_any(out, values, count, width); break;
	}
	return out + width * count;
}

uint8_t *tw_column_put(uint8_t *out, const uint64_t *values, size_t count)
{
	uint64_t deltas[TW_COLUMN_MAX];
	uint64_t any = 0, any_delta = 0;
	unsigned width, delta_width;

	if (!count) {
		*out = MODE_PLAIN << 4;
		return out + 1;
	}
	deltas[0] = 0;
	for (size_t i = 0; i < count; i++)
		any |= values[i];
	for (size_t i = 1; i < count; i++) {
		deltas[i] = zigzag(values[i] - values[i - 1]);
		any_delta |= deltas[i];
	}
	width = tw_width_of(any);
	delta_width = tw_width_of(any_delta);
	if (width * count <= 8 + delta_width * count) {
		*out = (uint8_t)(MODE_PLAIN << 4 | width);
		return put_numbers(out + 1, values, count, width);
	}
	*out = (uint8_t)(MODE_DELTA << 4 | delta_width);
	tw_put64(out + 1, values[0]);
	return put_numbers(out + 9, deltas, count, delta_width);
}

static void get_1(const uint8_t *in, uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		values[i] = in[i];
}

static void get_2(const uint8_t *in, uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint16_t value;

		memcpy(&value, in + 2 * i, 2);
		values[i] = value;
	}
}

static void get_4(const uint8_t *in, uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t value;

		memcpy(&value, in + 4 * i, 4);
		values[i] = value;
	}
}

static void get_any(const uint8_t *in, uint64_t *values, size_t count, unsigned width)
{
	uint64_t mask = width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * width) - 1;

	for (size_t i = 0; i < count; i++)
		values[i] = tw_get64(in + width * i) & mask;
}

const uint8_t *tw_column_get(const uint8_t *in, const uint8_t *end, uint64_t *values, size_t count)
{
	unsigned width, mode;
	uint64_t base = 0;

	if (in >= end)
		return NULL;
	width = *in & 15;
	mode = *in++ >> 4;
	if (width > 8 || mode > MODE_DELTA)
		return NULL;
	if (mode == MODE_DELTA) {
		if (end - in < 8)
			return NULL;
		base = tw_get64(in);
		in += 8;
	}
	if ((size_t)(end - in) < width * count)
		return NULL;
	switch (width) {
	case 0: memset(values, 0, count * sizeof *values); break;
	case 1: get_1(in, values, count); break;
	case 2: get_2(in, values, count); break;
	case 4: get_4(in, values, count); break;
	default: get_any(in, values, count, width); break;
	}
	if (mode == MODE_DELTA) {
		for (size_t i = 0; i < count; i++)
			values[i] = base += unzigzag(values[i]);
	}
	return in + width * count;
}
