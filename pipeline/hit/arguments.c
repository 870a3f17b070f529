/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.c - copying arguments in a hit.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/arguments.h"
#include "base/filter.h"
#include "base/sys.h"
#include "breakpoints/breakpoints.h"

#include <unistd.h>

static int process_id;

void tw_arg_init(void)
{
	process_id = (int)getpid();
}

/* If the type has two words, both are recorded. */
static uint8_t gives_of(const struct tw_layout_value *result)
{
	enum { RAX = 6, RDX = 7, XMM0 = 8, XMM1 = 9 };
	static const struct {
		int8_t first, second;
		uint8_t gives;
	} results[] = {
		{XMM0, -1, TW_BP_GIVES_VECTOR},	      {RAX, RDX, TW_BP_GIVES_WORDS},
		{XMM0, XMM1, TW_BP_GIVES_VECTORS},    {RAX, XMM0, TW_BP_GIVES_WORD_VECTOR},
		{XMM0, RAX, TW_BP_GIVES_VECTOR_WORD},
	};

	if (result->type == 'f' && result->bytes == TW_LAYOUT_X87_BYTES && result->registers[0] < 0)
		return TW_BP_GIVES_X87;
	for (size_t i = 0; i < sizeof results / sizeof *results; i++)
		if (results[i].first == result->registers[0] && results[i].second == result->registers[1])
			return results[i].gives;
	return TW_BP_GIVES_WORD;
}

static bool take_memory(struct tw_arg_memory *memory, const struct tw_layout *layout,
			const struct tw_layout_value *value)
{
	struct tw_layout_factor factor;

	if (value->registers[0] < 0 || value->registers[0] > TW_ARG_RESULT)
		return false;
	*memory = (struct tw_arg_memory){.type = value->type, .source = (uint8_t)value->registers[0]};
	while (memory->factor_count < TW_LAYOUT_FACTORS_MAX && tw_layout_factor(value, memory->factor_count, &factor)) {
		bool is_argument = factor.kind != 'n' && factor.kind != 'r';

		memory->factors[memory->factor_count++] =
			(struct tw_arg_factor){.kind = factor.kind,
					       .source = is_argument
								 ? (uint8_t)layout->values[factor.number].registers[0]
								 : TW_ARG_RESULT,
					       .number = factor.number};
	}
	if (value->type == 'V') {
		struct tw_layout_value element;
		uint32_t count;

		if (!tw_layout_numbers(value, &element, &count))
			return false;
		memory->factors[memory->factor_count++] =
			(struct tw_arg_factor){.kind = 'n', .number = element.bytes * count};
	}
	return true;
}

/* How a return is more than its result. */
static void plan_return(struct tw_arg_plan *plan, const struct tw_layout *layout)
{
	char type = layout->result.type;

	plan->result_bytes = layout->result.bytes == 4 ? 4 : 8;
	plan->has_errno = layout->has_errno;
	if (plan->has_errno)
		plan->fails = type == 'i' || type == 'u' ? 'i' : 'p';
	else if (type == 'E')
		plan->fails = 'E';
	if (type == 'Z' && take_memory(&plan->filled[0], layout, &layout->result))
		plan->filled_count = 1;
	for (uint32_t i = 0; i < layout->count && plan->filled_count < layout->filled_count; i++) {
		const struct tw_layout_value *value = &layout->values[i];

		if (value->type == 'M' || value->type == 'V' || value->type == 'Z')
			plan->filled_count += take_memory(&plan->filled[plan->filled_count], layout, value);
	}
	if (layout->result.type == 'd') {
		plan->describes = (uint8_t)layout->result.bytes;
		plan->filled_count = plan->has_errno = 0;
	}
	if (plan->describes || plan->filled_count || plan->has_errno)
		plan->gives = TW_BP_GIVES_MORE;
	plan->keeps = plan->describes || plan->filled_count;
}

void tw_arg_plan_make(struct tw_arg_plan *plan, const struct tw_layout *layout, unsigned string_bytes)
{
	*plan = (struct tw_arg_plan){
		.string_bytes =
			(uint16_t)(string_bytes < TW_ARG_STRING_BYTES_MAX ? string_bytes : TW_ARG_STRING_BYTES_MAX)};
	plan->gives = gives_of(&layout->result);
	plan_return(plan, layout);
	for (uint32_t i = 0; i < layout->count; i++) {
		const struct tw_layout_value *value = &layout->values[i];

		if ((value->type == 's' || value->type == 'm') && plan->string_count < TW_ARGS_MAX)
			plan->string_count += take_memory(&plan->strings[plan->string_count], layout, value);
		for (int j = 0; j < 2 && value->registers[j] >= 0; j++) {
			plan->has_vectors |= value->registers[j] >= 8;
			plan->registers[plan->count++] = (uint8_t)value->registers[j];
		}
	}
}

void tw_arg_plan_set(struct tw_function *function, const struct tw_arg_plan *plan)
{
	struct tw_bp_words *words = &function->words;

	function->arguments = plan;
	*words = (struct tw_bp_words){0};
	words->is_known = plan->count <= TW_ARGS_MAX && !plan->string_count && !plan->keeps;
	for (unsigned i = 0; words->is_known && i < plan->count; i++) {
		words->registers[i] = plan->registers[i];
		words->is_known = plan->registers[i] < TW_ARGS_MAX;
	}
	words->count = plan->count;
}

void tw_arg_read_vectors(uint64_t out[8])
{
	__asm__ volatile("movq %%xmm0, %0\n\tmovq %%xmm1, %1\n\tmovq %%xmm2, %2\n\tmovq %%xmm3, %3\n\t"
			 "movq %%xmm4, %4\n\tmovq %%xmm5, %5\n\tmovq %%xmm6, %6\n\tmovq %%xmm7, %7"
			 : "=m"(out[0]), "=m"(out[1]), "=m"(out[2]), "=m"(out[3]), "=m"(out[4]), "=m"(out[5]),
			   "=m"(out[6]), "=m"(out[7]));
}

static void read_vectors(uint64_t out[2])
{
	__asm__ volatile("movq %%xmm0, %0\n\tmovq %%xmm1, %1" : "=m"(out[0]), "=m"(out[1]));
}

/*
 * When a function returns, all of the eight x87 registers are empty except those of its result, so there is space for
 * a copy. An empty register (the debug information was wrong) is left alone.
 */
static bool read_x87(uint64_t out[2])
{
	enum { C0 = 0x100, C2 = 0x400, C3 = 0x4000 };
	uint16_t status;

	__asm__ volatile("fxam; fnstsw %0" : "=a"(status));
	if ((status & (C0 | C2 | C3)) == (C0 | C3))
		return false;
	out[1] = 0;
	__asm__ volatile("fld %%st(0); fstpt %0" : "=m"(*(char(*)[10])out));
	return true;
}

unsigned tw_arg_read_result(unsigned gives, uint64_t first, uint64_t second, uint64_t out[2])
{
	uint64_t vectors[2];

	out[0] = first;
	out[1] = second;
	if (gives == TW_BP_GIVES_WORD)
		return 1;
	if (gives == TW_BP_GIVES_WORDS)
		return 2;
	if (gives == TW_BP_GIVES_X87)
		return read_x87(out) ? 2 : 0;
	read_vectors(vectors);
	if (gives == TW_BP_GIVES_WORD_VECTOR) {
		out[1] = vectors[0];
		return 2;
	}
	out[0] = vectors[0];
	out[1] = gives == TW_BP_GIVES_VECTORS ? vectors[1] : first;
	return gives == TW_BP_GIVES_VECTOR ? 1 : 2;
}

/* Under a system call filter strings are shown as unreadable. */
static bool may_read(uint64_t address)
{
	return address && tw_thread_may_call_system();
}

long tw_arg_read_string(uint64_t address, char *text, unsigned bytes_max)
{
	/* Without an agent tw_arg_init() has not been called. */
	long readable = may_read(address)
				? tw_sys_read_own_memory(process_id ? process_id : getpid(), text, address, bytes_max)
				: -1;
	long bytes = 0;

	while (bytes < readable && text[bytes])
		bytes++;
	return readable > 0 ? bytes : -1;
}

bool tw_arg_is_string(uint64_t address, const char *text, unsigned bytes)
{
	/* Small, because the stack is the program's; a string that differs does so early, mostly. */
	char piece[32];

	if (!may_read(address) || bytes >= TW_ARG_STRING_BYTES_MAX)
		return false;
	/* Includes the terminating zero: a longer string differs. */
	for (unsigned at = 0; at <= bytes; at += sizeof piece) {
		unsigned wanted = bytes + 1 - at < sizeof piece ? bytes + 1 - at : (unsigned)sizeof piece;
		long readable = tw_sys_read_own_memory(process_id ? process_id : getpid(), piece, address + at, wanted);

		readable = readable < 0 ? 0 : readable;
		for (unsigned i = 0; i < readable; i++)
			if (piece[i] != (at + i < bytes ? text[at + i] : 0))
				return false;
		/* A byte that is not readable may only be the zero. */
		if (readable < wanted)
			return bytes && at + (unsigned)readable == bytes;
	}
	return true;
}

/* Apart: while it needs its part of the program's stack, no other function does. */
static __attribute__((noinline)) long read_memory(void *to, uint64_t address, size_t bytes)
{
	return tw_sys_read_own_memory(process_id, to, address, bytes);
}

uint64_t tw_arg_read_number(uint64_t address, unsigned bytes)
{
	uint64_t number = 0;

	if (may_read(address) && read_memory(&number, address, bytes) != (long)bytes)
		number = 0;
	return number;
}

/* A result of four bytes leaves the upper half of the register undefined. */
static int64_t result_of(const struct tw_arg_plan *plan, uint64_t value)
{
	return plan->result_bytes == 4 ? (int32_t)value : (int64_t)value;
}

static bool is_text(const struct tw_arg_memory *memory)
{
	return memory->type == 's' || memory->type == 'Z';
}

static uint64_t address_of(const struct tw_arg_copying *c)
{
	if (c->memory->source == TW_ARG_RESULT)
		return c->value;
	return c->words ? c->words[c->memory->source] : 0;
}

static __attribute__((noinline)) uint64_t number_at(const struct tw_arg_copying *c, uint64_t address, unsigned bytes)
{
	uint64_t number = 0;

	if (address && c->may_read && read_memory(&number, address, bytes) != (long)bytes)
		number = 0;
	return number;
}

/* The length of memory: a product of factors.  A negative result, and a product that overflows, are none. */
static __attribute__((noinline)) uint64_t length_of(const struct tw_arg_copying *c)
{
	uint64_t length = 1;

	for (unsigned i = 0; i < c->memory->factor_count; i++) {
		const struct tw_arg_factor *factor = &c->memory->factors[i];
		uint64_t number = factor->number;

		switch (factor->kind) {
		case 'a': number = c->words[factor->source]; break;
		case 'p': number = number_at(c, c->words[factor->source], 4); break;
		case 'q': number = number_at(c, c->words[factor->source], 8); break;
		case 'r': number = result_of(c->plan, c->value) > 0 ? (uint64_t)result_of(c->plan, c->value) : 0; break;
		default: break;
		}
		if (__builtin_mul_overflow(length, number, &length))
			return 0;
	}
	return length;
}

/* Copies memory behind its head, a string as far as its zero. */
static __attribute__((noinline)) void copy_memory(struct tw_arg_copying *c)
{
	uint64_t *head = c->out + c->count, address = address_of(c), bytes = 0, state = TW_LAYOUT_UNREADABLE;
	bool is_string = is_text(c->memory);
	unsigned most = c->length < c->plan->string_bytes ? (unsigned)c->length : c->plan->string_bytes;
	char *text = (char *)(head + 1);
	long readable = most && address && c->may_read ? read_memory(text, address, most) : 0;

	while ((long)bytes < readable && !(is_string && !text[bytes]))
		bytes++;
	if (is_string ? (long)bytes < readable : bytes == c->length)
		state = TW_LAYOUT_WHOLE;
	else if (readable > 0)
		state = TW_LAYOUT_CUT;
	/* Bytes behind the end of the string are not recorded. */
	for (uint64_t i = bytes; i % 8; i++)
		text[i] = 0;
	*head = bytes | state << 32;
	c->count += 1 + (unsigned)((bytes + 7) / 8);
}

/* Does the call leave nothing there? */
static bool is_nothing(const struct tw_arg_copying *c)
{
	return c->is_failed || (c->is_filled && c->memory->source != TW_ARG_RESULT && !address_of(c));
}

/* Few variables, as in the functions above: the stack is the program's. */
static __attribute__((noinline)) unsigned copy_each(struct tw_arg_copying *c)
{
	c->may_read = tw_thread_may_call_system();
	for (; c->left; c->left--, c->memory++) {
		if (is_nothing(c)) {
			c->out[c->count++] = (uint64_t)TW_LAYOUT_NOTHING << 32;
			continue;
		}
		c->length = is_text(c->memory) ? UINT64_MAX : length_of(c);
		copy_memory(c);
	}
	return c->count;
}

unsigned tw_arg_capture_registers(const struct tw_arg_plan *plan, const uint64_t *words, uint64_t *out)
{
	uint64_t vectors[8];

	if (plan->has_vectors)
		tw_arg_read_vectors(vectors);
	for (unsigned i = 0; i < plan->count; i++) {
		unsigned number = plan->registers[i];

		out[i] = number < TW_ARGS_MAX ? words[number] : vectors[number & 7];
	}
	return plan->count;
}

unsigned tw_arg_capture(const struct tw_arg_plan *plan, const uint64_t *words, struct tw_arg_copying *copying,
			uint64_t *out)
{
	if (!plan->string_count)
		return tw_arg_capture_registers(plan, words, out);
	*copying = (struct tw_arg_copying){.plan = plan,
					   .words = words,
					   .out = out,
					   .count = tw_arg_capture_registers(plan, words, out),
					   .memory = plan->strings,
					   .left = plan->string_count};
	return copy_each(copying);
}

static bool has_failed(const struct tw_arg_plan *plan, uint64_t value)
{
	int64_t result = result_of(plan, value);

	switch (plan->fails) {
	case 'i': return result == -1;
	case 'p': return !result || result == -1;
	case 'E': return (int32_t)value != 0;
	default: return false;
	}
}

unsigned tw_arg_capture_filled(const struct tw_arg_plan *plan, uint64_t value, const uint64_t *words, int error,
			       struct tw_arg_copying *copying, uint64_t *out)
{
	*copying = (struct tw_arg_copying){.plan = plan,
					   .words = words,
					   .value = value,
					   .out = out,
					   .count = 1 + plan->has_errno,
					   .is_filled = true,
					   .is_failed = has_failed(plan, value),
					   .memory = plan->filled,
					   .left = plan->filled_count};
	out[0] = value;
	if (plan->has_errno)
		out[1] = copying->is_failed ? (uint64_t)(uint32_t)error : 0;
	return copy_each(copying);
}
