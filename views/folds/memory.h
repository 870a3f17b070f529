/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - blocks of memory by the callers that allocated them: from calls of malloc, free and their kin with arguments,
 * returns and callers (`record --memory`).
 *
 *	malloc()  return = block         free(block)
 *	|---------|---------- live ------|
 *
 * A block lives from the return of the call that made it until the call that frees it; realloc() frees one block and makes
 * another when it returns. Blocks that a process has from the one that forked it are live in that one alone, and the child may free its copy
 * (memory_inherited.h). A call inside such a call (realloc() that calls malloc()) makes nothing of its own. mmap() makes a
 * block where it maps no file and no stack; munmap() of a part of it leaves the rest.
 *
 * Blocks of which something cannot be known are counted: blocks that are freed and were never seen to be made, blocks that were made where a live one lay
 * (it was freed unseen), calls without a return, and addresses that the arguments do not hold (posix_memalign()). Losses may hold calls
 * of both kinds: with them live figures are neither upper nor lower bounds. Blocks of a process that has ended, or was replaced by exec, stay
 * live: they are what it did not free.
 *
 * Memory  48 bytes an address that ever held a block, some 100 for each stack of callers (TW_MEMORY_ROWS_MAX of them).
 */
#ifndef TW_VIEWS_MEMORY_H
#define TW_VIEWS_MEMORY_H

#include "base/map.h"
#include "views/folds/marks.h"
#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions that are followed, in any object. */
#define TW_MEMORY_PATTERN \
	"_:{malloc,calloc,realloc,reallocarray,free,cfree,aligned_alloc,memalign,posix_memalign,valloc,pvalloc,mmap,mmap64,munmap}"
/* Those of them of which neither callers nor results matter. */
#define TW_MEMORY_BARE "_:{free,cfree,munmap}"
/* How many of their arguments matter. */
#define TW_MEMORY_WORDS_1  "_:{malloc,free,cfree,valloc,pvalloc}"
#define TW_MEMORY_WORDS_2  "_:{calloc,realloc,aligned_alloc,memalign,munmap}"
#define TW_MEMORY_WORDS_3  "_:{reallocarray,posix_memalign}"
#define TW_MEMORY_ROWS_MAX (UINT32_C(1) << 18)
/* How much was live over time: the most in each of so many equal parts. */
#define TW_MEMORY_PARTS 64

/* Blocks of one stack of callers. */
struct tw_memory_row {
	const uint64_t *words; /* return addresses, the innermost first; of the fold */
	uint32_t word_count;   /* 0: calls without callers */
	uint32_t image;
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes; /* live when all together were most */
	/* Of the selection. */
	uint64_t bytes, calls;
	uint64_t largest;
	uint64_t temporary; /* freed before its thread allocated anything else */
	uint64_t epoch;	    /* peaks of the whole when it last changed */
};

enum tw_memory_does {
	TW_MEMORY_NOTHING,
	TW_MEMORY_ALLOCATES,
	TW_MEMORY_REALLOCATES,
	TW_MEMORY_ALLOCATES_ELSEWHERE,
	TW_MEMORY_MAPS,
	TW_MEMORY_FREES,
	TW_MEMORY_UNMAPS
};

/* The effect of a function's calls. Arguments are counted from 1; 0: none. */
struct tw_memory_function {
	const char *name; /* as it was asked for */
	enum tw_memory_does does;
	uint8_t size, times; /* the bytes are their product; no size: 1, so that bytes are numbers of blocks */
	uint8_t block;	     /* that is freed; 0: the first */
};

/* Functions other than malloc and its kin: any that return an address, and take it back. A result of 0 or -1 is none. */
struct tw_memory_functions {
	tw_mark_fn *mark; /* 1 + the number in the list, of a place */
	const void *context;
	const struct tw_memory_function *list;
	unsigned count; /* TW_MEMORY_FUNCTIONS_MAX at most */
};
#define TW_MEMORY_FUNCTIONS_MAX 128

struct tw_memory_block;
struct tw_memory_thread;
struct tw_memory_image;

struct tw_memory {
	struct tw_capture *capture;
	const struct tw_memory_functions *functions;
	struct tw_memory_row *rows;
	uint32_t row_count, row_capacity;
	struct tw_map by_stack;
	struct tw_memory_block *blocks;
	uint32_t block_count, block_capacity;
	struct tw_map by_address;
	uint32_t *maps; /* blocks that are mappings, or were */
	uint32_t map_count, map_capacity;
	struct tw_memory_thread *threads; /* by number of the capture's threads */
	uint32_t thread_count;
	struct tw_memory_image *images; /* by number */
	uint32_t image_count;
	struct tw_marks places; /* the effect of a call */
	bool is_called[TW_MEMORY_FUNCTIONS_MAX];
	/* The whole. */
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes, peak_ns, peaks;
	uint64_t bytes, calls, frees; /* of the selection */
	uint64_t from_ns, to_ns;
	uint64_t parts[TW_MEMORY_PARTS];
	uint32_t part; /* the one that it is in */
	/* Shown by every view. */
	uint64_t
		inherited_frees; /* by children, of blocks that they had from the process that forked them: these are live in that one */
	uint64_t unknown_frees; /* of blocks that were not seen to be made */
	uint64_t unseen_frees;	/* blocks whose address was allocated again */
	uint64_t unreturned;	/* calls whose return is not in the capture */
	uint64_t nowhere;	/* blocks whose address is not known */
	uint64_t wordless;	/* calls without arguments, or returns without a value */
	uint64_t failed;	/* calls that made nothing */
	uint64_t lost, overwritten;
	bool is_full;
	bool has_no_memory;
	/* Called when the live memory has changed; NULL: nobody asks. Set it after tw_memory_begin(). */
	void (*on_live)(void *context, uint64_t now_ns);
	void *context;
};

struct tw_fold;

/*
 * tw_memory_begin - the fold that follows the blocks of a selection; tw_memory_end() after its pass.
 *
 * @filter	selects times; what lies before its beginning is read too, so that blocks are known.
 * @functions	borrows until tw_memory_free(); NULL: malloc and its kin.
 * @fold	is written; it refers to the memory.
 *
 * Returns 0 or an error; tw_memory_free() in both cases.
 */
int tw_memory_begin(struct tw_memory *memory, struct tw_capture *capture, const struct tw_capture_filter *filter,
		    const struct tw_memory_functions *functions, struct tw_fold *fold);
void tw_memory_end(struct tw_memory *memory);
/* The two around a pass of their own. Returns 0 or an error; tw_memory_free() in both cases. */
int tw_memory_make(struct tw_memory *memory, struct tw_capture *capture, const struct tw_capture_filter *filter,
		   const struct tw_memory_functions *functions);
void tw_memory_free(struct tw_memory *memory);
/*
 * Should there be calls of this function of the list, and are there none? Of each that was asked for; of malloc and its kin free() alone, if
 * anything was allocated: then it was not recorded, or the program frees nothing.
 */
bool tw_memory_lacks(const struct tw_memory *memory, unsigned function);
/* Does it follow other functions than malloc and its kin? */
bool tw_memory_is_of_pairs(const struct tw_memory *memory);

#endif
