/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effects.c - what match specifications do to processes: {silent,B}, {enable_trace,..}, {trace,..}.
 *
 * Called in the middle of hits, with vector registers kept.  The registry's lock is quiet and never held
 * over a wait, so a hit may take it; flags are as in trace:process/4, of the same session.
 */
#include "session/session.h"
#include "session/tracee.h"
#include "term/term.h"

/* A list of flag atoms as a mask; false for anything that is no flag here. */
static bool read_flags(struct tw_term list, uint32_t *out)
{
	static const struct {
		enum tw_atom_index atom;
		uint32_t flag;
	} known[] = {
		{ TW_ATOM_CALL, TW_FLAG_CALL },
		{ TW_ATOM_ARITY, TW_FLAG_ARITY },
		{ TW_ATOM_SILENT, TW_FLAG_SILENT },
		{ TW_ATOM_TIMESTAMP, TW_FLAG_TIMESTAMP },
		{ TW_ATOM_STRICT_MONOTONIC_TIMESTAMP, TW_FLAG_STRICT_MONOTONIC_TIMESTAMP },
		{ TW_ATOM_MONOTONIC_TIMESTAMP, TW_FLAG_MONOTONIC_TIMESTAMP },
	};
	uint32_t flags = 0;

	for (; tw_is_cons(list); list = tw_term_tail(list)) {
		uint32_t flag = 0;

		for (size_t i = 0; i < TW_COUNT_OF(known); i++)
			if (tw_term_head(list).word == tw_atom(known[i].atom).word)
				flag = known[i].flag;
		if (!flag)
			return false;
		flags |= flag;
	}
	*out = flags;
	return tw_is_nil(list);
}

int tw_effect_trace(unsigned session, struct tw_term who, struct tw_term off, struct tw_term on)
{
	uint64_t pid = tw_hit_tls.tracee->pid_number;
	struct tw_identifier parts;
	uint32_t removed, added;

	if (!read_flags(off, &removed) || !read_flags(on, &added))
		return -1;
	if (!tw_term_is_none(who)) {
		if (tw_term_type(who) != TW_TYPE_PID || tw_term_get_identifier(who, &parts) != 0 || !tw_term_is_none(parts.node))
			return -1;
		pid = parts.words[0];
	}
	return tw_tracee_change(pid, session, removed, added);
}

void tw_effect_silence(unsigned session, bool is_silent)
{
	tw_tracee_change(tw_hit_tls.tracee->pid_number, session, is_silent ? 0 : TW_FLAG_SILENT,
			 is_silent ? TW_FLAG_SILENT : 0);
}
