/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stopped.h - the objects of another process, and the frames of its threads while these are stopped.
 *
 * Threads  one, which has the process' threads stopped by ptrace while it asks for their frames.
 */
#ifndef TW_SYMBOLS_STOPPED_H
#define TW_SYMBOLS_STOPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct user_regs_struct;
struct tw_stopped;

struct tw_stopped_frame {
	uint64_t pc;	      /* of the innermost frame, or a return address */
	const char *object;   /* lends: the path of its file; NULL: code of no object */
	const char *function; /* lends: the exported function that contains it; NULL: none does */
	bool is_interrupted;  /* by a signal, whose handler has the frame before; true of the innermost frame */
};

/*
 * tw_stopped_open - read which objects a process has, and how their frames are unwound.  No thread need be stopped.
 *
 * @out		gives; tw_stopped_close() takes.
 *
 * Objects that are loaded later are not known.  Returns false if they cannot be read, or there is no memory.
 */
bool tw_stopped_open(int process, struct tw_stopped **out);
void tw_stopped_close(struct tw_stopped *stopped);

/* The address of a function that an object exports; 0: none.  @ending	the end of the object's path: "/libc.so.6". */
uint64_t tw_stopped_symbol(struct tw_stopped *stopped, const char *ending, const char *function);
/* Calls @found with the path of each object that exports the function, the program's own with @is_program. */
void tw_stopped_exporters(struct tw_stopped *stopped, const char *function,
			  void (*found)(const char *object, bool is_program, void *arg), void *arg);

/*
 * tw_stopped_frames - unwind a thread that has these registers.
 *
 * @frames	the innermost first.
 *
 * Returns their number; 0: they cannot be unwound to the end, or are more than @capacity.
 */
size_t tw_stopped_frames(struct tw_stopped *stopped, const struct user_regs_struct *registers,
			 struct tw_stopped_frame *frames, size_t capacity);

#endif
