/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c - instructions, constants, variables, and errors with their position. */
#include "match/builder.h"
#include "base/grow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* "clause 2, guard 1: " */
static int print_place(const struct tw_match_builder *b, char *text, size_t bytes)
{
	static const char *const parts[] = {"head", "guard", "body"};
	int n;

	if (b->depth < 1)
		return 0;
	n = snprintf(text, bytes, "clause %u", b->path[0] + 1);
	if (b->depth >= 2 && b->path[1] < 3)
		n += snprintf(text + n, bytes - (size_t)n, ", %s", parts[b->path[1]]);
	if (b->depth >= 3)
		n += snprintf(text + n, bytes - (size_t)n, " %u", b->path[2] + 1);
	n += snprintf(text + n, bytes - (size_t)n, ": ");
	return n;
}

static void find_place(const struct tw_match_builder *b, struct tw_match_error *report)
{
	const char *line = b->text;
	const char *at;

	report->offset = tw_match_locate(b->text, b->text_bytes, b->path, b->depth);
	report->line = 1;
	for (at = b->text; at < b->text + report->offset; at++) {
		if (*at == '\n') {
			report->line++;
			line = at + 1;
		}
	}
	report->column = (uint32_t)(b->text + report->offset - line) + 1;
}

int tw_match_refuse(struct tw_match_builder *b, int error, const char *format, ...)
{
	struct tw_match_error *report = b->report;
	va_list list;
	int n;

	if (!report)
		return error;
	memset(report, 0, sizeof *report);
	n = print_place(b, report->text, sizeof report->text);
	va_start(list, format);
	vsnprintf(report->text + n, sizeof report->text - (size_t)n, format, list);
	va_end(list);
	if (b->text)
		find_place(b, report);
	return error;
}

int tw_match_refuse_term(struct tw_match_builder *b, const char *what, struct tw_term term)
{
	char printed[120];

	tw_term_format(term, TW_PRINT_PRETTY, printed, sizeof printed);
	return tw_match_refuse(b, TW_EBADARG, "%s: %s", what, printed);
}

int tw_match_enter(struct tw_match_builder *b, uint32_t child)
{
	if (b->depth >= TW_MATCH_PATH_MAX)
		return tw_match_refuse(b, TW_ELIMIT, "nested deeper than %d levels", TW_MATCH_DEPTH_MAX);
	b->path[b->depth++] = child;
	return 0;
}

void tw_match_leave(struct tw_match_builder *b)
{
	TW_ASSERT(b->depth > 0);
	b->depth--;
}

int tw_match_emit(struct tw_match_builder *b, enum tw_match_op op, unsigned a, unsigned operand)
{
	struct tw_match_code *code = b->code;

	if (code->insn_count >= TW_MATCH_INSNS_MAX - 1)
		return tw_match_refuse(b, TW_ELIMIT, "the program would have more than %d instructions",
				       TW_MATCH_INSNS_MAX - 1);
	if (!tw_grow(code->insns, code->insn_count, b->insn_capacity))
		return TW_ENOMEM;
	TW_ASSERT(a <= UINT8_MAX && operand <= UINT16_MAX);
	code->insns[code->insn_count++] =
		(struct tw_match_insn){.op = (uint8_t)op, .a = (uint8_t)a, .b = (uint16_t)operand};
	return 0;
}

int tw_match_emit_failing(struct tw_match_builder *b, enum tw_match_op op, unsigned a, unsigned operand)
{
	int error = tw_match_emit(b, op, a, operand);

	if (error || b->in_body)
		return error;
	if (!tw_grow(b->fails, b->fail_count, b->fail_capacity))
		return TW_ENOMEM;
	b->fails[b->fail_count++] = b->code->insn_count - 1;
	return 0;
}

int tw_match_emit_counted(struct tw_match_builder *b, enum tw_match_op op, unsigned a, unsigned operand, unsigned pops)
{
	TW_ASSERT(b->stack >= pops);
	b->stack -= pops;
	return tw_match_emit_failing(b, op, a, operand);
}

int tw_match_push(struct tw_match_builder *b, uint32_t count)
{
	b->stack += count;
	if (b->stack > TW_MATCH_STACK_MAX)
		return tw_match_refuse(b, TW_ELIMIT, "more than %d values at once", TW_MATCH_STACK_MAX);
	return 0;
}

int tw_match_constant(struct tw_match_builder *b, struct tw_term term, uint32_t *index)
{
	struct tw_match_code *code = b->code;
	uint32_t first = code->constant_count > 64 ? code->constant_count - 64 : 0;
	uint32_t i;

	/* Searches back only a little, to stay cheap: a duplicate constant does no harm. */
	for (i = first; i < code->constant_count; i++) {
		if (tw_term_is_same(code->constants[i], term)) {
			*index = i;
			return 0;
		}
	}
	if (code->constant_count >= UINT16_MAX)
		return tw_match_refuse(b, TW_ELIMIT, "more than %d constants", UINT16_MAX);
	if (!tw_grow(code->constants, code->constant_count, b->constant_capacity))
		return TW_ENOMEM;
	*index = code->constant_count;
	code->constants[code->constant_count++] = term;
	return 0;
}

int tw_match_add_range(struct tw_match_builder *b, struct tw_match_range range, uint32_t *index)
{
	struct tw_match_code *code = b->code;

	if (!tw_grow(code->ranges, code->range_count, b->range_capacity))
		return TW_ENOMEM;
	if (code->range_count >= UINT16_MAX)
		return tw_match_refuse(b, TW_ELIMIT, "more than %d ranges", UINT16_MAX);
	*index = code->range_count;
	code->ranges[code->range_count++] = range;
	return 0;
}

int64_t tw_match_variable_number(struct tw_term term)
{
	size_t bytes;
	size_t i;
	const char *name = tw_term_atom_name(term, &bytes);
	int64_t number = 0;

	/* '$0' is a variable; '$01' and anything above '$100000000' are not. */
	if (!name || bytes < 2 || bytes > 10 || name[0] != '$' || (name[1] == '0' && bytes > 2))
		return -1;
	for (i = 1; i < bytes; i++) {
		if (name[i] < '0' || name[i] > '9')
			return -1;
		number = number * 10 + (name[i] - '0');
	}
	return number <= 100000000 ? number : -1;
}

const struct tw_match_variable *tw_match_find(const struct tw_match_builder *b, uint32_t number)
{
	uint32_t i;

	for (i = 0; i < b->variable_count; i++) {
		if (b->variables[i].number == number)
			return &b->variables[i];
	}
	return NULL;
}

int tw_match_bind(struct tw_match_builder *b, uint32_t number, enum tw_variable_home home, uint32_t index)
{

	if (home == TW_HOME_REGISTER && index >= TW_MATCH_VARIABLES_MAX)
		return tw_match_refuse(b, TW_ELIMIT, "more than %d variables inside of arguments",
				       TW_MATCH_VARIABLES_MAX);
	if (b->variable_count >= TW_MATCH_NAMES_MAX)
		return tw_match_refuse(b, TW_ELIMIT, "more than %d variables in a head", TW_MATCH_NAMES_MAX);
	if (!tw_grow(b->variables, b->variable_count, b->variable_capacity))
		return TW_ENOMEM;
	b->variables[b->variable_count++] =
		(struct tw_match_variable){.number = number, .index = (uint16_t)index, .home = (uint8_t)home};
	return 0;
}
