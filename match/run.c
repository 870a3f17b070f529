/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - the two entries to a run.  Nothing here checks what the verifier has proved.
 */
#include "match/machine.h"

/* The small loops use no vector registers (this file is compiled without); the interpreter may. */
struct way_on {
	struct tw_match_machine *machine;
	const struct tw_match_insn *insn;
	enum tw_match_verdict verdict;
};

static void go_on_there(void *arg)
{
	struct way_on *way = arg;

	way->verdict = tw_match_go_on(way->machine, way->insn);
}

static __attribute__((noinline)) enum tw_match_verdict go_on(struct tw_match_machine *m,
							      const struct tw_match_insn *insn)
{
	struct way_on way = {m, insn, TW_MATCH_NO};

	if (!m->run->keep_vectors)
		return tw_match_go_on(m, insn);
	m->run->keep_vectors(go_on_there, &way);
	return way.verdict;
}

/* A machine word is an integer, however large. */
static inline bool raw_is(uint64_t word, struct tw_term constant)
{
	return tw_is_small(constant) && (uint64_t)tw_small_value(constant) == word;
}

#define FRONT_NAME   tw_match_run_raw
#define FRONT_ARG    uint64_t
#define FRONT_IS_RAW true
#define FRONT_VALUE(x) (x)
#define FRONT_IS(x, constant) raw_is(x, constant)
#define FRONT_TYPE(x, type)   ((type) == TW_MATCH_IS_INTEGER || (type) == TW_MATCH_IS_NUMBER)
#include "match/front.h"
#undef FRONT_NAME
#undef FRONT_ARG
#undef FRONT_IS_RAW
#undef FRONT_VALUE
#undef FRONT_IS
#undef FRONT_TYPE

#define FRONT_NAME   tw_match_run
#define FRONT_ARG    struct tw_term
#define FRONT_IS_RAW false
#define FRONT_VALUE(x)                                                                                       \
	({                                                                                                   \
		if (tw_unlikely(!tw_is_small(x))) {                                                          \
			insn++;                                                                              \
			goto *labels[insn->op];                                                              \
		}                                                                                            \
		(uint64_t) tw_small_value(x);                                                                \
	})
#define FRONT_IS(x, constant) ((x).word == (constant).word)
#define FRONT_TYPE(x, type)   tw_match_is_type((enum tw_match_type)(type), x)
#include "match/front.h"
