/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - the types of a function's arguments and the registers that pass them, as a line of text.
 *
 * The recording tool makes layouts from debug information (tracewheel/debug.h); the traced program records arguments
 * by them, the capture stores them, and readers decode its events with them.
 *
 *	layout    = result *(" " value) [" ..."]		"..." : variable arguments may follow
 *	result    = value without a name
 *	value     = name ":" type "@" register register
 *	type      = letter [bytes] ["/" name of the type] ["{" enumerator *("," enumerator) "}"]
 *	enumerator= name "=" number; for a struct its fields: name "." letter bits "=" first bit
 *	letter    = i signed, u unsigned, b bool, e enum, n signed enum, p pointer, s string, f float,
 *		    S struct in one or two words, v void, _ unknown; of fields: i, u, b, p, f;
 *		    d, of results: a descriptor that is described, its number is of enum tw_layout_descriptor;
 *		    g flags, o octal, x hexadecimal, E an error number;
 *		    m bytes of memory, read at the call; M bytes, V numbers, Z a string: read when the call has returned
 *	register  = "0" to "5" rdi rsi rdx rcx r8 r9, "6" rax, "7" rdx, "8" to "f" xmm0 to xmm7, "-" none
 *
 * What stands in braces has another meaning behind some letters:
 *
 *	g		NAME "=" VALUE, or NAME "." MASK "=" VALUE: the bits of that mask together have this value
 *	o		ARGUMENT "=" MASK: the argument counts only if that one, from 0, has one of these bits
 *	m M		the length in bytes, a product of one or two: "n=" NUMBER, "a" ARGUMENT "=1", "r=1" the result,
 *			"p" ARGUMENT "=1" and "q" ARGUMENT "=1" the 4 or 8 bytes to which an argument points
 *	V		LETTER BYTES "=" COUNT: numbers of that type (i, u, p, x)
 *	results		"errno=1": of i, u, p and x: the call reports an error by -1 or a null pointer, and the reason by errno
 *
 * Names hold no blanks and none of : @ / { } , = .  A value without a register is not recorded, except one that a
 * function returns in st(0): f16.
 *
 * Threads  any; a layout does not change.  Limits: TW_LAYOUT_*_MAX.
 */
#ifndef TRACEWHEEL_LAYOUT_H
#define TRACEWHEEL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_LAYOUT_VALUES_MAX	 64
#define TW_LAYOUT_TEXT_BYTES_MAX 8000
/* Words passed in registers: six integer and eight vector registers. */
#define TW_LAYOUT_WORDS_MAX 14

/* How a call yields descriptors when it returns: the `bytes` of a result of type 'd'. */
enum tw_layout_descriptor {
	TW_LAYOUT_DESCRIPTOR_RESULT = 1,  /* the result is one: open, socket, dup */
	TW_LAYOUT_DESCRIPTOR_STREAM,	  /* the result is a FILE of libc: fopen */
	TW_LAYOUT_DESCRIPTOR_PAIR_FIRST,  /* two of them, where the first argument points: pipe */
	TW_LAYOUT_DESCRIPTOR_PAIR_FOURTH, /* the fourth: socketpair */
	TW_LAYOUT_DESCRIPTOR_CONNECTED,	  /* the first argument is one; the others are an address: connect */
	TW_LAYOUT_DESCRIPTOR_BOUND,	  /* the first argument is one: bind, listen */
	TW_LAYOUT_DESCRIPTOR_FCNTL,	  /* the result, where the second argument asks for a duplicate */
	TW_LAYOUT_DESCRIPTOR_ACCEPTED	  /* the result is a socket that its peer connected to: accept */
};

#define TW_LAYOUT_ADDRESS_BYTES_MAX    112
#define TW_LAYOUT_PATH_BYTES_MAX       256
#define TW_LAYOUT_DESCRIPTOR_WORDS_MAX 63

/* A long double; only its first ten bytes are significant. */
#define TW_LAYOUT_X87_BYTES 16

struct tw_layout_enumerator {
	const char *name;
	int64_t value;
};

struct tw_layout_value {
	const char *name;      /* "" where it has none */
	const char *type_name; /* of a struct, an enum, or what a pointer points to; "" where it has none */
	char type;	       /* the letter */
	uint32_t bytes;	       /* of the type; 8 where not given */
	int8_t registers[2];   /* 0 to 15; -1: none */
	const struct tw_layout_enumerator *enumerators;
	uint32_t enumerator_count;
};

struct tw_layout {
	uint32_t count;
	bool is_variadic;
	uint32_t word_count;   /* words that a call records before its strings */
	uint32_t string_count; /* values of type 's' and 'm' with a register: memory that is read at the call */
	uint32_t filled_count; /* values of type 'M', 'V' and 'Z', and a result of type 'Z' */
	bool has_errno;	       /* of the result */
	struct tw_layout_value result;
	const struct tw_layout_value *values;
};

/*
 * tw_layout_parse - read a line of text.
 *
 * @text	borrows; need not be terminated.  Nothing in it is trusted.
 * @out		gives; tw_layout_destroy() takes.
 * Errors: TW_EBADARG, TW_ENOMEM.
 */
int tw_layout_parse(const char *text, size_t bytes, struct tw_layout **out);
void tw_layout_destroy(struct tw_layout *layout);

/*
 * The payload of a call recorded by a layout: word_count words, one for each register of each value in order; then
 * for each string or memory in order one word, with the number of copied bytes in its low half and enum tw_layout_string in its
 * high half, followed by the bytes, padded with zeros to a word.
 */
enum tw_layout_string {
	TW_LAYOUT_WHOLE = 0,
	TW_LAYOUT_CUT = 1,	  /* the string is longer */
	TW_LAYOUT_UNREADABLE = 2, /* no memory there, or a null pointer */
	TW_LAYOUT_NOTHING = 3	  /* the call has failed, or was given no memory to fill */
};

/* A factor of the length of memory. */
struct tw_layout_factor {
	char kind;	 /* n, a, p, q, r */
	uint32_t number; /* of n; the argument's, from 0 */
};

#define TW_LAYOUT_FACTORS_MAX 2

/* Factor number @at of a value of type 'm' or 'M', from 0.  False: there are no more, or its text is malformed. */
bool tw_layout_factor(const struct tw_layout_value *value, uint32_t at, struct tw_layout_factor *out);

/* The numbers of a value of type 'V': a type of one, and how many.  False: its text is malformed. */
bool tw_layout_numbers(const struct tw_layout_value *value, struct tw_layout_value *element, uint32_t *count);

/* A flag: the bits of @mask have this value.  False: its text is malformed. */
bool tw_layout_flag(const struct tw_layout_enumerator *entry, size_t *name_bytes, uint64_t *mask);

/*
 * A result is one word for each register of the result, or two for st(0).  Captures of earlier programs have the
 * first word only.
 */

/* One value of such a payload. */
struct tw_layout_item {
	const struct tw_layout_value *value;
	unsigned word_count; /* 0: not recorded */
	uint64_t words[2];
	const char *text; /* a readable string or memory; lends from the payload; NULL otherwise */
	size_t text_bytes;
	bool is_cut;
	bool is_nothing; /* TW_LAYOUT_NOTHING */
};

/* Zero all but the first three at first. */
struct tw_layout_reader {
	const struct tw_layout *layout;
	const uint64_t *words;
	uint32_t word_count;
	uint32_t at, word_at, string_at;
};

/*
 * A description, behind the result in the payload of a return: one word with the descriptor (bits 0 to 31), its S_IFMT
 * (from bit 32) and its socket type (from bit 48); its inode; one word with the lengths in bytes of the local address (from
 * bit 0), of the peer's (from bit 16) and of the path (from bit 32); then these three, each padded with zeros to a word.
 */
struct tw_layout_description {
	int32_t fd;
	uint32_t mode;	      /* S_IFSOCK, S_IFIFO, S_IFREG, ...; 0: the descriptor has none (eventfd, epoll) */
	uint32_t socket_type; /* SOCK_STREAM, ...; 0: none */
	uint64_t inode;
	const void *local, *peer;	  /* struct sockaddr, perhaps cut; lend from the payload, aligned to a word */
	uint32_t local_bytes, peer_bytes; /* 0: none */
	const char *path;		  /* as in /proc/PID/fd; lends, not terminated */
	uint32_t path_bytes;		  /* 0: none */
};

/* The next description of a return's payload; *at is 1 at first.  False: no more, or the payload is damaged. */
bool tw_layout_next_description(const uint64_t *words, uint32_t word_count, uint32_t *at,
				struct tw_layout_description *out);

/* A field of a struct: bits of its words. */
struct tw_layout_field {
	const char *name;  /* borrowed by the layout; not terminated */
	size_t name_bytes; /* 0: the field is the whole value */
	char type;	   /* i, u, b, p, f */
	uint32_t first_bit, bits;
};

/* Field number @at of a value of type 'S', from 0.  False: no such field, or its text is malformed. */
bool tw_layout_field(const struct tw_layout_value *value, uint32_t at, struct tw_layout_field *out);

/* The result in the payload of a return recorded by this layout, as tw_layout_next().  False: not known. */
bool tw_layout_result(const struct tw_layout *layout, const uint64_t *words, uint32_t word_count,
		      struct tw_layout_item *out);

/* The next value.  False past the last, and where the payload contradicts the layout. */
bool tw_layout_next(struct tw_layout_reader *reader, struct tw_layout_item *out);

/*
 * Memory that a call has filled, behind its result in the payload of the return: one word with errno if the result has it (0: the call
 * has not failed), and what the result of type 'Z' and each value of type 'M', 'V' or 'Z' point to, in order, as strings of calls.
 */

/* errno of a call that failed; 0: it did not fail, or nothing is known. */
int tw_layout_error(const struct tw_layout *layout, const uint64_t *words, uint32_t word_count);

/* The next of these; a reader of its own.  Items without text were not readable, or not filled: is_nothing. */
bool tw_layout_next_filled(struct tw_layout_reader *reader, struct tw_layout_item *out);

/* Does the argument count, by the bits of another one (o)?  @words: those of the call. */
bool tw_layout_is_given(const struct tw_layout *layout, const struct tw_layout_value *value, const uint64_t *words);

#ifdef __cplusplus
}
#endif

#endif
