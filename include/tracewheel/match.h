/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.h - match specifications: they select events and act on them.
 *
 * A match specification is an Erlang term, [{Head, [Guard], [Body]}, ...].  It is compiled once into
 * a program of verified byte code, which every event then runs in nanoseconds and without
 * allocation.  docs/match.md teaches the language; the whole of Erlang's is understood.
 *
 * Threads  A program never changes once compiled: any number of threads may run it.
 * Units    Offsets are bytes from 0; lines and columns count from 1.
 * Limits   4 MiB of text, 256 levels of nesting, 32,767 instructions.  Integers, lists and other terms that a run
 *	    builds must fit its scratch memory; a term that does not fit raises an exception in the specification.
 * Source   ERTS User's Guide, "Match Specifications in Erlang"; erlang:match_spec_test/3.
 */
#ifndef TRACEWHEEL_MATCH_H
#define TRACEWHEEL_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracewheel/error.h>
#include <tracewheel/term.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_match_program;

/* The kind of term that a program is matched against.  Each target refuses functions that have no meaning there. */
enum tw_match_target {
	TW_MATCH_CALL = 0, /* the list of the arguments of a call */
	TW_MATCH_SEND,	   /* [Receiver, Message]; refuses caller, caller_line and current_stacktrace */
	TW_MATCH_RECEIVE,  /* [Node, Sender, Message]; refuses functions that act on the executing process */
	TW_MATCH_TABLE,	   /* any one term, by the rules of ets:select/2; the last body term is the result */
};

/*
 * Additional checks of tw_match_compile_when(): guards that are legal in Erlang but have the same result for all arguments
 * are refused, because they compare types that are never equal or apply an operator that always raises ($1 == 'a' for a
 * number, !$1).
 */
enum tw_match_sense {
	TW_MATCH_SENSE_ANY = 0, /* nothing */
	TW_MATCH_SENSE_TERMS,	/* for arguments that may be any terms */
	TW_MATCH_SENSE_WORDS,	/* for the six integer registers of a native call; refuses $7 and above, too */
};

/* How to compile; all 0 is the default. */
struct tw_match_options {
	enum tw_match_target target;
	enum tw_match_sense sense;
};

/* Why a specification was refused. */
struct tw_match_error {
	/* One sentence in UTF-8, beginning with the place: "clause 2, guard 1: ...". */
	char text[256];
	/* The position in the text, if it was compiled from text; line 0 otherwise. */
	uint32_t line;
	uint32_t column; /* in bytes */
	size_t offset;
};

/*
 * tw_match_compile - compiles a specification given as a term.
 *
 * @spec	borrows: the program keeps a copy.  The empty list is refused, as by match_spec_test/3;
 *		functions that take a specification treat it as true before calling this.
 * @options	borrows; NULL for calls.
 * @out		gives the program; end it with tw_match_destroy().
 * @error	set on TW_EBADARG and TW_ELIMIT; may be NULL.
 *
 * Returns 0; TW_EBADARG if it is not a match specification for this target; TW_ELIMIT if it is too large or nested
 * too deeply; TW_ENOMEM.
 * Threads: any.  Cost: O(size), bounded by the limits.
 */
int tw_match_compile(struct tw_term spec, const struct tw_match_options *options, struct tw_match_program **out,
		     struct tw_match_error *error);

/*
 * tw_match_compile_text - the same for a specification in Erlang text; the full stop may be missing.
 *
 * The error has the line, the column and the offset of the wrong part.
 */
int tw_match_compile_text(const char *text, size_t bytes, const struct tw_match_options *options,
			  struct tw_match_program **out, struct tw_match_error *error);

/*
 * tw_match_compile_when - the short way to write one guard: $1 > 4096 and $2 == "users".
 *
 * The expression is Erlang's, with C's operators as alternatives; by increasing precedence: or orelse
 * xor ||; and andalso &&; == /= != =:= =/= < =< <= > >=; + - bor bxor bsl bsr; * / div rem % band &;
 * - + not ! bnot.  Operands: $N, which is argument N; numbers, also with a unit, ns us ms s, which makes
 * nanoseconds (10ms), or K M G T, powers of 1024 (4K); atoms, "strings", <<binaries>>, [lists], {tuples}, #{maps}; calls of guard functions, f(X, Y); (parentheses).  The program is that of
 * [{['$1', ..., '$N' | '_'], [Guard], []}], where N is the highest number used.
 */
int tw_match_compile_when(const char *text, size_t bytes, const struct tw_match_options *options,
			  struct tw_match_program **out, struct tw_match_error *error);

/*
 * tw_match_guard_parse - read such an expression in which names stand for values that the caller knows: duration > 10ms.
 *
 * @arena	takes the guard.
 * @out		the guard as a term: operators and functions are tuples, {'>', duration, 10000000}; names are atoms, whatever
 *		letter they begin with; atoms in quotes are {const, Atom}.  Whether the functions exist is not checked.
 *
 * Returns and @error as of tw_match_compile_when().
 */
int tw_match_guard_parse(struct tw_arena *arena, const char *text, size_t bytes, struct tw_term *out,
			 struct tw_match_error *error);

/* Frees a program that no thread is running.  NULL is allowed. */
void tw_match_destroy(struct tw_match_program *program);

/* The specification as it was given; borrowed until the program is destroyed. */
struct tw_term tw_match_spec(const struct tw_match_program *program);

/* The answer of tw_match_test(), as of match_spec_test/3. */
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
 * As in match_spec_test/3, functions with side effects have none here: set_tcw returns the present word and keeps it,
 * set_seq_token returns the result of get_token/1 without a token, trace returns false, enable_trace and
 * disable_trace return true.  Bad arguments yield 'EXIT'.  caller is undefined, self
 * is <0.1.0>.  {display,X} does print, to standard output.
 *
 * Returns 0; TW_EBADARG if the target is not a list of at most 255 elements; TW_ENOMEM.
 * Threads: any.
 */
int tw_match_test(const struct tw_match_program *program, struct tw_term target, struct tw_arena *arena,
		  struct tw_match_answer *answer);

/*
 * tw_match_test_words - does a program accept these arguments, which are integers?
 *
 * As tw_match_test(), without a value as the answer.  Terms that the program builds must fit in 8 KiB; otherwise it raises, and accepts
 * nothing.  string_at and the like read memory at the addresses that the words are: the caller must not let them.
 *
 * @count	0 .. 255.
 *
 * Threads: any.  Allocates nothing.  Cost: some nanoseconds.
 */
bool tw_match_test_words(const struct tw_match_program *program, const int64_t *words, unsigned count);

/* How a program is evaluated on the hit path. */
enum tw_match_speed {
	TW_MATCH_BYTE_CODE = 0, /* by the interpreter */
	TW_MATCH_FUSED,		/* by one comparison of one integer argument, without the interpreter */
	TW_MATCH_ALWAYS,	/* not at all: each event with the right number of arguments is accepted */
};

enum tw_match_speed tw_match_speed(const struct tw_match_program *program);

/*
 * tw_match_show - prints the byte code, one instruction a line.
 *
 * Returns 0 or the sink's error; TW_ENOSPC where it is full and has no drain.
 */
int tw_match_show(const struct tw_match_program *program, struct tw_sink *sink);

/*
 * The trace control word: 32 bits of this process that specifications read with {get_tcw} and
 * exchange with {set_tcw,Word}.  All sessions share it.  0 at first.
 * Source: erlang:system_flag(trace_control_word).  Set returns the word before.
 *
 * Threads: any.  Progress: wait-free.  Signal handlers: yes.
 */
uint32_t tw_trace_control_word_get(void);
uint32_t tw_trace_control_word_set(uint32_t word);

/*
 * The maximum number of frames in {current_stacktrace}, 0 .. 1,024; 8 at first.
 * Source: erlang:system_flag(backtrace_depth).  Set returns the depth before; larger values count as
 * 1,024.
 *
 * Threads: any.  Progress: wait-free.  Signal handlers: yes.
 */
uint32_t tw_backtrace_depth_get(void);
uint32_t tw_backtrace_depth_set(uint32_t depth);

/*
 * Writes the text that {process_dump} shows of the executing process.
 *
 * @tracee	the executing process, as {self} answers it.
 * @buffer	to be filled with at most @bytes bytes; no NUL.
 *
 * Returns the number of bytes written.  It runs inside a hit: it must not allocate, lock or wait.
 */
typedef size_t (*tw_process_dump_fn)(void *context, struct tw_term tracee, char *buffer, size_t bytes);

struct tw_process_dumper {
	tw_process_dump_fn dump;
	void *context;
};

/*
 * Sets the dumper of this program's processes; NULL for the built-in one, which writes the pid.
 * @dumper is borrowed forever: it must stay valid until the end of the program.
 *
 * Threads: any.
 */
void tw_process_dump_set(const struct tw_process_dumper *dumper);

#ifdef __cplusplus
}
#endif

#endif
