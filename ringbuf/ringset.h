/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringset.h - the shared memory of one recording: a control page, and rings and definitions for each process image.
 *
 * A ring set is a directory on tmpfs, so committed records survive the death of every process that wrote them:
 *
 *	/dev/shm/tracewheel-UID/NAME/		0700, files 0600
 *	    config	struct tw_rs_config and a text: constant, never mapped
 *	    control	struct tw_rs_control: words by which owner and members signal each other, the table of images
 *	    answers	text from the rooms above, possibly large: the owner answers what members ask (TW_RS_QUESTION_LAYOUTS)
 *	    plan-ID, frames-ID	files of the rooms above, which members read (TW_RS_QUESTION_PLANS)
 *	    image-LEASE	one process image: its head, definitions, rings, counts (counts.h); sparse
 *
 * If tmpfs cannot be used, control and one image are anonymous memory of one process (config.is_anonymous).
 *
 * There are two roles.  The *owner* (the command, or the writer thread of a library's own session) creates the set, drains the rings,
 * removes files of drained images, and removes the set.  The *member* (a traced process image) attaches, takes a slot in the table of
 * images, creates its own file, cuts rings from it for its threads and appends definitions.  One process may be both.
 *
 * A member maps control (TW_RS_IMAGES_MAX slots) and, of its own file, the head, part of the definitions, and the rings that it has cut.
 * It maps nothing of other images, keeps no file descriptor open and needs no path later: it maps a further ring by mremap() of a mapped
 * page.  A forked child has none of these mappings (MADV_DONTFORK); it starts an image of its own or is not traced.  A signal handler that
 * interrupted a hit may fork unnoticed: the hit continues in the child, where its stores must find empty memory.  For that, a page that
 * grows downwards like a stack lies above each mapping, and a reserved page, which limits the growth, below it:
 *
 *	| reserved | head | growing | anchor | growing |		| reserved | ring | ring | ... | anchor ... | growing |
 *
 * The owner trusts no word that members can write: it checks tables once and copies them, others where it uses them (docs/security.md).
 *
 * The states of a ring, and which side changes them (PAIR rs.state on every arrow):
 *
 *	ABSENT --cut, or READY taken, by the member--> CLAIMED --> LIVE --member, or owner when the thread is dead--> ENDED
 *	                READY <--owner: drained----------------------------------------------------------------------'
 *
 * A thread starts with a small ring and takes a larger one when it finds it full.  Both rings form one stream with one
 * lease; positions continue from one to the next:
 *
 *	the member: fill the new header {lease, grown_from, first_pos}; new ring LIVE; old ring: grown_to; old ring ENDED
 *	the owner: drains a ring to its end before it reads the ring that continues it
 *
 * Limits  those of base/limits.h, TW_RS_*.  Errors  those of tracewheel/error.h.
 */
#ifndef TW_RINGBUF_RINGSET_H
#define TW_RINGBUF_RINGSET_H

#include "base/stall_timer.h"
#include "base/quiet_lock.h"
#include "ringbuf/counts.h"
#include "ringbuf/crash.h"
#include "ringbuf/demotion.h"
#include "ringbuf/held.h"
#include "ringbuf/ringbuf.h"
#include "ringbuf/trigger.h"

#define TW_RS_MAGIC	  UINT64_C(0x3253524c45485754) /* "TWHELRS2" */
#define TW_RS_IMAGE_MAGIC UINT64_C(0x32474d4945485754) /* "TWHEIMG2" */
#define TW_RS_VERSION	  19
#define TW_RS_PATH_BYTES  256

/* ---- in shared memory ---- */

/* The file `config`; text from the rooms above follows it.  Each side works on its own copy. */
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
	uint64_t block_timeout_ns;    /* TW_RB_BLOCK: limit of a producer's wait; 0: while the owner makes progress */
	uint32_t follow_fork;
	uint32_t is_anonymous;
	uint32_t has_fixed_rings; /* no small first rings: every ring has ring_bytes */
	uint32_t text_bytes;
};

/* States of an image slot; PAIR rs.image. */
enum tw_rs_image_state {
	TW_RS_IMAGE_FREE,
	TW_RS_IMAGE_CLAIMED, /* a member creates its file */
	TW_RS_IMAGE_LIVE,
	TW_RS_IMAGE_ENDED /* the process died or exec replaced the image; the owner drains it, then FREE */
};

/* An entry in the table of images. */
struct tw_rs_slot {
	_Atomic uint64_t state; /* enum tw_rs_image_state, and the process id shifted by 32 */
	/* Written by the member between CLAIMED and LIVE. */
	_Atomic uint64_t process_start_time; /* tw_sys_process_start_time() */
	_Atomic uint64_t lease;		     /* one ownership of the slot; never reused within a set */
	/* Written by the owner when it finds a seccomp filter that it does not have itself; zeroed at the claim. */
	_Atomic uint32_t filter_seen;
	/* A bit for each enum tw_rs_question: set by the member that asks, cleared by the owner that takes the question. */
	_Atomic uint32_t asks;
};

/* Questions of members to the owner. */
enum tw_rs_question {
	TW_RS_QUESTION_LAYOUTS, /* arguments of functions: the answer is text */
	TW_RS_QUESTION_PLANS,	/* function entries: the answer is files in the set's directory */
	TW_RS_QUESTIONS
};

/* Why an image that should be traced is not. */
enum tw_rs_refusal {
	TW_RS_REFUSED_SLOT,    /* the table of images is full */
	TW_RS_REFUSED_FILE,    /* its file cannot be created: permissions, chroot, no descriptor, file size limit */
	TW_RS_REFUSED_MEMORY,  /* out of memory or address space */
	TW_RS_REFUSED_FORK,    /* a child forked inside a traced call or a change, or under a seccomp filter */
	TW_RS_REFUSED_STATIC,  /* this and the next two, before they are executed: statically linked */
	TW_RS_REFUSED_LIBRARY, /* another C library or machine */
	TW_RS_REFUSED_RIGHTS,  /* set-uid, set-gid, file capabilities */
	TW_RS_REFUSED_FILTER,  /* started under an unknown seccomp filter */
	TW_RS_REFUSED_TRACER,  /* its tracer module cannot be used */
	TW_RS_REFUSALS
};

struct tw_rs_control {
	/* Written by the owner. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t heartbeat_ns; /* CLOCK_MONOTONIC of the owner's last progress */
	_Atomic uint32_t is_closed;			    /* no more events are wanted */
	_Atomic uint32_t delivered;			    /* the last request that is answered; a futex */
	_Atomic uint64_t delivered_ticks; /* all events before this time were there; UINT64_MAX: none waited */
	_Atomic uint32_t answers_given[TW_RS_QUESTIONS]; /* the last request that is answered; futexes */
	_Atomic uint64_t answers_bytes;			 /* how much of the file of answers is complete */

	/* Written by members. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t wanted_count; /* rings and slots refused since the owner's last scan */
	_Atomic uint32_t wake;				    /* a futex: members raise it to make the owner scan now */
	_Atomic uint32_t delivery_wanted;		    /* last request to take all records; PAIR rs.delivery */
	_Atomic uint32_t answers_wanted[TW_RS_QUESTIONS];   /* last request; PAIR rs.answers_wanted */
	_Atomic uint32_t slot_count;			    /* upper bound of the slots ever used */
	_Atomic uint32_t next_lease;
	_Atomic uint32_t held_wanted; /* requests so far (held.h) */
	_Atomic uint64_t used_bytes;  /* rings of all images together; compared with the cap */
	_Atomic uint64_t images_refused[TW_RS_REFUSALS];
	_Atomic uint64_t plans_late; /* objects whose plans were not there in time */
	/* Of no_ring_lost: events of threads after their last destructor; of children of vfork().  Of rings: see tw_rs_count_left_out(). */
	_Atomic uint64_t ended_lost, vfork_lost, left_out;
	_Atomic uint64_t children; /* processes that members started, and that are not followed */
	_Atomic uint64_t unarmed; /* functions that were to be traced in another way than they are, or are not traced */

	struct tw_rs_trigger trigger;
	struct tw_rs_demotion demotion;
	struct tw_rs_slot slots[TW_RS_IMAGES_MAX];
};

/* One entry of an image's table of rings. */
struct tw_rs_ring {
	/* enum tw_rb_state; from LIVE on also the low half of the lease << 16: a thread can end only its own lease. */
	_Atomic uint32_t state;
	/* Written by the member before ring_count passes the entry; constant. */
	_Atomic uint32_t offset_pages; /* the header page's offset in the file; data_bytes follow it */
	_Atomic uint32_t data_pages;
	/* The first pages that have memory.  The member increases the number. */
	_Atomic uint32_t present_pages; /* PAIR rs.present */
};

/* The start of an image's file. */
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
	_Atomic uint64_t defs_refused;				    /* definitions that did not fit */
	_Atomic uint64_t cut_bytes;				    /* used so far of the file's part for rings */
	_Atomic uint32_t ring_count;				    /* PAIR rs.ring_count */
	/* Written by all threads of the image. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t no_ring_lost; /* events of threads that got no ring */
	_Atomic uint64_t no_ring_first_ticks;
	_Atomic uint64_t no_ring_last_ticks;
	_Atomic uint32_t ring_waiters;
	_Atomic uint32_t unwakeable; /* a thread may not wake the owner, which therefore polls while the image lives */
	_Atomic uint64_t exit_ticks; /* the process began to exit; 0: it did not, or has not said so */
	TW_CACHELINE_ALIGNED struct tw_rs_held held;
	TW_CACHELINE_ALIGNED struct tw_rs_counting counting;
	struct tw_rs_crash crash;
	/* Written by the owner. */
	TW_CACHELINE_ALIGNED _Atomic uint32_t recycled; /* rings given back; a futex */
	TW_CACHELINE_ALIGNED struct tw_rs_ring rings[TW_RS_IMAGE_RINGS_MAX];
};

/* Sections of an image's file. */
#define TW_RS_HEAD_BYTES ((sizeof(struct tw_rs_image_head) + TW_PAGE_BYTES - 1) / TW_PAGE_BYTES * TW_PAGE_BYTES)
#define TW_RS_RINGS_AT	 (TW_RS_HEAD_BYTES + TW_RS_DEFS_BYTES)

_Static_assert(sizeof(struct tw_rs_slot) == 32, "a mapped table of images is small");
_Static_assert(sizeof(struct tw_rs_ring) == 16, "a mapped table of rings is small");

/* ---- private to each side ---- */

/* The member's image. */
struct tw_rs_own {
	struct tw_rs_image_head *head; /* never NULL: without an image, a page of the process that is never read */
	uint8_t *first_piece;	       /* the mapping with the head and the first anchor */
	uint8_t *defs;
	uint64_t defs_mapped_bytes;
	bool is_moving;	       /* set while defs is being remapped */
	uint8_t *anchor;       /* start of the next ring: mremap() extends its first page */
	uint64_t anchor_bytes; /* mapped there; at least one page */
	uint32_t slot;
	int32_t process_id; /* of the image; 0: none */
	uint64_t lease;
	struct tw_rs_own_counts counts;
	_Atomic uint32_t next_ring_lease;
	struct tw_quiet_lock cutting;
	_Atomic uint32_t ring_count; /* valid entries; decides here, not the head's, which a stray write may change */
	uint64_t cut_bytes;	     /* protected by `cutting` */
	struct tw_rb_shared *rings[TW_RS_IMAGE_RINGS_MAX]; /* the mapping of each ring */
	uint64_t ring_bytes[TW_RS_IMAGE_RINGS_MAX];
};

/* The owner's view of an image, copied when it was first seen. */
struct tw_rs_seen_image {
	uint64_t lease; /* 0: unused */
	uint64_t process_start_time;
	uint64_t start_ticks;
	int32_t process_id;
	int32_t parent_process_id;
	uint8_t *memory;	/* the whole file; NULL: not opened, or refused */
	uint64_t rings_end;	/* end of the last ring seen */
	uint64_t populated_end; /* end of the pages that the owner has made present */
	uint32_t ring_count;
	uint32_t first_ring; /* head of the list through tw_rs_seen_ring.next; UINT32_MAX: none */
	uint8_t state;	     /* enum tw_rs_image_state: FREE, LIVE, ENDED */
	bool is_damaged;     /* its table of rings is invalid from ring_count on */
	bool is_refused;
};

struct tw_rs_seen_ring {
	struct tw_rb_shared *shared; /* NULL: a free entry */
	uint64_t data_bytes;
	uint64_t thread_start_time; /* from the kernel; 0: not read yet */
	uint64_t asked_ns;
	uint64_t watched_pos; /* committed position when the thread was last checked for seccomp filters */
	uint32_t image;
	uint32_t index; /* in the image's table */
	uint32_t next;
};

/* One side's view of a ring set. */
struct tw_rs {
	struct tw_rs_config config;
	char *text; /* the text of config, null-terminated */
	struct tw_rs_control *control;
	uint8_t *anonymous; /* is_anonymous: control, followed by the image */
	uint64_t anonymous_bytes;
	bool is_owner;
	bool leaves_memory;		   /* destroying the set leaves images mapped; process exit frees them */
	bool is_dead;			   /* opened for recovery: a private copy */
	struct tw_stall_timer stall_timer; /* how long this process has waited for the owner without progress */
	uint64_t own_pid_namespace;	   /* of this process; 0: not read yet */
	int32_t forked_from;		   /* the process that forked this one; 0: not known */
	/* The owner's fields. */
	struct tw_rs_seen_image *images;
	struct tw_rs_seen_ring *rings;
	uint32_t image_count, ring_count; /* entries ever used */
	uint32_t free_ring;		  /* head of the free list; UINT32_MAX: none */
	uint32_t newest_lease;
	uint64_t damaged_images; /* images that could not be opened */
	uint64_t damaged_tables; /* images whose head or table of rings is invalid; their remaining rings are unknown */
	uint64_t answers_bytes;
	uint32_t delivered, answers_given[TW_RS_QUESTIONS], held_seen;
	struct tw_rs_written *written; /* a member's list, shown by each of its images; NULL: none */
	char path[TW_RS_PATH_BYTES];   /* the directory; "" if anonymous */
	struct tw_rs_own own;	       /* the member's fields; last, because most of it is never touched */
};

/* Options of an owner.  Zeroed fields select the defaults of base/limits.h. */
struct tw_rs_options {
	const char *name; /* of the directory: borrows; NULL: derived from the process and a counter */
	uint64_t ring_bytes;
	uint64_t cap_bytes;
	enum tw_rb_policy policy;
	uint64_t block_timeout_ns; /* 0: producers stop waiting when the consumer makes no progress for a second */
	bool follow_fork;
	bool allow_anonymous; /* if tmpfs cannot be used; for sessions inside one process only */
	bool is_anonymous;    /* do not try tmpfs: no other process will read it */
	bool has_fixed_rings; /* no small first rings: every ring has ring_bytes */
	const char *config;   /* borrows: a string */
	const char *answers;  /* borrows: a string too large for the config text; NULL: none */
};

/*
 * tw_rs_create - create a ring set and become its owner.
 *
 * @rs		init; tw_rs_destroy() ends it.
 * Errors: TW_EBADARG, TW_ENOSPC, TW_EPERM (the directory belongs to another user), TW_ENOMEM, TW_EIO.
 */
int tw_rs_create(struct tw_rs *rs, const struct tw_rs_options *options);

/*
 * tw_rs_destroy - remove files and mappings.
 *
 * Files are removed while they are mapped, which takes no time; freeing the memory takes 0.2 ms per MiB. Members that
 * still map it go on writing into memory that is never read.
 */
void tw_rs_destroy(struct tw_rs *rs);
/* The first half of tw_rs_destroy(): removes the files and keeps the memory. */
void tw_rs_unlink(struct tw_rs *rs);

/*
 * tw_rs_attach - map an existing ring set as a member.
 *
 * @path	absolute; refused unless it and its files belong to this user or root and no one else may write them.
 * Errors: TW_ENOENT, TW_EPERM, TW_EFORMAT, TW_EVERSION, TW_ENOMEM; TW_ENOTSUP in another pid namespace.
 */
int tw_rs_attach(struct tw_rs *rs, const char *path);

/*
 * tw_rs_open_dead - map the set of an owner that is dead, or @may_live, as a private copy that shows what members write.
 *
 * Checks the tables as a living owner does.  Errors: TW_EEXIST if the owner lives and may not, TW_EFORMAT, TW_ENOENT.
 */
int tw_rs_open_dead(struct tw_rs *rs, const char *path, bool may_live);

/* Has the process ended that owns the set? Asks the kernel. */
bool tw_rs_is_owner_gone(const struct tw_rs *rs);
/* Unmaps the set and leaves its files. */
void tw_rs_detach(struct tw_rs *rs);
/* Removes the files and the directory of a set without an owner. */
int tw_rs_remove(const char *path);

/*
 * tw_rs_list_dead - list the ring sets of this user whose owners are gone.
 *
 * @fn	called with each directory, the text of its config ("" if it has none) and the disk space of its files; may remove
 *	the set.
 * Returns the number of sets.
 */
unsigned tw_rs_list_dead(void (*fn)(const char *path, const char *text, uint64_t bytes, void *arg), void *arg);

/* ---- member: its image ---- */

/*
 * tw_rs_image_claim - start an image of this process: a slot, and a file for its definitions and rings.
 *
 * @slot	gives its index in the table of images.
 * Ends an image of the same process that exec() has replaced.
 * Errors, all but the last counted in control->images_refused: TW_ELIMIT (all slots are taken), TW_EPERM, TW_ENOENT,
 * TW_ENOSPC, TW_ENOMEM, TW_EIO; TW_ENOTSUP.
 */
int tw_rs_image_claim(struct tw_rs *rs, uint32_t *slot);
/* Counts an image that is not traced.  Also callable in a child of vfork(). */
void tw_rs_image_refuse(struct tw_rs *rs, enum tw_rs_refusal why);
/* Ends the image: LIVE to ENDED. */
void tw_rs_image_end(struct tw_rs *rs, uint32_t slot);
/* The process of the image exits at this time; its image stays LIVE until it is gone. */
void tw_rs_image_exits(struct tw_rs *rs, uint64_t ticks);

/*
 * tw_rs_after_fork_in_child - detach the child from its parent's image.
 *
 * The child has none of its parent's mappings.  Empty memory is mapped in their stead, so that code which the fork
 * interrupted can finish there. tw_rs_image_claim() starts an image of the child.  Signal handlers: yes.
 */
void tw_rs_after_fork_in_child(struct tw_rs *rs);

/* The same for one ring that was in use, which is empty for the producer. */
void tw_rs_ring_after_fork_in_child(struct tw_rs *rs, struct tw_rb_producer *producer);

/* The claimant, as written to the ring's header. */
struct tw_rs_claim {
	uint32_t session_index;
	uint32_t scheduler_id;
	uint32_t tracee_id;
	uint64_t thread_start_ticks; /* tells apart threads that had the same number in turn */
	bool is_own_tracee; /* the tracee is the thread: the ring's header defines it, the log of definitions need not */
	bool may_pass_cap;  /* take a small ring in spite of the cap, because waiting for one would never end */
};

/* False in a child that shares the memory of the image's process (vfork). */
bool tw_rs_is_own_process(const struct tw_rs *rs);

/*
 * tw_rs_ring_claim - claim a ring for the calling thread: a drained one, or a new one.
 *
 * @producer	init on success.
 * Returns false, and the caller counts no_ring, if the cap is reached, memory is short, or the calling process does not
 * own the image (a vfork child).
 * Threads: any, with signals blocked.  System calls: getpid, gettid, prctl(PR_GET_NAME), mremap, madvise, munmap,
 * futex.
 */
bool tw_rs_ring_claim(struct tw_rs *rs, const struct tw_rs_claim *claim, struct tw_rb_producer *producer);

/* True if a larger ring may replace this producer's ring when it is full. */
static inline bool tw_rs_may_grow(const struct tw_rb_producer *producer)
{
	return producer->growth_bytes != 0;
}

/*
 * tw_rs_ring_grow - replace a full ring by a larger one, in which the stream continues.
 *
 * Returns false if there is none; the producer then keeps its ring.
 * Threads: the producer, with signals blocked.  System calls: as tw_rs_ring_claim().
 */
bool tw_rs_ring_grow(struct tw_rs *rs, struct tw_rb_producer *producer);

/*
 * tw_rs_ring_populate - get memory for the next records of a ring that lacks it (tw_rb_lacks_memory()).
 *
 * @may_call	the thread may make system calls; if not, only memory that the owner made present counts.
 * Returns false if there is none; no record may then be written.
 * Threads: the producer.  System calls: madvise.
 */
bool tw_rs_ring_populate(struct tw_rs *rs, struct tw_rb_producer *producer, bool may_call);

/*
 * tw_rs_populate_own - get memory for the whole of each ring that this process uses.
 *
 * Called before the threads lose the right to make system calls.  A ring that gets no memory is left unchanged.
 * Threads: any.
 */
void tw_rs_populate_own(struct tw_rs *rs);

/* Tells the owner that a ring or slot is wanted, and wakes it.  Signal handlers: yes. */
void tw_rs_want(struct tw_rs *rs);

/*
 * tw_rs_begin_ring_wait - the caller is about to sleep until the owner has recycled a ring, or for a limited time.
 *
 * Lends the word to sleep on, as long as it has the value that tw_rs_recycled() returned before the last claim that failed.
 */
uint32_t tw_rs_recycled(const struct tw_rs *rs);
const _Atomic uint32_t *tw_rs_begin_ring_wait(struct tw_rs *rs);
void tw_rs_end_ring_wait(struct tw_rs *rs);

/* The time of the owner's last heartbeat; it changes after each of its rounds. */
static inline uint64_t tw_rs_beat(const struct tw_rs *rs)
{
	/* RELAXED rs.heartbeat: an independent time; a stale one makes a producer drop a little early. */
	return tw_load_relaxed(&rs->control->heartbeat_ns);
}

/*
 * tw_rs_is_stalled - check, for a waiting member, whether the owner has made no progress for a second.
 *
 * Call it at least once per TW_RS_SLICE_NS. Only time in which some thread of this process waits counts towards the
 * second (base/stall_timer.h); time before the first check, or in which no thread is scheduled, does not.
 * Threads: any.  Signal handlers: yes.
 */
bool tw_rs_is_stalled(struct tw_rs *rs);

/* Wakes the owner for a scan.  Signal handlers: yes. */
void tw_rs_wake(struct tw_rs *rs);

/*
 * tw_rs_delivery_want - ask the owner to take, soon, everything that is committed now.
 *
 * Returns the request's number. tw_rs_delivery_wait() sleeps until it is done or until the timeout, and returns whether
 * it is done.  Any number of requests may be outstanding; they are done in order.
 */
uint32_t tw_rs_delivery_want(struct tw_rs *rs);
bool tw_rs_delivery_wait(struct tw_rs *rs, uint32_t number, uint64_t timeout_ns);

/*
 * Gives a ring back: LIVE to ENDED; the producer is fini.  If the owner found the thread dead before, the ring has
 * already ended and may belong to another thread: it is then left alone.
 */
void tw_rs_ring_end(struct tw_rs *rs, struct tw_rb_producer *producer);
/* Before it, if the thread itself ends at this time. Calls by which libc frees what the thread had may still follow. */
void tw_rs_ring_note_thread_end(struct tw_rs *rs, struct tw_rb_producer *producer, uint64_t ticks);

/* Counts an event of a thread without a ring.  Signal handlers: yes. */
void tw_rs_count_no_ring(struct tw_rs *rs, uint64_t ticks);
/* The same, of a thread after its last destructor; of a child of vfork(), which shares the member's memory and owns no ring. */
void tw_rs_count_ended(struct tw_rs *rs, uint64_t ticks);
void tw_rs_count_vfork(struct tw_rs *rs, uint64_t ticks);
/* Of the calls that a ring counts as lost inside others: those that were not kept until these were decided. */
void tw_rs_count_left_out(struct tw_rs *rs, uint64_t count);

/* The head of a record in the definitions log: 16 bytes, then the payload, padded to 8. */
struct tw_rs_defs_head {
	uint64_t checksum; /* tw_checksum64_two() of the rest of the head and the payload */
	uint32_t type;
	uint32_t payload_bytes;
};

/*
 * tw_rs_defs_append - append one record to the definitions log of this process's image, completely or not at all.
 *
 * Published (PAIR rs.defs) before this returns.  Errors: TW_ENOSPC, counted in defs_refused.
 * Threads: one at a time per image (the permit's holder, or a joining thread under its lock).
 */
int tw_rs_defs_append(struct tw_rs *rs, uint32_t type, const void *payload, size_t bytes);

/* ---- owner, and recovery ---- */

/*
 * tw_rs_scan - find new images, new rings of images, and images that ended.
 *
 * Returns the number of ring entries; tw_rs_image_count() returns that of images.  An entry keeps its index until its
 * image is recycled.  Between scans tw_rs_ring(), _state() and the rest may be called for any entry.
 */
uint32_t tw_rs_scan(struct tw_rs *rs);

/* As of the last scan. */
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

/* The image's words in shared memory; for a LIVE or ENDED image only. */
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

/* ABSENT for a free entry.  Rings of an ended image are ENDED, never LIVE. */
enum tw_rb_state tw_rs_ring_state(const struct tw_rs *rs, uint32_t index);

/* The entry of another ring of the same image, by its number there; UINT32_MAX: not seen yet. */
uint32_t tw_rs_ring_sibling(const struct tw_rs *rs, uint32_t index, uint32_t number);

/*
 * tw_rs_defs_next - read the next record of an image's definitions log.
 *
 * @at_bytes	in and out: 0 at first.
 * @payload	lends until the image is recycled; another process may be overwriting it.
 * Returns 1, 0 at the end of the committed records, or TW_EFORMAT if the log is damaged (*at_bytes is then its end).
 */
int tw_rs_defs_next(const struct tw_rs *rs, uint32_t slot, uint64_t *at_bytes, uint32_t *type, const void **payload,
		    size_t *bytes);

/* Makes a drained ENDED ring READY and empty again. */
void tw_rs_ring_recycle(struct tw_rs *rs, uint32_t index);
/* Changes a LIVE ring of a dead thread to ENDED. Returns whether it did. */
bool tw_rs_ring_reap(struct tw_rs *rs, uint32_t index);

/* Changes a LIVE image of a dead process to ENDED and returns true; a CLAIMED slot becomes FREE. */
bool tw_rs_image_reap(struct tw_rs *rs, uint32_t slot);
/* Removes the file of a drained ENDED image and frees its entries. */
void tw_rs_image_recycle(struct tw_rs *rs, uint32_t slot);

/* Gets memory after the last ring of an image with several threads, for the first rings of further threads. */
void tw_rs_populate_ahead(struct tw_rs *rs, uint32_t slot);

/* True if a living image may not wake the owner. */
bool tw_rs_is_unwakeable(const struct tw_rs *rs);
/* True if an image lives, as far as the owner knows, or is being created. */
bool tw_rs_is_anybody_there(const struct tw_rs *rs);

/* A member counts itself as not traced, for a reason outside the set. */
void tw_rs_count_refused(struct tw_rs *rs, enum tw_rs_refusal why);
/* A member counts objects about which it has asked (TW_RS_QUESTION_PLANS) and got no answer in time. */
void tw_rs_count_late(struct tw_rs *rs, uint32_t count);
/* A member counts a process that it starts and that is not followed; -1: it did not start. */
void tw_rs_count_child(struct tw_rs *rs, int count);
/* A member counts functions that it could not arm as it should have. */
void tw_rs_count_unarmed(struct tw_rs *rs, uint32_t count);

/* Gives the newest request if it is unanswered, else returns false.  The owner calls this before it scans the rings. */
bool tw_rs_delivery_poll(const struct tw_rs *rs, uint32_t *number);
/* Answers a request: all committed before the poll has been taken; @waiting_ticks: the least of tw_rb_waiting_ticks() then. */
void tw_rs_delivery_done(struct tw_rs *rs, uint32_t number, uint64_t waiting_ticks);
uint64_t tw_rs_delivered_ticks(const struct tw_rs *rs); /* that; for who has waited for a delivery */
void tw_rs_heartbeat(struct tw_rs *rs);			/* the owner's progress, for members that wait */
/* Closes the set for further events.  Waiting threads notice within TW_RS_SLICE_NS. Threads: any. */
void tw_rs_close(struct tw_rs *rs);
void tw_rs_end_waits(struct tw_rs *rs); /* wakes all threads that wait for space or for a ring; the owner's thread */
/* Sleeps until a member increments `wake`, or until the timeout. */
void tw_rs_wait(struct tw_rs *rs, uint64_t timeout_ns);

#endif
