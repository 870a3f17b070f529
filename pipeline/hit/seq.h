/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq.h - sequential tracing: the token of a process, and its clocks, as OTP's seq_trace describes them.
 *
 * A token passes through messages as 64 bytes (struct tw_seq_token); these are its words. It is used by the process that
 * has it, on the thread that runs that process; the clocks likewise.
 *
 * Epochs	tw_seq_epoch is raised by reset_trace(). A token or a clock of another epoch is empty or zero, wherever it
 *		is: nothing has to be searched for.
 * Labels	a word: the term's own, if it is one word (a small integer, an atom, []); else an entry of the table of labels,
 *		seq_label.h.
 * Nodes	0: this OS process. Else the word of an atom; then the process is a pid of that node.
 */
#ifndef TW_PIPELINE_HIT_SEQ_H
#define TW_PIPELINE_HIT_SEQ_H

#include "base/atomic.h"

#include <stdint.h>

#define TW_SEQ_VERSION 1

struct tw_seq_words {
	uint8_t version; /* 0: an empty token */
	uint8_t flags;	 /* TW_SEQ_* of tracewheel/seq.h, those of OTP */
	uint16_t reserved;
	uint32_t epoch;
	uint64_t label;
	int64_t previous, current; /* the serial; TW_SMALL_MIN .. TW_SMALL_MAX, as in OTP */
	uint32_t from, from_serial;
	uint64_t node;	   /* of `from` */
	uint32_t creation; /* of `from` on another node */
	uint32_t process;  /* tw_seq_process_key: the OS process in which label, node and epoch have a meaning */
	uint64_t reserved2;
};
_Static_assert(sizeof(struct tw_seq_words) == 64, "struct tw_seq_token");

/* The state of one process. */
struct tw_seq_state {
	struct tw_seq_words token;
	int64_t previous, current; /* OTP: prev_cnt, curr_cnt */
	uint32_t epoch;		   /* of the clocks; another one: both are 0 */
};

#pragma GCC visibility push(hidden)
extern _Atomic uint32_t tw_seq_epoch;
/* Differs between OS processes, also after fork(). Never 0. */
extern uint32_t tw_seq_process_key;
/* The session that is the system tracer, as its bit; 0: none. Changed under the registry's lock, but for a module that removes itself. */
extern _Atomic uint64_t tw_seq_tracer;
#pragma GCC visibility pop

/* Is the token, which is not NULL, a current one? The caller distinguishes damaged ones. */
static inline int tw_seq_is_current(const struct tw_seq_words *token)
{
	/* PAIR seq.epoch: acquire; release in tw_seq_reset_trace(). */
	return token->version == TW_SEQ_VERSION && token->epoch == tw_load_acquire(&tw_seq_epoch);
}

#endif
