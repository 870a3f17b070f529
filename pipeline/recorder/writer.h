/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - from the rings of a ring set to the segments of a capture.
 *
 * Shared by the recorder, which owns a living ring set, and by recovery, which reads the memory of a
 * dead one.  For each ring it knows how far the files are; the tail of a ring moves only behind that.
 *
 * Threads  one at a time.
 */
#ifndef TW_PIPELINE_WRITER_H
#define TW_PIPELINE_WRITER_H

#include "pipeline/recorder/store.h"
#include "ringbuf/ringset.h"

/* How far something is with one lease of a ring. */
struct tw_writer_progress {
	uint64_t pos; /* everything before is done */
	uint64_t sequence;
	uint64_t run_seq;
	uint64_t told[TW_RB_CAUSES];			    /* losses that stand in the blocks */
	struct tw_format_own_time own[TW_FORMAT_OWN_KINDS]; /* that stands in the blocks */
	uint64_t stored_events;				    /* TW_RB_OVERWRITE: how many were */
	uint32_t tracee_id;
};

/* What the files hold of one lease of a ring; of several rings of one lease, the one under way (ringset.h: growth). */
struct tw_writer_ring {
	uint64_t lease; /* 0: none known */
	/* Whose it is, as the header said when the lease was first seen. */
	uint64_t thread_start_ticks;
	uint64_t first_ticks;
	int32_t thread_id;
	uint32_t session_index;
	uint32_t scheduler_id;
	char thread_name[16];
	uint32_t successor;  /* 1 + the ring in which the stream goes on; 0: none known */
	bool is_held;	     /* its stream begins in another ring, which is not at its end yet */
	bool is_moved;	     /* its stream goes on in another ring, and this one is at its end */
	bool is_bad;	     /* its header makes no sense */
	bool is_loss_forged; /* its counts of losses make no sense */
	uint64_t first_pos;
	struct tw_writer_progress at;	  /* the blocks that were made */
	struct tw_writer_progress stored; /* where some of them are in the queue: those in the files */
	uint32_t queued;		  /* blocks in the queue */
	uint64_t pending_ns;		  /* since when something waits; 0: nothing does */
	bool has_failed;		  /* a block that came back from the queue was not written */
	bool is_seen;			  /* there is something to be had of it */
	char ring_name[16]; /* of its thread, as the ring said it last; thread_name may be newer, from /proc */
	/* TW_RB_OVERWRITE: the last record stored. */
	uint64_t last_ticks;
	uint64_t last_head;
};

/* Is this the head of an event of the program?  Neither is what a ring or the library says between events. */
static inline bool tw_writer_is_event(uint64_t head)
{
	unsigned kind = TW_RB_HEAD_KIND(head);

	return kind != TW_EVENT_LOSS && kind != TW_EVENT_SWITCH && kind != TW_EVENT_OWN_TIME;
}

/* What the files hold of one image. */
struct tw_writer_image {
	struct tw_store_image store;
	uint64_t defs_at; /* of the log, in the current segment */
	/* Functions, places and layouts of the log before this stand in the segment where they are used. */
	uint64_t by_use_end;
	struct tw_writer_names *names; /* NULL: the image has one segment so far */
	uint64_t defs_seen;	       /* of the log, in any segment: what was counted */
	uint64_t no_ring_told;
	uint64_t refused_told;
	bool is_forged; /* its counts make no sense */
	uint64_t loss_told_ns;
};

struct tw_writer {
	struct tw_rs rs;
	struct tw_store store;
	bool is_dead; /* a private copy of what somebody left: nothing is given back */
	struct tw_writer_image images[TW_RS_IMAGES_MAX];
	struct tw_writer_ring rings[TW_RS_RINGS_MAX];
	uint32_t images_seen;	/* entries of images[] that have been in use */
	uint64_t tables_told;	/* damaged tables of rings that were counted */
	bool is_control_forged; /* counts of processes make no sense */
	uint32_t closed_image;	/* whose segment was closed last because there are no descriptors */
	uint8_t *definitions;	/* a block of them being put together */
	uint8_t *raw;		/* records of one ring, copied out of reach of whoever writes there */
	uint8_t *snapshot;	/* TW_RB_OVERWRITE: a copy of one ring */
	uint64_t snapshot_bytes;
	uint64_t names_ns, names_pause_ns; /* when the names of threads are looked at next */
};

/* The names of the living threads, where it is time to ask; what a ring says of its thread's. */
void tw_writer_look_at_names(struct tw_writer *writer, uint32_t count);
void tw_writer_look_at_name(struct tw_writer_ring *ring, const struct tw_rb_shared *shared);

/* Is this the last program of a process?  0: nobody's. */
bool tw_writer_is_last_of(const struct tw_writer *writer, uint32_t index, int32_t process_id);

/* Sees which images and leases are new.  Call before anything is drained.  Returns how many rings there are. */
uint32_t tw_writer_look(struct tw_writer *writer);

/*
 * tw_writer_end_ring - a ring that is drained to its end: its last losses; or the stream goes on in another ring.
 *
 * Returns 1 when something was stored, 0, or the error of the write.  Then the ring is given back, where its thread has let
 * go of it.
 */
int tw_writer_end_ring(struct tw_writer *writer, uint32_t index);

/* Gives a ring back to its process without another word. */
void tw_writer_recycle_ring(struct tw_writer *writer, uint32_t index);

/*
 * Has the last look seen who is in this slot?  It may have been taken, and even given up, since: then
 * what the writer holds under this number is still the image before.
 */
bool tw_writer_knows_image(const struct tw_writer *writer, uint32_t index);

/* Does an image that has ended have rings of which there is something to be had? */
bool tw_writer_has_rings_in_use(const struct tw_writer *writer, uint32_t image);

/* The image is at its end: counts the rings that should go on where another ends, and that none has led to. */
void tw_writer_count_unreached(struct tw_writer *writer, uint32_t index);

/* The image is at its end, and so is all that is known of its rings. */
void tw_writer_recycle_image(struct tw_writer *writer, uint32_t index);

/*
 * tw_writer_drain_ring - store what a ring holds, block by block.
 *
 * @least_bytes	stop where less than this is left.
 *
 * Returns 1 when something was stored, 0 when not, or the error of the write that failed; what it
 * should have written is still in the ring.
 */
int tw_writer_drain_ring(struct tw_writer *writer, uint32_t index, uint64_t least_bytes);

/* ---- what the files hold: writer_collect.c ---- */

/* A block of the ring was made, or was stored: @progress is behind it. */
void tw_writer_advance(struct tw_writer_progress *progress, const struct tw_block_header *header,
		       struct tw_block_tracee tracee);

/* The files hold the block: so does the account of them.  @before: how far they were with the ring. */
void tw_writer_note_stored(struct tw_writer *writer, struct tw_store_image *image,
			   const struct tw_writer_progress *before, const struct tw_block_header *header);

/* The ring's memory up to there is its producer's. */
void tw_writer_give_back(struct tw_writer *writer, uint32_t index, uint64_t pos);

/*
 * tw_writer_collect - take note of the blocks that came back from the queue: their memory goes back to the producers.
 *
 * @waits	until something has come back, unless the queue is empty.
 * Returns 1 when something was stored, 0, or why something was not: then all rings are again where the files are, and the
 * queue is empty.
 */
int tw_writer_collect(struct tw_writer *writer, bool waits);

/* The same, when all blocks have come back.  Returns 0 or the error. */
int tw_writer_settle(struct tw_writer *writer);

/* Are blocks in the queue? */
bool tw_writer_is_writing(const struct tw_writer *writer);

/* Closes the image's segment when it is large or old enough. */
int tw_writer_rotate(struct tw_writer *writer, uint32_t image);

/* Durable captures: begins the syncs that are due, and a new file for an image whose file could not be synced. */
void tw_writer_sync(struct tw_writer *writer, uint32_t image, uint64_t now_ns);

/* The losses that no record of the ring tells, when its producer is gone or is not waited for. */
int tw_writer_tell_loss(struct tw_writer *writer, uint32_t index);

/* TW_RB_OVERWRITE: stores what the ring holds and the files do not. */
int tw_writer_snapshot_ring(struct tw_writer *writer, uint32_t index);

/* TW_RB_OVERWRITE: counts what the ring holds and the files do not as lost: its memory is needed. */
int tw_writer_give_up_ring(struct tw_writer *writer, uint32_t index);

/* Counts a stretch of a ring that makes no sense and is passed over, for the statistics and the capture. */
void tw_writer_damaged(struct tw_writer *writer);
/* The same, once, for a count that nobody can have reached, or that went back; and for those of a ring. */
void tw_writer_note_forged(struct tw_writer *writer, bool *is_noted);
void tw_writer_check_loss(struct tw_writer *writer, uint32_t index);

/* Who and where, and as it stands before the next block of a ring; positions are the caller's. */
void tw_writer_start_header(const struct tw_writer_ring *ring, struct tw_block_header *header);

/* One block of records.  Returns 1, 0 where they were unsound and are passed over, or the error of the write.
 */
int tw_writer_store_records(struct tw_writer *writer, uint32_t index, struct tw_block_header *header, const void *raw,
			    uint32_t bytes);

/* ---- definitions: writer_definitions.c ---- */

/* Definitions that the image's current segment lacks, but for those of functions that are written when they are used. */
int tw_writer_definitions(struct tw_writer *writer, uint32_t image);

/* The definitions of what these records use, as far as the current segment lacks them.  The records may be unsound. */
int tw_writer_define_used(struct tw_writer *writer, uint32_t image, const uint8_t *raw, uint32_t bytes);

/* Memory that the two before have taken for the image. */
void tw_writer_forget_names(struct tw_writer_image *image);

/* A descriptor for a segment of the image: closes another's, where there would be none left. */
void tw_writer_make_room(struct tw_writer *writer, const struct tw_writer_image *image);

/* Events of threads without ring, as far as the files do not tell them. */
int tw_writer_tell_no_ring(struct tw_writer *writer, uint32_t image);

/* Everything of the image is drained: its last words, and the end of its segment. */
int tw_writer_end_image(struct tw_writer *writer, uint32_t image, bool is_final);

/* What a ring, and those in which its stream goes on, hold and no file took, into the statistics. */
void tw_writer_count_unstored(struct tw_writer *writer, uint32_t index);

/* Memory for the above. */
int tw_writer_init(struct tw_writer *writer);
void tw_writer_fini(struct tw_writer *writer);

/* The ring set of a recorder, for a session in the same process. */
struct tw_rs *tw_recorder_ring_set(struct tw_recorder *recorder);
/* For tests: how the recorder's bytes get to the disk. */
void tw_recorder_set_io(struct tw_recorder *recorder, const struct tw_segment_io *io);

/* Takes over into the account which processes were not traced, and why. */
void tw_writer_tell_refusals(struct tw_writer *writer);

#endif
