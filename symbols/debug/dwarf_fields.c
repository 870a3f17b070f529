/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_fields.c - the fields of a struct passed in registers, as a list of numbers.
 *
 * Nested structs and arrays are split too.  A struct with a union, or with anything not understood, gets no fields, and is
 * shown as plain words.
 */
#include "symbols/debug/dwarf.h"

#include <stdio.h>
#include <string.h>

#define BYTES_MAX  16
#define FIELDS_MAX 16
#define NAME_BYTES 64
#define DEPTH_MAX  8

struct walk {
	struct tw_debug *debug;
	struct tw_debug_field *fields; /* FIELDS_MAX */
	uint32_t count;
	bool has_memory;
};

/* The location of a member: its name so far, and its first bit. */
struct spot {
	const char *name;
	uint64_t bit;
	int depth;
};

static bool take(struct walk *walk, Dwarf_Die *type, const struct spot *spot, uint64_t bits);

static bool unsigned_of(Dwarf_Die *die, unsigned name, uint64_t *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word word;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &word) != 0)
		return false;
	*out = word;
	return true;
}

static bool add(struct walk *walk, const struct spot *spot, enum tw_debug_kind kind, uint64_t bits)
{
	const char *name = tw_dwarf_text(walk->debug, spot->name);

	walk->has_memory &= name != NULL;
	if (!name || walk->count == FIELDS_MAX || !bits || spot->bit + bits > 8 * BYTES_MAX)
		return false;
	/* A field lies within one word, except for __int128. */
	if (bits != 128 && (bits > 64 || spot->bit / 64 != (spot->bit + bits - 1) / 64))
		return false;
	walk->fields[walk->count++] = (struct tw_debug_field){name, kind, (uint32_t)spot->bit, (uint32_t)bits};
	return true;
}

static bool take_complex(struct walk *walk, const struct spot *spot, uint64_t bits)
{
	static const char *const parts[2] = {"re", "im"};

	for (uint64_t i = 0; i < 2; i++) {
		char name[NAME_BYTES];
		const struct spot part = {name, spot->bit + i * bits / 2, spot->depth};

		if (snprintf(name, sizeof name, "%s%s%s", spot->name, *spot->name ? "." : "", parts[i]) >= NAME_BYTES ||
		    !add(walk, &part, TW_DEBUG_FLOAT, bits / 2))
			return false;
	}
	return true;
}

static bool take_base(struct walk *walk, Dwarf_Die *type, const struct spot *spot, uint64_t bits)
{
	uint64_t encoding = 0;

	unsigned_of(type, DW_AT_encoding, &encoding);
	switch (encoding) {
	case DW_ATE_boolean: return add(walk, spot, TW_DEBUG_BOOL, bits);
	case DW_ATE_signed:
	case DW_ATE_signed_char: return add(walk, spot, TW_DEBUG_SIGNED, bits);
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF: return add(walk, spot, TW_DEBUG_UNSIGNED, bits);
	case DW_ATE_float: return (bits == 32 || bits == 64) && add(walk, spot, TW_DEBUG_FLOAT, bits);
	case DW_ATE_complex_float: return (bits == 64 || bits == 128) && take_complex(walk, spot, bits);
	default: return false;
	}
}

static bool take_array(struct walk *walk, Dwarf_Die *type, const struct spot *spot)
{
	uint64_t bytes = tw_dwarf_bytes(type), each;
	Dwarf_Die element;

	if (dwarf_hasattr(type, DW_AT_GNU_vector) || !tw_dwarf_type_die(type, &element))
		return false;
	each = tw_dwarf_bytes(&element);
	for (uint64_t i = 0; each && (i + 1) * each <= bytes; i++) {
		char name[NAME_BYTES];
		const struct spot at = {name, spot->bit + 8 * i * each, spot->depth + 1};

		if (snprintf(name, sizeof name, "%s[%u]", spot->name, (unsigned)i) >= NAME_BYTES ||
		    !take(walk, &element, &at, 8 * each))
			return false;
	}
	return each != 0;
}

/* The offset of a member, and its bits: those of its type, unless it is a bit-field. */
static bool place_of(Dwarf_Die *member, Dwarf_Die *type, uint64_t *bit, uint64_t *bits)
{
	uint64_t byte = 0, from_high, storage;
	bool is_bit_field = unsigned_of(member, DW_AT_bit_size, bits);

	if (!is_bit_field)
		*bits = 8 * tw_dwarf_bytes(type);
	if (unsigned_of(member, DW_AT_data_bit_offset, bit))
		return true;
	if (dwarf_hasattr(member, DW_AT_data_member_location) &&
	    !unsigned_of(member, DW_AT_data_member_location, &byte))
		return false;
	*bit = 8 * byte;
	/* The older form counts from the highest bit of the integer in which it lies. */
	if (!unsigned_of(member, DW_AT_bit_offset, &from_high))
		return true;
	if (!unsigned_of(member, DW_AT_byte_size, &storage))
		storage = tw_dwarf_bytes(type);
	if (from_high + *bits > 8 * storage)
		return false;
	*bit += 8 * storage - from_high - *bits;
	return true;
}

static bool take_member(struct walk *walk, Dwarf_Die *member, const struct spot *spot)
{
	bool is_base = dwarf_tag(member) == DW_TAG_inheritance;
	const char *own = is_base ? "" : dwarf_diename(member);
	char name[NAME_BYTES];
	struct spot at = {name, 0, spot->depth + 1};
	uint64_t bit, bits;
	Dwarf_Die type;

	/* Statics. */
	if (dwarf_hasattr(member, DW_AT_declaration) || dwarf_hasattr(member, DW_AT_external))
		return true;
	if (dwarf_hasattr(member, DW_AT_virtuality) || !tw_dwarf_type_die(member, &type) ||
	    !place_of(member, &type, &bit, &bits))
		return false;
	own = own ? own : "";
	at.bit = spot->bit + bit;
	return snprintf(name, sizeof name, "%s%s%s", spot->name, *spot->name && *own ? "." : "", own) < NAME_BYTES &&
	       take(walk, &type, &at, bits);
}

static bool take_struct(struct walk *walk, Dwarf_Die *type, const struct spot *spot)
{
	Dwarf_Die child;

	if (dwarf_hasattr(type, DW_AT_declaration))
		return false;
	if (dwarf_child(type, &child) != 0)
		return true;
	do {
		int tag = dwarf_tag(&child);

		if ((tag == DW_TAG_member || tag == DW_TAG_inheritance) && !take_member(walk, &child, spot))
			return false;
	} while (tw_dwarf_next(&child));
	return true;
}

static bool take(struct walk *walk, Dwarf_Die *type, const struct spot *spot, uint64_t bits)
{
	Dwarf_Die of;

	if (spot->depth > DEPTH_MAX)
		return false;
	switch (dwarf_tag(type)) {
	case DW_TAG_base_type: return take_base(walk, type, spot, bits);
	case DW_TAG_enumeration_type:
		return tw_dwarf_type_die(type, &of) ? take_base(walk, &of, spot, bits)
						    : add(walk, spot, TW_DEBUG_UNSIGNED, bits);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_unspecified_type: return add(walk, spot, TW_DEBUG_POINTER, 64);
	case DW_TAG_array_type: return take_array(walk, type, spot);
	case DW_TAG_structure_type:
	case DW_TAG_class_type: return take_struct(walk, type, spot);
	default: return false;
	}
}

bool tw_dwarf_fields(struct tw_debug *debug, Dwarf_Die *die, struct tw_debug_type *out)
{
	struct tw_debug_field fields[FIELDS_MAX], *kept;
	struct walk walk = {debug, fields, 0, true};
	const struct spot all = {"", 0, 0};
	uint64_t bytes = tw_dwarf_bytes(die);

	if (!bytes || bytes > BYTES_MAX || !take(&walk, die, &all, 8 * bytes) || !walk.count)
		return walk.has_memory;
	kept = tw_dwarf_new(debug, walk.count * sizeof *kept);
	if (!kept)
		return false;
	memcpy(kept, fields, walk.count * sizeof *kept);
	out->fields = kept;
	out->field_count = walk.count;
	return true;
}
