/* SPDX-License-Identifier: Apache-2.0 */
/* frames.c - reads .eh_frame by the sorted table of PT_GNU_EH_FRAME. */
#include "symbols/frames.h"

#include "base/search.h"
#include "symbols/frame_bytes.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

/* Encodings of pointers (LSB 5.0 Core, 10.5): a form, a base, and one flag. */
enum {
	FORM_ADDRESS = 0x00,
	FORM_ULEB = 0x01,
	FORM_UDATA2 = 0x02,
	FORM_UDATA4 = 0x03,
	FORM_UDATA8 = 0x04,
	FORM_SLEB = 0x09,
	FORM_SDATA2 = 0x0a,
	FORM_SDATA4 = 0x0b,
	FORM_SDATA8 = 0x0c,
	FORM_MASK = 0x0f,
	BASE_ABSOLUTE = 0x00,
	BASE_PCREL = 0x10,
	BASE_MASK = 0x70,
	IS_INDIRECT = 0x80,
	OMITTED = 0xff
};

/* The header of the sorted table: version and three encodings, the pointer to .eh_frame, the number of rows. */
#define TABLE_HEAD_BYTES 12
#define TABLE_VERSION	 1
#define TABLE_ROW_BYTES	 8

/* Longer than what compilers write; a damaged table could lead to the same bytes from each row. */
#define LETTERS_MAX	 16
#define INSTRUCTIONS_MAX 256
/* All descriptions and functions together are no longer than the image, unless they overlap: then a small file would be walked for hours. */
#define OVERLAP_MAX 4

/* A pointer's number, before its base is added. */
static uint64_t take_form(struct cursor *from, uint8_t encoding)
{
	uint64_t value = 0;
	uint16_t half;

	switch (encoding & FORM_MASK) {
	case FORM_ADDRESS:
	case FORM_UDATA8:
	case FORM_SDATA8: take(from, &value, 8); return value;
	case FORM_ULEB: return take_leb(from, false);
	case FORM_SLEB: return take_leb(from, true);
	case FORM_UDATA4: return take32(from);
	case FORM_SDATA4: return (uint64_t)(int64_t)(int32_t)take32(from);
	case FORM_UDATA2: take(from, &half, sizeof half); return half;
	case FORM_SDATA2: take(from, &half, sizeof half); return (uint64_t)(int64_t)(int16_t)half;
	default: from->is_damaged = true; return 0;
	}
}

/* A pointer as a value of the file; 0: omitted, or the number 0. */
static uint64_t take_pointer(struct cursor *from, uint8_t encoding)
{
	uint64_t here = (uint64_t)(uintptr_t)from->at - from->elf->base, value;

	if (encoding == OMITTED)
		return 0;
	value = take_form(from, encoding);
	if (!value)
		return 0;
	switch (encoding & BASE_MASK) {
	case BASE_ABSOLUTE:
		/* In a loaded object ld.so has relocated it. */
		return tw_elf_holds(from->elf, value, 1) ? value - from->elf->base : value;
	case BASE_PCREL: return here + value;
	default: from->is_damaged = true; return 0;
	}
}

/* The rest of an entry behind its length; an empty one ends the section. */
static struct cursor open_entry(const struct tw_elf *elf, uintptr_t address)
{
	struct cursor head = cursor_at(elf, address, sizeof(uint32_t));
	uint32_t bytes = take32(&head);

	/* A length of 64 bits: compilers write none. */
	if (head.is_damaged || !bytes || bytes == UINT32_MAX)
		return (struct cursor){.is_damaged = true};
	return cursor_at(elf, address + sizeof bytes, bytes);
}

/* The properties that a CIE gives its FDEs. */
struct common {
	uintptr_t address; /* 0: none was read */
	struct tw_elf_frame frame;
	uint8_t pointers, exceptions; /* encodings */
	bool has_augmentation;
	bool is_damaged;
};

static void read_augmentation(struct common *common, struct cursor *from, const char *letters)
{
	struct cursor data = *from;
	uint64_t bytes = take_uleb(from);

	(void)take_uleb(&data);
	skip(from, bytes);
	for (; *letters && !data.is_damaged; letters++)
		switch (*letters) {
		case 'R': common->pointers = take8(&data); break;
		case 'L': common->exceptions = take8(&data); break;
		case 'P': (void)take_form(&data, take8(&data)); break;
		case 'S': common->frame.is_signal = true; break;
		case 'B': break;
		/* The meaning of anything after an unknown letter is unknown. */
		default: common->is_damaged = true; return;
		}
	common->is_damaged |= data.is_damaged;
}

static void read_common(struct common *common, const struct tw_elf *elf, uintptr_t address)
{
	struct cursor from = open_entry(elf, address);
	const char *letters;
	uint8_t version;

	*common = (struct common){.address = address, .exceptions = OMITTED};
	if (take32(&from))
		from.is_damaged = true; /* an FDE */
	version = take8(&from);
	letters = (const char *)from.at;
	while (take8(&from))
		from.is_damaged |= from.at - (const uint8_t *)letters > LETTERS_MAX;
	if (from.is_damaged || (version != 1 && version != 3)) {
		common->is_damaged = true;
		return;
	}
	common->frame.code_factor = take_uleb(&from);
	common->frame.data_factor = (int64_t)take_leb(&from, true);
	if ((version == 1 ? take8(&from) : take_uleb(&from)) != TW_ELF_RETURN)
		from.is_damaged = true;
	common->has_augmentation = *letters == 'z';
	if (*letters == 'z')
		read_augmentation(common, &from, letters + 1);
	else if (*letters)
		from.is_damaged = true;
	common->frame.common = from.at;
	common->frame.common_end = from.end;
	common->is_damaged |= from.is_damaged;
}

/* Fills one description; false: it is damaged. */
static bool read_frame(const struct tw_elf *elf, uintptr_t address, struct common *common, struct tw_elf_frame *out)
{
	struct cursor from = open_entry(elf, address);
	uintptr_t back;
	uint32_t distance = take32(&from);

	if (from.is_damaged || !distance)
		return false;
	back = address + sizeof(uint32_t) - distance;
	if (common->address != back)
		read_common(common, elf, back);
	if (common->is_damaged)
		return false;
	*out = common->frame;
	out->value = take_pointer(&from, common->pointers);
	out->bytes = take_form(&from, common->pointers & FORM_MASK);
	if (common->has_augmentation) {
		uint64_t bytes = take_uleb(&from);
		struct cursor data = from;

		skip(&from, bytes);
		out->exceptions = take_pointer(&data, common->exceptions);
		if (data.is_damaged || data.at > from.at)
			return false;
	}
	out->own = from.at;
	out->own_end = from.end;
	return !from.is_damaged && out->bytes && tw_elf_is_code(elf, elf->base + out->value) &&
	       tw_elf_is_filled(elf, elf->base + out->value, out->bytes);
}

static int compare(const void *a, const void *b)
{
	const struct tw_elf_frame *x = a, *y = b;

	return TW_ORDER(x->value, y->value);
}

int tw_elf_frames_read(const struct tw_elf *elf, struct tw_elf_frames *out)
{
	struct cursor head = cursor_at(elf, elf->frame_table, TABLE_HEAD_BYTES);
	struct common common = {0};
	uint64_t count, left = OVERLAP_MAX * (elf->image.high - elf->image.low);

	*out = (struct tw_elf_frames){0};
	if (!elf->frame_table)
		return TW_ENOENT;
	/* The only form that linkers write and that unwinders search. */
	if (take8(&head) != TABLE_VERSION || take8(&head) != (BASE_PCREL | FORM_SDATA4) ||
	    take8(&head) != FORM_UDATA4 || take8(&head) != (0x30 | FORM_SDATA4))
		return TW_EFORMAT;
	(void)take32(&head);
	count = take32(&head);
	head = cursor_at(elf, elf->frame_table + TABLE_HEAD_BYTES, count * TABLE_ROW_BYTES);
	if (head.is_damaged)
		return TW_EFORMAT;
	out->entries = malloc((count + 1) * sizeof *out->entries);
	if (!out->entries)
		return TW_ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		const struct tw_elf_frame *frame = &out->entries[out->count];
		uint64_t bytes;

		(void)take32(&head);
		if (!read_frame(elf, elf->frame_table + (uintptr_t)(int64_t)(int32_t)take32(&head), &common,
				&out->entries[out->count])) {
			out->damaged_count++;
			continue;
		}
		bytes = (uint64_t)(frame->common_end - frame->common + frame->own_end - frame->own) + frame->bytes;
		if (bytes > left) {
			tw_elf_frames_fini(out);
			return TW_EFORMAT;
		}
		left -= bytes;
		out->count++;
	}
	qsort(out->entries, out->count, sizeof *out->entries, compare);
	return 0;
}

void tw_elf_frames_fini(struct tw_elf_frames *frames)
{
	free(frames->entries);
	*frames = (struct tw_elf_frames){0};
}

const struct tw_elf_frame *tw_elf_frame_at(const struct tw_elf_frames *frames, uint64_t value)
{
	size_t low = tw_search(i, frames->count, frames->entries[i].value <= value);

	if (!low || value - frames->entries[low - 1].value >= frames->entries[low - 1].bytes)
		return NULL;
	return &frames->entries[low - 1];
}

/* ---- the state at the first byte ---- */

/* Follows instructions up to the first that moves on.  Returns false at one that is not understood. */
static bool follow(struct cursor *from, struct tw_elf_frame_start *start, bool is_own)
{
	for (unsigned i = 0; from->at < from->end && !from->is_damaged; i++) {
		uint8_t instruction = take8(from);

		if (i == INSTRUCTIONS_MAX)
			return false;
		switch (instruction & CFA_HIGH_MASK) {
		case CFA_ADVANCE_LOC: return is_own;
		case CFA_RESTORE: continue;
		case CFA_OFFSET:
			/* The return address itself is always saved. */
			if ((instruction & ~CFA_HIGH_MASK) != TW_ELF_RETURN)
				start->is_called = false;
			(void)take_uleb(from);
			continue;
		default: break;
		}
		switch (instruction) {
		case CFA_NOP:
		case CFA_REMEMBER_STATE:
		case CFA_RESTORE_STATE: break;
		case CFA_SET_LOC:
		case CFA_ADVANCE_LOC1:
		case CFA_ADVANCE_LOC2:
		case CFA_ADVANCE_LOC4: return is_own;
		case CFA_UNDEFINED: start->has_no_caller |= take_uleb(from) == TW_ELF_RETURN; break;
		case CFA_GNU_ARGS_SIZE: (void)take_uleb(from); break;
		case CFA_DEF_CFA: start->is_called &= take_uleb(from) == TW_ELF_RSP && take_uleb(from) == 8; break;
		case CFA_DEF_CFA_REGISTER: start->is_called &= take_uleb(from) == TW_ELF_RSP; break;
		case CFA_DEF_CFA_OFFSET: start->is_called &= take_uleb(from) == 8; break;
		default: start->is_called = false; return false;
		}
	}
	return !from->is_damaged;
}

struct tw_elf_frame_start tw_elf_frame_start(const struct tw_elf_frame *frame)
{
	struct tw_elf_frame_start start = {.is_called = true};
	struct cursor common = {.at = frame->common, .end = frame->common_end};
	struct cursor own = {.at = frame->own, .end = frame->own_end};

	start.is_known = follow(&common, &start, false) && follow(&own, &start, true);
	return start;
}

/* ---- landing pads ---- */

int tw_elf_frame_landing_pads(const struct tw_elf *elf, const struct tw_elf_frame *frame, tw_elf_landing_pad_fn visit,
			      void *arg)
{
	uintptr_t address = elf->base + frame->exceptions;
	struct cursor from;
	uint64_t start = frame->value, bytes, left = frame->bytes + 1;
	uint8_t encoding;

	if (!frame->exceptions)
		return 0;
	if (!tw_elf_holds(elf, address, 1))
		return TW_EFORMAT;
	from = cursor_at(elf, address, elf->image.high - address);
	encoding = take8(&from);
	if (encoding != OMITTED)
		start = take_pointer(&from, encoding);
	encoding = take8(&from);
	if (encoding != OMITTED)
		(void)take_uleb(&from);
	encoding = take8(&from);
	bytes = take_uleb(&from);
	if (from.is_damaged || bytes > (uint64_t)(from.end - from.at))
		return TW_EFORMAT;
	from.end = from.at + bytes;
	while (from.at < from.end && !from.is_damaged) {
		uint64_t pad;

		(void)take_form(&from, encoding);
		(void)take_form(&from, encoding);
		pad = take_form(&from, encoding);
		(void)take_uleb(&from);
		/* Each call site has a byte of the function for itself. */
		if (!left--)
			return TW_EFORMAT;
		if (pad && !from.is_damaged && !visit(start + pad, arg))
			return 0;
	}
	return from.is_damaged ? TW_EFORMAT : 0;
}
