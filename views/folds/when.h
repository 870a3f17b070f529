/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.h - conditions on calls: duration > 10ms and $3 > 4096.
 *
 * A condition is an expression of tracewheel/match.h in which names are values of a call:
 *
 *	$1 $2 ...		arguments, of typed calls by their place in the source
 *	a name			the argument of that name, or an enumerator of the function's types
 *	result errno exception	how the call ended; exception is true or false
 *	duration		in nanoseconds, as views show it
 *	thread thread_name	its number in the system, its name
 *
 * It is cut at and, or, xor and not into comparisons, which are programs of the match engine. A comparison with a value that the capture
 * does not hold of a call is neither true nor false, as with NULL in SQL: "unknown or true" is true, "unknown and true" unknown. A call is
 * selected if the whole is true.
 *
 * Threads  one.
 */
#ifndef TW_VIEWS_WHEN_H
#define TW_VIEWS_WHEN_H

#include "tracewheel/capture.h"
#include "tracewheel/match.h"

#define TW_WHEN_CONDITIONS_MAX	63
#define TW_WHEN_COMPARISONS_MAX 64
#define TW_WHEN_OPERANDS_MAX	32
#define TW_WHEN_SENTENCE_BYTES	700
/* In the conditions of a place: all its calls are selected. */
#define TW_WHEN_ALWAYS (UINT64_C(1) << 63)

enum tw_when_truth { TW_WHEN_FALSE, TW_WHEN_TRUE, TW_WHEN_UNKNOWN };

struct tw_when_operand {
	enum tw_when_operand_kind {
		TW_WHEN_ARGUMENT,
		TW_WHEN_NAME,
		TW_WHEN_THREAD,
		TW_WHEN_THREAD_NAME,
		/* From here on known when the call ends. */
		TW_WHEN_RESULT,
		TW_WHEN_ERRNO,
		TW_WHEN_EXCEPTION,
		TW_WHEN_DURATION
	} kind;
	uint32_t number;  /* of the argument, from 1 */
	const char *name; /* lends: of an atom */
};

struct tw_when_comparison {
	struct tw_match_program *program; /* over its operands */
	uint8_t operands[TW_WHEN_OPERANDS_MAX];
	uint8_t count;
	bool is_late; /* known when the call ends */
};

struct tw_when_node {
	enum tw_when_node_kind { TW_WHEN_COMPARISON, TW_WHEN_CONSTANT, TW_WHEN_AND, TW_WHEN_OR, TW_WHEN_XOR } kind;
	uint32_t a, b; /* nodes, both before it; the comparison; the truth */
};

struct tw_when {
	/* Calls that took less are not selected; 0: none.  Set before use. */
	uint64_t least_ns;
	/*
	 * The conditions of a place, a bit for each in the order in which they were added: its calls are selected if one of them is true.
	 * NULL for the place: other things with a duration.  NULL: the first condition holds everywhere.
	 */
	uint64_t (*of_place)(void *context, const struct tw_capture_place *place);
	void *context;
	/* Of when.c. */
	struct tw_capture *capture;
	struct tw_arena arena; /* of what was parsed */
	struct tw_arena values;
	struct tw_when_operand operands[TW_WHEN_OPERANDS_MAX];
	uint32_t operand_count;
	struct tw_when_comparison comparisons[TW_WHEN_COMPARISONS_MAX];
	uint32_t comparison_count;
	struct tw_when_node *nodes;
	uint32_t node_count, node_capacity;
	uint32_t conditions[TW_WHEN_CONDITIONS_MAX]; /* their nodes */
	const char *texts[TW_WHEN_CONDITIONS_MAX];   /* borrowed */
	uint32_t condition_count;
	bool is_late; /* one of them needs the end of a call */
	struct tw_when_places {
		uint64_t *conditions; /* by place; 0: not asked yet, or none */
		bool *is_asked;
		uint32_t count;
	} * places; /* by image */
	uint32_t image_count;
	uint64_t decided, unknown; /* calls; unknown: a value that decides is not in the capture */
	bool has_no_memory;
};

/* The knowledge of a call that has begun. */
struct tw_when_call {
	uint64_t conditions;   /* of its place */
	uint64_t known, truth; /* of comparisons */
	uint64_t held;	       /* operands whose words are here */
	int64_t words[TW_WHEN_OPERANDS_MAX];
};

/* How a call ended; the event of its end, NULL: it has none. */
struct tw_when_end {
	const struct tw_capture_event *event;
	uint64_t duration_ns;
	bool is_exception;
};

/* Zeroed, except of_place, context and least_ns; tw_when_free() ends it in any case. */
void tw_when_init(struct tw_when *when, struct tw_capture *capture);
void tw_when_free(struct tw_when *when);

/*
 * tw_when_add - add a condition.
 *
 * @text	borrows until tw_when_free().
 * @sentence	if it is refused, the reason: without a full stop.
 */
bool tw_when_add(struct tw_when *when, const char *text, char sentence[TW_WHEN_SENTENCE_BYTES]);

/* Does it select calls at all? */
static inline bool tw_when_selects(const struct tw_when *when)
{
	return when && (when->condition_count || when->least_ns);
}
/* Must calls be seen to their ends before it is known which are selected? */
static inline bool tw_when_is_late(const struct tw_when *when)
{
	return when && (when->least_ns || when->is_late);
}

/*
 * Its conditions, by what is known as a call begins; TW_WHEN_UNKNOWN: tw_when_end() decides, or nothing does.
 *
 * @event	any that begins something with a duration.
 */
enum tw_when_truth tw_when_begin(struct tw_when *when, const struct tw_capture_event *event, struct tw_when_call *call);
/* Counts a call by what was decided of it. */
static inline void tw_when_count(struct tw_when *when, enum tw_when_truth truth)
{
	when->decided += truth != TW_WHEN_UNKNOWN;
	when->unknown += truth == TW_WHEN_UNKNOWN;
}
/* Of such a call. */
enum tw_when_truth tw_when_end(struct tw_when *when, const struct tw_when_call *call, const struct tw_when_end *end);

/* "of 10 ms or longer only: 12 calls are left out".  @left_out: calls. */
const char *tw_when_describe(const struct tw_when *when, uint64_t left_out, char text[TW_WHEN_SENTENCE_BYTES]);

/* ---- between when.c and when_values.c ---- */

/* The operand of the event of a call, or of its end.  None: the capture does not hold it. */
struct tw_term tw_when_value(struct tw_when *when, const struct tw_when_operand *operand,
			     const struct tw_capture_event *event, const struct tw_when_end *end);
/* Does any function of the capture have an argument or enumerator of this name?  False: the sentence says so. */
bool tw_when_has_name(struct tw_when *when, const char *name, char sentence[TW_WHEN_SENTENCE_BYTES]);

#endif
