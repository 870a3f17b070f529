/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effects.c - effects of match specifications on processes: {silent,B}, {enable_trace,..}, {trace,..},
 * {set_seq_token,..}.
 *
 * Called in the middle of hits, with vector registers kept.  The registry's lock is quiet and never held
 * over a wait, so a hit may take it; flags are as in trace:process/4, of the same session.
 */
#include "session/effects.h"
#include "base/filter.h"
#include "session/session.h"
#include "session/seq/seq.h"
#include "session/tracee.h"
#include "term/term.h"

/* Reads a list of flag atoms as a mask; false if any element is not a flag allowed here. */
static bool read_flags(struct tw_term list, uint32_t *out)
{
	uint32_t flags = 0;

	for (; tw_is_cons(list); list = tw_term_tail(list)) {
		const char *name = tw_term_atom_name(tw_term_head(list), NULL);
		uint32_t flag = name ? tw_process_flag_named(name) & TW_FLAG_ALL : 0;

		if (!flag)
			return false;
		flags |= flag;
	}
	*out = flags;
	return tw_is_nil(list);
}

/* Reads a process given by pid or registered name; 0: none. */
static bool read_process(struct tw_term who, uint64_t *pid)
{
	struct tw_identifier parts;
	const struct tw_tracee *tracee;

	if (tw_is_atom(who)) {
		tw_registry_lock();
		tracee = tw_tracee_named(who);
		if (tracee && tracee->port_slot)
			tracee = NULL;
		*pid = tracee ? tracee->pid_number : 0;
		tw_registry_unlock();
		return tracee;
	}
	if (tw_term_type(who) != TW_TYPE_PID || tw_term_get_identifier(who, &parts) != 0 ||
	    !tw_term_is_none(parts.node))
		return false;
	*pid = parts.words[0];
	return tw_tracee_is_there(*pid);
}

int tw_effect_trace(unsigned session, struct tw_term who, struct tw_term off, struct tw_term on)
{
	uint64_t pid = tw_hit_tls.tracee->pid_number;
	uint32_t removed, added;

	if (!read_flags(off, &removed) || !read_flags(on, &added))
		return -1;
	if (!tw_term_is_none(who) && !read_process(who, &pid))
		return -1;
	return tw_tracee_change(pid, session, removed, added);
}

struct tw_term tw_effect_get_seq_token(struct tw_arena *arena)
{
	return tw_seq_term_of(arena, tw_hit_tls.tracee);
}

int tw_effect_set_seq_token(struct tw_term component, struct tw_term value)
{
	if (tw_hit_tls.tracee == &tw_hit_nobody)
		return TW_EBADARG;
	/* The first token of all, and labels of more than a word, take a lock: a system call if it is taken. */
	if (!tw_thread_may_call_system())
		return TW_EPERM;
	return tw_seq_set_of(NULL, tw_hit_tls.tracee, component, value, NULL);
}

void tw_effect_silence(unsigned session, bool is_silent)
{
	tw_tracee_change(tw_hit_tls.tracee->pid_number, session, is_silent ? 0 : TW_FLAG_SILENT,
			 is_silent ? TW_FLAG_SILENT : 0);
}
