/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - the open frames of traced calls, and how they end: return_from, exception_from, return_to.
 *
 *	tw_hit_native(), tw_enterN()  --> struct tw_frame_wants, kept by whoever watches the call
 *	the call returns	      --> tw_frame_return(),    innermost first where several end at once (tail calls)
 *	an exception passes it	      --> tw_frame_exception(), innermost first
 *	then, once		      --> tw_frame_return_to(), with what the ends before have gathered
 *
 * A frame is plain data: it may be copied and moved, and forgotten where nobody sees the call end.  What it
 * wants was decided at the call; what is still wanted is looked up at the end:
 *
 *	the function is no longer traced		return_from comes all the same
 *	the process became silent			all comes: the call was heard
 *	the process lost its flag `call`		return_to comes, if that flag is still there
 *	the session was destroyed			nothing comes, also when another has its bit by now (epoch)
 *
 * Threads  The end is told on the thread that runs the traced process then; any state of it is allowed, as for a
 *	    hit: nested in another hit the events are counted as lost.
 * Keeps errno and, with what it calls, vector registers.
 * Source   OTP: return_trace, exception_trace, return_to in trace:function/4 and trace:process/4.
 */
#ifndef TW_PIPELINE_FRAME_H
#define TW_PIPELINE_FRAME_H

#include "breakpoints/breakpoints.h"
#include "tracewheel/term.h"

/* Accounts of call_time and call_memory that a process, and a frame, have in place. */
#define TW_ACCOUNTS 4

/* Sessions are bits.  A frame that wants nothing at all is not opened. */
struct tw_frame_wants {
	struct tw_place *place;
	uint64_t returns;    /* return_from */
	uint64_t exceptions; /* exception_from; of these returns has each */
	uint64_t return_tos; /* return_to */
	uint64_t epoch;	     /* tw_hit_epoch at the call: a session that was made later wants nothing */
	/* 0: what follows is neither valid nor needs to be kept.  The upper half: see TW_COUNTS_BLOCK(). */
	uint64_t more;
	uint64_t meta_returns;
	uint64_t meta_exceptions;
	uint32_t resume[TW_ACCOUNTS]; /* accounts of call_time and call_memory to go on with, see count.h */
};
/* How much of it must be kept where `more` is 0. */
#define TW_FRAME_WANTS_BYTES offsetof(struct tw_frame_wants, meta_returns)

/* Who still wants a return_to, gathered over the frames that end together.  Begin with zeros. */
struct tw_frame_back {
	uint64_t sessions;
	uint64_t epoch;
	const void *frame; /* of the call that ends, as its hit had it; NULL: that of the function which is told */
};

enum tw_frame_value_kind { TW_FRAME_NO_VALUE = 0, TW_FRAME_WORD, TW_FRAME_TERM, TW_FRAME_WORDS };

/* What a call returned, as it is recorded. */
struct tw_frame_value {
	enum tw_frame_value_kind kind;
	union {
		uint64_t word;
		uint64_t words[2]; /* TW_FRAME_WORDS */
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

/* The frame ended unseen: only call_time and call_memory learn of it. */
void tw_frame_forget(const struct tw_frame_wants *wants);

/*
 * The end of a native call will not be seen, for want of room: counts the return_from of each session as lost (full).  Not
 * for that of a preloaded library, which tells of such calls by itself.
 */
void tw_frame_lose(const struct tw_frame_wants *wants, const void *frame);
/* In a hit, in a read section: each of these sessions loses so many events for want of room. */
void tw_frame_count_lost(uint64_t sessions, uint64_t count);

/*
 * tw_frame_begin - what is done with frames between calls and their ends: a hit by itself, in a read section.
 *
 * @frame	of the function that asks.
 * @sessions	count an event as lost where there can be no hit.
 *
 * False: there can be none, or nobody traces this process image.
 */
bool tw_frame_begin(const void *frame, uint64_t sessions);
void tw_frame_end(void);

/* Where control went back to. */
struct tw_frame_where {
	const char *module, *function; /* borrow; NULL: see address */
	uint32_t arity;
	uint64_t address; /* of code, resolved by readers; 0 without names: undefined */
};

/* One return_to for each session that was gathered.  Empties @back. */
void tw_frame_return_to(struct tw_frame_back *back, const struct tw_frame_where *where);

#endif
