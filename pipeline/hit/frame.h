/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - the open frames of traced calls, and how they end: return_from, exception_from, return_to.
 *
 *	hits, tw_enterN()  --> struct tw_frame_wants, kept by the code that watches the call
 *	the call returns	      --> tw_frame_return(),    innermost first where several end at once (tail calls)
 *	an exception passes it	      --> tw_frame_exception(), innermost first
 *	then, once		      --> tw_frame_return_to(), with what the ends before have gathered
 *
 * A frame is plain data: it may be copied, moved, and dropped if the call's end cannot be observed. The call decides
 * what the frame wants; its end checks what is still wanted:
 *
 *	the function is no longer traced		return_from is recorded all the same
 *	the process became silent			everything is recorded: the call was
 *	the process lost its flag `call`		return_to is recorded, if that flag is still set
 *	the session was destroyed			nothing is recorded, even if its bit has a new owner (epoch)
 *
 * Threads  The end is reported on the thread that then runs the traced process, in any state, as for a hit: events
 *	    nested in another hit are counted as lost.
 * Keeps errno and, with all it calls, vector registers.
 * Source   OTP: return_trace, exception_trace, return_to in trace:function/4 and trace:process/4.
 */
#ifndef TW_PIPELINE_FRAME_H
#define TW_PIPELINE_FRAME_H

#include "breakpoints/breakpoints.h"
#include "tracewheel/term.h"

/* Accounts of call_time and call_memory that processes and frames hold without a block. */
#define TW_ACCOUNTS 4

/* Fields of sessions are bit masks. A frame that wants nothing at all is not opened. */
struct tw_frame_wants {
	struct tw_place *place;
	uint64_t returns;    /* return_from */
	uint64_t exceptions; /* exception_from; a subset of returns */
	uint64_t return_tos; /* return_to */
	uint64_t epoch;	     /* tw_hit_epoch at the call: sessions made later want nothing */
	/* 0: the fields that follow are not valid and need not be kept. The upper half: see TW_COUNTS_BLOCK_SHIFT. */
	uint64_t more;
	uint64_t meta_returns;
	uint64_t meta_exceptions;
	uint32_t resume[TW_ACCOUNTS]; /* accounts of call_time and call_memory that the end resumes, see
				       * count.h */
};
/* The bytes to keep if `more` is 0. */
#define TW_FRAME_WANTS_BYTES offsetof(struct tw_frame_wants, meta_returns)

/* Sessions that still want a return_to, gathered over the frames that end together. Initialised with zeros. */
struct tw_frame_back {
	uint64_t sessions;
	uint64_t epoch;
	const void *frame; /* of the call that ends, as its hit had it; NULL: that of the called function */
};

enum tw_frame_value_kind { TW_FRAME_NO_VALUE = 0, TW_FRAME_WORD, TW_FRAME_TERM, TW_FRAME_WORDS, TW_FRAME_MANY };

/* The value that a call returned, as it is recorded. */
struct tw_frame_value {
	enum tw_frame_value_kind kind;
	union {
		uint64_t word;
		uint64_t words[2]; /* TW_FRAME_WORDS */
		struct {
			const uint64_t *words; /* borrowed */
			uint64_t count;
		} many; /* TW_FRAME_MANY */
	};
	struct tw_term term;
};

enum tw_frame_class { TW_FRAME_ERROR = 0, TW_FRAME_EXIT, TW_FRAME_THROW };

/*
 * tw_frame_return - the call returned: return_from for each session that still wants it.
 *
 * @wants	borrows.
 * @value	borrows.
 * @back	gathers; NULL: no return_to follows.
 */
void tw_frame_return(const struct tw_frame_wants *wants, const struct tw_frame_value *value,
		     struct tw_frame_back *back);

/*
 * tw_frame_exception - an exception (also longjmp, or the thread's end) left the call: exception_from.
 *
 * @value	a term, or none: then @name is the value, as an atom.
 * @name	borrows: 0 .. 255 bytes of UTF-8, cut there.
 */
void tw_frame_exception(const struct tw_frame_wants *wants, enum tw_frame_class exception_class, struct tw_term value,
			const char *name, struct tw_frame_back *back);

/* "error", "exit", "throw". */
const char *tw_frame_class_name(enum tw_frame_class exception_class);

/* The frame ended unseen: updates call_time and call_memory only. */
void tw_frame_forget(const struct tw_frame_wants *wants);

/*
 * There is no memory to watch the end of a native call: counts the return_from of each session as lost (full). Not
 * for calls of a preloaded library, which counts them itself.
 */
void tw_frame_lose(const struct tw_frame_wants *wants, const void *frame);
/* Counts that many events of each of these sessions as lost for want of memory. In a hit, in a read section. */
void tw_frame_count_lost(uint64_t sessions, uint64_t count);

/*
 * tw_frame_begin - begin work on frames between calls and their ends: a hit of its own, in a read section.
 *
 * @frame	of the calling function.
 * @sessions	count an event as lost if no hit is possible.
 *
 * False: no hit is possible, or this process image is not traced.
 */
bool tw_frame_begin(const void *frame, uint64_t sessions);
void tw_frame_end(void);

/* The function to which control returned. */
struct tw_frame_where {
	const char *module, *function; /* borrow; NULL: see address */
	uint32_t arity;
	uint64_t address; /* of code, resolved by readers; 0 without names: undefined */
};

/* Writes one return_to for each session that was gathered. Empties @back. */
void tw_frame_return_to(struct tw_frame_back *back, const struct tw_frame_where *where);

#endif
