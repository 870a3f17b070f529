/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.h - match specifications: which events are wanted, and what is to be done at them.
 *
 * A match specification is an Erlang term, [{Head, [Guard], [Body]}, ...].  It is compiled once into
 * a program of verified byte code, which every event then runs in nanoseconds and without
 * allocation.  docs/match.md teaches the language; the whole of Erlang's is understood.
 *
 * Threads  A program never changes once compiled: any number of threads may run it.
 * Units    Offsets are bytes from 0; lines and columns count from 1.
 * Limits   4 MiB of text, 256 levels of nesting, 32,767 instructions.  Integers, lists and other terms
 *	    that a run builds must fit its scratch memory; what does not fit raises, as any other
 *	    exception in the specification does.
 * Source   ERTS User's Guide, "Match Specifications in Erlang"; erlang:match_spec_test/3.
 */
#ifndef TRACEWHEEL_MATCH_H
#define TRACEWHEEL_MATCH_H

#include <stddef.h>
#include <stdint.h>

#include <tracewheel/error.h>
#include <tracewheel/term.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_match_program;

/* What is matched.  Each target refuses the functions that have no meaning there. */
enum tw_match_target {
	TW_MATCH_CALL = 0, /* the list of the arguments of a call */
	TW_MATCH_SEND,	   /* [Receiver, Message]; refuses caller, caller_line and current_stacktrace */
	TW_MATCH_RECEIVE,  /* [Node, Sender, Message]; refuses what acts on the executing process */
	TW_MATCH_TABLE,	   /* any one term, by the rules of ets:select/2; the last body term is the result */
};

/*
 * What tw_match_compile_when() refuses beside what is no guard: what is legal in Erlang but has the same answer for all
 * arguments, because a comparison is of two types that are never equal, or an operator raises ($1 == 'a' of a number, !$1).
 */
enum tw_match_sense {
	TW_MATCH_SENSE_ANY = 0, /* nothing */
	TW_MATCH_SENSE_TERMS,	/* that, where arguments may be any terms */
	TW_MATCH_SENSE_WORDS,	/* that, where arguments are the six integer registers of a native call; and $7 */
};

/* How to compile; all 0 is the default. */
struct tw_match_options {
	enum tw_match_target target;
	enum tw_match_sense sense;
};

/* Why a specification was refused. */
struct tw_match_error {
	/* One sentence in UTF-8, which begins with the place: "clause 2, guard 1: ...". */
	char text[256];
	/* The place in the text, where it was compiled from text; line 0 where there is none. */
	uint32_t line;
	uint32_t column; /* in bytes */
	size_t offset;
};

/*
 * tw_match_compile - compiles a specification that is a term.
 *
 * @spec	borrows: the program keeps a copy.  The empty list is refused, as by match_spec_test/3;
 *		functions that take a specification treat it as true before they come here.
 * @options	borrows; NULL for calls.
 * @out		gives the program; end it with tw_match_destroy().
 * @error	set on TW_EBADARG and TW_ELIMIT; may be NULL.
 *
 * Returns 0; TW_EBADARG for what is no match specification for this target; TW_ELIMIT for one that is
 * too large or nested too deeply; TW_ENOMEM.
 * Threads: any.  Cost: O(size), bounded by the limits.
 */
int tw_match_compile(struct tw_term spec, const struct tw_match_options *options, struct tw_match_program **out,
		     struct tw_match_error *error);

/*
 * tw_match_compile_text - the same for a specification in Erlang text; the full stop may be missing.
 *
 * The error has the line, the column and the offset of the part that is wrong.
 */
int tw_match_compile_text(const char *text, size_t bytes, const struct tw_match_options *options,
			  struct tw_match_program **out, struct tw_match_error *error);

/*
 * tw_match_compile_when - the short way to write one guard: $1 > 4096 and $2 == "users".
 *
 * The expression is Erlang's, and where C writes differently, C's too; from weak to strong: or orelse
 * xor ||; and andalso &&; == /= != =:= =/= < =< <= > >=; + - bor bxor bsl bsr; * / div rem % band &;
 * - + not ! bnot.  Operands: $N, which is argument N; numbers, atoms, "strings", <<binaries>>,
 * [lists], {tuples}, #{maps}; calls of guard functions, f(X, Y); (parentheses).  The program is that of
 * [{['$1', ..., '$N' | '_'], [Guard], []}], where N is the highest that is used.
 */
int tw_match_compile_when(const char *text, size_t bytes, const struct tw_match_options *options,
			  struct tw_match_program **out, struct tw_match_error *error);

/* Frees a program that no thread runs any more.  NULL is allowed. */
void tw_match_destroy(struct tw_match_program *program);

/* The specification as it was given; lent until the program is destroyed. */
struct tw_term tw_match_spec(const struct tw_match_program *program);

/* What tw_match_test() answers, as match_spec_test/3 does. */
struct tw_match_answer {
	/*
	 * Nothing matched, or {message,false}: false.  Else true, or the value of the last {message,X}.
	 * TW_MATCH_TABLE: the value of the last body term.
	 */
	struct tw_term result;
	int is_return_trace;	/* {return_trace} was executed */
	int is_exception_trace; /* {exception_trace} was executed */
};

/*
 * tw_match_test - runs a program once over a target, without any effect on the process.
 *
 * @target	the list of arguments; [Receiver, Message]; [Node, Sender, Message]; for TW_MATCH_TABLE any term.
 * @arena	takes the result.
 *
 * As in match_spec_test/3, functions that change something only look as if they did: set_tcw answers
 * the present word and leaves it, set_seq_token what get_token/1 would answer without a token, trace
 * false; enable_trace and disable_trace true.  Bad arguments yield 'EXIT'.  caller is undefined, self
 * is <0.1.0>.  {display,X} does print, to standard output.
 *
 * Returns 0; TW_EBADARG where the target is no list of at most 255 elements; TW_ENOMEM.
 * Threads: any.
 */
int tw_match_test(const struct tw_match_program *program, struct tw_term target, struct tw_arena *arena,
		  struct tw_match_answer *answer);

/* How a program tests an event on the hit path. */
enum tw_match_speed {
	TW_MATCH_BYTE_CODE = 0, /* by the interpreter */
	TW_MATCH_FUSED,		/* by one comparison of one integer argument, without the interpreter */
	TW_MATCH_ALWAYS,	/* not at all: each event with the right number of arguments is accepted */
};

enum tw_match_speed tw_match_speed(const struct tw_match_program *program);

/*
 * tw_match_show - prints the byte code, one instruction a line.
 *
 * Returns 0 or what the sink answers; TW_ENOSPC where it is full and has no drain.
 */
int tw_match_show(const struct tw_match_program *program, struct tw_sink *sink);

/*
 * The trace control word: 32 bits of this process that specifications read with {get_tcw} and
 * exchange with {set_tcw,Word}.  It belongs to all sessions together.  0 at first.
 * Source: erlang:system_flag(trace_control_word).  Set returns the word before.
 *
 * Threads: any.  Progress: wait-free.  Signal handlers: yes.
 */
uint32_t tw_trace_control_word_get(void);
uint32_t tw_trace_control_word_set(uint32_t word);

/*
 * The most frames that {current_stacktrace} answers, 0 .. 1,024; 8 at first.
 * Source: erlang:system_flag(backtrace_depth).  Set returns the depth before; larger values count as
 * 1,024.
 *
 * Threads: any.  Progress: wait-free.  Signal handlers: yes.
 */
uint32_t tw_backtrace_depth_get(void);
uint32_t tw_backtrace_depth_set(uint32_t depth);

/*
 * Writes what {process_dump} shows of the executing process: a text for people.
 *
 * @tracee	the executing process, as {self} answers it.
 * @buffer	to be filled with at most @bytes bytes; no NUL.
 *
 * Returns the bytes written.  It runs inside of a hit: it must not allocate, lock or wait.
 */
typedef size_t (*tw_process_dump_fn)(void *context, struct tw_term tracee, char *buffer, size_t bytes);

struct tw_process_dumper {
	tw_process_dump_fn dump;
	void *context;
};

/*
 * Says how processes of this program are dumped; NULL for the built-in way, which writes the pid.
 * @dumper is borrowed for ever: it must stay valid until the end of the program.
 *
 * Threads: any.
 */
void tw_process_dump_set(const struct tw_process_dumper *dumper);

#ifdef __cplusplus
}
#endif

#endif
