/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_ports.h - the descriptors that a program used, from its calls of libc (`record --ports`).
 *
 * A table of descriptors is kept for each process, from the returns that describe new ones (tracewheel/layout.h) and the
 * calls that close them. A forked child begins with its parent's, a new program of a process with the old one's. A call
 * counts for the port that its descriptor had when it began. Closed ports are summed by what they are, so that memory
 * grows with the number of different ports, not with that of connections.
 *
 * The table names what it does not see, and guesses nothing: calls that libc makes inside itself, io_uring, bare system calls,
 * and sizes that a call does not return (fputs, fgets, recvmmsg, sendmmsg, fscanf).
 *
 * Threads  one.
 */
#ifndef TW_VIEWS_NATIVE_PORTS_H
#define TW_VIEWS_NATIVE_PORTS_H

#include "views/folds/pass.h"

#include "tracewheel/capture.h"

/* Ports of one description, opened in one way. */
struct tw_native_port {
	char *what;	    /* as tw_descriptor_text(); cleaned when it is shown */
	const char *kind;   /* a constant */
	const char *opener; /* function of libc, borrowed from the capture; NULL: not seen */
	const char *caller; /* module that called it, borrowed; NULL: not known */
	uint64_t opened;    /* times; inherited ones are counted where they were opened */
	uint64_t open;	    /* of them, at the end */
	uint64_t calls;
	uint64_t in_bytes, out_bytes;
	uint64_t call_ns;		    /* time in these calls */
	uint64_t failed;		    /* calls that returned an error */
	bool is_in_partial, is_out_partial; /* the size of some transfers is not known */
};

/* Modules that call functions of libc through pointers; more are not named. */
#define TW_NATIVE_INDIRECT_MAX 8

struct tw_native_ports {
	struct tw_native_port *rows;
	size_t count;
	uint64_t in_bytes, out_bytes, calls, call_ns; /* of all */
	uint64_t unknown;			      /* calls with a descriptor that was not seen to be opened */
	uint64_t unfollowed; /* calls whose return is missing, and returns whose call is; not what still runs */
	uint64_t gaps;	     /* of lost events: in each a descriptor may have been closed and made again */
	const char *indirect[TW_NATIVE_INDIRECT_MAX]; /* borrowed from the capture; their ports are lower bounds */
	unsigned indirect_count;
	bool is_recorded; /* the capture holds such calls at all */
	bool is_each;
	struct tw_native_replay *replay; /* between begin and end */
};

/*
 * tw_native_ports_begin - the fold that follows the ports of a capture; tw_native_ports_end() after its pass.
 *
 * @filter	borrows: only its times count; everything before them is read, for what is open then.
 * @is_each	one row for each port that was opened, not one for each description.
 * @fold	is written; it refers to the ports.
 *
 * Returns 0 or an error; tw_native_ports_free() in both cases.
 */
int tw_native_ports_begin(struct tw_native_ports *ports, struct tw_capture *capture,
			  const struct tw_capture_filter *filter, bool is_each, struct tw_fold *fold);
/*
 * tw_native_ports_end - sums the ports up, those with the most bytes first.
 *
 * @glob	only ports whose description matches it, as fnmatch(); NULL: all.
 *
 * Returns 0 or TW_ENOMEM.
 */
int tw_native_ports_end(struct tw_native_ports *ports, const char *glob);
void tw_native_ports_free(struct tw_native_ports *ports);

#endif
