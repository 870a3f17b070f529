/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight.h - write what the rings of a flight recorder hold as a capture, and read what caused that.
 *
 * Units      *_ns nanoseconds.
 * Errors     those of tracewheel/error.h.  Link with libtracewheel-capture.
 */
#ifndef TRACEWHEEL_FLIGHT_H
#define TRACEWHEEL_FLIGHT_H

#include "tracewheel/consumer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the rings of a flight recorder, written as a capture of its own ---- */

/* The end of the path that a flight recorder's folder has. */
#define TW_FLIGHT_END ".flight"

struct tw_flight_options {
	const char *ring_set_path; /* borrows */
	/*
	 * Of the capture: NAME.tw, or if there is such a file already the first of NAME-2.tw, NAME-3.tw ... that is free.
	 * Borrows; NULL: made of the path that the recorder was given, without ".flight" at its end.
	 */
	const char *path;
	uint64_t trigger_ns; /* CLOCK_MONOTONIC of what caused it; 0: now */
	const char *reason;  /* what caused it, as a clause: "it was asked for"; borrows */
	int32_t process_id;  /* where; 0: not known */
	int32_t thread_id;   /* the same */
	/* The same of a call of the program, in ticks of its recording; 0: none caused it. */
	uint64_t trigger_ticks;
	uint64_t call_ticks; /* how long it took until then, with the tracer's own time; 0: it had just begun */
	bool has_ended;	     /* the program has, */
	int wait_status;     /* with this status of wait(2) */
};

struct tw_flight_result {
	char path[4096];     /* of the capture */
	uint64_t copied_ns;  /* from the call to the end of the copies of all rings */
	uint64_t written_ns; /* from the call to the whole capture */
	struct tw_recorder_stats stats;
};

/*
 * tw_flight_write - write what the rings of a recording hold now as a capture.
 *
 * The program and the recorder go on: all rings are copied first, and then stored.  The capture appears under its name
 * when it is whole; if this process is killed before, there is none, and the next call removes what it has left.
 *
 * Threads: any; any process of the recorder's user, also when the recorder stands still or is gone.
 * Memory: as much as the rings hold.
 * Errors: TW_EBADARG (the rings do not overwrite), TW_ENOENT (there is no such ring set, or the folder of the path is
 * gone), TW_EPERM, TW_EVERSION, TW_EFORMAT, TW_ENOSPC, TW_EIO, TW_ENOMEM, TW_ELIMIT (no free name).
 */
int tw_flight_write(const struct tw_flight_options *options, struct tw_flight_result *out);

/*
 * The same in two steps.  The first copies the rings, that of options->thread_id before all others, for a second at most; the
 * second copies those that are left, and stores all.  A forked child may do the second, while its parent goes on.
 *
 * @options	borrowed until tw_flight_copy_free().
 * @out		gives; tw_flight_copy_free() takes.
 */
struct tw_flight_copy;
int tw_flight_copy(const struct tw_flight_options *options, struct tw_flight_copy **out);
/* Once. */
int tw_flight_store(struct tw_flight_copy *copy, struct tw_flight_result *out);
void tw_flight_copy_free(struct tw_flight_copy *copy);

/* The cause for a flight recorder to write this capture (tw_flight_write()). */
struct tw_capture_trigger {
	uint64_t ns;	    /* CLOCK_MONOTONIC */
	int32_t process_id; /* where; 0: not known */
	int32_t thread_id;
	uint64_t
		call_ns; /* how long the call took that caused it and ended then; 0: it had just begun, or there was none */
	const char *reason; /* a clause; lends: until tw_capture_close() */
};
/* False: none did. */
bool tw_capture_trigger(const struct tw_capture *capture, struct tw_capture_trigger *out);

/* Why the stack of a crash goes no further. */
enum tw_crash_end {
	TW_CRASH_OUTERMOST = 0,	   /* there is no caller */
	TW_CRASH_FULL = 1,	   /* more callers are not kept */
	TW_CRASH_UNKNOWN_CODE = 2, /* an address in no known code: a damaged stack, or code made at run time */
	TW_CRASH_NO_ROW = 3,	   /* its code does not say where the caller is */
	TW_CRASH_UNREADABLE = 4,   /* the next frame would be where no memory is, or below */
	TW_CRASH_UNWALKED = 5	   /* the program died before */
};

/* The signal that ended the program, where that caused the capture to be written (record --flight --snapshot-on crash). */
struct tw_capture_crash {
	uint32_t image;		/* of the process, for the modules of addresses */
	int32_t thread_id;	/* that got the signal */
	int32_t signal, code;	/* as in siginfo_t */
	int32_t sender;		/* the process that has sent the signal; 0: none has, or it is not known */
	uint64_t address;	/* that could not be used; 0: none, or that address */
	uint64_t stack_pointer; /* of the thread */
	enum tw_crash_end end;	/* of the stack */
	uint32_t count;
	const uint64_t *addresses; /* the instruction, then return addresses; lends: until tw_capture_close() */
};
/* False: it is not known. */
bool tw_capture_crash(const struct tw_capture *capture, struct tw_capture_crash *out);

#ifdef __cplusplus
}
#endif

#endif
