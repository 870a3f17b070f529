/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks.h - the calls that are open in each process, reconstructed from calls and returns.
 *
 *	 call f          f                  frames[0]
 *	 call g          f g                frames[1]
 *	 return_from g   f                  g ends: returned
 *	 return_from f                      f ends: returned
 *
 * A return ends the innermost open call of its function; calls inside it that are still open are *cut*: their
 * duration is not known, and their time stays with their caller, except that of calls which returned within them.
 *
 * A loss may contain returns of open calls, and other calls. A call that was open before a loss continued after it if
 * its own return, or that of a call inside it, comes later; the events are read once in advance to know that
 * (tw_stacks_foresee()). A return may also belong to another call of the same function, made in the loss: it proves
 * nothing if such a call is likely among the lost events, by its share of the calls in the capture. All other calls
 * are *lost*: they end where the loss begins. A call that is open when its process or the capture ends is *open*: its
 * time runs to the end of its thread or of its process, as far as that is known, else to the last event of the process.
 *
 * If only a part is selected, the events before it are processed first: calls that are open at its beginning
 * (tw_stacks_begin()) count from there on, and only their returns are events of the part.
 *
 * Time in which a process was scheduled out (out ... in), or that lies in a loss, counts as inside the innermost
 * call, but as no call's own time. The tracer's own time is subtracted from every call that was open meanwhile in the
 * process that ran on its thread.
 *
 * Of captures with states of threads, each call is split into the time in which its thread ran, was preempted, and was off; the
 * rest is unknown. A state of a thread is a sign of its life, as its events are.
 *
 * Calls that take too little time, or whose condition is not true (when.h), can be left out: their time is that of the call around them. How
 * long a call will take, and how it will end, is known from reading the events once in advance.
 *
 * Memory  a stack for each process that called anything; 120 bytes an open call, 48 more with states of threads; at most
 *	   TW_STACK_FRAMES_MAX.
 */
#ifndef TW_VIEWS_STACKS_H
#define TW_VIEWS_STACKS_H

#include "views/folds/own_times.h"
#include "views/folds/places.h"
#include "views/folds/thread_states.h"
#include "views/folds/when.h"

/* Calls beyond this depth are counted and have no time. */
#define TW_STACK_FRAMES_MAX (UINT32_C(1) << 20)

struct tw_stack_frame {
	uint64_t start_ns;
	uint64_t before_ns;		      /* how long it was open before the selection; 0: it began in it */
	uint64_t inner_ns;		      /* of the calls within it that have ended */
	uint64_t out_ns;		      /* time scheduled out or lost while it was innermost */
	uint64_t split_self_ns, split_out_ns; /* up to the last tw_stacks_split() */
	uint64_t own_before_ns;		      /* the tracer's own time on its stack before it began */
	uint64_t lost_before_ns;	      /* time in losses on its stack before it began */
	uint64_t serial;		      /* of its call on its stack, from 1 */
	/* The state of its stack when it was last known to be open. */
	uint64_t sure_lost;
	uint32_t sure_losses;
	uint32_t losses_before; /* of its stack, when it began */
	uint32_t function;
	uint32_t node;	/* for the caller's use: by the call tree */
	uint32_t mark;	/* for the caller's use: by print */
	bool is_chosen; /* its condition is true, or there is none */
};

/* A call that is left out. */
struct tw_stack_hidden {
	uint64_t serial;
	uint32_t function;
};

/* The states that belong to a frame if its thread has states. */
struct tw_stack_states {
	struct tw_state_sums before; /* of the thread, when it began */
	struct tw_state_sums inner;  /* of the calls within it that have ended */
};

/* Of a frame that ended: all of it, and without the calls within it that have ended. */
struct tw_frame_states {
	struct tw_state_sums total, self;
};

struct tw_stack {
	uint32_t image;
	uint32_t session_index;
	uint32_t tracee_id; /* or a stream's number, if no process was known */
	bool has_tracee;
	bool is_bound;	 /* its process is a thread */
	uint32_t number; /* from 0, in the order of appearance */
	uint32_t depth;
	uint32_t capacity;
	uint32_t too_deep; /* open calls beyond the limit */
	uint32_t loss_epoch;
	uint32_t losses;       /* so far */
	uint64_t lost_events;  /* the events lost in them */
	uint64_t loss_ns;      /* their time */
	uint64_t serials;      /* of calls */
	struct tw_own_sum own; /* the tracer's own time */
	uint64_t last_ns;
	uint64_t end_ns;       /* of its thread or process, or the last that is known of it; 0: nothing is */
	bool is_end_known;     /* end_ns is the end */
	uint64_t out_since_ns; /* 0: it is running */
	struct tw_stack_frame *frames;
	struct tw_state_clock state_clock;
	struct tw_stack_states *states; /* by frame; NULL: none are known */
	uint32_t state_capacity;
	bool has_states;
	struct tw_frame_states frame_states; /* of the last frame that ended */
	struct tw_stack_hidden *hidden;	     /* open, among the frames by their serials */
	uint32_t hidden_count, hidden_capacity;
	bool is_call_hidden;   /* of the last call: the callers that follow it are too */
	bool is_call_chosen;   /* the same: its condition is true, or there is none */
	struct tw_stack *next; /* in its slot */
	void *user;
	char *name; /* made on demand */
};

enum tw_frame_end { TW_FRAME_RETURNED, TW_FRAME_EXCEPTION, TW_FRAME_CUT, TW_FRAME_OPEN, TW_FRAME_LOST };

/* The times of a frame that ended. */
struct tw_frame_time {
	uint64_t total_ns;
	uint64_t self_ns;
	uint64_t gross_ns; /* from its beginning to its end, including the tracer's own time */
	uint64_t lost_ns;  /* of total: time in losses */
	/* How it divides: what is in no sum is unknown. NULL: nothing is known. Lends until the next event. */
	const struct tw_frame_states *states;
	bool is_exact; /* returned, with no loss within, and all of it in the selection */
	bool is_lossy; /* a loss lies within, or it ended in one */
};

struct tw_stacks_calls {
	/* A call begins: stack->frames[stack->depth - 1]. */
	void (*begin)(void *context, struct tw_stack *stack);
	/* The frame stack->frames[stack->depth - 1] ends. */
	void (*end)(void *context, struct tw_stack *stack, enum tw_frame_end how, const struct tw_frame_time *time);
	/* A call of a function whose returns are not recorded. */
	void (*moment)(void *context, struct tw_stack *stack, uint32_t function);
	void *context;
	/* Of tw_stacks_split(): a frame's times since the last one; may be below 0. */
	void (*split)(void *context, struct tw_stack *stack, uint32_t depth, int64_t self_ns, int64_t out_ns);
	/* A return whose call is not known; NULL: no interest. */
	void (*unmatched)(void *context, struct tw_stack *stack, uint32_t function, enum tw_frame_end how, uint64_t ns);
};

/* The effect of an event. */
enum tw_step_kind {
	TW_STEP_OTHER,	   /* does not change the stack */
	TW_STEP_CALL,	   /* adds a frame */
	TW_STEP_MOMENT,	   /* a call without a recorded return */
	TW_STEP_RETURN,	   /* removes a frame, and those cut inside it */
	TW_STEP_UNMATCHED, /* a return without a known call */
	TW_STEP_LOSS,
	TW_STEP_OWN_TIME,
	TW_STEP_HIDDEN /* a call that is left out, or its return: shown nowhere */
};

struct tw_step {
	enum tw_step_kind kind;
	struct tw_stack *stack; /* NULL: no memory */
	uint32_t function;
	uint32_t depth;	    /* of the frame, from 0; other events: the number of open frames */
	uint32_t cut_count; /* frames that ended before it, without a return */
	bool is_of_parent;  /* unmatched returns: fork() returns in the child as well, which did not call
			        * it */
	const struct tw_stack_frame *frame; /* returns only; lends until the next event */
	struct tw_frame_time time;	    /* the same */
};

/* For one stack, by loss: the serial of the innermost call that continued after it; 0: none did. */
struct tw_stack_verdicts {
	uint64_t *kept;
	uint32_t count;
};

/* For one stack, two bits by serial: is the call long enough, and is its condition true as well? */
struct tw_stack_selected {
	uint64_t *bits;
	uint32_t count; /* of words */
};

struct tw_stacks {
	struct tw_capture *capture;
	const struct tw_places *places;
	struct tw_stacks_calls calls;
	struct tw_stack **slots;
	uint32_t mask;
	uint32_t count;
	struct tw_stack **streams; /* by stream: the stack of its last event */
	struct tw_stack **running; /* by stream: that of the process scheduled in there; NULL: not known */
	uint32_t stream_count;
	uint32_t loss_epoch;
	uint64_t epoch_lost;		    /* events lost in the last of them */
	uint64_t events;		    /* of the capture, to compute shares */
	struct tw_stack_verdicts *verdicts; /* by stack number */
	uint32_t verdict_count;
	bool is_foreseeing;
	struct tw_when *when; /* set before tw_stacks_foresee(): which calls are selected; NULL: all.  Borrowed */
	bool chooses;	      /* calls whose condition is not true are not left out, but frames say so: is_chosen */
	struct tw_stack_selected *selected; /* by stack number */
	uint32_t selected_count;
	const struct tw_capture_event *event; /* the last one */
	/* Shown by every view. */
	uint64_t unmatched;
	uint64_t cut;
	uint64_t open;
	bool has_states;   /* there were states of threads */
	bool ends_early;   /* frames were ended at the end of the selection, before that of the capture */
	bool has_guessed;  /* frames were ended with the last event of their process, whose end is not known */
	bool has_outlived; /* frames were ended with the recording, because their process went on */
	uint64_t before;   /* calls that were open at the beginning of the selection */
	uint64_t too_deep;
	uint64_t losses;
	uint64_t replaced; /* of these: older events that newer ones replaced, and nothing else */
	uint64_t lost;	   /* calls that ended in a loss */
	uint64_t hidden;   /* calls that were left out */
};

/*
 * @places: borrowed until tw_stacks_free(). Returns 0 or TW_ENOMEM.
 */
int tw_stacks_init(struct tw_stacks *stacks, struct tw_capture *capture, const struct tw_places *places);

/*
 * tw_stacks_foresee - read the events once in advance, to find the calls that continued after losses; and once more to find
 * those that are selected by how they end.
 *
 * @filter	selects the events that will be passed in, in the same order, states of threads among them if they are.  Nothing is read if there are no losses, and
 *		nothing is selected by how calls end.
 *
 * Returns 0 or an error, TW_ENOTSUP if the ends of calls are needed and nothing has a duration. Without this call all calls end in a loss, and none is left out.
 */
int tw_stacks_foresee(struct tw_stacks *stacks, const struct tw_capture_filter *filter);
void tw_stacks_free(struct tw_stacks *stacks);

/* The stack behind another one, in the same order each time; @stack: NULL: the first.  Returns NULL behind the last.  No event may be passed in meanwhile. */
struct tw_stack *tw_stacks_next(const struct tw_stacks *stacks, const struct tw_stack *stack);

/* Processes the next event, in the order of the capture. Returns false without memory. */
bool tw_stacks_event(struct tw_stacks *stacks, const struct tw_capture_event *event, struct tw_step *step);

/*
 * tw_stacks_begin - begin the selection: all events before it have been passed in.
 *
 * @from_ns	not before any of them.
 *
 * The open frames begin again at from_ns; before_ns keeps their time before it.
 */
void tw_stacks_begin(struct tw_stacks *stacks, uint64_t from_ns);

/*
 * tw_stacks_split - tells of each open frame which time it has had up to now: innermost frames first.
 *
 * @ns	not before any event that has been passed in. A process whose end is known has none after it; of others no more is known than up to
 *	their last event.
 */
void tw_stacks_split(struct tw_stacks *stacks, uint64_t ns);

/* Ends the frames that are open at the end: of the capture, or of a selection that ends before to_ns (0: none). */
void tw_stacks_finish(struct tw_stacks *stacks, uint64_t to_ns);

/* "the end of this part", ...: how far the calls count that tw_stacks_finish() ended. */
const char *tw_stacks_open_until(const struct tw_stacks *stacks);

/* "returned", "exception", "cut", "open" or "lost". */
const char *tw_stacks_end_name(enum tw_frame_end how);

/* The name of a stack's process: "<0.44.0> clerk", for a thread "17512 worker-1" (threads.h). Lends. */
const char *tw_stacks_name(const struct tw_stacks *stacks, struct tw_stack *stack);

#endif
