/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the two entries to a run.  Nothing that the verifier has proved is checked again. */
#include "match/machine.h"

/*
 * Arguments of continue_run(): the small loops use no vector registers (this file is compiled without them); the
 * interpreter may.
 */
struct rest_of_run {
	struct tw_match_machine *machine;
	const struct tw_match_insn *insn;
	enum tw_match_verdict verdict;
};

static void go_on_there(void *arg)
{
	struct rest_of_run *rest = arg;

	rest->verdict = tw_match_go_on(rest->machine, rest->insn);
}

static __attribute__((noinline)) enum tw_match_verdict go_on(struct tw_match_machine *m,
							     const struct tw_match_insn *insn)
{
	struct rest_of_run rest = {m, insn, TW_MATCH_NO};

	if (!m->run->keep_vectors)
		return tw_match_go_on(m, insn);
	m->run->keep_vectors(go_on_there, &rest);
	return rest.verdict;
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
#define FRONT_IS_RAW	      true
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
#undef FRONT_ARG
#undef FRONT_IS_RAW
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
#define FRONT_ARG    struct tw_term
#define FRONT_IS_RAW false
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
