/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer.h - record: own the rings of traced programs and store their events.
 *
 * A recorder creates a ring set (shared memory, see tw_recorder_ring_set_path()) that traced
 * processes attach to, drains it, and writes a capture NAME.tw/.  It may live in a command beside the
 * traced program or in a thread of it.  The program never waits for the recorder longer than the policy allows, even
 * if the recorder or its disk fails:
 *
 *	the disk is full	the rings fill up, the program counts the events it drops; writing is retried until
 *				there is space
 *	the recorder dies	the same; tw_recover() stores the events still in the rings
 *	the disk is slow	a writer thread of the recorder buffers up to 8 MiB of blocks; rings are drained meanwhile
 *	the program dies	everything it committed is drained
 *
 * Exactly once: a ring's memory is freed for reuse only after its block is written, and readers take each position
 * once.
 *
 * Threads    a recorder belongs to one thread; tw_recorder_wake() and _hurry() may be called by any thread and by
 *            signal handlers.
 * Signals    the caller ignores SIGXFSZ; a file size limit then counts as a full disk.
 * Units      *_ns nanoseconds, *_bytes bytes.
 * Errors     those of tracewheel/error.h.  Link with libtracewheel-capture.
 */
#ifndef TRACEWHEEL_CONSUMER_H
#define TRACEWHEEL_CONSUMER_H

#include "tracewheel/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tw_recorder;

/* Policy of a traced thread whose ring is full. */
enum tw_recorder_policy {
	TW_RECORDER_DROP,  /* lose the newest events, counted */
	TW_RECORDER_BLOCK, /* wait for space, but not for a recorder that makes no progress for a second */
	/* Keep the newest: nothing is stored before tw_recorder_snapshot() or tw_recorder_finish(). */
	TW_RECORDER_OVERWRITE
};

/* Zeroed fields mean the defaults. */
struct tw_recorder_options {
	const char *path;    /* of the capture, borrows; its parent must exist */
	bool force;	     /* replace an existing capture; never anything that is not a capture */
	bool keep_old;	     /* rename an existing capture to PATH.old, replacing an older one of that name */
	uint64_t ring_bytes; /* of one thread's ring; 0: 4 MiB */
	uint64_t cap_bytes;  /* of all rings; 0: 256 MiB */
	enum tw_recorder_policy policy;
	/* TW_RECORDER_BLOCK: the longest wait; 0: as long as the recorder makes progress. */
	uint64_t block_timeout_ns;
	bool follow_fork; /* children of traced processes are traced */
	/* The rings stay mapped after tw_recorder_finish(), for a process that exits soon: unmapping is slow. */
	bool leaves_memory;
	/*
	 * A flight recorder: policy is TW_RECORDER_OVERWRITE, and nothing is ever stored but by tw_flight_write().  The
	 * folder of `path` holds the mark of the recording only, and tw_recorder_finish() removes it.
	 */
	bool is_flight;
	uint64_t flight_ns; /* how much tw_flight_write() keeps of what the rings hold, before its moment; 0: all */
	bool guards_rings; /* handle SIGBUS where a program removes pages of its rings: one recorder of a process that does
			      nothing else */
	/* The traced processes end their own tracing before the recording ends, and live on: nothing of them is missing for that. */
	bool ends_inside;
	/* Code of running threads will be changed soon: the process that stops them for it is started with the first tw_recorder_poll(). */
	bool holds_soon;
	bool allow_anonymous; /* use private memory where tmpfs refuses: for sessions in one process only */
	const char *config;   /* text for the agents, borrows; NULL: none */
	const char *layouts; /* for the agents: layouts of functions, borrows; NULL: none; see tw_recorder_question() */
	const char *name;    /* of the ring set, borrows; NULL: made from the process id */
	uint64_t segment_bytes; /* a segment above this size is closed and a new one begun; 0: no limit */
	uint64_t segment_ns;	/* the same for its age; 0: no limit */
	uint32_t segments_kept; /* closed segments kept for each image; older ones are removed; 0: all */
	/* Longest delay before fdatasync() begins, on a thread of its own; 0: left to the kernel. */
	uint64_t durable_ns;
	/*
	 * Samples how long each thread that makes events, and is not a scheduler, was ready to run without a processor
	 * (/proc/PID/task/TID/schedstat).  If that is this long or longer between two samples, the thread gets one event
	 * TW_CAPTURE_MONITOR at the time of the sample: long_schedule, [{timeout,Ms},{run_delay,Ns},{waits,N},{sampled,Ns}].
	 * A wait counts when it is over.  The time between samples is half of this, from 5 to 100 ms, and longer with very
	 * many threads.  0: no samples.  Not with TW_RECORDER_OVERWRITE (TW_EBADARG).
	 */
	uint64_t run_delay_ns;
	/*
	 * Records when threads ran, were preempted and were off (TW_CAPTURE_THREAD_STATE), from context switches that the kernel's
	 * perf events tell: of programs that the thread which creates the recorder starts afterwards.  The kernel's refusals are in
	 * the statistics (states_error), and the rest is recorded.  Not with TW_RECORDER_OVERWRITE (TW_EBADARG).
	 */
	bool has_thread_states;
	/*
	 * Writes a stream to this file descriptor (a pipe, a socket, a file) in place of a capture; path is ignored.
	 * The descriptor is duplicated and never seeked.  Every event is written at most 20 ms after it happened.  A
	 * write that fails ends the stream (stats.last_error, TW_EPIPE where the reader is gone); no signal is
	 * raised.
	 */
	bool is_stream;
	int stream_fd;
	uint64_t
		counts_ns; /* of a stream: numbers of counted calls are written this often; 0: only at the end of each thread */
};

/* Why code of a process was not restored when the recording ended (docs/unmodified.md). */
enum tw_unrestored {
	TW_UNRESTORED_DENIED,	/* the system does not let the recorder trace the process */
	TW_UNRESTORED_TRACED,	/* another tracer has it */
	TW_UNRESTORED_TOO_MANY, /* it has more threads than are stopped */
	TW_UNRESTORED_STUCK,	/* a thread could not be stopped */
	TW_UNRESTORED_BUSY,	/* threads stood in the instructions each time, or there was no time left */
	TW_UNRESTORED_ENDED	/* the process that stops threads for the recorder was ended meanwhile */
};

struct tw_recorder_stats {
	uint64_t events;	       /* stored */
	uint64_t events_taken;	       /* from the rings: stored, or waiting for a slow disk */
	uint64_t lost[TW_LOST_CAUSES]; /* as counted by the rings, and events that could not be stored (full) */
	uint64_t lost_ended;	       /* of lost[TW_LOST_NO_RING]: of threads after their last destructor */
	uint64_t lost_vfork;	       /* of lost[TW_LOST_NO_RING]: of children of vfork() */
	uint64_t left_out;	       /* of lost[TW_LOST_NESTED]: as TW_MISSING_LEFT_OUT */
	uint64_t unstored;	       /* of these: records left in the rings that could not be written at the end */
	uint64_t raw_bytes;	       /* of the records stored, before encoding */
	uint64_t file_bytes;	       /* written */
	uint64_t duration_ns;	       /* of the recording */
	uint64_t events_ns;	       /* from the first event stored to the last, as tw_capture_info() has it */
	uint64_t blocks;
	uint64_t write_errors;	      /* writes that failed and were retried */
	uint64_t definitions_refused; /* by full definition logs */
	uint32_t damaged_rings;	      /* rings with content that no producer writes; the rest of each was skipped */
	uint32_t segments;	      /* closed and open ones */
	uint32_t segments_removed;    /* by segments_kept */
	uint64_t events_removed;      /* stored events removed with them */
	uint64_t bytes_removed;	      /* part of file_bytes removed with them */
	uint32_t images;	      /* processes (between exec calls) seen */
	uint32_t images_alive;
	uint32_t streams; /* threads x sessions seen */
	uint32_t streams_alive;
	uint32_t functions;	 /* defined */
	uint64_t counted_calls;	 /* stored numbers of calls that were counted, not recorded (counts.h) */
	uint64_t memory_left;	 /* bytes of rings that tw_recorder_finish() left mapped (leaves_memory) */
	uint64_t images_refused; /* processes that should have been traced and could not be */
	uint64_t redacted;	 /* calls and other events with text that was replaced (tw_redact_check()) */
	uint64_t children;	 /* processes that traced ones started, and that were not followed */
	/* Processes that live on with code that calls what recorded it, and how many functions and slots these are. */
	uint32_t unrestored_processes;
	uint64_t unrestored_places;
	enum tw_unrestored unrestored_reason; /* of the last of these processes */
	uint32_t unrestored_threads;	      /* how many it has; TW_UNRESTORED_TOO_MANY */
	uint64_t
		switches_lost; /* switches of threads that the kernel lost, or that were not stored: thread states are unknown there */
	int states_error; /* why there are no thread states: a negative errno; 0: they were not asked for, or are there */
	int last_error;	  /* of a write: TW_ENOSPC, TW_EIO; 0: none */
	bool is_stalled; /* the last write failed and is being retried */
};

/*
 * tw_redact_check - may this be an expression of `redact` lines in tw_recorder_options.config, and of tw_cut_options?
 *
 * Expressions are POSIX extended ones, without regard to case.  Text that they match is replaced by '*', one for each byte,
 * before it is stored; of an expression with groups only what the groups match.  Text is what arguments and results
 * point to, strings and binaries in terms, paths of descriptors, and the command line.
 *
 * @problem	gets a clause that says why not; bytes: its size.
 *
 * Returns 0, TW_EBADARG or TW_ENOMEM.
 */
int tw_redact_check(const char *expression, char *problem, size_t bytes);

/*
 * tw_recorder_create - make the capture directory and the ring set.
 *
 * @options	borrows.
 * @out		gives: tw_recorder_finish() or tw_recorder_abort() ends it.
 *
 * Errors: TW_EEXIST (path is not a capture, or is one and neither `force` nor `keep_old` is set, or is being
 * recorded), TW_ENOENT (no parent), TW_EBADARG, TW_EPERM, TW_ENOSPC, TW_ENOMEM, TW_EIO.
 */
int tw_recorder_create(const struct tw_recorder_options *options, struct tw_recorder **out);

/* The directory of the ring set, for the agents; "" for anonymous memory.  Lends until the recorder ends. */
const char *tw_recorder_ring_set_path(const struct tw_recorder *recorder);

/*
 * tw_recorder_poll - one round: drain rings that hold enough, clean up after threads and processes that ended, then
 * sleep until there may be more to do, at most timeout_ns.
 *
 * Drains rings that hold 32 KiB or events 20 ms old; all rings after a longer sleep.  Call it again at once: it
 * sleeps as needed, from 20 us while many events come to 250 ms while few do.
 * Returns 1 when something was stored, 0 when not; never an error: stats has the errors of the disk.
 */
int tw_recorder_poll(struct tw_recorder *recorder, uint64_t timeout_ns);

/* Ends the sleep of the present tw_recorder_poll(), or of the next one. */
void tw_recorder_wake(struct tw_recorder *recorder);

/* From this call on, a stream ends when its reader has read nothing for a second.  Signal handlers: yes. */
void tw_recorder_hurry(struct tw_recorder *recorder);

/*
 * tw_recorder_drain - store everything committed before the call, whatever its size.
 *
 * Returns 0, or the error of the write that failed (it will be retried).
 */
int tw_recorder_drain(struct tw_recorder *recorder);

/* tw_recorder_snapshot - TW_RECORDER_OVERWRITE: store what the rings hold now.  TW_EBADARG for other
 * policies. */
int tw_recorder_snapshot(struct tw_recorder *recorder);

void tw_recorder_stats(const struct tw_recorder *recorder, struct tw_recorder_stats *out);

/* The results of tw_recorder_demote(). */
enum tw_recorder_demotion {
	TW_DEMOTION_NONE, /* nothing: there are not too many events, or the program is about to do what it was asked for */
	TW_DEMOTION_ASKED, /* the program was asked to count functions */
	TW_DEMOTION_IMPOSSIBLE /* there are too many, and no function can be counted that makes them, or the program does not answer */
};

/*
 * tw_recorder_demote - if there are more events in a second than this, the functions that make most of them are demoted: their calls are
 * counted from then on (tracewheel/counts.h), and not recorded, so that the others fit.
 *
 * To be called often, as each 50 ms: it looks at the events since the last calls.  Lost events count as well.  For recordings of one
 * process, to which the command has attached, and whose agent has `demotes 1` in its configuration: others do not answer.
 */
enum tw_recorder_demotion tw_recorder_demote(struct tw_recorder *recorder, uint64_t events_per_second);

/* The function that makes most events. */
struct tw_recorder_loudest {
	char function[160]; /* MODULE:FUNCTION, its linkage name, perhaps cut; printable */
	uint32_t percent;   /* of the events of functions */
};

/*
 * tw_recorder_loudest - of the events since the last call, or of part of them.
 *
 * The first call begins to look.  False: nothing is known, as of recordings of several processes, or there were no events.
 */
bool tw_recorder_loudest(struct tw_recorder *recorder, struct tw_recorder_loudest *out);

/* A call for which a snapshot is to be written: `trigger` in the configuration of agents. */
struct tw_recorder_trigger {
	uint64_t ns;	  /* CLOCK_MONOTONIC: when it was found */
	bool has_ended;	  /* false: the call has just begun */
	uint64_t call_ns; /* how long it took, if it has ended, without the tracer's own time: within a thousandth */
	uint64_t ticks, call_ticks; /* both in ticks of the recording */
	int32_t process_id;	    /* where */
	int32_t thread_id;
	char function[160]; /* MODULE:FUNCTION, perhaps cut; printable */
};

/*
 * Says whether calls are wanted from now on; at first, none are.  One that is there, and was not taken, is counted as missed.
 * False: nothing has changed, because a program is about to tell a call; to be asked again.
 */
bool tw_recorder_watch_triggers(struct tw_recorder *recorder, bool is_wanted);
/* The first such call since then; tw_recorder_poll() ends its sleep for it.  False: none.  No other is wanted then. */
bool tw_recorder_trigger(struct tw_recorder *recorder, struct tw_recorder_trigger *out);
/* A signal that ended a program, as it has written down: `crash 1` in the configuration of agents. */
struct tw_recorder_crash {
	uint64_t ticks;
	int32_t thread_id;
	int32_t signal;
};
/* False: the process has written none. */
bool tw_recorder_crash(struct tw_recorder *recorder, int32_t process_id, struct tw_recorder_crash *out);
/* How many such calls there were while one was there, or none were wanted. */
uint64_t tw_recorder_triggers_missed(const struct tw_recorder *recorder);

/* Kinds of questions that agents ask about objects that a process has loaded; each kind is asked and answered apart. */
enum tw_recorder_question_kind {
	TW_RECORDER_QUESTION_LAYOUTS, /* how functions take their arguments; the answer is text */
	TW_RECORDER_QUESTION_PLANS /* plans of function entries; the answer is files `plan-BUILDID` in the ring set */
};

#define TW_RECORDER_PROCESSES_MAX 8192
struct tw_recorder_question {
	uint32_t number;
	uint32_t process_count;
	int32_t process_ids[TW_RECORDER_PROCESSES_MAX]; /* that have asked and wait */
};

/*
 * tw_recorder_question - is there a question that tw_recorder_answer() has not answered?
 *
 * Agents whose configuration has the line `ask MS` ask for layouts, those with `plans MS` for plans.  They wait at most MS
 * milliseconds for an answer, and not for a recorder that makes no progress.
 */
bool tw_recorder_question(struct tw_recorder *recorder, enum tw_recorder_question_kind what,
			  struct tw_recorder_question *out);

/*
 * tw_recorder_answer - answer a question completely.
 *
 * @text	borrows: more lines, as `layouts` of the options; NULL: none, or files.
 * Errors: those of writing the text; the question counts as answered all the same.
 */
int tw_recorder_answer(struct tw_recorder *recorder, enum tw_recorder_question_kind what, uint32_t number,
		       const char *text);

/*
 * tw_recorder_child - name the process whose ending the capture records: the recording of its last program stays open
 * until tw_recorder_child_ended() or tw_recorder_finish().
 */
void tw_recorder_child(struct tw_recorder *recorder, int32_t process_id);
/* The process has ended, with this status of wait(2); negative: its status will not be known. */
void tw_recorder_child_ended(struct tw_recorder *recorder, int wait_status);

/*
 * tw_recorder_follow_threads - record the states of the threads of a process that runs, and of those that it starts from now on.
 *
 * Instead of has_thread_states of the options, before the process is attached to; its children are not followed.  Each thread takes an open
 * file for each processor.
 *
 * Returns 0, or a negative errno (of the system), which states_error of the statistics has too: then there are no states, and all else is recorded.
 */
int tw_recorder_follow_threads(struct tw_recorder *recorder, int32_t process_id);

/*
 * tw_recorder_stopped - say in the capture why the recording ends before the programs that it records.
 *
 * @limit	of `why`, below 2^56.
 *
 * Call it before tw_recorder_finish(); tw_capture_stopped() reads it.
 */
void tw_recorder_stopped(struct tw_recorder *recorder, enum tw_stop why, uint64_t limit);

/* Tells agents to stop recording.  Events already committed are still drained. */
void tw_recorder_close(struct tw_recorder *recorder);

/*
 * tw_recorder_finish - close the rings, drain everything, close the segments, remove the ring set.
 *
 * @recorder	takes, also on error.
 * @stats	the final counts; may be NULL.
 *
 * Returns 0, or the error that kept records from being stored (counted in stats.unstored).
 */
int tw_recorder_finish(struct tw_recorder *recorder, struct tw_recorder_stats *stats);

/*
 * tw_recorder_abort - end without draining: removes the ring set and the incomplete capture.
 *
 * @recorder	takes; NULL is allowed.
 */
void tw_recorder_abort(struct tw_recorder *recorder);

/*
 * tw_recover - complete a capture whose recorder died.
 *
 * Drains the ring set, closes the segments that were cut off, and removes the ring set and the recording's mark.  May
 * be repeated; a complete capture is left as it is.  If the ring set is gone (the machine was restarted), the account
 * of the capture says so from then on: TW_MISSING_CUT of capture.h.
 *
 * @stats	counts of the records added; may be NULL.
 * Errors: TW_EEXIST while the recording is alive, TW_ENOENT, TW_EFORMAT (not a capture), TW_ENOTSUP (half of a merge),
 * TW_EPERM (also: the ring set that the mark names was made for another folder), TW_EIO, TW_ENOSPC, TW_ENOMEM (also: not
 * enough address space for the ring set).
 */
int tw_recover(const char *capture_path, struct tw_recorder_stats *stats);

/*
 * tw_recording_is_alive - is a capture being recorded at this moment?
 *
 * Also false where its recorder died, or belongs to another user and cannot be examined.  Threads: any.
 */
bool tw_recording_is_alive(const char *capture_path);

/* A ring set that an interrupted recording left.  Lent to the function that is called with it. */
struct tw_recover_set {
	const char *path;	  /* of the directory in /dev/shm */
	const char *capture_path; /* the capture that tw_recover() completes from it; "": there is none any more */
	uint64_t bytes;		  /* of its files */
	int error;		  /* tw_recover_clean(): 0, or why the set was left: the error of tw_recover() */
};

/*
 * tw_recover_list - the ring sets of this user whose owners are gone: left by recordings that were cut off.
 *
 * @fn	called with each of them; NULL: only counts them.
 *
 * Returns their number.
 */
unsigned tw_recover_list(void (*fn)(const struct tw_recover_set *set, void *arg), void *arg);

/*
 * tw_recover_clean - completes the captures of these ring sets as tw_recover() does, and removes all sets.
 *
 * A set whose capture exists but cannot be completed is left with its events.
 *
 * @fn	called with each of them; NULL: nothing is called.
 *
 * Returns the number of sets that were removed.
 */
unsigned tw_recover_clean(void (*fn)(const struct tw_recover_set *set, void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
