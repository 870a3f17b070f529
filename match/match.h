/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.h - match specifications on the hit path: code, verified programs, runs.
 *
 *	term -> tw_match_code_build() -> struct tw_match_code -> tw_match_verify() -> struct
 *	tw_match_program -> tw_match_run(), tw_match_run_raw(), tw_match_quick_test()
 *
 * Only verified programs can be run: the types say so.  A run neither allocates, nor locks, nor calls
 * the system; the terms that it builds are in the caller's scratch memory.  Sessions, tokens and tracees are accessed
 * only through the table of host functions.
 *
 * Threads  Building and verifying: any, control path.  Running: any thread, signal handlers too, with separate
 *	    scratch memory for each concurrent run.
 * Units    Arguments are counted from 0; raw arguments are machine words, taken as int64_t.
 * Limits   TW_MATCH_*_MAX in base/limits.h.
 */
#ifndef TW_MATCH_MATCH_H
#define TW_MATCH_MATCH_H

#include "base/assert.h"
#include "base/limits.h"
#include "term/term.h"
#include "tracewheel/match.h"

/* ---- code ---- */

/* One instruction; match/ops.h defines the operands.  Instructions are addressed by their index. */
struct tw_match_insn {
	uint8_t op;
	uint8_t a;
	uint16_t b;
	uint16_t c;
	uint16_t d;
};

/*
 * The integers v with (uint64_t)v - low << shift <= span, modulo 2^64: an interval, or all but an interval; with a
 * shift, of what the lower 64 - shift bits of v are, with a sign or without.  The instructions that test bits take
 * them for a mask and its value: v & low == span.
 */
struct tw_match_range {
	uint64_t low;
	uint64_t span;	/* shifted already */
	uint32_t shift; /* 0 .. 63 */
};

/* Output of the compiler and input of the verifier.  Its contents are not trusted, and it cannot be run. */
struct tw_match_code {
	enum tw_match_target target;
	uint32_t insn_count;
	uint32_t constant_count;
	uint32_t range_count;
	struct tw_match_insn *insns;
	struct tw_term *constants; /* their blocks live in terms */
	struct tw_match_range *ranges;
	struct tw_term spec; /* as given, copied into terms */
	struct tw_arena terms;
};

/*
 * tw_match_code_build - compiles a specification to code that is not verified yet.
 *
 * Arguments and errors as tw_match_compile().  @out gives; end it with tw_match_code_destroy(), or with
 * tw_match_verify(), which takes it.
 */
int tw_match_code_build(struct tw_term spec, const struct tw_match_options *options, struct tw_match_code **out,
			struct tw_match_error *error);

void tw_match_code_destroy(struct tw_match_code *code);

/*
 * The same with the text that the specification was parsed from, so that errors point into it.
 *
 * @text	borrows; NULL for none.
 */
int tw_match_code_build_from(struct tw_term spec, const struct tw_match_options *options, const char *text,
			     size_t bytes, struct tw_match_code **out, struct tw_match_error *error);

/* ---- programs ---- */

/* Strings that are compared in the small loops; one byte less than string_at reads. */
#define TW_MATCH_STRING_BYTES_MAX 255

enum tw_match_quick_op {
	TW_MATCH_QUICK_NONE = 0, /* run the program */
	TW_MATCH_QUICK_RANGE,	 /* accept if argument arg is inside the range */
	TW_MATCH_QUICK_ALWAYS,	 /* accept */
};

/*
 * A whole program as one comparison of one raw argument, which the hit path evaluates inline.  It is equivalent to the
 * program for events with `arity' raw arguments, or at least that many with is_prefix; for any other number the program
 * rejects.  The result of an accepted event is always the program's `accepted'.
 */
struct tw_match_quick {
	uint8_t op;
	uint8_t arg;
	uint8_t arity;
	uint8_t is_prefix;
	uint8_t shift;
	uint64_t low;
	uint64_t span;
};

/* The verdict on an event.  All but TW_MATCH_NO mean that the clause's actions are to be performed. */
enum tw_match_verdict {
	TW_MATCH_NO = 0,   /* no clause matched: no event, no actions */
	TW_MATCH_YES,	   /* the event unchanged */
	TW_MATCH_SUPPRESS, /* {message,false}: no event; actions count */
	TW_MATCH_EXTRA,	   /* {message,X}: event with X as its last element */
	TW_MATCH_UNDECIDED /* of tw_match_run_briefly() only */
};

/* Action bits of a result. */
enum {
	TW_MATCH_RETURN_TRACE = 1,    /* {return_trace} */
	TW_MATCH_EXCEPTION_TRACE = 2, /* {exception_trace} */
	TW_MATCH_SILENCE = 4,	      /* {silent,true} was the last {silent,B} */
	TW_MATCH_UNSILENCE = 8,	      /* {silent,false} was the last {silent,B} */
	TW_MATCH_ACTIONS = 15,
};

struct tw_match_result {
	/* true, false, or the extra element: borrowed until the scratch memory of the run is used again, or, when
	 * it is one of the arguments' terms or the program's constants, as long as those. */
	struct tw_term message;
	uint8_t verdict; /* enum tw_match_verdict */
	uint8_t actions;
};

/* Verified code, in the order in which a hit reads it. */
struct tw_match_program {
	struct tw_match_quick quick;
	struct tw_match_result accepted; /* the result if quick accepts; verdict TW_MATCH_NO if quick is NONE */
	const struct tw_match_insn *insns;
	const struct tw_term *constants;
	const struct tw_match_range *ranges;
	uint32_t variable_count; /* the scratch memory holds so many variables, */
	uint32_t stack_count;	 /* then a stack of so many values, then terms */
	struct tw_match_code *code;
};

/*
 * tw_match_verify - make a program of code that is safe to run.
 *
 * Checks that each instruction and operand is known; that jumps lead forward to an instruction; that the last
 * instruction on each path ends the run, so that no run takes more steps than there are instructions; that the stack
 * has the same depth on all paths to an instruction, never too little and at most TW_MATCH_STACK_MAX; that variables
 * are bound before they are read, arguments exist, and constants are of the kind that their instruction needs.
 *
 * @code	takes, on success only.
 * @why		set on TW_EBADARG to a constant that says what is wrong; may be NULL.
 * @place	set on TW_EBADARG to the index of the instruction; may be NULL.
 *
 * Returns 0, TW_EBADARG or TW_ENOMEM.
 */
int tw_match_verify(struct tw_match_code *code, struct tw_match_program **out, const char **why, uint32_t *place);

/* ---- running ---- */

struct tw_match_run;

/*
 * Functions that a run calls in its environment.  Any may be NULL: then the run behaves as without a process.  They
 * are called inside the hit, so none may allocate, lock or wait.  Terms that they return are built in
 * tw_match_arena(run); the result none raises, which the specification sees as 'EXIT'.
 */
struct tw_match_host {
	/* {self}: the executing process; for receive the receiving one.  NULL: raises. */
	struct tw_term (*self)(struct tw_match_run *run);
	/* {node}: an atom.  NULL: nonode@nohost. */
	struct tw_term (*node)(struct tw_match_run *run);
	/* {caller}: {M,F,A} or undefined.  NULL: undefined. */
	struct tw_term (*caller)(struct tw_match_run *run);
	/* {caller_line}: {M,F,A,{File,Line}} or undefined.  NULL: undefined. */
	struct tw_term (*caller_line)(struct tw_match_run *run);
	/* {current_stacktrace}: at most `depth` frames.  NULL: []. */
	struct tw_term (*stacktrace)(struct tw_match_run *run, uint32_t depth);
	/* {process_dump}: a binary.  NULL: tw_process_dump_set()'s. */
	struct tw_term (*process_dump)(struct tw_match_run *run);
	/* {is_seq_trace}.  NULL: false. */
	bool (*has_seq_token)(struct tw_match_run *run);
	/* {get_seq_token}: [] or the token.  NULL: []. */
	struct tw_term (*get_seq_token)(struct tw_match_run *run);
	/* {set_seq_token,C,V}: true.  NULL: raises. */
	struct tw_term (*set_seq_token)(struct tw_match_run *run, struct tw_term component, struct tw_term value);
	/*
	 * {enable_trace,..}, {disable_trace,..}, {trace,..}: takes the flags of off, a list, from
	 * @tracee and gives it those of on.  @tracee is the term as written, or none for the executing process.
	 * Returns 1 for a change, 0 for none, below 0 to raise.  NULL: raises.
	 */
	int (*trace)(struct tw_match_run *run, struct tw_term tracee, struct tw_term off, struct tw_term on);
	/* A {silent,B} that precedes one of these: performed first, and not in the result.  NULL: it is in the result. */
	void (*silence)(struct tw_match_run *run, bool is_silent);
	/* {set_tcw,Word}: returns the previous word.  NULL: tw_trace_control_word_set(). */
	uint32_t (*set_tcw)(struct tw_match_run *run, uint32_t word);
	/*
	 * {string_at,Address}: a binary of the bytes up to the zero; none if there is no readable string.  NULL: none.
	 */
	struct tw_term (*string_at)(struct tw_match_run *run, uint64_t address);
	/*
	 * True if that string equals the @bytes at @text: at most TW_MATCH_STRING_BYTES_MAX, none of them zero.  Called
	 * in the small loops: must not change vector registers.  NULL: string_at is called instead.
	 */
	bool (*is_string)(struct tw_match_run *run, uint64_t address, const void *text, size_t bytes);
	/* {vector_float,N}, {vector_double,N}: the low bits of a vector register of the call.  False: not known.  NULL: raises. */
	bool (*vector)(struct tw_match_run *run, uint64_t number, uint64_t *bits);
	/* {display,X}.  NULL: nothing is printed. */
	void (*display)(struct tw_match_run *run, struct tw_term term);
};

/*
 * Input and result of a run.  Set the first four fields once for many runs; they cost nothing if a program does not
 * need them.
 */
struct tw_match_run {
	/* Written by the caller. */
	const struct tw_match_host *host; /* borrows; NULL: no functions */
	void *context;			  /* for the host */
	void *scratch;			  /* on a boundary of 16 */
	uint32_t scratch_bytes;		  /* at least TW_MATCH_SCRATCH_BYTES_MIN */
	/*
	 * Calls a function and keeps vector and floating-point registers: for runs inside a call of the program.
	 * Used when the small loops of run.c cannot decide; NULL: not needed.
	 */
	void (*keep_vectors)(void (*function)(void *), void *arg);
	/* Comparisons of terms that agree for more than 64 levels may allocate, and then do not raise. */
	bool may_allocate;
	/* Written by the run. */
	struct tw_match_result result; /* set where the verdict is not TW_MATCH_NO */
	struct tw_arena arena;
};

/* The arena in which host functions build their results. */
static inline struct tw_arena *tw_match_arena(struct tw_match_run *run)
{
	return &run->arena;
}

/*
 * tw_match_run - runs a program over terms.
 *
 * @args	borrows, as does the result; for TW_MATCH_TABLE one term.
 * @count	0 .. 255.
 *
 * Returns the verdict; run->result is set unless it is TW_MATCH_NO.
 * Threads: any.  Progress: bounded by the length of the program and the size of the terms.
 * Cost: about 1 ns for each clause that a comparison of an argument with an integer rejects.
 */
enum tw_match_verdict tw_match_run(const struct tw_match_program *program, const struct tw_term *args, unsigned count,
				   struct tw_match_run *run);

/*
 * The same over machine words, which are integers from -2^63 to 2^63 - 1.
 *
 * Vector and floating-point registers are not changed if comparisons and bits of arguments decide; otherwise
 * run->keep_vectors is used, if it is set.
 */
enum tw_match_verdict tw_match_run_raw(const struct tw_match_program *program, const uint64_t *args, unsigned count,
				       struct tw_match_run *run);

/* The same without the interpreter, and without strings: undecided where these are needed.  Takes next to nothing of the stack. */
enum tw_match_verdict tw_match_run_briefly(const struct tw_match_program *program, const uint64_t *args, unsigned count,
					   struct tw_match_run *run);

/*
 * tw_match_quick_test - decide on an event without a run.
 *
 * @quick	of a program for which tw_match_quick_fits() was true when it was set.
 * @args	points to at least one readable word, even if there are no arguments.
 *
 * If it returns true, the result is program->accepted.
 */
static inline bool tw_match_quick_test(const struct tw_match_quick *quick, const uint64_t *args)
{
	return (args[quick->arg] - quick->low) << quick->shift <= quick->span;
}

/* True if quick is equivalent to the program for events with this many raw arguments. */
static inline bool tw_match_quick_fits(const struct tw_match_quick *quick, unsigned count)
{
	return quick->op != TW_MATCH_QUICK_NONE && (quick->is_prefix ? count >= quick->arity : count == quick->arity);
}

#endif
