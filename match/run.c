/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the entries to a run.  Nothing that the verifier has proved is checked again. */
#include "match/machine.h"

/*
 * The point where a small loop stopped.  It calls go_on() as the last thing that it does, and the machine is made behind that: of the stack of a
 * hit, which is the program's, only this structure is in use while the interpreter runs.
 */
struct rest_of_run {
	const struct tw_match_program *program;
	const void *args;
	unsigned count;
	bool is_raw;
	struct tw_match_run *run;
	const struct tw_match_insn *insn;
	enum tw_match_verdict verdict;
};

/* The small loops use no vector registers (this file is compiled without them); the interpreter may. */
static __attribute__((noinline)) void go_on_there(void *arg)
{
	struct rest_of_run *rest = arg;
	struct tw_match_machine m = {.program = rest->program,
				     .args = rest->args,
				     .count = rest->count,
				     .is_raw = rest->is_raw,
				     .run = rest->run};

	rest->verdict = tw_match_go_on(&m, rest->insn);
}

static inline __attribute__((always_inline)) enum tw_match_verdict go_on(struct rest_of_run rest)
{
	if (rest.run->keep_vectors)
		rest.run->keep_vectors(go_on_there, &rest);
	else
		go_on_there(&rest);
	return rest.verdict;
}

static __attribute__((noinline)) enum tw_match_verdict go_on_raw(const struct tw_match_program *program,
								 const uint64_t *args, unsigned count,
								 struct tw_match_run *run,
								 const struct tw_match_insn *insn)
{
	return go_on((struct rest_of_run){program, args, count, true, run, insn, TW_MATCH_NO});
}

static __attribute__((noinline)) enum tw_match_verdict go_on_with_terms(const struct tw_match_program *program,
									const struct tw_term *args, unsigned count,
									struct tw_match_run *run,
									const struct tw_match_insn *insn)
{
	return go_on((struct rest_of_run){program, args, count, false, run, insn, TW_MATCH_NO});
}

/* A machine word is always an integer. */
static inline bool raw_is(uint64_t word, struct tw_term constant)
{
	return tw_is_small(constant) && (uint64_t)tw_small_value(constant) == word;
}

/*
 * Strings need a call of the host, and a function with calls must save more registers: so a separate loop continues
 * where the first one met a string.
 */
static __attribute__((noinline)) enum tw_match_verdict run_strings(const struct tw_match_program *program,
								   const uint64_t *args, unsigned count,
								   struct tw_match_run *run,
								   const struct tw_match_insn *first);

/* Without a host the interpreter compares, at the next instruction. */
#define ASK_STRING(x)                                                                      \
	({                                                                                 \
		const struct tw_term text = program->constants[insn->b];                   \
		if (tw_unlikely(!run->host || !run->host->is_string)) {                    \
			insn++;                                                            \
			goto *labels[insn->op];                                            \
		}                                                                          \
		run->host->is_string(run, x, tw_bits_data(text), tw_bits_count(text) / 8); \
	})

#define FRONT_ARG	      uint64_t
#define FRONT_OTHER	      return go_on_raw(program, args, count, run, insn)
#define FRONT_VALUE(x)	      (x)
#define FRONT_IS(x, constant) raw_is(x, constant)
#define FRONT_TYPE(x, type)   ((type) == TW_MATCH_IS_INTEGER || (type) == TW_MATCH_IS_NUMBER)

#define FRONT_NAME                                                                                           \
	enum tw_match_verdict tw_match_run_raw(const struct tw_match_program *program, const uint64_t *args, \
					       unsigned count, struct tw_match_run *run)
#define FRONT_FIRST insns
#define FRONT_STRING(x)                                              \
	({                                                           \
		return run_strings(program, args, count, run, insn); \
		false;                                               \
	})
#include "match/front.h"
#undef FRONT_NAME
#undef FRONT_FIRST
#undef FRONT_STRING

#define FRONT_NAME                                                                                             \
	static enum tw_match_verdict run_strings(const struct tw_match_program *program, const uint64_t *args, \
						 unsigned count, struct tw_match_run *run,                     \
						 const struct tw_match_insn *first)
#define FRONT_FIRST	first
#define FRONT_STRING(x) ASK_STRING(x)
#include "match/front.h"
#undef FRONT_NAME
#undef FRONT_FIRST
#undef FRONT_STRING
#undef FRONT_OTHER

#define FRONT_NAME                                                                                               \
	enum tw_match_verdict tw_match_run_briefly(const struct tw_match_program *program, const uint64_t *args, \
						   unsigned count, struct tw_match_run *run)
#define FRONT_FIRST insns
#define FRONT_OTHER return TW_MATCH_UNDECIDED
#define FRONT_STRING(x)                    \
	({                                 \
		return TW_MATCH_UNDECIDED; \
		false;                     \
	})
#include "match/front.h"
#undef FRONT_NAME
#undef FRONT_FIRST
#undef FRONT_STRING
#undef FRONT_OTHER
#undef FRONT_ARG
#undef FRONT_VALUE
#undef FRONT_IS
#undef FRONT_TYPE

#define FRONT_NAME                                                                                             \
	enum tw_match_verdict tw_match_run(const struct tw_match_program *program, const struct tw_term *args, \
					   unsigned count, struct tw_match_run *run)
#define FRONT_FIRST insns
/* A term is no address of a string: the general code evaluates string_at. */
#define FRONT_STRING(x)                 \
	({                              \
		insn++;                 \
		goto *labels[insn->op]; \
		false;                  \
	})
#define FRONT_ARG   struct tw_term
#define FRONT_OTHER return go_on_with_terms(program, args, count, run, insn)
#define FRONT_VALUE(x)                              \
	({                                          \
		if (tw_unlikely(!tw_is_small(x))) { \
			insn++;                     \
			goto *labels[insn->op];     \
		}                                   \
		(uint64_t) tw_small_value(x);       \
	})
#define FRONT_IS(x, constant) ((x).word == (constant).word)
#define FRONT_TYPE(x, type)   tw_match_is_type((enum tw_match_type)(type), x)
#include "match/front.h"
