/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_trivial.c - is a C++ class passed by value or by address, if the compiler does not record it (gcc).
 *
 * By address when copying or destroying it needs code (Itanium C++ ABI, 3.1.2: non-trivial for the
 * purposes of calls): its destructor, or a copy or move constructor, is not trivial, or all of the latter are deleted.
 * gcc's debug information has every declared member function, and whether it is defaulted or deleted; undeclared ones
 * follow from the members and bases.
 */
#include "symbols/debug/dwarf.h"

#include <string.h>

#define DEPTH_MAX 32

static enum tw_dwarf_triviality worse(enum tw_dwarf_triviality a, enum tw_dwarf_triviality b)
{
	return a > b ? a : b;
}

static bool flag_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	bool flag = false;

	return dwarf_attr(die, name, &attr) && dwarf_formflag(&attr, &flag) == 0 && flag;
}

static uint64_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value = 0;

	return dwarf_attr(die, name, &attr) && dwarf_formudata(&attr, &value) == 0 ? value : 0;
}

/* The type that it names, without typedefs and qualifiers. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Attribute attr;
	Dwarf_Die named;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, &named) &&
	       dwarf_peel_type(&named, out) == 0;
}

/* A member's or base's own class; an array's element. */
static bool class_within(Dwarf_Die *die, Dwarf_Die *out)
{
	if (!type_of(die, out))
		return false;
	for (int depth = 0; dwarf_tag(out) == DW_TAG_array_type && depth < DEPTH_MAX; depth++) {
		Dwarf_Die array = *out;

		if (!type_of(&array, out))
			return false;
	}
	return dwarf_tag(out) == DW_TAG_structure_type || dwarf_tag(out) == DW_TAG_class_type ||
	       dwarf_tag(out) == DW_TAG_union_type;
}

/* Properties found of a class. */
struct seen {
	Dwarf_Die *class;
	const char *name; /* without template arguments */
	size_t name_bytes;
	unsigned copies, deleted; /* copy and move constructors */
	bool has_move_assignment, has_special_copy;
	enum tw_dwarf_triviality triviality;
};

static bool is_named(const struct seen *s, const char *name)
{
	return s->name_bytes && strncmp(name, s->name, s->name_bytes) == 0 && !name[s->name_bytes];
}

/* Is its first parameter behind `this` a reference to the class?  Gives which, and whether there are more. */
static unsigned reference_to_own(const struct seen *s, Dwarf_Die *function, bool *has_more)
{
	Dwarf_Die child, reference, to;
	unsigned tag = 0;

	*has_more = false;
	if (dwarf_child(function, &child) != 0)
		return 0;
	do {
		if (dwarf_tag(&child) != DW_TAG_formal_parameter || flag_of(&child, DW_AT_artificial))
			continue;
		if (tag) {
			*has_more = true;
			break;
		}
		if (!type_of(&child, &reference) || !type_of(&reference, &to) ||
		    dwarf_dieoffset(&to) != dwarf_dieoffset(s->class))
			return 0;
		tag = (unsigned)dwarf_tag(&reference);
	} while (tw_dwarf_next(&child));
	return tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type ? tag : 0;
}

static void see_function(struct seen *s, Dwarf_Die *function)
{
	const char *name = dwarf_diename(function);
	bool has_more, is_own = number_of(function, DW_AT_defaulted) != DW_DEFAULTED_in_class;
	unsigned tag;

	if (number_of(function, DW_AT_virtuality))
		s->triviality = worse(s->triviality, TW_DWARF_NOT_TRIVIAL);
	/* Functions that the compiler has declared follow from the members. */
	if (!name || flag_of(function, DW_AT_artificial))
		return;
	if (name[0] == '~') {
		if (is_own)
			s->triviality = worse(s->triviality, TW_DWARF_NOT_TRIVIAL);
		return;
	}
	if (!is_named(s, name) && strcmp(name, "operator=") != 0)
		return;
	tag = reference_to_own(s, function, &has_more);
	if (!tag)
		return;
	if (!is_named(s, name)) {
		s->has_move_assignment |= tag == DW_TAG_rvalue_reference_type;
	} else if (has_more) {
		/* A copy constructor only where the others have values of their own, which is not said. */
		s->has_special_copy = true;
	} else if (flag_of(function, DW_AT_deleted)) {
		s->deleted++;
	} else {
		s->copies++;
		if (is_own)
			s->triviality = worse(s->triviality, TW_DWARF_NOT_TRIVIAL);
	}
}

static void see_part(struct seen *s, Dwarf_Die *part, int depth)
{
	const char *name = dwarf_diename(part);
	Dwarf_Die class;

	if (flag_of(part, DW_AT_declaration) || flag_of(part, DW_AT_external))
		return;
	if (number_of(part, DW_AT_virtuality) || (name && strncmp(name, "_vptr", 5) == 0))
		s->triviality = worse(s->triviality, TW_DWARF_NOT_TRIVIAL);
	else if (class_within(part, &class))
		s->triviality = worse(s->triviality, tw_dwarf_triviality_of(&class, depth + 1));
}

bool tw_dwarf_is_cpp(uint32_t language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case TW_DWARF_CPP17:
	case TW_DWARF_CPP20:
	case TW_DWARF_CPP23:
	case DW_LANG_ObjC_plus_plus: return true;
	default: return false;
	}
}

enum tw_dwarf_triviality tw_dwarf_triviality_of(Dwarf_Die *class, int depth)
{
	const char *name = dwarf_diename(class);
	struct seen s = {.class = class, .name = name, .name_bytes = name ? strcspn(name, "<") : 0};
	Dwarf_Die child;

	if (depth > DEPTH_MAX || flag_of(class, DW_AT_declaration))
		return TW_DWARF_TRIVIALITY_UNKNOWN;
	if (dwarf_child(class, &child) != 0)
		return TW_DWARF_TRIVIAL;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_subprogram: see_function(&s, &child); break;
		case DW_TAG_member:
		case DW_TAG_inheritance: see_part(&s, &child, depth); break;
		}
	} while (tw_dwarf_next(&child));
	if (s.deleted && !s.copies)
		return TW_DWARF_NOT_TRIVIAL;
	if (s.triviality == TW_DWARF_TRIVIAL && !s.copies && (s.has_move_assignment || s.has_special_copy))
		return TW_DWARF_TRIVIALITY_UNKNOWN;
	return s.triviality;
}
