/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - from the rings of a ring set to the segments of a capture.
 *
 * Shared by the recorder, which owns the ring set in use, and by recovery, which reads the memory of a dead one. The
 * writer knows for each ring how much of it is in the files; the tail of a ring never moves beyond that.
 *
 * Several files write these structures. The fields stand by the file that changes them; all others only read them, but when an image or a
 * ring is cleared (tw_writer_recycle_image()).
 *
 * Threads  one at a time.
 */
#ifndef TW_PIPELINE_WRITER_H
#define TW_PIPELINE_WRITER_H

#include "pipeline/recorder/redacting.h"
#include "pipeline/recorder/store.h"
#include "ringbuf/ringset.h"

/* The progress with one lease of a ring. */
struct tw_writer_progress {
	uint64_t pos; /* everything before it is done */
	uint64_t sequence;
	uint64_t run_seq;
	uint64_t reported[TW_RB_CAUSES];		    /* losses in the blocks so far */
	struct tw_format_own_time own[TW_FORMAT_OWN_KINDS]; /* in the blocks so far */
	uint64_t stored_events;				    /* TW_RB_OVERWRITE: the number of stored events */
	uint32_t tracee_id;
};

/* The kernel's counts of a thread at the last sample: run_delay.c. */
struct tw_writer_run_delay {
	uint64_t delay_ns, turns;
	uint64_t sampled_ns; /* 0: no sample yet */
};

/*
 * The progress in the files of one lease of a ring; if several rings share the lease, of the current one (ringset.h:
 * growth).
 */
struct tw_writer_ring {
	/* writer.c, when it first sees the lease: from the ring's header. */
	uint64_t lease; /* 0: no lease is known */
	uint64_t thread_start_ticks;
	uint64_t first_ticks;
	int32_t thread_id;
	uint32_t session_index;
	uint32_t scheduler_id;
	char thread_name[16];
	uint32_t own_tracee_id; /* of the thread itself; 0: it runs processes of a run-time */
	bool defines_tracee;	/* the header defines that tracee, with the name that the thread had first */
	char first_name[16];
	uint64_t first_pos;
	bool is_bad;	    /* its header is not valid */
	uint32_t successor; /* 1 + the ring in which the stream continues; 0: none known */
	bool is_held;	    /* its stream begins in another ring, which is not drained yet */
	bool is_moved;	    /* its stream continues in another ring, and this one is drained */
	bool is_seen;	    /* it may hold something */
	/* writer.c and writer_collect.c. */
	struct tw_writer_progress at;	  /* after the blocks that were made */
	struct tw_writer_progress stored; /* while blocks are in the queue: after the blocks in the files */
	uint32_t queued;		  /* blocks in the queue */
	bool has_failed;		  /* a block came back from the queue unwritten */
	/* recorder.c */
	uint64_t pending_ns; /* since when records wait; 0: none do */
	/* writer_definitions.c */
	uint32_t defined_segment; /* this segment of the image has the definition of its own tracee; 0: none yet */
	/* writer_names.c */
	char ring_name[16]; /* of its thread, as last read from the ring; thread_name may be newer, from /proc */
	/* writer_losses.c */
	bool is_loss_forged; /* its loss counts are not valid */
	/* writer_snapshot.c and recover.c. TW_RB_OVERWRITE: the last record stored. */
	uint64_t last_ticks;
	uint64_t last_head;
	/* run_delay.c */
	struct tw_writer_run_delay run_delay;
	/* thread_states.c */
	bool has_states; /* it knows the thread */
};

/* Is this the head of an event of the program, and not of a record of the ring or the library? */
static inline bool tw_writer_is_event(uint64_t head)
{
	unsigned kind = TW_RB_HEAD_KIND(head);

	return kind != TW_EVENT_LOSS && kind != TW_EVENT_SWITCH && kind != TW_EVENT_OWN_TIME;
}

/* The progress in the files of one image. */
struct tw_writer_image {
	struct tw_store_image store;
	/* writer_definitions.c */
	uint64_t defs_at; /* of the log, in the current segment */
	/* Functions, places and layouts before this in the log are written to the segment when they are used. */
	uint64_t by_use_end;
	struct tw_writer_names *names; /* NULL: the image has one segment so far */
	uint64_t defs_seen;	       /* position in the log up to which definitions were counted, in any
				        * segment */
	bool has_new_threads;	       /* rings may define threads that the segment does not */
	struct tw_def_end *ends;       /* of threads, to be written together; NULL: none */
	uint32_t end_count;
	/* writer_counts.c */
	uint32_t count_rows_reported; /* tw_rs_counts_ended() */
	/* writer_losses.c */
	uint64_t no_ring_reported;
	bool is_forged; /* its counts are not valid; writer.c as well */
	/* writer.c */
	uint64_t refused_reported;
	/* recorder.c */
	uint64_t gone_ticks; /* when its process was seen to be gone; 0: it was not */
};

/* TW_RB_OVERWRITE: a copy of one ring. Zeroed: none yet. */
struct tw_writer_copy {
	uint8_t *raw; /* records without pads; the user frees it */
	uint64_t capacity, bytes;
	struct tw_rb_stretch at;
	bool is_there;	 /* false: the ring cannot be read, or belongs to another thread by now */
	bool is_damaged; /* it cannot be read, which is not counted yet */
	bool has_switch; /* records of another tracee are in it */
	int error;	 /* of the copy, where several are made */
};

struct tw_writer {
	struct tw_rs rs;
	struct tw_store store;
	struct tw_writer_image images[TW_RS_IMAGES_MAX];
	struct tw_writer_ring rings[TW_RS_RINGS_MAX];
	/* writer.c */
	uint32_t images_seen;  /* entries of images[] that have been in use */
	uint32_t closed_image; /* whose segment was closed last for want of descriptors */
	uint8_t *definitions;  /* a definitions block under construction */
	uint8_t *raw;	       /* records of one ring, copied so that the program cannot change them */
	/* flight.c, recover.c, finish.c */
	bool is_dead;	       /* a private copy of a dead ring set: nothing is given back */
	uint64_t closed_ticks; /* from when on no event is recorded, also of processes that go on; 0: not known */
	/* writer_losses.c */
	uint64_t tables_reported; /* damaged tables of rings counted so far */
	bool is_control_forged;	  /* its counts of processes are not valid */
	/* writer_snapshot.c */
	struct tw_writer_copy snapshot;
	/* writer_definitions.c */
	struct tw_redacting *redacting; /* NULL: nothing is replaced, if */
	bool has_redacting;		/* the configuration was read for it */
	/* demote.c, loudest.c */
	struct tw_demote *demote; /* which places make the events; NULL: nobody asks */
	/* writer_names.c */
	uint64_t names_ns, names_pause_ns; /* when the names of threads are read next */
};

/* Reads the names of living threads when it is due; the second takes over the name in a ring. */
void tw_writer_read_names(struct tw_writer *writer, uint32_t count);
void tw_writer_read_name(struct tw_writer_ring *ring, const struct tw_rb_shared *shared);

/* Is this the last program of a process? 0: of none. */
bool tw_writer_is_last_of(const struct tw_writer *writer, uint32_t index, int32_t process_id);

/* Finds new images and leases. Called before anything is drained. Returns the number of rings. */
uint32_t tw_writer_scan(struct tw_writer *writer);

/*
 * tw_writer_end_ring - a ring is drained: write its last losses, or continue with the ring in which the stream goes
 * on.
 *
 * Returns 1 when something was stored, 0, or the write error. Then the ring is freed if its thread has given it up.
 */
int tw_writer_end_ring(struct tw_writer *writer, uint32_t index);

/* Gives a ring back to its process, without writing anything. */
void tw_writer_recycle_ring(struct tw_writer *writer, uint32_t index);

/*
 * Does the writer's entry for this slot describe its present image? The slot may have been claimed, and even freed,
 * since the last pass: then the entry still describes the previous image.
 */
bool tw_writer_knows_image(const struct tw_writer *writer, uint32_t index);

/* Does an image that has ended have rings that may hold something? */
bool tw_writer_has_rings_in_use(const struct tw_writer *writer, uint32_t image);

/* The image is drained: counts the rings that should continue another ring, but that no ring has led to. */
void tw_writer_count_unreached(struct tw_writer *writer, uint32_t index);

/* The image has ended: clears all that is known of it and its rings. */
void tw_writer_recycle_image(struct tw_writer *writer, uint32_t index);

/*
 * tw_writer_drain_ring - store the contents of a ring, block by block.
 *
 * @least_bytes	stop when less than this is left.
 *
 * Returns 1 when something was stored, 0 when not, or the write error; data that was not written is still in the
 * ring.
 */
int tw_writer_drain_ring(struct tw_writer *writer, uint32_t index, uint64_t least_bytes);

/* ---- what the files hold: writer_collect.c ---- */

/* A block of the ring was made, or was stored: moves @progress to its end. */
void tw_writer_advance(struct tw_writer_progress *progress, const struct tw_block_header *header,
		       struct tw_block_tracee tracee);

/* The block is in the files: updates their totals. @before: the progress with the ring before it. */
void tw_writer_note_stored(struct tw_writer *writer, struct tw_store_image *image,
			   const struct tw_writer_progress *before, const struct tw_block_header *header);

/* Gives the ring's memory up to there back to its producer. */
void tw_writer_give_back(struct tw_writer *writer, uint32_t index, uint64_t pos);

/*
 * tw_writer_collect - handle blocks that came back from the queue: their memory goes back to the producers.
 *
 * @waits	until a block has come back, unless the queue is empty.
 *
 * Returns 1 when something was stored, 0, or the reason why something was not: then all rings are reset to what is in
 * the files, and the queue is empty.
 */
int tw_writer_collect(struct tw_writer *writer, bool waits);

/* Waits until all blocks have come back. Returns 0 or the error. */
int tw_writer_drain_queue(struct tw_writer *writer);

/* Are blocks in the queue? */
bool tw_writer_is_writing(const struct tw_writer *writer);

/* Closes the image's segment when it is large or old enough. */
int tw_writer_rotate(struct tw_writer *writer, uint32_t image);

/* Durable captures: begins the syncs that are due, and a new file for an image whose file could not be synced. */
void tw_writer_sync(struct tw_writer *writer, uint32_t image, uint64_t now_ns);

/* Writes the losses that no record of the ring reports, when its producer is gone or is not waited for. */
int tw_writer_tell_loss(struct tw_writer *writer, uint32_t index);

/* TW_RB_OVERWRITE: stores what is in the ring and not in the files: the two that follow, with a copy of the writer's own. */
int tw_writer_snapshot_ring(struct tw_writer *writer, uint32_t index);
/* Copies a ring while it is written. Returns 0 or TW_ENOMEM. Several threads may copy, each another ring. */
int tw_writer_copy_ring(struct tw_writer *writer, uint32_t index, struct tw_writer_copy *copy);
/* Stores of a copy what is not in the files; what is older than @since_ticks counts as overwritten. */
int tw_writer_store_copy(struct tw_writer *writer, uint32_t index, const struct tw_writer_copy *copy,
			 uint64_t since_ticks);

/* The same in steps: what is not in the copy is told, and its first block begins at *at. Returns 0 or an error. */
int tw_writer_begin_copy(struct tw_writer *writer, uint32_t index, const struct tw_writer_copy *copy,
			 uint64_t since_ticks, uint64_t *at);
/* Stores what begins there. Returns 1 or an error. */
int tw_writer_store_copied(struct tw_writer *writer, uint32_t index, const struct tw_writer_copy *copy, uint64_t at);
/*
 * Or: makes the header of a block that begins at @at, and notes its last record in @ring; returns the bytes of its records. Several threads may,
 * each with a ring, and tw_writer_store_made() stores what they encode.
 */
uint32_t tw_writer_start_copied(struct tw_writer_ring *ring, const struct tw_writer_copy *copy, uint64_t at,
				struct tw_block_header *header);

/* TW_RB_OVERWRITE: counts what is in the ring and not in the files as lost: its memory is needed. */
int tw_writer_give_up_ring(struct tw_writer *writer, uint32_t index);

/* Counts an invalid stretch of a ring that is skipped, for the statistics and the capture. */
void tw_writer_damaged(struct tw_writer *writer);
/* The same, once, for a count that is impossible or went backwards; the second checks those of a ring. */
void tw_writer_note_forged(struct tw_writer *writer, bool *is_noted);
void tw_writer_check_loss(struct tw_writer *writer, uint32_t index);

/* Fills in the origin and the state before the next block of a ring; the caller sets the positions. */
void tw_writer_start_header(const struct tw_writer_ring *ring, struct tw_block_header *header);

/*
 * Stores one block of records, of which text may be replaced before (redacting.h). Returns 1, 0 if they were invalid and are skipped, or
 * the write error.
 */
int tw_writer_store_records(struct tw_writer *writer, uint32_t index, struct tw_block_header *header, void *raw,
			    uint32_t bytes);

/* An encoded block, and the tracee behind it. */
struct tw_writer_made {
	const struct tw_block_header *header;
	const uint8_t *stored;
	struct tw_block_tracee tracee;
};
/* Stores the block of these records; nothing is replaced in them. Returns 1 or an error. */
int tw_writer_store_made(struct tw_writer *writer, uint32_t index, const struct tw_writer_made *made,
			 const uint8_t *raw, uint32_t bytes);

/* ---- definitions: writer_definitions.c ---- */

/*
 * Writes the definitions that the image's current segment lacks, those of threads with rings too, except those of
 * functions that are written when they are used.
 */
int tw_writer_definitions(struct tw_writer *writer, uint32_t image);

/* Writes the definitions that these records use and the current segment lacks. The records may be invalid. */
int tw_writer_define_used(struct tw_writer *writer, uint32_t image, const uint8_t *raw, uint32_t bytes);

/* The same for these places. */
int tw_writer_define_places(struct tw_writer *writer, uint32_t image, const uint32_t *ids, uint32_t count);

/* Writes records that are in no log to the current segment, which is open. */
int tw_writer_define_outside(struct tw_writer *writer, struct tw_writer_image *image, const uint8_t *records,
			     uint32_t bytes);
/* Puts a record there; returns its bytes, at most those of the payload and 15. */
size_t tw_writer_put_record(uint8_t *to, uint32_t type, const void *payload, size_t payload_bytes);

/* ---- counts of calls that make no events: writer_counts.c ---- */

/* Writes the counts of all threads of the image, so far; @is_last: and no more will be written. */
int tw_writer_tell_counts(struct tw_writer *writer, uint32_t image, bool is_last);
/* Writes those of threads that have ended, and gives their memory back; unless old segments are removed, where they would be lost. */
int tw_writer_tell_ended_counts(struct tw_writer *writer, uint32_t image);

/* The ring is drained: if its thread has ended, the time of that is written, together with those of other threads. */
int tw_writer_note_end(struct tw_writer *writer, uint32_t index);
/* Writes the ends of threads that are not written yet, and when the process ended, if it has. */
int tw_writer_tell_ends(struct tw_writer *writer, uint32_t image, bool is_final);

/* Frees the memory that these functions took for the image. */
void tw_writer_forget_names(struct tw_writer_image *image);

/* Makes sure that there is a descriptor for a segment of the image: closes another's if none would be left. */
void tw_writer_free_descriptor(struct tw_writer *writer, const struct tw_writer_image *image);

/* Writes the losses of threads without a ring that are not in the files yet. */
int tw_writer_tell_no_ring(struct tw_writer *writer, uint32_t image);

/* All rings of the image are drained: writes its last losses, and ends its segment. */
int tw_writer_end_image(struct tw_writer *writer, uint32_t image, bool is_final);

/* Counts what a ring, and the rings that continue its stream, hold and no file has, for the statistics. */
void tw_writer_count_unstored(struct tw_writer *writer, uint32_t index);

/* ---- a set that another process owns, or owned: writer_images.c ---- */

/* Ends the images that have anything new, even if only definitions or losses without a ring. Returns 0 or the error. */
int tw_writer_end_images(struct tw_writer *writer);
/* The processes that still run: what they do from now on is in no capture. */
uint64_t tw_writer_count_living(const struct tw_writer *writer);

/* Allocates the memory for the above. */
int tw_writer_init(struct tw_writer *writer);
void tw_writer_fini(struct tw_writer *writer);

/* The ring set of a recorder, for a session in the same process. */
struct tw_rs *tw_recorder_ring_set(struct tw_recorder *recorder);
/* For tests: replaces the system calls that write to the disk. */
void tw_recorder_set_io(struct tw_recorder *recorder, const struct tw_segment_io *io);

/* Copies the counts of processes that were not traced, by reason, into the account. */
void tw_writer_tell_refusals(struct tw_writer *writer);

#endif
