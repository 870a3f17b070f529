/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - one run of a program: state shared by the interpreter and the functions that it calls.
 */
#ifndef TW_MATCH_MACHINE_H
#define TW_MATCH_MACHINE_H

#include "match/match.h"
#include "match/ops.h"

struct tw_match_machine {
	const struct tw_match_program *program;
	const void *args; /* struct tw_term or uint64_t */
	unsigned count;
	bool is_raw;
	uint8_t actions;
	struct tw_term message;
	struct tw_match_run *run;
};

/* Continues at @insn, where the small loop stopped, with an empty stack. */
enum tw_match_verdict tw_match_go_on(struct tw_match_machine *m, const struct tw_match_insn *insn);

/* Stores the result of a matching clause. */
static inline enum tw_match_verdict tw_match_accept(struct tw_match_run *run, struct tw_term message, unsigned actions)
{
	enum tw_match_verdict verdict = TW_MATCH_EXTRA;

	if (tw_likely(message.word == tw_atom(TW_ATOM_TRUE).word))
		verdict = TW_MATCH_YES;
	else if (message.word == tw_atom(TW_ATOM_FALSE).word)
		verdict = TW_MATCH_SUPPRESS;
	run->result.message = message;
	run->result.verdict = (uint8_t)verdict;
	run->result.actions = (uint8_t)actions;
	return verdict;
}

bool tw_match_is_type(enum tw_match_type type, struct tw_term term);

/* Gives the order of two terms; TW_ELIMIT if they are too deep to compare without allocation. */
int tw_match_compare(const struct tw_match_machine *m, struct tw_term a, struct tw_term b, bool is_exact, int *order);

/*
 * A function of the CALL instruction.
 *
 * @top	the first argument; the second is top[-1], and so on.
 *
 * Returns the function's value; none to raise.
 */
typedef struct tw_term (*tw_match_fn)(struct tw_match_machine *m, const struct tw_term *top);

/* Indexed by enum tw_match_function. */
extern const struct tw_match_function_entry {
	tw_match_fn call;
	uint8_t arity;
} tw_match_functions[TW_FN_COUNT];

/* Functions that call the host are in host.c, the others in functions.c. */
#define TW_MATCH_FUNCTION_DECLARE(atom, arity, where) \
	struct tw_term tw_match_fn_##atom##_##arity(struct tw_match_machine *m, const struct tw_term *top);
TW_MATCH_FUNCTIONS(TW_MATCH_FUNCTION_DECLARE)
#undef TW_MATCH_FUNCTION_DECLARE

#endif
