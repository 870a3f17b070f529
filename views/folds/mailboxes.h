/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailboxes.h - the queue of each process, and when it ran, was ready or was blocked, reconstructed from events.
 *
 *	 send A -> B     receive B                          mailbox:take/1 of B
 *	 ----|---------------|-------- in the queue ------------|----
 *
 *	 out B                    receive B            in B
 *	 --|------ blocked, by the sender --|---- ready ----|---- runs ----
 *
 * A run-time reports by the declared functions mailbox:take/1 and mailbox:wait/0 that a process takes a message (the
 * argument is the number of messages before it in the queue), and that it finds none that it wants
 * (docs/embedding.md). In an image without mailbox:take/1 a message counts as taken when its receiver next runs, or
 * at once if it is running. A process that is scheduled out counts as waiting if it has called mailbox:wait/0 before;
 * in an image without that, if a message arrives before it is scheduled in again.
 *
 * A process of an Erlang VM receives its messages when it looks for messages: a message counts as arrived when it was sent,
 * if that is known, and as taken when it was received.
 *
 * After a gap in the events of an image the contents of its queues are not known: they begin empty, and the state of
 * a process is unsure until it waits.
 *
 * Memory  for each process named by an event; 48 bytes for each message in a queue, TW_MAILBOX_MESSAGES_MAX of them; for the
 *	   history as many stretches as requested.
 */
#ifndef TW_VIEWS_MAILBOXES_H
#define TW_VIEWS_MAILBOXES_H

#include "views/folds/marks.h"
#include "views/folds/own_times.h"
#include "base/map.h"

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_MAILBOX_MESSAGES_MAX (UINT64_C(1) << 22)
/* Stretches between two recorded times: the most that a search by time has to read. */
#define TW_MAILBOX_PAGE	  4096
#define TW_MAILBOX_NOBODY UINT32_MAX	   /* a process that is not known */
#define TW_MAILBOX_TIMER  (UINT32_MAX - 1) /* a time-out of the receiver */

enum tw_doing { TW_DOING_UNKNOWN, TW_DOING_RUN, TW_DOING_READY, TW_DOING_BLOCKED, TW_DOINGS };

/* A stretch of a process' life. `by` and `sent_ns` describe the message that ended a blocked one. */
struct tw_stretch {
	uint64_t from_ns, to_ns;
	uint64_t own_ns;  /* of a run: the tracer's own time in it */
	uint64_t sent_ns; /* 0: not known */
	uint64_t before;  /* the number of its process' previous stretch; 0: none */
	uint32_t process;
	uint32_t by;
	uint32_t takes; /* messages taken in a run */
	uint8_t doing;
};

struct tw_message {
	uint64_t arrived_ns;
	uint64_t sent_ns; /* 0: its send is not known */
	uint64_t number;  /* counts all messages of the capture, from 1 */
	uint32_t sender;
	uint32_t length;       /* of the queue including it, on arrival */
	uint64_t taken_before; /* messages that its receiver had taken, on arrival */
};

struct tw_mailbox_process {
	uint32_t number;
	uint32_t image, tracee_id;
	uint32_t pid_number, pid_serial;
	/* The present state; for a process that is out it is known only when it is scheduled in. */
	uint8_t doing;
	bool is_out;
	bool is_new;	/* it has not run yet */
	bool waits;	/* it found no message that it wants */
	bool is_unsure; /* it has not waited since the last gap */
	bool is_ended;
	uint64_t since_ns; /* 0: not known */
	uint64_t woken_ns; /* arrival of the first message since; 0: none */
	uint64_t woken_sent_ns;
	uint32_t woken_by;
	uint32_t losses; /* of its image, up to which it was updated */
	uint32_t run_takes;
	uint32_t run_stream;
	uint64_t run_own_ns, ended_own_ns; /* the tracer's own time there when the run began, and at the exit */
	uint64_t last;			   /* the number of its last stretch */
	/* The queue: a ring buffer. */
	struct tw_message *messages;
	uint32_t first, count, capacity;
	bool has_waited;
	/* Sums. */
	uint64_t sent, received, taken, wait_ns, wait_max_ns;
	uint64_t doing_ns[TW_DOINGS]; /* runs without the tracer's own time */
	uint64_t born_ns, ended_ns;   /* 0: not known */
	void *user;
};

struct tw_mailboxes;

struct tw_mailbox_calls {
	/* A message was taken; is_sure: no loss could make it another one. */
	void (*taken)(void *context, struct tw_mailbox_process *process, const struct tw_message *message,
		      uint64_t now_ns, bool is_sure);
	/* The length of a queue has changed. */
	void (*length)(void *context, struct tw_mailbox_process *process, uint64_t now_ns);
	/* A stretch ended. */
	void (*stretch)(void *context, struct tw_mailbox_process *process, const struct tw_stretch *stretch);
	/* Stretches that ended before this time are about to be overwritten. */
	void (*forgets)(void *context, uint64_t before_ns);
	void *context;
};

struct tw_mailbox_image {
	uint32_t losses;
	bool has_takes, has_waits;
	bool is_erlang_vm;
};

struct tw_mailboxes {
	const struct tw_capture *capture;
	struct tw_mailbox_calls calls;
	struct tw_mailbox_image *images;
	uint32_t image_count;
	struct tw_marks places;
	struct tw_mailbox_process **processes; /* by number */
	uint32_t count, capacity;
	struct tw_map by_tracee, by_pid;
	struct tw_mailbox_sends *sends;
	struct tw_own_times own_times;
	/* The history: stretch n is at n & mask. */
	struct tw_stretch *stretches;
	uint64_t *page_ns;		      /* by page of stretches: the time when it was begun */
	uint64_t stretch_count, stretch_mask; /* numbers begin with 1 */
	uint64_t held;			      /* messages in queues */
	uint64_t last_ns;
	/* Shown by every view. */
	uint64_t messages, taken, unmatched, timeouts;
	uint64_t lost;	      /* events */
	uint64_t overwritten; /* not among the lost: replaced by newer ones */
	uint64_t unfollowed;  /* messages in queues at a gap */
	uint64_t dropped;     /* in the queues of processes that exited */
	uint64_t left_out;    /* that did not fit */
	uint64_t runs;
	bool has_takes, has_waits; /* in some image */
	bool are_erlang_vms;	   /* all images */
};

/*
 * @history: the number of stretches to keep, a power of two; 0: none. Returns 0 or TW_ENOMEM.
 */
int tw_mailboxes_init(struct tw_mailboxes *mailboxes, const struct tw_capture *capture, uint64_t history);
void tw_mailboxes_free(struct tw_mailboxes *mailboxes);

/* For a filter: the kinds of events, and the places, that are needed; and wants_own_time. */
uint64_t tw_mailboxes_kinds(void);
bool tw_mailboxes_wants_place(const struct tw_capture_place *place);

/* Processes the next event, in the order of the capture; ignores events that it does not need. False: no memory. */
bool tw_mailboxes_event(struct tw_mailboxes *mailboxes, const struct tw_capture_event *event);
/* Ends all open stretches at the end of the capture. */
void tw_mailboxes_finish(struct tw_mailboxes *mailboxes);

/* The process of a tracee; NULL: no memory. */
struct tw_mailbox_process *tw_mailboxes_process(struct tw_mailboxes *mailboxes, uint32_t image, uint32_t tracee_id);

/*
 * tw_mailboxes_back - iterates over the stretches of a process that overlap a time, the last first.
 *
 * @at	0 at first, kept between the calls.
 *
 * Fills in *out, cut to the time. False: there is none before. Stretches older than the history are not found.
 */
bool tw_mailboxes_back(const struct tw_mailboxes *mailboxes, uint32_t process, uint64_t from_ns, uint64_t to_ns,
		       uint64_t *at, struct tw_stretch *out);

/* Writes "<0.44.0> worker1" into TW_THREAD_TEXT_BYTES; returns the bytes. */
size_t tw_mailboxes_name(const struct tw_mailboxes *mailboxes, uint32_t process, char *text);

/*
 * tw_mailboxes_is_called - does this text name the process?
 *
 * @text	its pid, its name, or the number of its thread. In captures of several nodes it has these on every node: with the
 *		node, "shop:<0.45.0>" or "<0.45.0>@shop", as views print it, it is that one alone.
 */
bool tw_mailboxes_is_called(const struct tw_mailboxes *mailboxes, const struct tw_mailbox_process *process,
			    const char *text);

#endif
