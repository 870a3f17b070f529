/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_function.c - a function's parameters, and the registers that carry them at its entry.
 *
 * The registers follow from the types.  If the compiler records the register of a parameter, it must be the same one:
 * optimisers change the parameters of functions that other files cannot call, and then no parameter is reported.
 */
#include "symbols/debug/dwarf.h"

#include "tracewheel/error.h"

#include <string.h>

#define PARAMETERS_MAX 64
#define INTEGERS_MAX   6
#define VECTORS_MAX    8

/* How the compiler says it: the numbers of DWARF for rdi, rsi, rdx, rcx, r8, r9; xmm0 is 17. */
static const uint8_t dwarf_numbers[INTEGERS_MAX] = {5, 4, 1, 2, 8, 9};
#define DWARF_XMM0 17

/* Registers that are still free while parameters are given theirs. */
struct supply {
	unsigned integers, vectors;
	bool is_certain; /* so far */
};

const char *tw_dwarf_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (!name && dwarf_attr_integrate(die, DW_AT_name, &attr))
		name = dwarf_formstring(&attr);
	return name;
}

/* The System V conventions hold for these. */
static bool has_known_convention(uint32_t language)
{
	switch (language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case TW_DWARF_C17:
	case TW_DWARF_C23:
	case DW_LANG_ObjC: return true;
	default: return tw_dwarf_is_cpp(language);
	}
}

/* ---- registers by type ---- */

static void give(const struct tw_dwarf_type *type, struct supply *supply, int8_t out[2])
{
	unsigned integers = 0, vectors = 0;

	out[0] = out[1] = TW_DEBUG_NOWHERE;
	if (type->classes[0] == TW_DWARF_UNCERTAIN)
		supply->is_certain = false;
	for (int i = 0; i < 2; i++) {
		integers += type->classes[i] == TW_DWARF_INTEGER || type->classes[i] == TW_DWARF_REFERENCE;
		vectors += type->classes[i] == TW_DWARF_SSE;
	}
	/* All of it in registers, or none of it. */
	if (!supply->is_certain || supply->integers + integers > INTEGERS_MAX ||
	    supply->vectors + vectors > VECTORS_MAX)
		return;
	for (int i = 0, used = 0; i < 2; i++) {
		if (type->classes[i] == TW_DWARF_INTEGER || type->classes[i] == TW_DWARF_REFERENCE)
			out[used++] = (int8_t)supply->integers++;
		else if (type->classes[i] == TW_DWARF_SSE)
			out[used++] = (int8_t)(TW_DEBUG_XMM0 + supply->vectors++);
	}
}

static void give_result(const struct tw_dwarf_type *type, int8_t out[2])
{
	static const int8_t integers[2] = {TW_DEBUG_RAX, TW_DEBUG_RDX};
	unsigned integer = 0, vector = 0;
	int used = 0;

	out[0] = out[1] = TW_DEBUG_NOWHERE;
	for (int i = 0; i < 2; i++) {
		if (type->classes[i] == TW_DWARF_INTEGER)
			out[used++] = integers[integer++];
		else if (type->classes[i] == TW_DWARF_SSE)
			out[used++] = (int8_t)(TW_DEBUG_XMM0 + vector++);
	}
	/* The caller's memory for the result, whose address the function returns. */
	if (type->classes[0] == TW_DWARF_MEMORY || type->classes[0] == TW_DWARF_REFERENCE)
		out[0] = TW_DEBUG_NOWHERE;
}

static bool is_returned_in_memory(const struct tw_dwarf_type *type)
{
	return type->classes[0] == TW_DWARF_MEMORY || type->classes[0] == TW_DWARF_REFERENCE;
}

/* ---- what the compiler says ---- */

enum { CONSTANT = -3, NO_PLACE = -2, ELSEWHERE = -1 };

/*
 * Is it, or a part of it, a constant? The compiler found the same value in all calls of a function that other files
 * cannot call, and these calls do not pass it any more.
 */
static bool has_constant(const Dwarf_Op *ops, size_t count)
{
	bool is_read = false; /* from a register or from memory */

	for (size_t i = 0; i < count; i++)
		switch (ops[i].atom) {
		case DW_OP_piece: is_read = false; break;
		case DW_OP_implicit_value: return true;
		case DW_OP_stack_value:
			if (!is_read)
				return true;
			break;
		case DW_OP_fbreg:
		case DW_OP_bregx:
		case DW_OP_call_frame_cfa:
		case DW_OP_deref:
		case DW_OP_entry_value:
		case DW_OP_GNU_entry_value: is_read = true; break;
		default: is_read |= ops[i].atom >= DW_OP_breg0 && ops[i].atom <= DW_OP_breg31;
		}
	return false;
}

/* The DWARF number of the register that a parameter is in at the entry. */
static int register_at(Dwarf_Die *die, uint64_t value)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t count;

	if (!dwarf_attr(die, DW_AT_location, &attr))
		return NO_PLACE;
	if (dwarf_getlocation_addr(&attr, value, &ops, &count, 1) != 1 || count == 0)
		return NO_PLACE;
	if (has_constant(ops, count))
		return CONSTANT;
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return ops[0].atom - DW_OP_reg0;
	return ops[0].atom == DW_OP_regx ? (int)ops[0].number : ELSEWHERE;
}

static bool is_same_register(int number, int8_t ours)
{
	if (ours >= TW_DEBUG_XMM0)
		return number == DWARF_XMM0 + ours - TW_DEBUG_XMM0;
	return ours >= 0 && ours < INTEGERS_MAX && number == dwarf_numbers[ours];
}

/* Callers pass no values elsewhere: gcc records such a register if it has one location for all of a function's code. */
static bool can_bring(int number)
{
	for (int i = 0; i < INTEGERS_MAX; i++)
		if (number == dwarf_numbers[i])
			return true;
	return number >= DWARF_XMM0 && number < DWARF_XMM0 + VECTORS_MAX;
}

/* A parameter that the compiler contradicts makes all of them uncertain. */
static bool check(struct tw_debug *debug, struct tw_dwarf_entry *entry, Dwarf_Die *die, struct tw_debug_value *value)
{
	int number = register_at(die, entry->value);

	/* clang begins to tell behind the sled, which changes no register. */
	if (number == NO_PLACE && entry->is_clang)
		number = register_at(die, tw_dwarf_behind_nops(debug, entry->value));
	if (can_bring(number) && value->registers[0] >= 0 && !is_same_register(number, value->registers[0]))
		return false;
	/*
	 * clang omits the location of an unused parameter.  Then calls from the same file do not pass it, even to a
	 * function that other files can call; gcc changes only functions that other files cannot call.
	 */
	if (number == CONSTANT || (number == NO_PLACE && entry->is_clang))
		value->registers[0] = value->registers[1] = TW_DEBUG_NOWHERE;
	return true;
}

/* ---- the list ---- */

struct list {
	Dwarf_Die dies[PARAMETERS_MAX];
	uint32_t count;
	bool is_variadic;
	bool is_too_long;
};

/*
 * Parameters that gcc has of constructors and destructors before it makes several of each: whether bases are included
 * no code is ever told, and the table of virtual bases only where the code itself has the parameter.
 */
static bool is_never_passed(Dwarf_Die *die, uint32_t number, bool is_origin)
{
	Dwarf_Attribute attr;
	bool is_artificial = false;
	const char *name;

	if (!number || !dwarf_attr_integrate(die, DW_AT_artificial, &attr) || dwarf_formflag(&attr, &is_artificial) ||
	    !is_artificial)
		return false;
	name = dwarf_attr_integrate(die, DW_AT_name, &attr) ? dwarf_formstring(&attr) : NULL;
	return is_origin || (name && strcmp(name, "__in_chrg") == 0);
}

static void read_list(Dwarf_Die *function, struct list *list, bool is_origin)
{
	Dwarf_Die child;

	list->count = 0;
	list->is_variadic = list->is_too_long = false;
	if (dwarf_child(function, &child) != 0)
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_unspecified_parameters)
			list->is_variadic = true;
		if (dwarf_tag(&child) != DW_TAG_formal_parameter || is_never_passed(&child, list->count, is_origin))
			continue;
		if (list->count < PARAMETERS_MAX)
			list->dies[list->count++] = child;
		else
			list->is_too_long = true;
	} while (tw_dwarf_next(&child));
}

/*
 * The parameters of the code itself, or those of the function as written, if the compiler has omitted some in the
 * code.  (Constructors of virtual bases have more in the code.)
 */
static void find_list(Dwarf_Die *function, struct list *list)
{
	static const unsigned links[] = {DW_AT_abstract_origin, DW_AT_specification};
	struct list origin;

	read_list(function, list, false);
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		Dwarf_Attribute attr;
		Dwarf_Die die;

		if (!dwarf_attr_integrate(function, links[i], &attr) || !dwarf_formref_die(&attr, &die))
			continue;
		read_list(&die, &origin, true);
		if (origin.count > list->count)
			*list = origin;
		list->is_variadic |= origin.is_variadic;
	}
}

static bool has_special_convention(Dwarf_Die *function)
{
	Dwarf_Attribute attr;
	Dwarf_Word convention = DW_CC_normal;

	if (dwarf_attr_integrate(function, DW_AT_calling_convention, &attr))
		dwarf_formudata(&attr, &convention);
	return convention != DW_CC_normal;
}

static void forget_registers(struct tw_debug_value *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		values[i].registers[0] = values[i].registers[1] = TW_DEBUG_NOWHERE;
}

/* Fills in what the list names.  False: no memory. */
static bool read_values(struct tw_debug *debug, struct tw_dwarf_entry *entry, struct list *list,
			struct tw_debug_function *function, struct tw_debug_value *values)
{
	const struct tw_dwarf_type *result = tw_dwarf_type_of(debug, &entry->die);
	bool is_agreed = true;
	struct supply supply = {.is_certain =
					has_known_convention(entry->language) && !has_special_convention(&entry->die)};

	if (!result)
		return false;
	function->result = (struct tw_debug_value){.name = "", .type = &result->shown};
	give_result(result, function->result.registers);
	if (result->classes[0] == TW_DWARF_UNCERTAIN || !supply.is_certain) {
		supply.is_certain = false;
		forget_registers(&function->result, 1);
	}
	supply.integers = is_returned_in_memory(result);
	for (uint32_t i = 0; i < list->count; i++) {
		const struct tw_dwarf_type *type = tw_dwarf_type_of(debug, &list->dies[i]);
		Dwarf_Attribute attr;
		const char *name = NULL;

		if (!type)
			return false;
		if (dwarf_attr_integrate(&list->dies[i], DW_AT_name, &attr))
			name = dwarf_formstring(&attr);
		values[i] = (struct tw_debug_value){.name = name ? name : "", .type = &type->shown};
		give(type, &supply, values[i].registers);
		if (type->classes[0] == TW_DWARF_REFERENCE)
			values[i].type = tw_dwarf_reference_to(debug, type);
		if (!values[i].type)
			return false;
		is_agreed = is_agreed && check(debug, entry, &list->dies[i], &values[i]);
	}
	if (!is_agreed)
		forget_registers(values, list->count);
	return true;
}

int tw_dwarf_function_read(struct tw_debug *debug, struct tw_dwarf_entry *entry, const struct tw_debug_function **out)
{
	struct tw_debug_function *function;
	struct tw_debug_value *values;
	const char *name = tw_dwarf_name(&entry->die);
	struct list list;

	/* Assembly code has no parameter information. */
	if (!name || entry->language == DW_LANG_Mips_Assembler)
		return TW_ENOENT;
	find_list(&entry->die, &list);
	if (list.is_too_long)
		return TW_ENOENT;
	function = tw_dwarf_new(debug, sizeof *function);
	values = tw_dwarf_new(debug, (list.count + 1) * sizeof *values);
	if (!function || !values || !read_values(debug, entry, &list, function, values))
		return TW_ENOMEM;
	function->name = name;
	function->value = entry->value;
	function->arity = list.count;
	function->is_variadic = list.is_variadic;
	function->parameters = values;
	*out = function;
	return 0;
}
