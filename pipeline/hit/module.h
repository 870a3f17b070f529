/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.h - sessions whose tracer is a module: hits call its callbacks instead of writing records.
 *
 *	tw_module_ask()		`enabled`, before the match program runs and before terms are built
 *	tw_module_tell()	`trace`, with the terms on the stack
 *
 * Both are called in a hit, in a read section: calls made by a callback are nested in that hit, so they make no
 * events and change no session. A callback may use vector registers; a hit that came through a trampoline keeps them.
 *
 * A tracer module has no rings. Its events that could not be made are counted beside the session's slot.
 */
#ifndef TW_PIPELINE_MODULE_H
#define TW_PIPELINE_MODULE_H

#include "pipeline/hit/hit.h"
#include "term/term.h"
#include "tracewheel/tracer.h"

/* A pair of callbacks, in the order of struct tw_tracer_module. */
enum tw_module_pair {
	TW_MODULE_GENERAL,
	TW_MODULE_CALL,
	TW_MODULE_GARBAGE_COLLECTION,
	TW_MODULE_PORTS,
	TW_MODULE_PROCS,
	TW_MODULE_RECEIVE,
	TW_MODULE_RUNNING_PORTS,
	TW_MODULE_RUNNING,
	TW_MODULE_SEND,
	TW_MODULE_PAIRS
};

/* The callbacks of a session, with defaults for missing ones. Never changes; lives as long as the session. */
struct tw_hit_module {
	struct {
		tw_tracer_enabled_fn *enabled;
		tw_tracer_trace_fn *trace;
	} pairs[TW_MODULE_PAIRS];
	struct tw_term state;
};

static inline enum tw_tracer_answer tw_module_status(const struct tw_hit_module *module, struct tw_term tracee)
{
	return module->pairs[TW_MODULE_GENERAL].enabled(TW_TRACER_TAG_STATUS, module->state, tracee);
}

/* Memory for the pid or port that callbacks are passed. */
struct tw_module_pid {
	_Alignas(16) uint64_t header;
	struct tw_term node;
	uint64_t creation_and_channel;
	uint64_t number; /* two words, the lower one first */
};

static inline __attribute__((always_inline)) struct tw_term tw_module_pid_in(struct tw_module_pid *block,
									     uint32_t number, bool is_port)
{
	block->header = tw_header(is_port ? TW_BLOCK_PORT : TW_BLOCK_PID, 0, 2);
	block->node = (struct tw_term){0};
	block->creation_and_channel = 0;
	block->number = number;
	return tw_term_of_block(block);
}

/* An event for a callback. Terms and words borrow; zeroed fields mean none. */
struct tw_module_event {
	enum tw_event_kind kind;
	bool is_meta;		      /* stamped as meta events are, whatever the tracee's flags */
	const struct tw_place *place; /* of calls and their ends: {M,F,..} */
	bool has_arguments;	      /* a call: the terms are its arguments */
	const struct tw_term *terms;  /* else the elements of the message, in order */
	unsigned term_count;
	const uint64_t *words; /* arguments, or the sizes of a collection */
	unsigned word_count;
	struct tw_term extra;  /* the value of a return or exception */
	struct tw_term result; /* X of {message,X} */
};

/*
 * tw_module_ask - ask `enabled` about an event of the tracee that the thread runs, or whose event it makes.
 *
 * @keeps_vectors	the hit came through a trampoline.
 *
 * For a call, the status is asked for first. TW_TRACER_REMOVE clears the tracee's flags. Keeps errno.
 */
enum tw_tracer_answer tw_module_ask(struct tw_hit_tls *t, unsigned session, enum tw_event_kind kind,
				    bool keeps_vectors);
static inline bool tw_module_wants(struct tw_hit_tls *t, unsigned session, enum tw_event_kind kind, bool keeps_vectors)
{
	return tw_module_ask(t, session, kind, keeps_vectors) == TW_TRACER_TRACE;
}

/* Calls `trace`.  Keeps errno. */
void tw_module_tell(struct tw_hit_tls *t, unsigned session, const struct tw_module_event *event, bool keeps_vectors);

/* The same of an event of sequential tracing: {send,Serial,From,To,Message}, stamped as in @flags (TW_EVENT_FLAG_STAMP_MASK). */
void tw_module_tell_seq(unsigned session, struct tw_term label, struct tw_term info, unsigned flags,
			bool keeps_vectors);

/*
 * tw_module_plain_call - `trace`, for a call with words that involves no match program, no other session and no
 * trampoline, and whose end is not wanted.  The caller has asked, and keeps errno.
 */
void tw_module_plain_call(struct tw_hit_tls *t, const struct tw_place *place, unsigned session, struct tw_term tracee,
			  const uint64_t *words, unsigned count);
/* Handles an answer that is neither TRACE nor DISCARD: clears the tracee's flags, or counts a wrong answer. */
void tw_module_answered(struct tw_hit_tls *t, unsigned session, enum tw_tracer_answer answer, bool keeps_vectors);

/*
 * Asks for the status of any tracee, or of new ones (0), in a read section: false is TW_TRACER_REMOVE. Removes
 * nothing.
 */
bool tw_module_is_active(const struct tw_hit_module *module, uint32_t number, bool is_port);

/* The session's callbacks, in a read section; NULL: it has no tracer, or one of another kind. */
static inline const struct tw_hit_module *tw_module_of(unsigned session)
{
	return tw_hit_sessions[session].module;
}

#endif
