/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term.h - Erlang terms as C values.
 *
 * A term is one word, passed by value.  Small integers, atoms and the empty list are the word
 * itself; everything else points into the arena that it was built in, never changes, and lives until
 * that arena is reset or ended.  Atoms are names in one table of the process and live as long as it.
 *
 * The word 0 is *none*: no term.  Builders return none when the arena is full, when an argument is none, or when the
 * value does not exist (a float that is not finite, an atom of 300 characters); so calls nest, and one check of the
 * outermost result is enough:
 *
 *	t = tw_term_tuple(&arena, (struct tw_term[]){tw_term_integer(&arena, 1), ok}, 2);
 *	if (tw_term_is_none(t))
 *		return TW_ENOMEM;
 *
 * Threads  An arena belongs to one thread at a time.  Any thread may read terms that were passed to it with
 *	    release and acquire order.  Atoms: any thread, in whichever way it got them; see tw_term_atom().
 * Units    *_bytes are bytes, *_bits are bits, *_count are elements; indices start at 0.
 * Limits   255 characters an atom; 65,536 bits an integer; TW_TERM_DEPTH_MAX levels of nesting in parsed or decoded
 *	    terms; builders may nest deeper.
 * Source   Erlang Reference Manual, "Data Types" and "Term Comparisons"; ERTS User's Guide,
 *	    "External Term Format"; io_lib(3).
 */
#ifndef TRACEWHEEL_TERM_H
#define TRACEWHEEL_TERM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_term {
	uint64_t word;
};

/* Levels of nesting that tw_term_parse() and tw_etf_decode() accept; [[a]] has two. */
#define TW_TERM_DEPTH_MAX 1000

/* In Erlang's term order; integers and floats are ordered together, by value. */
enum tw_term_type {
	TW_TYPE_NONE = 0,
	TW_TYPE_INTEGER,
	TW_TYPE_FLOAT,
	TW_TYPE_ATOM,
	TW_TYPE_REFERENCE,
	TW_TYPE_FUN,
	TW_TYPE_PORT,
	TW_TYPE_PID,
	TW_TYPE_TUPLE,
	TW_TYPE_MAP,
	TW_TYPE_NIL,	   /* the empty list */
	TW_TYPE_CONS,	   /* a list of one element or more, proper or not */
	TW_TYPE_BITSTRING, /* binaries too */
};

/* ---- arenas ---- */

struct tw_arena_chunk;

/*
 * Memory for terms: allocated piece by piece, freed all at once.  The fields are the library's; the struct is open so
 * that it can be on a stack.
 */
struct tw_arena {
	char *at;		       /* the next free byte, aligned to 16 */
	char *end;		       /* end of the present chunk */
	char *fixed;		       /* the caller's buffer, or NULL */
	struct tw_arena_chunk *chunks; /* allocated chunks, newest first */
	size_t held_bytes;	       /* total size of the chunks and the caller's buffer */
	size_t cap_bytes;	       /* limit for held_bytes */
};

/*
 * tw_arena_init_fixed - an arena in a buffer of the caller, which never allocates.
 *
 * @buffer	borrows until tw_arena_fini(); any alignment, bytes before the first 16-byte boundary are not used.
 * @bytes	size of the buffer; 0 is allowed, and then only immediate terms can be built.
 *
 * Threads: the arena's.  Signal handlers: yes, like all building in such an arena.
 */
void tw_arena_init_fixed(struct tw_arena *arena, void *buffer, size_t bytes);

/*
 * tw_arena_init_buffer - an arena that begins in a buffer of the caller, and grows by malloc when that is full.
 *
 * @buffer	as for tw_arena_init_fixed(): with a buffer on the stack, most terms need no allocation.
 * @cap_bytes	maximum size, buffer included; SIZE_MAX for no cap.
 *
 * Threads: the arena's.  Signal handlers: no.
 */
void tw_arena_init_buffer(struct tw_arena *arena, void *buffer, size_t bytes, size_t cap_bytes);

/*
 * tw_arena_init - an arena that grows by malloc in chunks, up to a cap.
 *
 * @cap_bytes	maximum size, overhead included; SIZE_MAX for no cap.
 *
 * Allocates nothing yet.  End it with tw_arena_fini().
 */
void tw_arena_init(struct tw_arena *arena, size_t cap_bytes);

/* Frees all terms in it and keeps some memory for later ones.  Every term built in it becomes invalid. */
void tw_arena_reset(struct tw_arena *arena);

/* Frees all terms and the memory; the arena may be initialised again. */
void tw_arena_fini(struct tw_arena *arena);

/*
 * tw_arena_alloc - plain memory that lives as long as the arena's terms.
 *
 * Returns a borrowed block aligned to 16 bytes, not cleared; NULL when the arena is full.  Cost: O(1).
 */
void *tw_arena_alloc(struct tw_arena *arena, size_t bytes);

/* ---- what a term is ---- */

enum tw_term_type tw_term_type(struct tw_term term);

static inline int tw_term_is_none(struct tw_term term)
{
	return term.word == 0;
}

/*
 * Is it the same word? For atoms, small integers and [] this is =:=; for others it is true only for the very same
 * block, see tw_term_is_equal().
 */
static inline int tw_term_is_same(struct tw_term a, struct tw_term b)
{
	return a.word == b.word;
}

/* ---- building: each returns none as described at the top of this file ---- */

/* Any 64-bit value; allocates only beyond 60 bits (-2^59 .. 2^59 - 1 are immediate, as in OTP). */
struct tw_term tw_term_integer(struct tw_arena *arena, int64_t value);
struct tw_term tw_term_unsigned(struct tw_arena *arena, uint64_t value);

/* A finite double; infinities and NaN are not Erlang terms and give none. */
struct tw_term tw_term_float(struct tw_arena *arena, double value);

/*
 * tw_term_atom - the atom of a name.
 *
 * @name	borrows; UTF-8, at most 255 characters, need not end in NUL.
 *
 * Returns none if the name is not UTF-8 or too long, or if the table is full (1,048,576 atoms
 * or 64 MiB of names).  The table is the process's; an atom is never removed.
 *
 * Threads: any.  Progress: wait-free for an existing name; otherwise it locks and may allocate, so not in a hit and
 * not in a signal handler.
 */
struct tw_term tw_term_atom(const char *name, size_t bytes);

/* The same for a name that ends in NUL. */
struct tw_term tw_term_atom_z(const char *name);

/* As tw_term_atom() if the name is in the table already; otherwise none.  Signal handlers: yes. */
struct tw_term tw_term_atom_existing(const char *name, size_t bytes);

struct tw_term tw_term_nil(void);
struct tw_term tw_term_bool(int value);

/* A tuple of the elements, which are borrowed; 0 elements give {}. */
struct tw_term tw_term_tuple(struct tw_arena *arena, const struct tw_term *elements, size_t count);

struct tw_term tw_term_cons(struct tw_arena *arena, struct tw_term head, struct tw_term tail);

/* A list of the elements that ends in @tail: tw_term_nil() for a proper one.  0 elements: the tail. */
struct tw_term tw_term_list(struct tw_arena *arena, const struct tw_term *elements, size_t count, struct tw_term tail);

/* The list of the code points of a UTF-8 text: an Erlang string.  None if it is not UTF-8. */
struct tw_term tw_term_string(struct tw_arena *arena, const char *text, size_t bytes);

struct tw_term tw_term_binary(struct tw_arena *arena, const void *data, size_t bytes);

/* The first @bits bits of data, from the high bit of the first byte on. */
struct tw_term tw_term_bitstring(struct tw_arena *arena, const void *data, size_t bits);

/* One association of a map. */
struct tw_term_pair {
	struct tw_term key;
	struct tw_term value;
};

/*
 * tw_term_map - a map of the pairs.
 *
 * @pairs	borrows, in any order.  Among equal keys (=:=) the last one is kept.
 *
 * Cost: O(n log n), O(n) when the keys are in order already.
 */
struct tw_term tw_term_map(struct tw_arena *arena, const struct tw_term_pair *pairs, size_t count);

/*
 * The parts of a pid, port or reference.
 *
 * @node	the atom of its node, or none for this node.
 * @channel	the first number as printed, <N.I.S>: 0 for this node.  Compared only if there is no @node.
 * @words	pid: number, serial.  Port: the low and the high half of its number.  Reference: 1 to 5
 *		words, the last one printed first, as in OTP.
 */
struct tw_identifier {
	struct tw_term node;
	uint32_t creation;
	uint32_t channel;
	uint32_t word_count;
	uint32_t words[5];
};

/* A pid, port or reference (@type) of those parts; none when the number of words does not fit. */
struct tw_term tw_term_identifier(struct tw_arena *arena, enum tw_term_type type, const struct tw_identifier *parts);

/* The same of this node: <0.number.serial>, #Port<0.number>, #Ref<0.words[2].words[1].words[0]>. */
struct tw_term tw_term_pid(struct tw_arena *arena, uint32_t number, uint32_t serial);
struct tw_term tw_term_port(struct tw_arena *arena, uint64_t number);
struct tw_term tw_term_reference(struct tw_arena *arena, const uint32_t words[3]);

/* fun Module:Function/Arity; module and function are atoms. */
struct tw_term tw_term_export(struct tw_arena *arena, struct tw_term module, struct tw_term function, uint32_t arity);

/* ---- reading: TW_EBADARG if the term is of another type ---- */

/* TW_ELIMIT where the integer does not fit. */
int tw_term_get_int64(struct tw_term term, int64_t *out);
int tw_term_get_uint64(struct tw_term term, uint64_t *out);

/* Floats as they are, integers as float/1 converts them; TW_ELIMIT beyond the largest double. */
int tw_term_get_double(struct tw_term term, double *out);

/* The atom's name in UTF-8: lends a NUL-terminated string for the life of the process; NULL if not an atom. */
const char *tw_term_atom_name(struct tw_term atom, size_t *bytes);

/* 0 if not a tuple. */
size_t tw_term_tuple_count(struct tw_term tuple);
/* Element index, from 0; none beyond the end or if not a tuple. */
struct tw_term tw_term_element(struct tw_term tuple, size_t index);

/* None if not a cons cell. */
struct tw_term tw_term_head(struct tw_term list);
struct tw_term tw_term_tail(struct tw_term list);
/* The length of a proper list; TW_EBADARG for any other term. */
int tw_term_list_count(struct tw_term list, size_t *count);

/* Lends the bytes of a binary or bit string; the last byte holds its bits on the high side, the rest 0. */
int tw_term_get_bits(struct tw_term term, const unsigned char **data, size_t *bits);

/* 0 if not a map. */
size_t tw_term_map_count(struct tw_term map);
/* Association index in the order of keys; both none beyond the end. */
struct tw_term_pair tw_term_map_at(struct tw_term map, size_t index);
/* The value of a key (=:=); none if there is no such key.  Cost: O(log n) comparisons. */
struct tw_term tw_term_map_get(struct tw_term map, struct tw_term key);

/* The parts of a pid, port or reference. */
int tw_term_get_identifier(struct tw_term term, struct tw_identifier *out);

/* ---- comparing ---- */

/*
 * tw_term_compare - Erlang's term order: below 0, 0 or above 0.
 *
 * 0 is ==, so 1 and 1.0 compare as 0, and 0.0 and -0.0; integers and floats are compared exactly at any size.
 * Deep terms use an explicit stack: beyond 64 levels it is allocated (and freed on return); if there is no memory for
 * it, the two sub-terms at that depth are ordered by address.
 *
 * Threads: any.  Cost: O(size of the smaller term).
 */
int tw_term_compare(struct tw_term a, struct tw_term b);

/*
 * tw_term_compare_exact - as above, but 0 is =:=, and every integer comes before every float.
 *
 * This is the order of keys in a map.  -0.0 comes before 0.0, which are different since OTP 27.
 */
int tw_term_compare_exact(struct tw_term a, struct tw_term b);

/* =:= */
int tw_term_is_equal(struct tw_term a, struct tw_term b);

/*
 * tw_term_try_compare - the comparisons above without allocation, for hits.
 *
 * @is_exact	0: as tw_term_compare(); 1: as tw_term_compare_exact().
 *
 * Returns 0, or TW_ELIMIT if the terms agree down to 64 levels and are deeper.  Signal handlers: yes.
 */
int tw_term_try_compare(struct tw_term a, struct tw_term b, int is_exact, int *order);

/*
 * tw_term_hash - a hash, the same for equal terms (=:=) in every process and version of one format.
 *
 * Uses at most 64 levels of nesting.  Threads: any.  Cost: O(size).  Signal handlers: yes.
 */
uint64_t tw_term_hash(struct tw_term term);

/* ---- copying ---- */

/*
 * tw_term_copy - copies a term into another arena.
 *
 * @max_bytes	maximum size of the copy; SIZE_MAX for no limit.
 * @out		set when the result is 0 or more.
 *
 * Returns 0 for a whole copy; 1 for one that was cut to fit @max_bytes or the space in a fixed arena; TW_ENOMEM if a
 * growing arena could not grow.  The atom '...' marks each cut: it replaces each missing element of a tuple, a list
 * ends in it, [1,2|'...'], a binary becomes the tuple {'...', FirstBytes, Size}, and a term that does not fit at all
 * becomes '...'.  A map whose keys do not all fit becomes '...' too.  With a fixed arena nothing is allocated, and
 * terms more than 64 levels deep are cut.
 *
 * Threads: the arena's.  Signal handlers: yes, into a fixed arena.  Cost: O(size copied).
 */
int tw_term_copy(struct tw_arena *arena, struct tw_term term, size_t max_bytes, struct tw_term *out);

/* ---- printing and encoding ---- */

/*
 * Destination of printed text and encoded bytes: a buffer, and a function called when it is full.
 *
 * @drain	makes space for at least one byte by setting at back, and returns 0; or returns a negative error,
 *		which ends the printing and is its result.  NULL: full means TW_ENOSPC.
 *
 * No NUL is written.  After a call, at points past the last byte.
 */
struct tw_sink {
	char *start;
	char *at;
	char *end;
	int (*drain)(struct tw_sink *sink);
	void *context;
};

/*
 * TW_PRINT_WRITE	as io_lib ~tw: strings are lists of integers.
 * TW_PRINT_PRETTY	as io_lib ~0tp: printable lists are "...", printable binaries <<"...">>.
 * TW_PRINT_CONSULT	as TW_PRINT_WRITE, but terms that file:consult/1 cannot read are atoms of the same text: '<0.5.0>',
 *			'#Port<0.7>', '#Ref<0.1.2.3>', '#Fun<m.1.2>'.
 * TW_PRINT_NODES	with one of these: pids, ports and references of other nodes name their node, <0.5.0>@shop@host, in place
 *			of a channel that differs from process to process.  tw_term_parse() does not read that.
 */
enum tw_print_form {
	TW_PRINT_WRITE,
	TW_PRINT_PRETTY,
	TW_PRINT_CONSULT,
	TW_PRINT_NODES = 8,
};

/*
 * tw_term_print - a term as Erlang text in UTF-8 on one line; control characters are escaped.
 *
 * Returns 0; TW_ENOSPC or the drain's error, after the part that fits has been written; TW_ENOMEM.  tw_term_parse()
 * can read the text back, except opaque funs.  Threads: any.
 */
int tw_term_print(struct tw_term term, enum tw_print_form form, struct tw_sink *sink);

/*
 * tw_term_format - the same into a buffer that ends in NUL.
 *
 * @bytes	size of the buffer, at least 4.  A text that does not fit ends in "...".
 *
 * Returns the bytes of the text, without the NUL.
 */
size_t tw_term_format(struct tw_term term, enum tw_print_form form, char *buffer, size_t bytes);

/* ---- parsing ---- */

/* The position at which a text is not a term, and the reason. */
struct tw_parse_error {
	uint32_t line;	     /* from 1 */
	uint32_t column;     /* from 1, in characters */
	size_t offset;	     /* from 0, in bytes */
	const char *message; /* a constant: what was found or expected there */
};

/*
 * A text of several terms, each ended by a full stop.  Set text and bytes, and the rest to 0.  The
 * text is borrowed.
 */
struct tw_parser {
	const char *text;
	size_t bytes;
	size_t offset;		     /* the next byte to read */
	struct tw_parse_error error; /* after TW_EBADARG */
};

/*
 * tw_parse_next - the next term of a text.
 *
 * Reads all terms that io:read/1 reads: integers of any base, characters, floats, atoms, strings, binaries with sizes
 * and types, tuples, lists, maps, fun M:F/A, comments; and what only tw_term_print() writes: pids, ports, references.
 * Text is UTF-8.  The last full stop may be missing.
 *
 * Returns 0; TW_ENOENT at the end of the text; TW_EBADARG, or TW_ELIMIT above TW_TERM_DEPTH_MAX levels, with
 * parser->error set; TW_ENOMEM where the arena is full.  After an error the parser stays where it was.
 *
 * Threads: the parser's.  Cost: O(bytes), except O(digits^2) for an integer, of at most 20,000 digits.
 */
int tw_parse_next(struct tw_parser *parser, struct tw_arena *arena, struct tw_term *out);

/*
 * tw_term_parse - read a text of exactly one term; the full stop may be missing.
 *
 * @error	set on TW_EBADARG and TW_ELIMIT; may be NULL.
 */
int tw_term_parse(struct tw_arena *arena, const char *text, size_t bytes, struct tw_term *out,
		  struct tw_parse_error *error);

/* ---- external term format ---- */

/*
 * tw_etf_encode - write a term as erlang:binary_to_term/1 reads it, with the version byte 131.
 *
 * @node	the atom of this node in pids, ports and references; none for
 *		'nonode@nohost', which a node without a name takes as its own.
 *
 * Result as for tw_term_print().
 */
int tw_etf_encode(struct tw_term term, struct tw_term node, struct tw_sink *sink);

/* How tw_etf_decode() reads; all 0 is a good default. */
struct tw_etf_options {
	/*
	 * The atom of the node whose pids, ports and references are this node's: they get no node and
	 * creation 0.  None: 'nonode@nohost'.  Those of other nodes print with their node's atom index as channel, or
	 * with their node (TW_PRINT_NODES).
	 */
	struct tw_term node;
	/* Refuse atoms that do not exist yet, as binary_to_term/2 with safe does. */
	int is_safe;
};

/*
 * tw_etf_decode - read the output of erlang:term_to_binary/1,2 of OTP 25 to 29; no byte is trusted.
 *
 * @options	borrows; NULL for the default.
 * @used_bytes	set to the size of the term; NULL: bytes after the term are an error.
 *
 * Returns 0; TW_EFORMAT for an invalid encoding; TW_ENOTSUP for compressed terms and those of
 * term_to_binary's option local; TW_ELIMIT beyond TW_TERM_DEPTH_MAX, the largest integer or the atom
 * table; TW_ENOENT for a new atom with is_safe; TW_ENOMEM where the arena is full.
 *
 * Funs are kept as opaque bytes and encoded again unchanged.
 * Threads: the arena's.  Cost: O(bytes), and memory below 40 times the bytes.
 */
int tw_etf_decode(struct tw_arena *arena, const void *data, size_t bytes, const struct tw_etf_options *options,
		  size_t *used_bytes, struct tw_term *out);

#ifdef __cplusplus
}
#endif

#endif
