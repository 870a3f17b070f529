/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks.h - the calls that are open in each process, made again from calls and returns.
 *
 *	 call f          f                  frames[0]
 *	 call g          f g                frames[1]
 *	 return_from g   f                  g ends: returned
 *	 return_from f                      f ends: returned
 *
 * A return ends the innermost open call of its function; calls inside that one that are still open are *cut*:
 * how long they took is not known, and their time stays with their caller, but for what returned within them.
 *
 * What was lost may have been the returns of calls that were open, and other calls.  A call that was open before a loss went on
 * behind it where its own return, or that of a call inside it, comes later: the events are read once before, to know that
 * (tw_stacks_foresee()).  A return may also be that of another call of the same function, made in the loss: it proves nothing where,
 * by its share in the calls of the capture, such a call is to be expected among what was lost.  All other calls are *lost*: they
 * end where the loss begins.  A call that is open when its process or the capture ends is *open*: its time runs to the last event
 * of its process.
 *
 * Where only a part is asked for, the events before it are handed in first: calls that are open where it begins
 * (tw_stacks_begin()) are in it from there on, and no event of it is theirs but a return.
 *
 * Time in which a process was scheduled out (out ... in), or that lies in a loss, is counted as inside the
 * call that was innermost, but as nobody's own.  Time that was the tracer's own is in no time of any call that was open meanwhile.
 *
 * Memory  a stack for each process that called anything; 48 bytes an open call, at most TW_STACK_DEPTH_MAX.
 */
#ifndef TW_TOOLS_STACKS_H
#define TW_TOOLS_STACKS_H

#include "tools/common/places.h"

/* Calls beyond are counted and have no time. */
#define TW_STACK_DEPTH_MAX (UINT32_C(1) << 20)

struct tw_frame {
	uint64_t start_ns;
	uint64_t before_ns;	 /* that it was open before the part that is asked for; 0: it began in it */
	uint64_t inner_ns;	 /* of the calls within it that ended */
	uint64_t out_ns;	 /* scheduled out or lost while it was innermost */
	uint64_t own_before_ns;	 /* the tracer's own time on its stack, before it began */
	uint64_t lost_before_ns; /* likewise: time in losses */
	uint64_t serial;	 /* of its call on its stack, from 1 */
	/* How far its stack was when it was known to be open. */
	uint64_t sure_lost;
	uint32_t sure_losses;
	uint32_t losses_before; /* on its stack, when it began */
	uint32_t function;
	uint32_t node; /* for who uses it: the call tree's */
	uint32_t mark; /* the same: print's */
};

struct tw_stack {
	uint32_t image;
	uint32_t session_index;
	uint32_t tracee_id; /* or a stream's number, where no process was known */
	bool has_tracee;
	bool is_bound;	 /* its process is a thread */
	uint32_t number; /* from 0, in the order of appearance */
	uint32_t depth;
	uint32_t room;
	uint32_t too_deep; /* calls that are open beyond the limit */
	uint32_t loss_epoch;
	uint32_t losses;      /* so far */
	uint64_t lost_events; /* in them */
	uint64_t loss_ns;     /* their time */
	uint64_t serials;     /* of calls */
	/* The tracer's own time: all before its last stretch, and that. */
	uint64_t own_before_ns;
	uint64_t own_from_ns;
	uint64_t own_to_ns;
	uint64_t last_ns;
	uint64_t out_since_ns; /* 0: it runs */
	struct tw_frame *frames;
	struct tw_stack *next; /* in its slot */
	void *user;
	char *name; /* made when it is asked for */
};

enum tw_frame_end { TW_FRAME_RETURNED, TW_FRAME_EXCEPTION, TW_FRAME_CUT, TW_FRAME_OPEN, TW_FRAME_LOST };

/* What the time of a frame was when it ended. */
struct tw_frame_time {
	uint64_t total_ns;
	uint64_t self_ns;
	uint64_t gross_ns; /* from its beginning to its end, the tracer's own time with it */
	uint64_t lost_ns;  /* of total: in losses */
	bool is_exact;	   /* returned, no loss lies within, and nothing of it before what is asked for */
	bool is_lossy;	   /* a loss lies within, or it ended in one */
};

struct tw_stacks_calls {
	/* A call begins: stack->frames[stack->depth - 1]. */
	void (*begin)(void *context, struct tw_stack *stack);
	/* The frame stack->frames[stack->depth - 1] ends. */
	void (*end)(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time);
	/* A call of a function whose returns are not recorded. */
	void (*moment)(void *context, struct tw_stack *stack, uint32_t function);
	void *context;
};

/* What an event did. */
enum tw_step_kind {
	TW_STEP_OTHER,	   /* nothing to the stack */
	TW_STEP_CALL,	   /* a frame more */
	TW_STEP_MOMENT,	   /* a call without return */
	TW_STEP_RETURN,	   /* a frame, and what was cut inside it, less */
	TW_STEP_UNMATCHED, /* a return whose call was not seen */
	TW_STEP_LOSS,
	TW_STEP_OWN_TIME
};

struct tw_step {
	enum tw_step_kind kind;
	struct tw_stack *stack; /* NULL: without memory */
	uint32_t function;
	uint32_t depth;	       /* of the frame, from 0; of other events: frames that are open */
	uint32_t cut_count;    /* frames that ended before, without a return */
	bool is_of_parent;     /* of an unmatched return: fork() returns in the child as well, which did not call it */
	struct tw_frame frame; /* of a return */
	struct tw_frame_time time;
};

/* Of one stack: by loss, the serial of the innermost call that went on behind it; 0: none did. */
struct tw_stack_verdicts {
	uint64_t *kept;
	uint32_t count;
};

struct tw_stacks {
	struct tw_capture *capture;
	const struct tw_places *places;
	struct tw_stacks_calls calls;
	struct tw_stack **slots;
	uint32_t mask;
	uint32_t count;
	struct tw_stack **streams; /* the stack that each stream's last event belonged to */
	uint32_t stream_count;
	uint32_t loss_epoch;
	uint64_t epoch_lost;		    /* events, in the last of them */
	uint64_t events;		    /* of the capture, by which shares are counted */
	struct tw_stack_verdicts *verdicts; /* by stack number */
	uint32_t verdict_count;
	bool is_foreseeing;
	/* Told by every view. */
	uint64_t unmatched;
	uint64_t cut;
	uint64_t open;
	bool ends_early; /* frames were ended where the part that is asked for ends, before the capture does */
	uint64_t before; /* calls that were open where the part that is asked for begins */
	uint64_t too_deep;
	uint64_t losses;
	uint64_t lost; /* calls that ended in a loss */
};

/* @places: borrowed until tw_stacks_free().  Answers 0 or TW_ENOMEM. */
int tw_stacks_init(struct tw_stacks *stacks, struct tw_capture *capture, const struct tw_places *places);

/*
 * tw_stacks_foresee - reads the events once, to learn which calls went on behind which loss.
 *
 * @filter	of the events that will be handed in, in the same order.  Reads nothing where it has no losses.
 *
 * Answers 0 or an error.  Without it all calls end in a loss.
 */
int tw_stacks_foresee(struct tw_stacks *stacks, const struct tw_capture_filter *filter);
void tw_stacks_free(struct tw_stacks *stacks);

/* The next event, in the order of the capture.  Answers false without memory. */
bool tw_stacks_event(struct tw_stacks *stacks, const struct tw_capture_event *event, struct tw_step *step);

/*
 * tw_stacks_begin - what is asked for begins here: all events before it have been handed in.
 *
 * @from_ns	not before any of them.
 *
 * The frames that are open begin anew at from_ns, and have their time before it in before_ns.
 */
void tw_stacks_begin(struct tw_stacks *stacks, uint64_t from_ns);

/* Ends the frames that are open at the end: of the capture, or of a selection, before to_ns (0: none). */
void tw_stacks_finish(struct tw_stacks *stacks, uint64_t to_ns);

/* The tracer's own time on this stack, up to a moment that is not before its last stretch. */
static inline uint64_t tw_stack_own_until(const struct tw_stack *stack, uint64_t ns)
{
	if (ns <= stack->own_from_ns)
		return stack->own_before_ns;
	return stack->own_before_ns + (ns < stack->own_to_ns ? ns : stack->own_to_ns) - stack->own_from_ns;
}

/* A stack's process as people call it: "<0.44.0> clerk", of a thread "17512 worker-1" (threads.h).  Lends. */
const char *tw_stacks_name(const struct tw_stacks *stacks, struct tw_stack *stack);

#endif
