/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.c - prints byte code as text, one instruction per line:
 *
 *	  3 arg_is      arg 1, users           else 7
 */
#include "match/match.h"
#include "match/ops.h"

#include "base/export.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
	const char *name;
	const char *a, *b, *c;
} ops[] = {
#define TW_MATCH_OP_NAMES(op, name, a, b, c, pops, pushes) {name, #a, #b, #c},
	TW_MATCH_OPS(TW_MATCH_OP_NAMES)
#undef TW_MATCH_OP_NAMES
};

static const char *const types[] = {
#define TW_MATCH_TYPE_NAME(atom) #atom,
	TW_MATCH_TYPES(TW_MATCH_TYPE_NAME)
#undef TW_MATCH_TYPE_NAME
};

static const char *const comparisons[] = {"<", "=<", ">", ">=", "==", "/=", "=:=", "=/="};

static const struct {
	uint32_t atom;
	unsigned arity;
} functions[] = {
#define TW_MATCH_FUNCTION_NAME(atom, arity, where) {TW_ATOM_##atom, arity},
	TW_MATCH_FUNCTIONS(TW_MATCH_FUNCTION_NAME)
#undef TW_MATCH_FUNCTION_NAME
};

static int put(struct tw_sink *sink, const char *text, size_t bytes)
{
	int error;

	while (bytes > 0) {
		size_t capacity = (size_t)(sink->end - sink->at);
		size_t part = bytes < capacity ? bytes : capacity;

		memcpy(sink->at, text, part);
		sink->at += part;
		text += part;
		bytes -= part;
		if (bytes == 0)
			break;
		if (!sink->drain)
			return TW_ENOSPC;
		error = sink->drain(sink);
		if (error)
			return error;
	}
	return 0;
}

/* One line under construction. */
struct line {
	char text[256];
	size_t used;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct line *line, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(line->text + line->used, sizeof line->text - line->used, format, list);
	va_end(list);
	if (n > 0)
		line->used += (size_t)n;
	if (line->used >= sizeof line->text)
		line->used = sizeof line->text - 1;
}

static void add_range(struct line *line, const struct tw_match_range *range)
{
	int64_t low = (int64_t)range->low;
	int64_t high = (int64_t)(range->low + (range->span >> range->shift));

	if (range->shift)
		add(line, "%u bits: %lld and %llu more", 64 - range->shift, (long long)low,
		    (unsigned long long)(range->span >> range->shift));
	else if (low <= high)
		add(line, "%lld .. %lld", (long long)low, (long long)high);
	else
		add(line, "not %lld .. %lld", (long long)high + 1, (long long)low - 1);
}

static void add_function(struct line *line, unsigned value)
{
	add(line, "%s/%u", tw_term_atom_name(tw_atom(functions[value].atom), NULL), functions[value].arity);
}

static void add_operand(struct line *line, const struct tw_match_code *code, enum tw_match_op op, const char *kind,
			unsigned value)
{
	char printed[60];

	if (strcmp(kind, "CONSTANT") == 0) {
		tw_term_format(code->constants[value], TW_PRINT_PRETTY, printed, sizeof printed);
		add(line, " %s", printed);
	} else if (strcmp(kind, "RANGE") == 0) {
		add(line, " ");
		if (op == TW_OP_RANGE)
			add_range(line, &code->ranges[value]);
		else
			add(line, "%#llx = %#llx", (unsigned long long)code->ranges[value].low,
			    (unsigned long long)code->ranges[value].span);
	} else if (strcmp(kind, "ARGUMENT") == 0) {
		add(line, " arg %u", value + 1);
	} else if (strcmp(kind, "TYPE") == 0) {
		add(line, " %s", types[value]);
	} else if (strcmp(kind, "COMPARISON") == 0) {
		add(line, " %s", comparisons[value]);
	} else if (strcmp(kind, "FUNCTION") == 0) {
		add(line, " ");
		add_function(line, value);
	} else if (strcmp(kind, "ACTIONS") == 0) {
		add(line, "%s%s%s%s", value & TW_MATCH_RETURN_TRACE ? " return_trace" : "",
		    value & TW_MATCH_EXCEPTION_TRACE ? " exception_trace" : "",
		    value & TW_MATCH_SILENCE ? " silence" : "", value & TW_MATCH_UNSILENCE ? " unsilence" : "");
	} else if (strcmp(kind, "FLAG") == 0) {
		add(line, "%s", value ? " at least" : "");
	} else if (strcmp(kind, "NO") != 0) {
		add(line, " %u", value);
	}
}

static void add_insn(struct line *line, const struct tw_match_code *code, uint32_t index)
{
	const struct tw_match_insn *insn = &code->insns[index];

	add(line, "%5u %-12s", index, ops[insn->op].name);
	add_operand(line, code, (enum tw_match_op)insn->op, ops[insn->op].a, insn->a);
	add_operand(line, code, (enum tw_match_op)insn->op, ops[insn->op].b, insn->b);
	if (insn->d)
		add(line, ", then %u", insn->d);
	if (insn->c)
		add(line, ", else %u", insn->c);
	add(line, "\n");
}

TW_API int tw_match_show(const struct tw_match_program *program, struct tw_sink *sink)
{
	const struct tw_match_code *code = program->code;
	uint32_t i;
	int error = 0;

	for (i = 0; !error && i < code->insn_count; i++) {
		struct line line = {.used = 0};

		add_insn(&line, code, i);
		error = put(sink, line.text, line.used);
	}
	return error;
}
