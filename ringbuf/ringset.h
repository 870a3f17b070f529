/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringset.h - the shared memory of one recording: a pool of rings, the definitions, the control page.
 *
 * A ring set is a directory of three files on tmpfs (four with layouts), so that what was committed survives the death of
 * everybody who wrote it:
 *
 *	/dev/shm/tracewheel-UID/NAME/		0700, files 0600
 *	    control	struct tw_rs_control: who, how, the table of rings, the table of process images
 *	    rings	cap_bytes, sparse; rings are cut from it and touched before anybody may claim them
 *	    layouts	text of the rooms above, where there is much of it: how arguments lie in registers
 *	    defs	TW_RS_IMAGES_MAX regions of TW_RS_DEFS_BYTES, sparse: an append-only log an image
 *
 * or, where tmpfs refuses, the same three pieces in anonymous memory of one process (is_anonymous).
 *
 * Two roles.  The *owner* (the command, or the writer thread of a library's own session) creates the
 * set, keeps the pool filled, drains the rings, removes the set.  The *member* (a traced process
 * image) attaches, takes an image slot, claims a ring for each thread, appends definitions.  Both may
 * be one process.  A member keeps no file descriptor open: all is mapped when it attaches.
 *
 * The life of a ring, and who moves it (PAIR rs.state on every arrow):
 *
 *	ABSENT --owner: allocate, touch--> READY --member: cas--> CLAIMED --member--> LIVE
 *	                                     ^                       |                 |
 *	                                     |                  owner: its        member, or owner when
 *	                                     |                process is dead    the thread is dead
 *	                                     |                       v                 v
 *	                                     +---owner: drained---- ENDED <------------+
 *
 * Limits  TW_RS_RINGS_MAX, TW_RS_IMAGES_MAX, TW_RS_DEFS_BYTES, TW_RS_CONFIG_BYTES.
 * Errors  those of tracewheel/error.h.
 */
#ifndef TW_RINGBUF_RINGSET_H
#define TW_RINGBUF_RINGSET_H

#include "base/patience.h"
#include "ringbuf/ringbuf.h"

#define TW_RS_MAGIC   UINT64_C(0x3153524c45485754) /* "TWHELRS1" */
#define TW_RS_VERSION 1

/* Of an image slot; PAIR rs.image. */
enum tw_rs_image_state {
	TW_RS_IMAGE_FREE,
	TW_RS_IMAGE_CLAIMED, /* a member writes who it is */
	TW_RS_IMAGE_LIVE,
	TW_RS_IMAGE_ENDED /* it died, or exec replaced it; drained by the owner, then FREE */
};

/* One process image: a process between two exec calls, or a forked child that is followed. */
struct tw_rs_image {
	/* Written by the member between CLAIMED and LIVE. */
	TW_CACHELINE_ALIGNED uint64_t process_start_time; /* tw_sys_process_start_time() */
	uint64_t start_ticks;
	uint64_t lease; /* one ownership of the slot: never the same twice in a set */
	int32_t process_id;
	int32_t parent_process_id;
	/* Written by the member. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t defs_committed_bytes; /* PAIR rs.defs */
	_Atomic uint64_t defs_refused;				    /* definitions that found no room */
	/* Written by all threads of the image. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t no_ring_lost; /* events of threads that got no ring */
	_Atomic uint64_t no_ring_first_ticks;
	_Atomic uint64_t no_ring_last_ticks;
	/* Written by both. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t state; /* enum tw_rs_image_state */
};

/* One entry of the table of rings. */
struct tw_rs_ring {
	/*
	 * enum tw_rb_state; from CLAIMED on also the claimant's image, shifted by 8; while LIVE also the low
	 * half of the lease, shifted by 16: who ends a ring ends its own lease, and no later one.
	 */
	_Atomic uint32_t state;
	uint32_t reserved;
	uint64_t offset_bytes; /* of the header page in `rings`; written by the owner before READY */
	uint64_t data_bytes;
};

struct tw_rs_control {
	/* Written by the owner before any member may attach; constant. */
	uint64_t magic;
	uint32_t version;
	uint32_t clock_source; /* enum tw_clock_source of the owner */
	uint64_t cap_bytes;
	uint64_t ring_bytes; /* asked for; rings get smaller as the cap comes near */
	int32_t owner_process_id;
	uint32_t policy; /* enum tw_rb_policy */
	uint64_t owner_start_time;
	uint64_t owner_pid_namespace; /* 0: unknown */
	uint64_t block_timeout_ns; /* TW_RB_BLOCK: how long a producer waits before it drops; 0: as long as the owner beats */
	uint32_t follow_fork;
	uint32_t is_anonymous;
	uint32_t config_bytes;
	uint32_t reserved;
	char config[TW_RS_CONFIG_BYTES]; /* text of the rooms above: patterns and options */

	/* Written by the owner. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t heartbeat_ns; /* CLOCK_MONOTONIC of its last progress */
	_Atomic uint32_t is_closed;			    /* no more events are wanted */
	_Atomic uint32_t ring_count;			    /* entries of the table in use */

	/* Written by all. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t ready_count; /* a hint: rings in the pool; 0 says do not look */
	_Atomic uint32_t wanted_count;			   /* claims refused since the owner last looked */
	_Atomic uint64_t next_lease;
	_Atomic uint32_t wake; /* a futex: members raise it to have the owner look at once */
	_Atomic uint32_t delivery_wanted; /* raised by members: take all that is committed now; PAIR rs.delivery */
	_Atomic uint32_t delivered;	  /* the owner's: up to this request it has; a futex */
	_Atomic uint32_t layouts_wanted;   /* raised by members: look what I have opened; PAIR rs.layouts_wanted */
	_Atomic uint32_t layouts_answered; /* the owner's: up to this request it has; a futex */
	_Atomic uint64_t layouts_bytes;	   /* the owner's: so much of the file of layouts is whole */

	struct tw_rs_image images[TW_RS_IMAGES_MAX];
	struct tw_rs_ring rings[TW_RS_RINGS_MAX];
};

/* One side's view of a ring set. */
struct tw_rs {
	struct tw_rs_control *control;
	uint8_t *rings;
	uint8_t *defs;
	uint64_t cap_bytes;
	uint64_t used_bytes; /* owner: cut from `rings` so far */
	int rings_fd;	     /* owner: to allocate with; -1 otherwise */
	bool is_owner;
	/* The owner has no thread of its own: a member that finds no ring makes one. */
	bool is_threadless;
	/* How long this process has waited for the owner since its last sign of life. */
	struct tw_patience patience;
	/* Member: rings whose pages this process has touched already; a bit each. */
	_Atomic uint64_t touched[TW_RS_RINGS_MAX / 64];
	char path[256]; /* of the directory; "" when anonymous */
};

/* What an owner asks for.  Zeroed fields mean the defaults of base/limits.h. */
struct tw_rs_options {
	const char *name; /* of the directory: borrows; NULL: made from the process and a number */
	uint64_t ring_bytes;
	uint64_t cap_bytes;
	enum tw_rb_policy policy;
	uint64_t block_timeout_ns; /* 0: a consumer that makes no progress for a second is waited for no longer */
	bool follow_fork;
	bool allow_anonymous; /* where tmpfs refuses; for sessions inside one process only */
	bool is_anonymous;    /* without trying tmpfs: nobody outside will look */
	const char *config;   /* borrows: a string */
	const char *layouts;  /* borrows: a string that is too large for the control page; NULL: none */
	uint32_t first_rings; /* touched at once; 0: 2 */
};

/*
 * tw_rs_create - make a ring set and be its owner.
 *
 * @rs		init; tw_rs_destroy() ends it.
 * Errors: TW_EBADARG, TW_ENOSPC, TW_EPERM (the directory belongs to somebody else), TW_ENOMEM, TW_EIO.
 */
int tw_rs_create(struct tw_rs *rs, const struct tw_rs_options *options);

/* Removes files and mappings.  Members that have it mapped go on writing into memory that nobody reads. */
void tw_rs_destroy(struct tw_rs *rs);

/*
 * tw_rs_attach - map an existing ring set as a member.
 *
 * @path	the directory, absolute; refused unless it and its files belong to this user (or to root) and
 *		nobody else may write them.
 * Errors: TW_ENOENT, TW_EPERM, TW_EFORMAT, TW_EVERSION, TW_ENOMEM; TW_ENOTSUP in another pid namespace, where
 * the owner cannot tell who lives.
 */
int tw_rs_attach(struct tw_rs *rs, const char *path);

/*
 * tw_rs_open_dead - map what a dead owner left, for recovery: a private copy, nothing is changed.
 *
 * Errors: TW_EEXIST when the owner is alive (then nothing is to be recovered), TW_EFORMAT, TW_ENOENT.
 * Every offset and size in the control page is checked here; states and positions are not.
 */
int tw_rs_open_dead(struct tw_rs *rs, const char *path);

/* Unmaps; leaves the files alone. */
void tw_rs_detach(struct tw_rs *rs);

/* Removes the files and the directory of a set that nobody owns any more. */
int tw_rs_remove(const char *path);

/* ---- the file of layouts: text for the members, of any size, that grows ---- */

#define TW_RS_LAYOUTS_FILE "layouts"

/*
 * tw_rs_layouts_append - more text, by the owner; members see it once it is whole.
 *
 * Errors: TW_ELIMIT, TW_ENOSPC, TW_EIO, TW_ENOTSUP (an anonymous set); then the text is as it was.
 */
int tw_rs_layouts_append(struct tw_rs *rs, const char *text);

/*
 * tw_rs_layouts_read - the text behind @at_bytes, by a member of a set that tw_rs_attach() has accepted.
 *
 * @at_bytes	in and out: 0 at first.
 * @text	gives, terminated; may be empty.
 * TW_ENOENT: there is none; TW_EPERM: not the owner's; TW_ELIMIT, TW_ENOMEM, TW_EIO.
 */
int tw_rs_layouts_read(const struct tw_rs *rs, uint64_t *at_bytes, char **text, size_t *bytes);

/*
 * tw_rs_layouts_want - ask the owner to look at what this process has opened.
 *
 * Returns the number of the request.  tw_rs_layouts_wait() sleeps until it is answered, or the owner will not answer:
 * so long was waited (as in tw_rs_is_stalled()), it has closed the set, or it made no progress for a second.  It returns
 * whether it is answered.
 */
uint32_t tw_rs_layouts_want(struct tw_rs *rs);
bool tw_rs_layouts_wait(struct tw_rs *rs, uint32_t number, uint64_t timeout_ns);
/* Is an earlier request still unanswered?  Then who asks again need not hope. */
bool tw_rs_layouts_are_awaited(const struct tw_rs *rs);

/* ---- member ---- */

/* Takes an image slot for this process.  TW_ELIMIT when all are taken. */
int tw_rs_image_claim(struct tw_rs *rs, uint32_t *image);
/* Gives it back: LIVE to ENDED. */
void tw_rs_image_end(struct tw_rs *rs, uint32_t image);

/* Who claims a ring, for its header. */
struct tw_rs_claim {
	uint32_t image;
	uint32_t session_index;
	uint32_t scheduler_id;
	uint32_t tracee_id;
};

/*
 * tw_rs_ring_claim - take a ring from the pool for the calling thread.
 *
 * @producer	init on success.
 * Returns whether there was one; otherwise the caller counts no_ring.
 * Threads: any, with signals blocked.  System calls: one madvise, gettid, prctl(PR_GET_NAME).
 */
bool tw_rs_ring_claim(struct tw_rs *rs, const struct tw_rs_claim *who, struct tw_rb_producer *producer);

/* Is there any ring to claim?  A hint, one shared load. */
static inline bool tw_rs_may_claim(const struct tw_rs *rs)
{
	/* RELAXED rs.ready: a stale answer costs one look at the table, or one more event counted as no_ring. */
	return (int32_t)tw_load_relaxed(&rs->control->ready_count) > 0;
}

/* Says that a ring is wanted, and wakes the owner.  Signal handlers: yes. */
void tw_rs_want(struct tw_rs *rs);

/* The owner's last sign of life: another one after each round that it went. */
static inline uint64_t tw_rs_beat(const struct tw_rs *rs)
{
	/* RELAXED rs.heartbeat: a lone time; a stale one makes a producer drop a little early. */
	return tw_load_relaxed(&rs->control->heartbeat_ns);
}

/*
 * tw_rs_is_stalled - a look at the owner by who waits for it: has it made no progress for a second?
 *
 * Called once each TW_RS_SLICE_NS or more often.  The second is one of waiting (base/patience.h), by any threads of this
 * process: before the first look, and while nobody looks because nobody runs, no time goes by.
 * Threads: any.  Signal handlers: yes.
 */
bool tw_rs_is_stalled(struct tw_rs *rs);

/* Wakes the owner, to look.  Signal handlers: yes. */
void tw_rs_wake(struct tw_rs *rs);

/*
 * tw_rs_delivery_want - ask the owner to take everything that is committed now, soon.
 *
 * Returns the number of the request.  tw_rs_delivery_wait() sleeps until that is done, or the time is over; it
 * returns whether it is done.  Any number of requests may be under way; they are done in order.
 */
uint32_t tw_rs_delivery_want(struct tw_rs *rs);
bool tw_rs_delivery_wait(struct tw_rs *rs, uint32_t number, uint64_t timeout_ns);

/*
 * Gives a ring back: LIVE to ENDED, and the producer is fini.  If its thread was found dead before, the ring
 * has ended already, and may be another thread's now: it is left alone.
 */
void tw_rs_ring_end(struct tw_rs *rs, struct tw_rb_producer *producer);

/* Counts an event of a thread without ring.  Signal handlers: yes. */
void tw_rs_count_no_ring(struct tw_rs *rs, uint32_t image, uint64_t ticks);

/* The head of a record in the definitions log: 16 bytes, the payload follows, filled up to 8. */
struct tw_rs_defs_head {
	uint64_t checksum; /* tw_checksum64_two() of the rest of the head, and the payload */
	uint32_t type;
	uint32_t payload_bytes;
};

/*
 * tw_rs_defs_append - append one record to the definitions log of an image, whole or not at all.
 *
 * Published (PAIR rs.defs) before this returns.  Errors: TW_ENOSPC, counted in defs_refused.
 * Threads: one at a time an image (the permit's holder, or a joining thread under its lock).
 */
int tw_rs_defs_append(struct tw_rs *rs, uint32_t image, uint32_t type, const void *payload, size_t bytes);

/*
 * tw_rs_defs_next - read the log of an image.
 *
 * @at_bytes	in and out: 0 at first.
 * @payload	lends: as long as the set is mapped and the image not recycled.
 * Returns 1, 0 at the end of what is committed, or TW_EFORMAT where it is damaged (*at_bytes is then at
 * the end).
 */
int tw_rs_defs_next(const struct tw_rs *rs, uint32_t image, uint64_t *at_bytes, uint32_t *type, const void **payload,
		    size_t *bytes);

/* ---- owner ---- */

/* Keeps rings ready in the pool: as many as were wanted, at least `spare`.  Returns how many it added. */
unsigned tw_rs_refill(struct tw_rs *rs, unsigned spare);

static inline struct tw_rb_shared *tw_rs_ring(const struct tw_rs *rs, uint32_t index)
{
	return (struct tw_rb_shared *)(rs->rings + rs->control->rings[index].offset_bytes);
}

static inline uint32_t tw_rs_ring_count(const struct tw_rs *rs)
{
	/* PAIR rs.ring_count: acquire; release in add_ring().  The entries below it are filled in. */
	return tw_load_acquire(&rs->control->ring_count);
}

static inline enum tw_rb_state tw_rs_ring_state(const struct tw_rs *rs, uint32_t index)
{
	/* PAIR rs.state: acquire; what the mover wrote before it is seen with the state. */
	return (enum tw_rb_state)(tw_load_acquire(&rs->control->rings[index].state) & 0xff);
}

/* The image slot of whoever has the ring; meaningful from CLAIMED on. */
static inline uint32_t tw_rs_ring_image(const struct tw_rs *rs, uint32_t index)
{
	/* PAIR rs.state: acquire; the header's copy is written later than this word. */
	return tw_load_acquire(&rs->control->rings[index].state) >> 8 & (TW_RS_IMAGES_MAX - 1);
}

static inline enum tw_rs_image_state tw_rs_image_state(const struct tw_rs *rs, uint32_t image)
{
	/* PAIR rs.image: acquire; who it is is seen with the state. */
	return (enum tw_rs_image_state)tw_load_acquire(&rs->control->images[image].state);
}

/* ENDED and drained to the end: back into the pool, empty. */
void tw_rs_ring_recycle(struct tw_rs *rs, uint32_t index);

/* LIVE or CLAIMED, and its thread or its process is dead: to ENDED.  Returns whether it was so. */
bool tw_rs_ring_reap(struct tw_rs *rs, uint32_t index);

/* LIVE or CLAIMED, and its process is dead: to ENDED.  Returns whether it was so. */
bool tw_rs_image_reap(struct tw_rs *rs, uint32_t image);
/* ENDED and drained: FREE again; its definitions are forgotten and their memory given back. */
void tw_rs_image_recycle(struct tw_rs *rs, uint32_t image);

/* The newest request, when it is not answered; the owner reads it before it looks at rings.  False: none. */
bool tw_rs_delivery_look(const struct tw_rs *rs, uint32_t *number);
/* Everything that was committed when tw_rs_delivery_look() was called is taken. */
void tw_rs_delivery_done(struct tw_rs *rs, uint32_t number);

/* The newest request for layouts, when it is not answered.  False: none. */
bool tw_rs_layouts_look(const struct tw_rs *rs, uint32_t *number);
/* What there is to say is appended. */
void tw_rs_layouts_done(struct tw_rs *rs, uint32_t number);

/* Says that the owner made progress; members that wait for room look at it. */
void tw_rs_heartbeat(struct tw_rs *rs);
/* No more events are wanted; wakes all that wait. */
void tw_rs_close(struct tw_rs *rs);
/* Sleeps until a member raises `wake` or the time is over. */
void tw_rs_wait(struct tw_rs *rs, uint64_t timeout_ns);

#endif
