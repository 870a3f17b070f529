/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - read a capture: what it holds, its events in order, its definitions.
 *
 * A capture is a directory NAME.tw/ (docs/format.md).  It may be complete, cut off, damaged or still being written; every
 * readable part is read, the rest is named (damage) or counted (loss).  No file is trusted.  Files are read, never mapped.
 *
 *	tw_capture_open -> info, streams, images, definitions
 *	                -> tw_capture_events_create -> tw_capture_events_next ... in order, merged
 *	                ... or tw_capture_spans_next, the same as records: faster (spans.h)
 *	                -> tw_capture_scan: every block as it comes, several times faster
 *
 * Threads    a struct tw_capture and the objects made from it belong to one thread at a time; different
 *            captures are independent.  Worker threads are started inside and end with their object.
 * Ownership  everything that is not an out-parameter of a create or open call is borrowed: until
 *            tw_capture_close(), or where said until the next call.
 * Units      *_ns are nanoseconds of CLOCK_MONOTONIC unless the name says wall; *_bytes are bytes.
 * Memory     proportional to the number of blocks (about 0.3 KB for each 8,000 events) and of
 *            definitions, plus one decoded block of at most 256 KiB for each thread that was active at
 *            the time being read.
 * Errors     those of tracewheel/error.h.  Link with libtracewheel-capture.
 */
#ifndef TRACEWHEEL_CAPTURE_H
#define TRACEWHEEL_CAPTURE_H

#include "tracewheel/kinds.h"
#include "tracewheel/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why events were lost, in the order of every array `lost` in this interface. */
enum tw_lost_cause {
	TW_LOST_FULL,	 /* the ring or the disk was full; for ends of tail calls also the memory of their process */
	TW_LOST_TOO_BIG, /* the event was larger than a record may be */
	TW_LOST_NESTED,	 /* the event arose in a signal handler that interrupted another event of the same thread */
	TW_LOST_NO_RING, /* the thread of the event got no ring */
	TW_LOST_CAUSES
};

/* "full", "too_big", "nested", "no_ring"; "unknown" for anything else. */
const char *tw_lost_cause_name(unsigned cause);

/* No place, tracee, stream or image. */
#define TW_CAPTURE_NONE UINT32_MAX

struct tw_capture;

struct tw_capture_options {
	uint32_t workers; /* decoding threads beside the caller; 0: one for each other processor, at most 8 */
	bool no_workers;  /* all in the calling thread; else one more puts events in order ahead of it */
};

/*
 * tw_capture_open - read the index of a capture.
 *
 * @path	the directory NAME.tw.
 * @options	borrows; NULL: the defaults.
 * @out		gives: tw_capture_close() ends it.
 *
 * Reads headers and indexes, no events.  Damaged segments do not fail the call: tw_capture_damage().
 * Errors: TW_ENOENT, TW_EFORMAT (it holds no readable segment), TW_EVERSION, TW_EPERM, TW_EIO, TW_ENOMEM.
 */
int tw_capture_open(const char *path, const struct tw_capture_options *options, struct tw_capture **out);
/*
 * tw_capture_open_stream - read a capture as it arrives, from a pipe, a socket or a file (docs/format.md, "Streams").
 *
 * @fd		borrows until tw_capture_close(): read from its present offset, never seeked.
 *
 * Waits for the beginning of the stream.  Images, streams, definitions and the numbers of tw_capture_info() grow while
 * events are read; pointers to definitions stay valid.  Only one tw_capture_events may exist at a time:
 * tw_capture_events_next() returns the events that have arrived and waits while there are none; 0 is the end of the
 * stream.  tw_capture_scan() is not supported (TW_ENOTSUP).
 * Errors: TW_EFORMAT (not a stream), TW_EVERSION, TW_EIO, TW_ENOMEM.
 */
int tw_capture_open_stream(int fd, struct tw_capture **out);
/*
 * tw_capture_open_stream_file - read a stream stored in a file, as if it were a capture directory.
 *
 * @fd		borrows until return: a regular file, read from its beginning; its offset is not moved.
 * @options	borrows; NULL: the defaults.
 *
 * Events may be read any number of times, and tw_capture_scan() works.  A stream that was cut off is a damaged capture.
 * Errors: TW_EFORMAT (not a stream), TW_EVERSION, TW_ENOTSUP (not a regular file), TW_EIO, TW_ENOMEM.
 */
int tw_capture_open_stream_file(int fd, const struct tw_capture_options *options, struct tw_capture **out);
void tw_capture_close(struct tw_capture *capture);

/* ---- what it holds ---- */

struct tw_capture_info {
	uint64_t events; /* readable: calls, returns, terms; damaged blocks are subtracted when they are read */
	uint64_t lost[TW_LOST_CAUSES]; /* in the segments present, without TW_MISSING_OVERWRITTEN */
	uint64_t damaged_records;      /* records in unreadable parts, known by their sequence numbers */
	uint64_t file_bytes;	       /* of all segments */
	uint64_t raw_bytes;	       /* of the records before encoding */
	uint64_t start_ns;	       /* of the first event */
	uint64_t zero_ns;	   /* of the recording's first event, even if removed: views show times from there */
	uint64_t end_ns;	   /* of the last */
	uint64_t start_wall_ns;	   /* CLOCK_REALTIME at start_ns, since 1970 */
	uint64_t duplicate_blocks; /* blocks that a recovery stored twice; shown once */
	uint32_t segments, blocks, images;
	uint32_t threads; /* kernel threads that recorded anything; two threads that reused one number count as two */
	uint32_t streams;
	uint32_t modules, functions, places, damages;
	bool is_part;		 /* tw_capture_cut() wrote it: start_ns, zero_ns and end_ns are those of the whole */
	uint64_t from_ns, to_ns; /* of a part: its bounds; 0: none */
	bool is_complete;	 /* only counted losses are missing: tw_capture_account() */
	/* Known without reading events: it has no returns, exceptions or garbage collections.  May be false all the same. */
	bool has_moments_only;
	bool has_thread_states; /* there are TW_CAPTURE_THREAD_STATE events; false in streams, where that is not known */
	bool is_live;		/* a recording owns it, or died without cleaning up: tw_recover() */
};
void tw_capture_info(const struct tw_capture *capture, struct tw_capture_info *out);

/* Why something is missing.  First enum tw_lost_cause: NO_RING without ENDED and VFORK, NESTED without LEFT_OUT. */
enum tw_missing_cause {
	TW_MISSING_FULL,
	TW_MISSING_TOO_BIG,
	TW_MISSING_NESTED,
	TW_MISSING_NO_RING,
	TW_MISSING_OVERWRITTEN, /* older events overwritten by newer ones (flight recorder); not counted as `full` then */
	TW_MISSING_REMOVED,	/* in the oldest segments, which the recorder removed on request (--keep) */
	TW_MISSING_SEGMENTS,	/* in segments that are absent */
	TW_MISSING_DAMAGED,	/* in unreadable parts of files */
	TW_MISSING_RINGS,	/* in corrupted rings: the program wrote into them */
	TW_MISSING_CUT,		/* beyond the end of a segment that was never closed, or in rings that were gone */
	TW_MISSING_UNSTORED,	/* records that a full disk did not store */
	TW_MISSING_PROCESSES,	/* events of processes that were not traced; places is the number of processes */
	TW_MISSING_NAMES,	/* definitions that found no space: events show ids only; places is their number */
	TW_MISSING_WENT_ON,	/* events of processes that outlived the recording; places is the number of processes */
	TW_MISSING_PLANS, /* events of objects whose plans of entries were not ready in time; places is their number */
	TW_MISSING_FUNCTIONS, /* events of functions that could not be armed while the program ran; places is their number */
	TW_MISSING_CHILDREN, /* events of processes that were started and not followed; places is their number */
	TW_MISSING_ENDED,    /* events of threads after their last destructor, in the whole recording */
	TW_MISSING_VFORK,    /* events of children of vfork(), in the whole recording */
	TW_MISSING_LEFT_OUT, /* calls in recorded calls that were not kept until these were decided (--children) */
	TW_MISSING_CAUSES
};
/* "full" ... "left_out"; "unknown" for anything else. */
const char *tw_missing_cause_name(unsigned cause);

struct tw_capture_missing {
	uint64_t events; /* known to be missing */
	/* Segments, damages, rings, images, processes or names, by cause; 0 where only events are counted. */
	uint64_t places;
	bool has_more; /* more is missing, of unknown number */
};

/* Why a process is among TW_MISSING_PROCESSES. */
enum tw_untraced_cause {
	TW_UNTRACED_FULL,    /* too many processes at once */
	TW_UNTRACED_OTHER,   /* the process could not make its rings: permissions, memory */
	TW_UNTRACED_STATIC,  /* statically linked */
	TW_UNTRACED_LIBRARY, /* another C library or another architecture */
	TW_UNTRACED_RIGHTS,  /* set-uid, set-gid, file capabilities */
	TW_UNTRACED_CAUSES
};

struct tw_capture_own {
	uint64_t count;
	uint64_t ns;
};

/* Everything that was recorded: the events present, and the missing ones by cause. */
struct tw_capture_account {
	uint64_t events; /* present, as in tw_capture_info */
	struct tw_capture_missing missing[TW_MISSING_CAUSES];
	uint64_t untraced[TW_UNTRACED_CAUSES]; /* processes */
	uint64_t ended_lost;		       /* as the events of TW_MISSING_ENDED */
	uint64_t removed_lost;	/* events lost during the time that the removed segments (TW_MISSING_REMOVED) cover */
	uint32_t segments_kept; /* number of segments that the recorder keeps; 0: all */
	struct tw_capture_own waits, setups; /* the tracer's own time, summed over threads: TW_CAPTURE_OWN_TIME */
	uint64_t switches_lost; /* context switches that the kernel lost, or that were not stored: no events */
	bool is_complete;	/* nothing from REMOVED to UNSTORED, and nothing by PLANS or FUNCTIONS is missing */
	bool is_whole;		/* nothing is missing */
};
/* The account may change while events are read, because damage is found then. */
void tw_capture_account(const struct tw_capture *capture, struct tw_capture_account *out);

/*
 * How the program that `record` started ended: its exit code, or the signal that ended it, and 0 for the other.
 *
 * False: not known, because the recording ended before the program, or `record` did not start a command.
 */
bool tw_capture_ending(const struct tw_capture *capture, int *exit_code, int *signal);

/* Why a recording ended before the programs that it recorded.  Numbers are part of the capture format. */
enum tw_stop {
	TW_STOP_TIME = 1, /* after so many ns */
	TW_STOP_EVENTS,	  /* after so many events, with lost ones */
	TW_STOP_RATE,	  /* there were more than so many events a second */
	TW_STOP_ASKED	  /* by a signal, or by another command; there is no limit */
};
/* False: it ended with the programs, or it is not known why.  @limit: of `why`. */
bool tw_capture_stopped(const struct tw_capture *capture, enum tw_stop *why, uint64_t *limit);

/* An unreadable part.  New ones may appear while events are read. */
struct tw_capture_damage {
	const char *file; /* name in the directory; "stream" where there is none */
	uint64_t offset;
	uint64_t bytes;	    /* bytes skipped; 0 where unknown */
	int error;	    /* TW_EFORMAT, TW_EIO, TW_EVERSION ... */
	const char *reason; /* a constant sentence */
};
/*
 * tw_capture_check - compare the checksums of all blocks of events: finds the damage that reading all events would find.
 *
 * @progress	NULL, or called on the calling thread with the number of bytes that were read so far.
 * Returns 0, also when damage is found, TW_ENOTSUP (a capture of tw_capture_open_stream()) or TW_ENOMEM.
 */
int tw_capture_check(struct tw_capture *capture, void (*progress)(void *context, uint64_t bytes), void *context);
/* NULL past the last; @number counts from 0. */
const struct tw_capture_damage *tw_capture_damage(const struct tw_capture *capture, uint32_t number);

/*
 * One segment; they are in the order of their numbers.  (capture_id, number) identifies it globally; any set of segments
 * of a capture, also under other names, is a capture.
 */
struct tw_capture_segment {
	const char *file; /* name in the directory; lends: until tw_capture_close() */
	uint32_t number;  /* in the capture */
	uint32_t image;
	uint32_t image_segment; /* number among the segments of its image, from 1; 0: not recorded (version 1) */
	uint64_t events_before; /* events in the earlier segments of its image */
	uint64_t events;	/* here */
	bool is_closed;
	bool is_last; /* the recording of its image ended with it */
};
/* NULL past the last, and for streams. */
const struct tw_capture_segment *tw_capture_segment(const struct tw_capture *capture, uint32_t number);

/* One thread's events of one session: those that passed through one ring. */
struct tw_capture_stream {
	uint32_t stream; /* its number */
	uint32_t image;
	uint32_t thread;   /* number of its thread, from 0: streams of one thread share it */
	uint64_t lease;	   /* of its ring: one ownership of one ring, unique in the capture */
	int32_t thread_id; /* the kernel's */
	uint32_t session_index;
	uint32_t scheduler_id;
	uint32_t tracee_id; /* at its beginning */
	uint64_t events;
	uint64_t lost[TW_LOST_CAUSES]; /* in the segments present */
	uint64_t damaged_records;
	uint64_t start_ns;
	uint64_t end_ns;
	char thread_name[17];	/* the last name recorded */
	uint64_t thread_end_ns; /* its last destructor: calls of libc may follow; 0: not known */
	bool is_of_states;	/* of TW_CAPTURE_THREAD_STATE events alone, which are known up to end_ns */
};
/* NULL past the last; @number counts from 0, as in events. */
const struct tw_capture_stream *tw_capture_stream(const struct tw_capture *capture, uint32_t number);

/* One process image: a process between two exec calls. */
struct tw_capture_image {
	uint32_t image; /* its number */
	int32_t process_id;
	int32_t parent_process_id;
	uint64_t start_ns;
	uint64_t no_ring_lost; /* events of its threads that got no ring */
	const char *program;   /* path; "" where unknown */
	const char *command;   /* arguments separated by zero bytes */
	size_t command_bytes;
	const char *host;
	const char *node;      /* the node's name in views, in captures of several nodes (merge.h); "" otherwise */
	const char *node_name; /* of an Erlang node; "" where unknown */
	bool is_final;	       /* known to have ended */
	/* Its identity: (boot_id, process_id, process_start, lease). */
	uint64_t lease;
	uint64_t process_start; /* ticks of /proc/PID/stat */
	uint64_t capture_id;	/* random, the same in all segments of a recording */
	uint8_t boot_id[16];	/* of the kernel */
	bool is_overwriting;	/* its losses of TW_LOST_FULL are older events that newer ones replaced */
	uint64_t end_ns; /* of the process, or of a recording that it outlived; 0: not known, or exec ended the image */
};
/* NULL past the last; @number counts from 0, as in events. */
const struct tw_capture_image *tw_capture_image(const struct tw_capture *capture, uint32_t number);
/* The part of no_ring_lost that falls into this time; a loss that only overlaps it counts.  @to_ns: 0 is no end. */
uint64_t tw_capture_no_ring_lost(const struct tw_capture *capture, uint32_t image, uint64_t from_ns, uint64_t to_ns);

/* ---- definitions of ids, in one image ---- */

struct tw_capture_module {
	uint32_t module_id;
	bool is_declared;
	uint64_t base_address;
	uint64_t end_address;
	const char *name;
	const char *path;
	const char *soname;
	const uint8_t *build_id;
	size_t build_id_bytes;
};

#define TW_CAPTURE_ARITY_UNKNOWN UINT32_MAX

struct tw_capture_function {
	uint32_t function_id;
	uint32_t arity; /* or TW_CAPTURE_ARITY_UNKNOWN */
	uint64_t address;
	const char *name;			/* the linkage name */
	const struct tw_capture_module *module; /* NULL where it was never defined */
};

enum tw_capture_place_kind {
	TW_CAPTURE_DECLARED = 1,
	TW_CAPTURE_SLED = 2,
	TW_CAPTURE_SLOT = 3,
	TW_CAPTURE_ENTRY = 4 /* a jump over the first instructions of an unmodified function */
};

struct tw_capture_place {
	uint32_t place_id;
	uint32_t kind;
	uint64_t address;
	const struct tw_capture_function *function; /* NULL where it was never defined */
	const struct tw_capture_module *caller;	    /* TW_CAPTURE_SLOT: whose slot; NULL otherwise */
	bool has_no_end; /* its calls have no return events, and later events do not lie inside them */
};

struct tw_capture_tracee {
	uint32_t tracee_id;
	int32_t thread_id;
	uint32_t pid_number, pid_serial; /* printed <0.number.serial> */
	const char *name;
	bool is_port;						    /* printed #Port<0.number> */
	const char *initial_call, *behaviour, *application, *label; /* "" where no run-time has told them */
};

struct tw_capture_session {
	uint32_t session_index;
	bool has_returns; /* returns of its calls were asked for: calls that are open at the end have times, though none returned */
	uint64_t session_id;
	const char *name;
};

/* Look-up by id; NULL where the capture does not define it. */
const struct tw_capture_module *tw_capture_module(const struct tw_capture *capture, uint32_t image, uint32_t id);
const struct tw_capture_function *tw_capture_function(const struct tw_capture *capture, uint32_t image, uint32_t id);
const struct tw_capture_place *tw_capture_place(const struct tw_capture *capture, uint32_t image, uint32_t id);
const struct tw_capture_tracee *tw_capture_tracee(const struct tw_capture *capture, uint32_t image, uint32_t id);
const struct tw_capture_session *tw_capture_session(const struct tw_capture *capture, uint32_t image, uint32_t index);
/* How the arguments and the result of a function were recorded; NULL: as plain words. */
const struct tw_layout *tw_capture_layout(const struct tw_capture *capture, uint32_t image, uint32_t function_id);
/* The line of a code address behind a call, of captures that hold lines (cut.h). */
struct tw_capture_line {
	uint32_t image;
	uint32_t line; /* 0: not known */
	uint64_t address;
	const char *function; /* linkage name; NULL: not known */
	const char *file;     /* NULL: not known */
	bool is_return;	      /* the instruction before the address is a call, as far as that is known */
};
/* NULL where the capture does not hold it.  The result's image is not set. */
const struct tw_capture_line *tw_capture_line(const struct tw_capture *capture, uint32_t image, uint64_t address);
/*
 * Of a part that tw_capture_cut() wrote: what is derived from all records of the whole.  Whether a function's returns were
 * recorded, for example, is seen in the whole, and not in a part that none of its calls ended in.
 */
struct tw_capture_whole_place {
	uint32_t image;
	uint32_t place_id;
	bool is_moment; /* its returns were not recorded */
	uint64_t calls; /* of it, or of all places of its function */
};
/* NULL past the last; *at is 0 at first.  The result's image is not set. */
const struct tw_capture_whole_place *tw_capture_whole_place_next(const struct tw_capture *capture, uint32_t image,
								 uint32_t *at);
/* Records of the whole by kind, those above 62 in the last of 64; NULL: the capture is no part. */
const uint64_t *tw_capture_whole_kinds(const struct tw_capture *capture);
/* The name of an atom: *bytes bytes of UTF-8, which may contain zero bytes; NULL if the capture does not define it. */
const char *tw_capture_atom(const struct tw_capture *capture, uint32_t image, uint32_t id, size_t *bytes);

/* Iteration in the order of definition: *at is 0 at first; NULL past the last. */
const struct tw_capture_module *tw_capture_module_next(const struct tw_capture *capture, uint32_t image, uint32_t *at);
const struct tw_capture_function *tw_capture_function_next(const struct tw_capture *capture, uint32_t image,
							   uint32_t *at);
const struct tw_capture_place *tw_capture_place_next(const struct tw_capture *capture, uint32_t image, uint32_t *at);
const struct tw_capture_tracee *tw_capture_tracee_next(const struct tw_capture *capture, uint32_t image, uint32_t *at);
const struct tw_capture_session *tw_capture_session_next(const struct tw_capture *capture, uint32_t image,
							 uint32_t *at);
/*
 * The descriptors that the program had when it started, of `record --ports`: words as tw_layout_next_description() reads
 * them, from position 0.  None of an image that began with fork().
 */
const uint64_t *tw_capture_descriptor_next(const struct tw_capture *capture, uint32_t image, uint32_t *at,
					   uint32_t *word_count);
/* A pointer to a function of libc that transfers bytes: calls through it are not recorded. */
struct tw_capture_pointer {
	const char *module;   /* the object that holds it */
	const char *function; /* of libc */
	bool is_stream;	      /* it uses streams, not descriptors */
};
const struct tw_capture_pointer *tw_capture_pointer_next(const struct tw_capture *capture, uint32_t image,
							 uint32_t *at);
/* Notes to the reader about the recording of this image. */
const char *tw_capture_note_next(const struct tw_capture *capture, uint32_t image, uint32_t *at);

/* ---- time ---- */

/* Converts the ticks of a record to CLOCK_MONOTONIC; the conversion is monotonic. */
uint64_t tw_capture_ns(const struct tw_capture *capture, uint64_t ticks);
/* CLOCK_REALTIME (since 1970) and CLOCK_BOOTTIME at that moment, as the clocks were set then. */
uint64_t tw_capture_wall_ns(const struct tw_capture *capture, uint64_t ns);
uint64_t tw_capture_boot_ns(const struct tw_capture *capture, uint64_t ns);
/* The first moment (CLOCK_MONOTONIC) at which CLOCK_REALTIME had this value; there may be several, because clocks are set. */
uint64_t tw_capture_of_wall(const struct tw_capture *capture, uint64_t wall_ns);

/* ---- events ---- */

/* Selects events.  Zeroed: every event of the program, and losses; no switches, and none of the tracer's own time. */
struct tw_capture_filter {
	uint64_t from_ns; /* events at or after; compared with event.time_ns */
	uint64_t to_ns;	  /* events before; 0: no end */
	/* Select streams and places; NULL: all.  Called once for each when the object is made; live streams: while reading. */
	bool (*wants_stream)(void *context, const struct tw_capture_stream *stream);
	bool (*wants_place)(void *context, uint32_t image, const struct tw_capture_place *place);
	void *context;
	/* Bit k: kind k (63: and above), as tw_kinds_of(); 0: all but switches, own time and thread states. Losses always are. */
	uint64_t kinds;
	bool wants_own_time;	  /* TW_CAPTURE_OWN_TIME as well, whatever the kinds */
	bool wants_thread_states; /* TW_CAPTURE_THREAD_STATE as well; only this selects them */
	/* For tests and comparisons only: order by time alone, without regard to the runs of tracees. */
	bool by_time_only;
};

/* The low bits of flags; tracewheel's kinds of time stamp. */
#define TW_CAPTURE_STAMP_MASK 3u
/* The session wants the scheduler's id in the message; it is that of the event's stream. */
#define TW_CAPTURE_FLAG_SCHEDULER_ID 8u
/* The session wants the arity and not the arguments. */
#define TW_CAPTURE_FLAG_ARITY 16u
/*
 * A match specification added an element ({message,X}).  The payload (behind the unique integer of a
 * strict time stamp) is then: one word with the number of argument words in its low half and the bytes of
 * X in its high half; the argument words; X in Erlang's external term format.
 */
#define TW_CAPTURE_FLAG_EXTRA 32u
/*
 * The payload (behind the unique integer of a strict time stamp) is terms: one word with the number of terms
 * in its low half and the bytes of what follows in its high half; then the terms, each a whole external
 * term, one behind the other.  They are the elements of Erlang's trace message after the tag, in order; with
 * TW_CAPTURE_FLAG_EXTRA the last of them is X.  A call has one: the list of its arguments.
 */
#define TW_CAPTURE_FLAG_TERMS 64u
/* Words and strings by the layout of the function's arguments: tw_capture_layout(). */
#define TW_CAPTURE_FLAG_ARGS 128u

struct tw_capture_event {
	uint64_t time_ns;
	uint64_t ticks;
	uint64_t sequence;	 /* of the record in its stream; lost ones are counted */
	const uint64_t *payload; /* lends: until the next call on the iterator */
	uint32_t payload_words;
	uint32_t id; /* a place (kinds 3 to 7), a tracee (switch), by kind otherwise */
	uint32_t stream;
	uint32_t image;
	uint32_t tracee_id; /* 0: none */
	uint8_t kind;	    /* enum tw_capture_kind */
	uint8_t flags;
	bool has_cpu_time; /* its `timestamp` is cpu_ns: TW_FLAG_CPU_TIMESTAMP */
	uint8_t reserved;
	uint64_t cpu_ns; /* processor time of all threads of the program; 0 without has_cpu_time */
};

/* The payload of a TW_CAPTURE_LOSS event: the number of events missing between the event before it and this one. */
struct tw_capture_loss {
	uint64_t first_ticks; /* of the first lost event; event.ticks is that of the last */
	uint64_t lost[TW_LOST_CAUSES];
};
static inline const struct tw_capture_loss *tw_capture_event_loss(const struct tw_capture_event *event)
{
	return (const struct tw_capture_loss *)(const void *)event->payload;
}

/* Causes of the tracer's own time: the id of a TW_CAPTURE_OWN_TIME event. */
enum tw_capture_own_time {
	TW_CAPTURE_OWN_WAIT = 1, /* waiting for space in a ring, or for a ring, under policy `block` */
	TW_CAPTURE_OWN_SETUP = 2 /* setting up a thread or its ring */
};

/*
 * tw_capture_own_ns - duration of the tracer's own time, from event->time_ns on.
 *
 * This time is not part of the duration of any call open on that thread.  An event that it delayed has the same time and
 * follows it: a delayed call begins with the own time, a delayed return happened before it.
 */
uint64_t tw_capture_own_ns(const struct tw_capture *capture, const struct tw_capture_event *event);
/* "wait", "setup"; of a state (kinds.h) "running", "preempted", "off"; "unknown" for anything else. */
const char *tw_capture_own_name(unsigned why);
const char *tw_capture_state_name(unsigned state);

struct tw_capture_events;
/*
 * tw_capture_events_create - begin to read events in order.
 *
 * Events of one stream keep the order of the stream, events of a tracee the order of its runs over all threads; all
 * others are ordered by time, then by scheduler and stream.
 * @filter	borrows until return, its context until the object is destroyed; NULL: all.
 * @out		gives: tw_capture_events_destroy() ends it.
 *
 * Errors: TW_ENOMEM.
 */
int tw_capture_events_create(struct tw_capture *capture, const struct tw_capture_filter *filter,
			     struct tw_capture_events **out);
void tw_capture_events_destroy(struct tw_capture_events *events);

/*
 * tw_capture_events_next - the next events, as many as are ready.
 *
 * @batch	lends: until the next call.
 *
 * Returns their number (1 ..), 0 at the end, or an error (TW_ENOMEM).  Damage is skipped and named.
 */
int64_t tw_capture_events_next(struct tw_capture_events *events, const struct tw_capture_event **batch);

/* ---- the fast way: blocks in no particular order ---- */

/* A record as it was in the ring; the next one follows after the bytes that head gives. */
struct tw_capture_record {
	uint64_t ticks;
	uint64_t head; /* kind:8 flags:8 bytes:16 id:32 */
	uint64_t payload[];
};

static inline unsigned tw_capture_record_kind(const struct tw_capture_record *record)
{
	return (unsigned)(record->head & 0x7f);
}
/* The highest bit of the kind: the first word of the payload is CPU time in ns, as cpu_ns of an event. */
static inline bool tw_capture_record_has_cpu_time(const struct tw_capture_record *record)
{
	return record->head & 0x80;
}
static inline unsigned tw_capture_record_flags(const struct tw_capture_record *record)
{
	return (unsigned)(record->head >> 8 & 0xff);
}
static inline uint32_t tw_capture_record_id(const struct tw_capture_record *record)
{
	return (uint32_t)(record->head >> 32);
}
static inline uint32_t tw_capture_record_bytes(const struct tw_capture_record *record)
{
	return (uint32_t)(record->head >> 16 & 0xffff);
}
/* Flag 4: the last word is padding. */
static inline uint32_t tw_capture_record_words(const struct tw_capture_record *record)
{
	uint32_t words = tw_capture_record_bytes(record) / 8 - 2;

	return words && (record->head & 0x400) ? words - 1 : words;
}
static inline const struct tw_capture_record *tw_capture_record_next(const struct tw_capture_record *record)
{
	return (const struct tw_capture_record *)(const void *)((const char *)record + tw_capture_record_bytes(record));
}

/* Consecutive records of one stream; lends until the callback returns.  Every length in it was checked. */
struct tw_capture_batch {
	const struct tw_capture_record *first;
	const struct tw_capture_record *end;
	uint64_t first_sequence;
	uint32_t records;
	uint32_t stream;
	uint32_t image;
	uint32_t tracee_id; /* at the first record; switch records change it */
	uint64_t start_ticks;
	uint64_t end_ticks; /* smallest and largest */
};

/* Returns 0 to go on; anything else ends the scan with that value. */
typedef int tw_capture_scan_fn(void *context, const struct tw_capture_batch *batch);

/*
 * tw_capture_scan - all records of the streams and the time range that the filter names, block by block.
 *
 * Every record of every stream is delivered exactly once and in the order of its stream; streams come in no
 * particular order.  Blocks are selected as a whole: records at their ends may lie outside the time range, and a block
 * with one record of a wanted kind is delivered whole.  Places are not filtered, and events lost for lack of a ring are
 * counted in the image only.
 *
 * Threads: the callback is called on the calling thread.
 * Returns 0, the callback's result, or an error.
 */
int tw_capture_scan(struct tw_capture *capture, const struct tw_capture_filter *filter, tw_capture_scan_fn *callback,
		    void *context);

#ifdef __cplusplus
}
#endif

#endif
