/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_type.c - names of types, and how the System V ABI (x86-64, 3.2.3) passes them.
 *
 * A value of up to 16 bytes is one or two *eightbytes*; each is INTEGER when anything in it is, else SSE.  A long double
 * (X87) is passed in memory, and returned in a register of its own.
 * Larger values, and those with unaligned members, are passed in memory.  C++ classes with a copy constructor
 * or destructor of their own are passed by address; clang records that in DW_AT_calling_convention; without it (gcc),
 * dwarf_trivial.c decides.
 */
#include "symbols/debug/dwarf.h"
#include "base/search.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX	32
#define MEMBERS_MAX	64
#define ENUMERATORS_MAX 512

static bool attribute(Dwarf_Die *die, unsigned name, Dwarf_Attribute *out)
{
	return dwarf_attr_integrate(die, name, out) != NULL;
}

static bool is_cpp(Dwarf_Die *die)
{
	Dwarf_Die unit;

	return dwarf_diecu(die, &unit, NULL, NULL) && tw_dwarf_is_cpp((uint32_t)dwarf_srclang(&unit));
}

/* Removes typedefs and qualifiers.  False: void, or malformed. */
static bool peel(Dwarf_Die *die, Dwarf_Die *out)
{
	*out = *die;
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		Dwarf_Attribute type;

		switch (dwarf_tag(out)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type: break;
		default: return true;
		}
		if (!attribute(out, DW_AT_type, &type) || !dwarf_formref_die(&type, out))
			return false;
	}
	return false;
}

bool tw_dwarf_type_die(Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Attribute type;
	Dwarf_Die named;

	return attribute(die, DW_AT_type, &type) && dwarf_formref_die(&type, &named) && peel(&named, out);
}

uint64_t tw_dwarf_bytes(Dwarf_Die *die)
{
	Dwarf_Word bytes;

	return dwarf_aggregate_size(die, &bytes) == 0 ? bytes : 0;
}

/* ---- classes ---- */

static enum tw_dwarf_class merge(enum tw_dwarf_class a, enum tw_dwarf_class b)
{
	if (a == TW_DWARF_UNCERTAIN || b == TW_DWARF_UNCERTAIN)
		return TW_DWARF_UNCERTAIN;
	if (a == TW_DWARF_MEMORY || b == TW_DWARF_MEMORY)
		return TW_DWARF_MEMORY;
	if (a != b && a != TW_DWARF_NOTHING && b != TW_DWARF_NOTHING && (a == TW_DWARF_X87 || b == TW_DWARF_X87))
		return TW_DWARF_MEMORY;
	if (a == TW_DWARF_X87 || b == TW_DWARF_X87)
		return TW_DWARF_X87;
	if (a == TW_DWARF_INTEGER || b == TW_DWARF_INTEGER)
		return TW_DWARF_INTEGER;
	return a == TW_DWARF_SSE ? a : b;
}

static void put_class(enum tw_dwarf_class classes[2], uint64_t offset, uint64_t bytes, enum tw_dwarf_class class)
{
	/* A value that is not aligned to its size is passed in memory as a whole. */
	if (!bytes || bytes > 16 || (bytes & (bytes - 1)) || offset % bytes || offset + bytes > 16)
		class = offset + bytes > 16 || !bytes ? TW_DWARF_UNCERTAIN : TW_DWARF_MEMORY;
	for (uint64_t at = offset / 8; at < 2 && at * 8 < offset + (bytes ? bytes : 1); at++)
		classes[at] = merge(classes[at], class);
	if (class == TW_DWARF_MEMORY || class == TW_DWARF_UNCERTAIN)
		classes[0] = merge(classes[0], class);
}

static void classify(Dwarf_Die *die, uint64_t offset, enum tw_dwarf_class classes[2], int depth);

static bool is_long_double(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	return name && strstr(name, "long double");
}

static void classify_base(Dwarf_Die *die, uint64_t offset, enum tw_dwarf_class classes[2])
{
	uint64_t bytes = tw_dwarf_bytes(die);
	Dwarf_Attribute attr;
	Dwarf_Word encoding = 0;

	if (dwarf_attr(die, DW_AT_encoding, &attr))
		dwarf_formudata(&attr, &encoding);
	if (encoding == DW_ATE_complex_float && (bytes == 8 || bytes == 16)) {
		put_class(classes, offset, bytes / 2, TW_DWARF_SSE);
		put_class(classes, offset + bytes / 2, bytes / 2, TW_DWARF_SSE);
	} else if (encoding == DW_ATE_float && bytes <= 8) {
		put_class(classes, offset, bytes, TW_DWARF_SSE);
	} else if (encoding == DW_ATE_float || encoding == DW_ATE_complex_float) {
		/* __float128, of the same size as long double, in one vector register. */
		put_class(classes, offset, bytes, is_long_double(die) ? TW_DWARF_X87 : TW_DWARF_UNCERTAIN);
	} else {
		put_class(classes, offset, bytes, TW_DWARF_INTEGER);
	}
}

static void classify_array(Dwarf_Die *die, uint64_t offset, enum tw_dwarf_class classes[2], int depth)
{
	uint64_t bytes = tw_dwarf_bytes(die), element;
	Dwarf_Die inner;

	if (dwarf_hasattr(die, DW_AT_GNU_vector)) {
		classes[0] = TW_DWARF_UNCERTAIN;
		return;
	}
	element = tw_dwarf_type_die(die, &inner) ? tw_dwarf_bytes(&inner) : 0;
	if (!element || bytes > 16)
		classes[0] = bytes > 16 ? TW_DWARF_MEMORY : bytes ? TW_DWARF_UNCERTAIN : classes[0];
	for (uint64_t at = 0; element && bytes <= 16 && at + element <= bytes; at += element)
		classify(&inner, offset + at, classes, depth + 1);
}

/* One member or base class.  False: it takes no space in the object. */
static void classify_member(Dwarf_Die *member, uint64_t offset, enum tw_dwarf_class classes[2], int depth)
{
	Dwarf_Attribute attr;
	Dwarf_Word at = 0, bit;
	Dwarf_Die type;

	if (dwarf_hasattr(member, DW_AT_declaration) || dwarf_hasattr(member, DW_AT_external))
		return;
	if (dwarf_tag(member) == DW_TAG_inheritance && dwarf_hasattr(member, DW_AT_virtuality)) {
		classes[0] = TW_DWARF_UNCERTAIN;
		return;
	}
	if (dwarf_attr(member, DW_AT_data_bit_offset, &attr) && dwarf_formudata(&attr, &bit) == 0) {
		put_class(classes, offset + bit / 8, 1, TW_DWARF_INTEGER);
		return;
	}
	if (dwarf_attr(member, DW_AT_data_member_location, &attr) && dwarf_formudata(&attr, &at) != 0) {
		classes[0] = TW_DWARF_UNCERTAIN;
		return;
	}
	if (dwarf_hasattr(member, DW_AT_bit_size))
		put_class(classes, offset + at, 1, TW_DWARF_INTEGER);
	else if (tw_dwarf_type_die(member, &type))
		classify(&type, offset + at, classes, depth + 1);
	else
		classes[0] = TW_DWARF_UNCERTAIN;
}

static void classify_struct(Dwarf_Die *die, uint64_t offset, enum tw_dwarf_class classes[2], int depth)
{
	Dwarf_Attribute attr;
	Dwarf_Word convention = 0;
	Dwarf_Die child;
	int count = 0;

	if (dwarf_hasattr(die, DW_AT_declaration)) {
		classes[0] = TW_DWARF_UNCERTAIN;
		return;
	}
	if (dwarf_attr(die, DW_AT_calling_convention, &attr))
		dwarf_formudata(&attr, &convention);
	if (depth == 0 && is_cpp(die) && convention != DW_CC_pass_by_value && convention != DW_CC_pass_by_reference) {
		enum tw_dwarf_triviality triviality = tw_dwarf_triviality_of(die, 0);

		if (triviality == TW_DWARF_TRIVIALITY_UNKNOWN) {
			classes[0] = TW_DWARF_UNCERTAIN;
			return;
		}
		convention = triviality == TW_DWARF_TRIVIAL ? DW_CC_pass_by_value : DW_CC_pass_by_reference;
	}
	if (depth == 0 && convention == DW_CC_pass_by_reference) {
		classes[0] = TW_DWARF_REFERENCE;
		return;
	}
	if (offset + tw_dwarf_bytes(die) > 16) {
		classes[0] = TW_DWARF_MEMORY;
		return;
	}
	if (dwarf_child(die, &child) != 0)
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_member || dwarf_tag(&child) == DW_TAG_inheritance) {
			if (++count > MEMBERS_MAX)
				classes[0] = TW_DWARF_UNCERTAIN;
			else
				classify_member(&child, offset, classes, depth);
		}
	} while (tw_dwarf_next(&child));
}

static void classify(Dwarf_Die *die, uint64_t offset, enum tw_dwarf_class classes[2], int depth)
{
	Dwarf_Die pointee;

	if (depth > DEPTH_MAX) {
		classes[0] = TW_DWARF_UNCERTAIN;
		return;
	}
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type: classify_base(die, offset, classes); break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_unspecified_type: /* nullptr_t */ put_class(classes, offset, 8, TW_DWARF_INTEGER); break;
	case DW_TAG_ptr_to_member_type:
		put_class(classes, offset, 8, TW_DWARF_INTEGER);
		if (tw_dwarf_type_die(die, &pointee) && dwarf_tag(&pointee) == DW_TAG_subroutine_type)
			put_class(classes, offset + 8, 8, TW_DWARF_INTEGER);
		break;
	case DW_TAG_enumeration_type: put_class(classes, offset, tw_dwarf_bytes(die), TW_DWARF_INTEGER); break;
	case DW_TAG_array_type: classify_array(die, offset, classes, depth); break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type: classify_struct(die, offset, classes, depth); break;
	default: classes[0] = TW_DWARF_UNCERTAIN;
	}
}

/* ---- names for display ---- */

static enum tw_debug_kind base_kind(Dwarf_Die *die, uint64_t bytes)
{
	Dwarf_Attribute attr;
	Dwarf_Word encoding = 0;

	if (dwarf_attr(die, DW_AT_encoding, &attr))
		dwarf_formudata(&attr, &encoding);
	switch (encoding) {
	case DW_ATE_boolean: return bytes <= 8 ? TW_DEBUG_BOOL : TW_DEBUG_UNKNOWN;
	case DW_ATE_float:
		return bytes == 4 || bytes == 8 || (bytes == 16 && is_long_double(die)) ? TW_DEBUG_FLOAT
											: TW_DEBUG_UNKNOWN;
	case DW_ATE_complex_float: return bytes <= 16 ? TW_DEBUG_STRUCT : TW_DEBUG_UNKNOWN;
	case DW_ATE_signed:
	case DW_ATE_signed_char: return bytes <= 8 ? TW_DEBUG_SIGNED : TW_DEBUG_STRUCT;
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF: return bytes <= 8 ? TW_DEBUG_UNSIGNED : TW_DEBUG_STRUCT;
	default: return TW_DEBUG_UNKNOWN;
	}
}

static bool is_char(Dwarf_Die *die)
{
	const char *name = dwarf_tag(die) == DW_TAG_base_type ? dwarf_diename(die) : NULL;

	return name && strcmp(name, "char") == 0;
}

static bool describe_pointer(struct tw_debug *debug, Dwarf_Die *die, struct tw_debug_type *out)
{
	const char *sign = dwarf_tag(die) == DW_TAG_pointer_type ? " *" : " &", *name;
	Dwarf_Die pointee;
	char text[160];

	*out = (struct tw_debug_type){.kind = TW_DEBUG_POINTER, .bytes = 8, .name = ""};
	if (!tw_dwarf_type_die(die, &pointee))
		return true;
	if (is_char(&pointee) && dwarf_tag(die) == DW_TAG_pointer_type) {
		out->kind = TW_DEBUG_STRING;
		return true;
	}
	name = dwarf_diename(&pointee);
	if (!name || strlen(name) > 128)
		return true;
	snprintf(text, sizeof text, "%s%s", name, sign);
	out->name = tw_dwarf_text(debug, text);
	return out->name != NULL;
}

/* Short forms of constants say nothing of a sign: the enum's integer does. */
static bool enumerator_value(Dwarf_Die *die, bool is_signed, int64_t *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word word;
	Dwarf_Sword value;

	if (!dwarf_attr(die, DW_AT_const_value, &attr))
		return false;
	if (is_signed || dwarf_whatform(&attr) == DW_FORM_sdata || dwarf_whatform(&attr) == DW_FORM_implicit_const) {
		if (dwarf_formsdata(&attr, &value) != 0)
			return false;
		*out = value;
		return true;
	}
	if (dwarf_formudata(&attr, &word) != 0)
		return false;
	*out = (int64_t)word;
	return true;
}

static bool has_signed_type(Dwarf_Die *die)
{
	Dwarf_Die type;

	return tw_dwarf_type_die(die, &type) && dwarf_tag(&type) == DW_TAG_base_type &&
	       base_kind(&type, tw_dwarf_bytes(&type)) == TW_DEBUG_SIGNED;
}

static bool describe_enum(struct tw_debug *debug, Dwarf_Die *die, struct tw_debug_type *out)
{
	bool is_signed = has_signed_type(die);
	struct tw_debug_enumerator *list = tw_dwarf_new(debug, ENUMERATORS_MAX * sizeof *list);
	uint32_t count = 0;
	Dwarf_Die child;

	if (!list)
		return false;
	if (dwarf_child(die, &child) == 0) {
		do {
			const char *name = dwarf_diename(&child);
			int64_t value;

			if (dwarf_tag(&child) == DW_TAG_enumerator && name && count < ENUMERATORS_MAX &&
			    enumerator_value(&child, is_signed, &value))
				list[count++] = (struct tw_debug_enumerator){name, value};
		} while (tw_dwarf_next(&child));
	}
	out->enumerators = list;
	out->enumerator_count = count;
	out->is_signed = is_signed;
	for (uint32_t i = 0; i < count; i++)
		out->is_signed |= list[i].value < 0;
	return true;
}

static bool describe(struct tw_debug *debug, Dwarf_Die *die, struct tw_debug_type *out)
{
	const char *name = dwarf_diename(die);
	uint64_t bytes = tw_dwarf_bytes(die);

	*out = (struct tw_debug_type){.bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX, .name = ""};
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		out->kind = base_kind(die, bytes);
		return out->kind != TW_DEBUG_STRUCT || tw_dwarf_fields(debug, die, out);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type: return describe_pointer(debug, die, out);
	case DW_TAG_unspecified_type: out->kind = TW_DEBUG_POINTER; break;
	case DW_TAG_ptr_to_member_type: out->kind = TW_DEBUG_STRUCT; break;
	case DW_TAG_enumeration_type:
		out->kind = TW_DEBUG_ENUM;
		if (!describe_enum(debug, die, out))
			return false;
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		out->kind = TW_DEBUG_STRUCT;
		if (!tw_dwarf_fields(debug, die, out))
			return false;
		break;
	default: return true;
	}
	if (name)
		out->name = name;
	return true;
}

/* ---- known types ---- */

static int by_key(const void *a, const void *b)
{
	const struct tw_dwarf_type *x = a, *y = b;

	return TW_ORDER(x->key, y->key);
}

static struct tw_dwarf_type *make_type(struct tw_debug *debug, Dwarf_Die *die)
{
	struct tw_dwarf_type *type = tw_dwarf_new(debug, sizeof *type);

	if (!type || !describe(debug, die, &type->shown))
		return NULL;
	type->key = die->addr;
	classify(die, 0, type->classes, 0);
	/* Memory and uncertainty apply to the whole value. */
	if (type->classes[1] == TW_DWARF_MEMORY || type->classes[1] == TW_DWARF_UNCERTAIN)
		type->classes[0] = type->classes[1];
	if (type->classes[0] >= TW_DWARF_MEMORY)
		type->classes[1] = TW_DWARF_NOTHING;
	return type;
}

/* An unnamed type has the name of its typedef. */
static const char *typedef_name(Dwarf_Die *die)
{
	Dwarf_Attribute type;
	Dwarf_Die named = *die;

	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		if (!attribute(&named, DW_AT_type, &type) || !dwarf_formref_die(&type, &named))
			return NULL;
		if (dwarf_tag(&named) == DW_TAG_typedef)
			return dwarf_diename(&named);
	}
	return NULL;
}

/* `auto`: the deduced type is recorded beside it, unless it is void. */
static bool is_deduced(Dwarf_Die *die)
{
	const char *name = dwarf_tag(die) == DW_TAG_unspecified_type ? dwarf_diename(die) : NULL;

	return name && strstr(name, "auto");
}

const struct tw_dwarf_type *tw_dwarf_type_of(struct tw_debug *debug, Dwarf_Die *die)
{
	static const struct tw_dwarf_type nothing = {.shown = {.kind = TW_DEBUG_VOID, .name = ""}};
	struct tw_dwarf_type wanted, *type;
	struct tw_dwarf_type **found;
	Dwarf_Die peeled;

	if (!tw_dwarf_type_die(die, &peeled) || is_deduced(&peeled))
		return &nothing;
	wanted.key = peeled.addr;
	found = tfind(&wanted, &debug->types, by_key);
	if (found)
		return *found;
	type = make_type(debug, &peeled);
	if (type && !*type->shown.name && (type->shown.kind == TW_DEBUG_STRUCT || type->shown.kind == TW_DEBUG_ENUM)) {
		const char *name = dwarf_tag(&peeled) != DW_TAG_base_type ? typedef_name(die) : NULL;

		type->shown.name = name ? name : "";
	}
	if (type && !tsearch(type, &debug->types, by_key))
		return NULL;
	return type;
}

const struct tw_debug_type *tw_dwarf_reference_to(struct tw_debug *debug, const struct tw_dwarf_type *type)
{
	struct tw_debug_type *reference = tw_dwarf_new(debug, sizeof *reference);
	char text[160];

	if (!reference)
		return NULL;
	*reference = (struct tw_debug_type){.kind = TW_DEBUG_POINTER, .bytes = 8};
	snprintf(text, sizeof text, "%.128s &", type->shown.name);
	reference->name = *type->shown.name ? tw_dwarf_text(debug, text) : "";
	return reference->name ? reference : NULL;
}
