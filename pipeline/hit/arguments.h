/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.h - what a hit copies of a call's arguments, by the layout of its function.
 *
 * Integer registers come as the words of the trampoline; vector registers still hold the caller's values, because no
 * code between the call and here changes them. Strings and other memory are copied by the kernel, which returns an error for an
 * invalid address, so that no fault ever reaches the program, whatever the layout says of it.
 *
 * Memory that a call fills is copied when it has returned, by the registers that open_calls.h has from the call.
 */
#ifndef TW_PIPELINE_ARGUMENTS_H
#define TW_PIPELINE_ARGUMENTS_H

#include "base/limits.h"
#include "tracewheel/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* In place of a register's number: the result. */
#define TW_ARG_RESULT 6

/* A factor of a length, as in tracewheel/layout.h; the source is a register. */
struct tw_arg_factor {
	char kind;
	uint8_t source;
	uint32_t number;
};

/* Memory to which a value points. */
struct tw_arg_memory {
	char type;	/* s, m: copied at the call; M, V, Z: when it has returned */
	uint8_t source; /* the register that holds its address */
	uint8_t factor_count;
	struct tw_arg_factor factors[TW_LAYOUT_FACTORS_MAX];
};

/* A layout in the form that a hit reads. Never changed or freed once a function has it. */
struct tw_arg_plan {
	uint8_t count;	     /* of words */
	uint8_t has_vectors; /* at least one comes from a vector register */
	uint8_t gives;	     /* enum tw_bp_gives */
	uint8_t describes;   /* enum tw_layout_descriptor: what its return describes; 0: nothing */
	uint8_t string_count;
	uint8_t filled_count;
	uint8_t keeps;	       /* its return needs what the call's registers held */
	uint8_t fails;	       /* i, p: a result that says that errno is set; E: the result is an error; 0: never */
	uint8_t result_bytes;  /* 4 or 8 */
	uint8_t has_errno;     /* a word behind the result */
	uint16_t string_bytes; /* the most bytes copied of each string or memory */
	uint8_t registers[TW_LAYOUT_WORDS_MAX]; /* of the words; numbers as in tracewheel/layout.h */
	struct tw_arg_memory strings[TW_ARGS_MAX];
	struct tw_arg_memory filled[TW_ARGS_MAX];
};

/* The most words that a call can record: words, and strings with a head each.  A return: a result, errno, and as many. */
#define TW_ARG_WORDS_MAX (TW_LAYOUT_WORDS_MAX + TW_ARGS_MAX * (1 + TW_ARG_STRING_BYTES_MAX / 8))

/* Makes a plan from a layout. string_bytes is at most TW_ARG_STRING_BYTES_MAX. */
void tw_arg_plan_make(struct tw_arg_plan *plan, const struct tw_layout *layout, unsigned string_bytes);
/* Gives a function, which has no place yet, its plan. */
struct tw_function;
void tw_arg_plan_set(struct tw_function *function, const struct tw_arg_plan *plan);

/* Memory that is being copied: what would be variables, which lie in the thread's structure and not on the program's stack. */
struct tw_arg_copying {
	const struct tw_arg_plan *plan;
	const uint64_t *words;
	uint64_t value;
	uint64_t *out;
	const struct tw_arg_memory *memory; /* the next of so many that are left */
	unsigned left, count;		    /* count: of words in out */
	uint64_t length;		    /* of this memory; UINT64_MAX: a string */
	bool may_read, is_filled, is_failed;
};

/*
 * tw_arg_capture - the payload of a call.
 *
 * @words	the six integer argument registers.
 * @out		holds TW_ARG_WORDS_MAX words.
 *
 * Returns the number of words. One system call for each string, none without. Keeps errno.
 */
unsigned tw_arg_capture(const struct tw_arg_plan *plan, const uint64_t *words, struct tw_arg_copying *copying,
			uint64_t *out);

/* The same without its strings and other memory. */
unsigned tw_arg_capture_registers(const struct tw_arg_plan *plan, const uint64_t *words, uint64_t *out);

/*
 * tw_arg_capture_filled - the payload of a return: the result, errno, and what the call has filled.
 *
 * @value	rax.
 * @words	the argument registers at the call; NULL: not known, and then only the result's own memory is copied.
 * @error	errno of the program.
 * @out		holds TW_ARG_WORDS_MAX words.
 *
 * Returns the number of words, 1 at least.  One system call for each memory, one more for each length in memory; none if
 * the call has failed.
 */
unsigned tw_arg_capture_filled(const struct tw_arg_plan *plan, uint64_t value, const uint64_t *words, int error,
			       struct tw_arg_copying *copying, uint64_t *out);

/* A number of up to 8 bytes that the program has in its memory; 0: it cannot be read.  No fault; one system call. */
uint64_t tw_arg_read_number(uint64_t address, unsigned bytes);

/*
 * tw_arg_read_string - a string of the program, without its zero; at most @bytes_max bytes.
 *
 * Returns its bytes, @bytes_max for a longer one; -1: the address is not readable. No fault; one system call.
 */
long tw_arg_read_string(uint64_t address, char *text, unsigned bytes_max);

/*
 * Would tw_arg_read_string() with a larger buffer return these @bytes, of which none is zero? No fault; one system
 * call.
 */
bool tw_arg_is_string(uint64_t address, const char *text, unsigned bytes);

/* Reads the low eight bytes of the argument registers xmm0 to xmm7, which stay as they are. */
void tw_arg_read_vectors(uint64_t out[8]);

/*
 * tw_arg_read_result - the result of a function that has just returned, whose registers still hold it.
 *
 * @gives	enum tw_bp_gives.
 * @first	rax.
 * @second	rdx.
 *
 * Returns the number of words; all registers stay as they are.
 */
unsigned tw_arg_read_result(unsigned gives, uint64_t first, uint64_t second, uint64_t out[2]);

/* Selects this process for reading strings. Called before the first capture, and again in a forked child. */
void tw_arg_init(void);

#endif
