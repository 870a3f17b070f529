/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringset.h - the shared memory of one recording: rings and definitions of each process image, one control page.
 *
 * A ring set is a directory on tmpfs, so that what was committed survives the death of everybody who wrote it:
 *
 *	/dev/shm/tracewheel-UID/NAME/		0700, files 0600
 *	    config	struct tw_rs_config and a text: constant, never mapped
 *	    control	struct tw_rs_control: what owner and members tell each other, the table of images
 *	    layouts	text of the rooms above, where there is much of it: how arguments lie in registers
 *	    image-LEASE	one process image: struct tw_rs_image_head, its definitions, its rings; sparse
 *
 * or, where tmpfs refuses, control and one image in anonymous memory of one process (config.is_anonymous).
 *
 * Two roles.  The *owner* (the command, or the writer thread of a library's own session) creates the set, drains the
 * rings, removes files of images that are drained, and the set.  The *member* (a traced process image) attaches, takes
 * a slot in the table of images, makes its own file, cuts rings from it for its threads and appends definitions.  Both
 * may be one process.
 *
 * A member maps control (TW_RS_IMAGES_MAX slots), and of its own file the head, a part of the definitions, and the rings
 * that it has cut; of other images nothing.  It keeps no file descriptor open and needs no path after it has begun: a
 * further ring is mapped by mremap() of a page that is there.  A forked child has none of these mappings (MADV_DONTFORK):
 * it begins with an image of its own, or is not traced.  Where a handler made the child that interrupted a hit, and nobody
 * noticed, the hit goes on in the child: its stores find empty memory, because above what was mapped there is a page that
 * grows downwards, as a stack does, and below it a reserved one (as far as the limit of stacks goes):
 *
 *	| reserved | head | growing | anchor | growing |		| reserved | ring | ring | ... | anchor ... | growing |
 *
 * The owner believes nothing that members can write: tables are checked once and kept in memory of its own, and every other
 * word is checked where it is used (docs/security.md).
 *
 * The life of a ring, and who moves it (PAIR rs.state on every arrow):
 *
 *	ABSENT --cut, or READY taken, by the member--> CLAIMED --> LIVE --member, or owner when the thread is dead--> ENDED
 *	                READY <--owner: drained----------------------------------------------------------------------'
 *
 * A thread begins with a small ring and takes a larger one when it finds it full.  Both rings are one stream with one lease;
 * positions run on from one to the next:
 *
 *	the member: fill the new header {lease, grown_from, first_pos}; new ring LIVE; old ring: grown_to; old ring ENDED
 *	the owner: drains a ring to its end before it looks into the one that has grown from it
 *
 * Limits  TW_RS_RINGS_MAX, TW_RS_IMAGE_RINGS_MAX, TW_RS_IMAGES_MAX, TW_RS_DEFS_BYTES, TW_RS_CONFIG_BYTES.
 * Errors  those of tracewheel/error.h.
 */
#ifndef TW_RINGBUF_RINGSET_H
#define TW_RINGBUF_RINGSET_H

#include "base/stall_timer.h"
#include "base/quiet_lock.h"
#include "ringbuf/ringbuf.h"

#define TW_RS_MAGIC	  UINT64_C(0x3253524c45485754) /* "TWHELRS2" */
#define TW_RS_IMAGE_MAGIC UINT64_C(0x32474d4945485754) /* "TWHEIMG2" */
#define TW_RS_VERSION	  2

/* ---- what lies in shared memory ---- */

/* The file `config`; text of the rooms above follows.  Every side works with a copy of its own. */
struct tw_rs_config {
	uint64_t magic;
	uint32_t version;
	uint32_t clock_source; /* enum tw_clock_source of the owner */
	uint64_t cap_bytes;    /* of all rings together */
	uint64_t ring_bytes;   /* the largest ring of a thread */
	int32_t owner_process_id;
	uint32_t policy; /* enum tw_rb_policy */
	uint64_t owner_start_time;
	uint64_t owner_pid_namespace; /* 0: unknown */
	uint64_t block_timeout_ns;    /* TW_RB_BLOCK: longest wait before a drop; 0: as long as the owner beats */
	uint32_t follow_fork;
	uint32_t is_anonymous;
	uint32_t has_fixed_rings; /* every ring has ring_bytes from the first */
	uint32_t text_bytes;
};

/* Of an image slot; PAIR rs.image. */
enum tw_rs_image_state {
	TW_RS_IMAGE_FREE,
	TW_RS_IMAGE_CLAIMED, /* a member makes its file */
	TW_RS_IMAGE_LIVE,
	TW_RS_IMAGE_ENDED /* it died, or exec replaced it; drained by the owner, then FREE */
};

/* Where a process image says that it is there. */
struct tw_rs_slot {
	_Atomic uint64_t state; /* enum tw_rs_image_state; its process id, shifted by 32 */
	/* Written by the member between CLAIMED and LIVE. */
	_Atomic uint64_t process_start_time; /* tw_sys_process_start_time() */
	_Atomic uint64_t lease;		     /* one ownership of the slot: never the same twice in a set */
	/* Written by the owner, when it sees a seccomp filter that it has not itself; zeroed at the claim. */
	_Atomic uint32_t filter_seen;
	uint32_t reserved;
};

/* Why an image is not traced although it should be. */
enum tw_rs_refusal {
	TW_RS_REFUSED_SLOT,   /* the table of images is full */
	TW_RS_REFUSED_FILE,   /* it cannot make its file: rights, another root, no descriptor, a limit of file sizes */
	TW_RS_REFUSED_MEMORY, /* no memory, or no address space */
	TW_RS_REFUSED_FORK, /* forked inside of a traced call or of a change, or under a filter: a child that cannot be followed */
	/* Programs that cannot be traced: found out before they are executed. */
	TW_RS_REFUSED_STATIC,  /* statically linked */
	TW_RS_REFUSED_LIBRARY, /* another C library, or another machine */
	TW_RS_REFUSED_RIGHTS,  /* set-uid, set-gid, file capabilities */
	TW_RS_REFUSED_FILTER,  /* it began under a seccomp filter that nobody knows */
	TW_RS_REFUSALS
};

struct tw_rs_control {
	/* Written by the owner. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t heartbeat_ns; /* CLOCK_MONOTONIC of its last progress */
	_Atomic uint32_t is_closed;			    /* no more events are wanted */
	_Atomic uint32_t delivered;			    /* up to this request it has; a futex */
	_Atomic uint32_t layouts_answered;		    /* up to this request it has; a futex */
	_Atomic uint64_t layouts_bytes;			    /* so much of the file of layouts is whole */

	/* Written by members. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t wanted_count; /* rings and slots refused since the owner last looked */
	_Atomic uint32_t wake; /* a futex: members raise it to have the owner look at once */
	uint32_t reserved;
	_Atomic uint32_t delivery_wanted; /* take all that is committed now; PAIR rs.delivery */
	_Atomic uint32_t layouts_wanted;  /* look what I have opened; PAIR rs.layouts_wanted */
	_Atomic uint32_t slot_count;	  /* slots that have been in use: a bound for looks at them */
	_Atomic uint32_t next_lease;
	_Atomic uint64_t used_bytes; /* of rings, of all images; what keeps them within the cap */
	_Atomic uint64_t images_refused[TW_RS_REFUSALS];

	struct tw_rs_slot slots[TW_RS_IMAGES_MAX];
};

/* One entry of an image's table of rings. */
struct tw_rs_ring {
	/* enum tw_rb_state; from LIVE on the low half of the lease, shifted by 16: who ends a ring ends its own lease. */
	_Atomic uint32_t state;
	/* Written by the member before ring_count passes the entry; constant. */
	_Atomic uint32_t offset_pages; /* of the header page in the file; data_bytes follow it */
	_Atomic uint32_t data_pages;
	/* Of these, from the beginning, have memory.  It grows: by the member, and by the owner where the member may not. */
	_Atomic uint32_t present_pages; /* PAIR rs.present */
};

/* How an image's file begins. */
struct tw_rs_image_head {
	/* Written by the member before its slot is LIVE; constant. */
	uint64_t magic;
	uint64_t lease;
	uint64_t process_start_time;
	uint64_t start_ticks;
	int32_t process_id;
	int32_t parent_process_id;
	/* Written by the member. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t defs_committed_bytes; /* PAIR rs.defs */
	_Atomic uint64_t defs_refused;				    /* definitions that found no room */
	_Atomic uint64_t cut_bytes;				    /* of the file's part for rings, so far */
	_Atomic uint32_t ring_count;				    /* PAIR rs.ring_count */
	/* Written by all threads of the image. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t no_ring_lost; /* events of threads that got no ring */
	_Atomic uint64_t no_ring_first_ticks;
	_Atomic uint64_t no_ring_last_ticks;
	_Atomic uint32_t ring_waiters;
	_Atomic uint32_t unwakeable; /* a thread may not wake the owner, which looks often as long as the image lives */
	/* Written by the owner. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t recycled; /* rings given back; a futex */
	TW_CACHELINE_ALIGNED struct tw_rs_ring rings[TW_RS_IMAGE_RINGS_MAX];
};

/* The parts of an image's file. */
#define TW_RS_HEAD_BYTES ((sizeof(struct tw_rs_image_head) + TW_PAGE_BYTES - 1) / TW_PAGE_BYTES * TW_PAGE_BYTES)
#define TW_RS_RINGS_AT	 (TW_RS_HEAD_BYTES + TW_RS_DEFS_BYTES)

_Static_assert(sizeof(struct tw_rs_slot) == 32, "a mapped table of images is small");
_Static_assert(sizeof(struct tw_rs_ring) == 16, "a mapped table of rings is small");

/* ---- what each side keeps for itself ---- */

/* The member's image. */
struct tw_rs_own {
	struct tw_rs_image_head *head; /* never NULL: without an image a page of the process's own, that nobody reads */
	uint8_t *first_piece;	       /* of addresses: with the head, and the first anchor */
	uint8_t *defs;
	uint64_t defs_mapped_bytes;
	bool is_moving;	       /* defs, just now */
	uint8_t *anchor;       /* where the next ring is to be: mremap() makes more of its first page */
	uint64_t anchor_bytes; /* that are mapped there: a page at least */
	uint32_t slot;
	int32_t process_id; /* of the image; 0: there is none */
	uint64_t lease;
	_Atomic uint32_t next_ring_lease;
	struct tw_quiet_lock cutting;
	_Atomic uint32_t ring_count; /* valid entries; decides here, not the head's, which a stray write may change */
	uint64_t cut_bytes;	     /* under `cutting` */
	struct tw_rb_shared *rings[TW_RS_IMAGE_RINGS_MAX]; /* where they are mapped */
	uint64_t ring_bytes[TW_RS_IMAGE_RINGS_MAX];
};

/* The owner's view of an image: as it was when it was first seen. */
struct tw_rs_seen_image {
	uint64_t lease; /* 0: nobody */
	uint64_t process_start_time;
	uint64_t start_ticks;
	int32_t process_id;
	int32_t parent_process_id;
	uint8_t *memory;	/* the whole file; NULL: it could not be opened, or is refused */
	uint64_t rings_end;	/* behind the last ring seen */
	uint64_t populated_end; /* up to here the owner has made pages present */
	uint32_t ring_count;
	uint32_t first_ring; /* of the list through tw_rs_seen_ring.next; UINT32_MAX: none */
	uint8_t state;	     /* enum tw_rs_image_state: FREE, LIVE, ENDED */
	bool is_damaged;     /* its table of rings makes no sense from ring_count on */
	bool is_refused;
};

struct tw_rs_seen_ring {
	struct tw_rb_shared *shared; /* NULL: a free entry */
	uint64_t data_bytes;
	uint64_t thread_start_time; /* the kernel's, once asked for; 0: not yet */
	uint64_t asked_ns;
	uint64_t watched_pos; /* how far it was committed when its thread was last looked at for filters */
	uint32_t image;
	uint32_t index; /* in the image's table */
	uint32_t next;
};

/* One side's view of a ring set. */
struct tw_rs {
	struct tw_rs_config config;
	char *text; /* of config; terminated */
	struct tw_rs_control *control;
	uint8_t *anonymous; /* is_anonymous: control, and the image behind it */
	uint64_t anonymous_bytes;
	bool is_owner;
	bool leaves_memory; /* images stay mapped when the set is destroyed: the end of the process frees them */
	bool is_dead;	    /* a private copy of what a dead owner left */
	/* How long this process has waited for the owner since its last sign of life. */
	struct tw_stall_timer stall_timer;
	uint64_t own_pid_namespace; /* of this process; 0: to be asked for */
	/* The owner's. */
	struct tw_rs_seen_image *images;
	struct tw_rs_seen_ring *rings;
	uint32_t image_count, ring_count; /* entries that have been in use */
	uint32_t free_ring;		  /* of a list; UINT32_MAX: none */
	uint32_t newest_lease;
	uint64_t damaged_images; /* that cannot be opened */
	uint64_t damaged_tables; /* and of which head or table of rings makes no sense: what is behind is not known */
	uint64_t layouts_bytes;
	uint32_t delivered, layouts_answered;
	char path[256];	      /* of the directory; "" when anonymous */
	struct tw_rs_own own; /* the member's; last, because most of it is not touched */
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
	bool has_fixed_rings; /* no small ring first: every ring has ring_bytes */
	const char *config;   /* borrows: a string */
	const char *layouts;  /* borrows: a string that is too large for the config text; NULL: none */
};

/*
 * tw_rs_create - make a ring set and be its owner.
 *
 * @rs		init; tw_rs_destroy() ends it.
 * Errors: TW_EBADARG, TW_ENOSPC, TW_EPERM (the directory belongs to somebody else), TW_ENOMEM, TW_EIO.
 */
int tw_rs_create(struct tw_rs *rs, const struct tw_rs_options *options);

/*
 * tw_rs_destroy - remove files and mappings.
 *
 * The files go first, while they are mapped: that takes no time; to free the memory takes 0.2 ms a MiB.  Members that have
 * it mapped go on writing into memory that nobody reads.
 */
void tw_rs_destroy(struct tw_rs *rs);
/* Its first half: the files are gone, their memory is there. */
void tw_rs_unlink(struct tw_rs *rs);

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
 * The tables are checked as the owner of a living set does.
 */
int tw_rs_open_dead(struct tw_rs *rs, const char *path);

/* Unmaps; leaves the files alone. */
void tw_rs_detach(struct tw_rs *rs);

/* Removes the files and the directory of a set that nobody owns any more. */
int tw_rs_remove(const char *path);

/*
 * tw_rs_list_dead - the ring sets of this user whose owners are gone.
 *
 * @fn	called with each directory, and the bytes that its files take.
 * Returns how many there are.
 */
unsigned tw_rs_list_dead(void (*fn)(const char *path, uint64_t bytes, void *arg), void *arg);

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

/* ---- member: its image ---- */

/*
 * tw_rs_image_claim - begin an image of this process: a slot, and a file with its definitions and rings.
 *
 * @slot	gives: its number in the table of images.
 * An image of the same process that exec() has replaced is ended.  Errors, all but the last counted in
 * control->images_refused: TW_ELIMIT (all slots are taken), TW_EPERM, TW_ENOENT, TW_ENOSPC, TW_ENOMEM, TW_EIO; TW_ENOTSUP.
 */
int tw_rs_image_claim(struct tw_rs *rs, uint32_t *slot);
/* Counts an image that will not be.  Also in a child of vfork(). */
void tw_rs_image_refuse(struct tw_rs *rs, enum tw_rs_refusal why);
/* Gives it back: LIVE to ENDED. */
void tw_rs_image_end(struct tw_rs *rs, uint32_t slot);

/*
 * tw_rs_after_fork_in_child - nothing of the parent's image is reached from here on.
 *
 * The child has none of its parent's mappings; where they were there is empty memory of its own, so that what the fork
 * interrupted comes to its end there.  tw_rs_image_claim() begins an image of the child.  Signal handlers: yes.
 */
void tw_rs_after_fork_in_child(struct tw_rs *rs);

/* The same for one ring that was in use; the producer finds it empty. */
void tw_rs_ring_after_fork_in_child(struct tw_rs *rs, struct tw_rb_producer *producer);

/* Who claims a ring, for its header. */
struct tw_rs_claim {
	uint32_t session_index;
	uint32_t scheduler_id;
	uint32_t tracee_id;
	uint64_t thread_start_ticks; /* tells threads apart that have one number after the other */
	bool may_pass_cap;	     /* a small ring in spite of the cap: who waits for one would wait for ever */
};

/* Is the caller of the image's process?  Not a child that shares its memory (vfork). */
bool tw_rs_is_own_process(const struct tw_rs *rs);

/*
 * tw_rs_ring_claim - a ring for the calling thread: one that is drained, or a new one.
 *
 * @producer	init on success.
 * Returns whether there was one: not above the cap, without memory, or for who is not of the image's process (a vfork
 * child); otherwise the caller counts no_ring.
 * Threads: any, with signals blocked.  System calls: getpid, gettid, prctl(PR_GET_NAME), mremap, madvise, munmap, futex.
 */
bool tw_rs_ring_claim(struct tw_rs *rs, const struct tw_rs_claim *who, struct tw_rb_producer *producer);

/* Does a full ring of this producer give way to a larger one? */
static inline bool tw_rs_may_grow(const struct tw_rb_producer *producer)
{
	return producer->growth_bytes != 0;
}

/*
 * tw_rs_ring_grow - take a larger ring in place of a full one; the stream goes on there.
 *
 * Returns false where there is none: the producer keeps its ring.
 * Threads: the producer, with signals blocked.  System calls: as tw_rs_ring_claim().
 */
bool tw_rs_ring_grow(struct tw_rs *rs, struct tw_rb_producer *producer);

/*
 * tw_rs_ring_populate - memory for what comes next in a ring that has too little (tw_rb_lacks_memory()).
 *
 * @may_call	the thread may make system calls; else only what the owner has made present counts.
 * Returns false where there is none: no record may be written.
 * Threads: the producer.  System calls: madvise.
 */
bool tw_rs_ring_populate(struct tw_rs *rs, struct tw_rb_producer *producer, bool may_call);

/*
 * tw_rs_populate_own - memory for the whole of each ring of this process that is in use.
 *
 * Before its threads may make no more system calls.  A ring that finds none stays as it is.  Threads: any.
 */
void tw_rs_populate_own(struct tw_rs *rs);

/* Says that a ring, or a slot, is wanted, and wakes the owner.  Signal handlers: yes. */
void tw_rs_want(struct tw_rs *rs);

/*
 * tw_rs_wait_ring - sleep until the owner has given a ring back, or the time is over.
 *
 * @seen	in and out: what tw_rs_recycled() said before the last claim that failed.
 */
uint32_t tw_rs_recycled(const struct tw_rs *rs);
void tw_rs_wait_ring(struct tw_rs *rs, uint32_t seen, uint64_t timeout_ns);

/* The owner's last sign of life: another one after each round that it went. */
static inline uint64_t tw_rs_beat(const struct tw_rs *rs)
{
	/* RELAXED rs.heartbeat: a lone time; a stale one makes a producer drop a little early. */
	return tw_load_relaxed(&rs->control->heartbeat_ns);
}

/*
 * tw_rs_is_stalled - a look at the owner by who waits for it: has it made no progress for a second?
 *
 * Called once each TW_RS_SLICE_NS or more often.  The second is one of waiting (base/stall_timer.h), by any threads of this
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
void tw_rs_count_no_ring(struct tw_rs *rs, uint64_t ticks);

/* The head of a record in the definitions log: 16 bytes, the payload follows, filled up to 8. */
struct tw_rs_defs_head {
	uint64_t checksum; /* tw_checksum64_two() of the rest of the head, and the payload */
	uint32_t type;
	uint32_t payload_bytes;
};

/*
 * tw_rs_defs_append - append one record to the definitions log of this process's image, whole or not at all.
 *
 * Published (PAIR rs.defs) before this returns.  Errors: TW_ENOSPC, counted in defs_refused.
 * Threads: one at a time an image (the permit's holder, or a joining thread under its lock).
 */
int tw_rs_defs_append(struct tw_rs *rs, uint32_t type, const void *payload, size_t bytes);

/* ---- owner, and recovery ---- */

/*
 * tw_rs_look - see which images, and which rings of them, are new, and who has ended.
 *
 * Returns how many entries of rings there are; tw_rs_image_count() how many of images.  An entry keeps its number until its
 * image is recycled.  In between tw_rs_ring(), _state() and the rest may be asked for any entry.
 */
uint32_t tw_rs_look(struct tw_rs *rs);

/* As of the last look. */
static inline uint32_t tw_rs_image_count(const struct tw_rs *rs)
{
	return rs->image_count;
}

static inline const struct tw_rs_seen_image *tw_rs_image(const struct tw_rs *rs, uint32_t slot)
{
	return &rs->images[slot];
}

static inline enum tw_rs_image_state tw_rs_image_state(const struct tw_rs *rs, uint32_t slot)
{
	return (enum tw_rs_image_state)rs->images[slot].state;
}

/* The image's words in shared memory; only of one that is LIVE or ENDED. */
static inline const struct tw_rs_image_head *tw_rs_head(const struct tw_rs *rs, uint32_t slot)
{
	return (const struct tw_rs_image_head *)(const void *)rs->images[slot].memory;
}

/* NULL: a free entry. */
static inline struct tw_rb_shared *tw_rs_ring(const struct tw_rs *rs, uint32_t index)
{
	return rs->rings[index].shared;
}

static inline uint64_t tw_rs_ring_bytes(const struct tw_rs *rs, uint32_t index)
{
	return rs->rings[index].data_bytes;
}

static inline uint32_t tw_rs_ring_image(const struct tw_rs *rs, uint32_t index)
{
	return rs->rings[index].image;
}

/* ABSENT also of a free entry.  Rings of an image that has ended are not LIVE but ENDED. */
enum tw_rb_state tw_rs_ring_state(const struct tw_rs *rs, uint32_t index);

/* The entry of another ring of the same image, by its number there; UINT32_MAX: not seen. */
uint32_t tw_rs_ring_sibling(const struct tw_rs *rs, uint32_t index, uint32_t number);

/*
 * tw_rs_defs_next - read the log of an image.
 *
 * @at_bytes	in and out: 0 at first.
 * @payload	lends: as long as the image is not recycled; another process may be writing over it.
 * Returns 1, 0 at the end of what is committed, or TW_EFORMAT where it is damaged (*at_bytes is then at
 * the end).
 */
int tw_rs_defs_next(const struct tw_rs *rs, uint32_t slot, uint64_t *at_bytes, uint32_t *type, const void **payload,
		    size_t *bytes);

/* ENDED and drained to the end: READY again, empty. */
void tw_rs_ring_recycle(struct tw_rs *rs, uint32_t index);

/* LIVE, and its thread is dead: to ENDED.  Returns whether it was so. */
bool tw_rs_ring_reap(struct tw_rs *rs, uint32_t index);

/* LIVE, and its process is dead: ENDED.  Returns whether it was so.  A slot that died while it was claimed is FREE again. */
bool tw_rs_image_reap(struct tw_rs *rs, uint32_t slot);
/* ENDED and drained: its file is removed, its entries are free again. */
void tw_rs_image_recycle(struct tw_rs *rs, uint32_t slot);

/* Memory behind the last ring of an image with several threads: what further threads begin with is there then. */
void tw_rs_populate_ahead(struct tw_rs *rs, uint32_t slot);
/* Memory for the whole of each ring that is in use, of an image whose threads may make no system calls. */
void tw_rs_populate_for(struct tw_rs *rs, uint32_t slot);

/* Is there a living image that may not wake the owner?  One that lives, as far as the owner knows, or is being made? */
bool tw_rs_is_unwakeable(const struct tw_rs *rs);
bool tw_rs_is_anybody_there(const struct tw_rs *rs);

/* Images that could not be traced, for all causes together. */
uint64_t tw_rs_images_refused(const struct tw_rs *rs);
/* A member counts itself as not traced, for a reason that is not the set's. */
void tw_rs_count_refused(struct tw_rs *rs, enum tw_rs_refusal why);

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
/* No more events are wanted.  Threads that wait find it at their next look, TW_RS_SLICE_NS later at most.  Threads: any. */
void tw_rs_close(struct tw_rs *rs);
/* Wakes all threads that wait for room or for a ring.  Threads: the owner's, since it walks what the owner has seen. */
void tw_rs_end_waits(struct tw_rs *rs);
/* Sleeps until a member raises `wake` or the time is over. */
void tw_rs_wait(struct tw_rs *rs, uint64_t timeout_ns);

#endif
