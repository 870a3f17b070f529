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
 * Behind a loss the frames of its process are *uncertain*: they may have returned unseen.  A call, straight
 * behind a loss, of a function that is among them ends the innermost such frame and those inside it (it is
 * more likely called again than from within itself); a return of one of them confirms it.  A call that is
 *open when its process or the capture ends is *open*: its time runs to the last event of its process.
 *
 * Time in which a process was scheduled out (out ... in), or that lies in a loss, is counted as inside the
 * call that was innermost, but as nobody's own.
 *
 * Memory  a stack for each process that called anything; 48 bytes an open call, at most TW_STACK_DEPTH_MAX.
 */
#ifndef TW_TOOLS_STACKS_H
#define TW_TOOLS_STACKS_H

#include "tools/places.h"

/* Calls beyond are counted and have no time. */
#define TW_STACK_DEPTH_MAX (UINT32_C(1) << 20)

struct tw_frame {
	uint64_t start_ns;
	uint64_t inner_ns; /* of the calls within it that ended */
	uint64_t out_ns;   /* scheduled out or lost while it was innermost */
	uint32_t function;
	uint32_t node; /* for who uses it: the call tree's */
	uint32_t mark; /* the same: print's */
};

struct tw_stack {
	uint32_t image;
	uint32_t session_index;
	uint32_t tracee_id; /* or a stream's number, where no process was known */
	bool has_tracee;
	bool is_bound;   /* its process is a thread */
	bool was_judged; /* behind the last loss */
	uint32_t number; /* from 0, in the order of appearance */
	uint32_t depth;
	uint32_t room;
	uint32_t uncertain; /* so many of the outermost frames */
	uint32_t too_deep;  /* calls that are open beyond the limit */
	uint32_t loss_epoch;
	uint64_t last_ns;
	uint64_t out_since_ns; /* 0: it runs */
	struct tw_frame *frames;
	struct tw_stack *next; /* in its slot */
	void *user;
	char *name; /* made when it is asked for */
};

enum tw_frame_end { TW_FRAME_RETURNED, TW_FRAME_EXCEPTION, TW_FRAME_CUT, TW_FRAME_OPEN };

/* What the time of a frame was when it ended. */
struct tw_frame_time {
	uint64_t total_ns;
	uint64_t self_ns;
	bool is_exact; /* returned, and no loss lies within */
};

struct tw_stacks_calls {
	/* A call begins: stack->frames[stack->depth - 1]. */
	void (*begin)(void *context, struct tw_stack *stack);
	/* The frame stack->frames[stack->depth - 1] ends. */
	void (*end)(void *context, struct tw_stack *stack, enum tw_frame_end how,
		    const struct tw_frame_time *time);
	/* A call of a function whose returns are not recorded. */
	void (*moment)(void *context, struct tw_stack *stack, uint32_t function);
	void *context;
};

/* What an event did. */
enum tw_step_kind {
	TW_STEP_OTHER,     /* nothing to the stack */
	TW_STEP_CALL,      /* a frame more */
	TW_STEP_MOMENT,    /* a call without return */
	TW_STEP_RETURN,    /* a frame, and what was cut inside it, less */
	TW_STEP_UNMATCHED, /* a return whose call was not seen */
	TW_STEP_LOSS
};

struct tw_step {
	enum tw_step_kind kind;
	struct tw_stack *stack; /* NULL: without memory */
	uint32_t function;
	uint32_t depth;        /* of the frame, from 0; of other events: frames that are open */
	uint32_t cut_count;    /* frames that ended before, without a return */
	struct tw_frame frame; /* of a return */
	struct tw_frame_time time;
};

struct tw_stacks {
	const struct tw_capture *capture;
	const struct tw_places *places;
	struct tw_stacks_calls calls;
	struct tw_stack **slots;
	uint32_t mask;
	uint32_t count;
	struct tw_stack **streams; /* the stack that each stream's last event belonged to */
	uint32_t stream_count;
	uint32_t loss_epoch;
	/* Told by every view. */
	uint64_t unmatched;
	uint64_t cut;
	uint64_t open;
	uint64_t too_deep;
	uint64_t losses;
};

/* @places: borrowed until tw_stacks_free().  Answers 0 or TW_ENOMEM. */
int tw_stacks_init(struct tw_stacks *stacks, const struct tw_capture *capture,
		   const struct tw_places *places);
void tw_stacks_free(struct tw_stacks *stacks);

/* The next event, in the order of the capture.  Answers false without memory. */
bool tw_stacks_event(struct tw_stacks *stacks, const struct tw_capture_event *event, struct tw_step *step);

/* Ends the frames that are open at the end: of the capture, or of a selection, before to_ns (0: none). */
void tw_stacks_finish(struct tw_stacks *stacks, uint64_t to_ns);

/* A stack's process as people call it: "<0.44.0> clerk", of a thread "17512 worker-1" (threads.h).  Lends. */
const char *tw_stacks_name(const struct tw_stacks *stacks, struct tw_stack *stack);

#endif
