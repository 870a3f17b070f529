/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - state that every file of this room reads: whether the process is traced, in which session, and where its
 * events go.
 */
#include "agent/agent.h"
#include "agent/leave.h"

#include "base/atomic.h"
#include "breakpoints/breakpoints.h"
#include "pipeline/format/definitions.h"
#include "session/definitions.h"
#include "session/session.h"

#include <string.h>

struct tw_rs tw_agent_ring_set;
struct tw_session *tw_agent_session;
void (*tw_agent_bind_beside)(struct tw_permit *permit);

static _Atomic bool is_active;
static _Atomic uint32_t users; /* calls of the program that are inside the agent */

void tw_agent_set_active(bool is_tracing)
{
	/*
	 * PAIR agent.active: release; acquire in tw_agent_is_active().
	 * PAIR agent.users: seq_cst; tw_agent_enter(), tw_agent_is_used().  Either a thread that enters sees that the agent is not active
	 * any more, or tw_agent_is_used() sees the thread.
	 */
	tw_exchange_seq_cst(&is_active, is_tracing);
}

bool tw_agent_enter(void)
{
	/* PAIR agent.users: seq_cst; tw_agent_set_active(), tw_agent_is_used(). */
	tw_fetch_add_seq_cst(&users, 1);
	if (tw_agent_is_active())
		return true;
	tw_agent_leave();
	return false;
}

void tw_agent_leave(void)
{
	/* PAIR agent.users: seq_cst; tw_agent_is_used(): this thread's uses are over. */
	tw_fetch_add_seq_cst(&users, UINT32_MAX);
}

bool tw_agent_is_used(void)
{
	/* PAIR agent.users: seq_cst; tw_agent_enter(), tw_agent_leave(). */
	return tw_load_seq_cst(&users) != 0;
}

void tw_agent_users_after_fork(void)
{
	/* RELAXED agent.users: the child has one thread, which is not inside. */
	tw_store_relaxed(&users, 0);
}

bool tw_agent_is_active(void)
{
	/* PAIR agent.active: acquire; release in tw_agent_set_active().  Everything set up before is visible. */
	return tw_load_acquire(&is_active) &&
	       /* RELAXED agent.gate: 0 only in a forked child, which has one thread. */
	       tw_load_relaxed(&tw_bp_gate.active) != 0;
}

const char *tw_agent_ring_set_path(void)
{
	return tw_agent_is_active() && tw_agent_ring_set.path[0] ? tw_agent_ring_set.path : NULL;
}

/* The sums of notes that were written.  A program may open the same library any number of times, and the log is limited. */
#define NOTED_MAX 128
static _Atomic uint64_t noted[NOTED_MAX];

/* Remembers a note; false: it was written before.  Without space, notes are repeated. */
static bool is_news(const char *text)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325), found;

	for (const char *c = text; *c; c++)
		sum = (sum ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	sum |= 1;
	for (unsigned i = 0; i < NOTED_MAX; i++) {
		found = 0;
		/* RELAXED agent.told: independent sums; two threads may write the same note at once. */
		if (tw_cas_relaxed(&noted[i], &found, sum))
			return true;
		if (found == sum)
			return false;
	}
	return true;
}

void tw_agent_tell_again(void)
{
	for (unsigned i = 0; i < NOTED_MAX; i++)
		/* RELAXED agent.told: the child has one thread. */
		tw_store_relaxed(&noted[i], 0);
}

void tw_agent_tell(const char *text)
{
	if (is_news(text))
		tw_define_note(tw_agent_session, text);
}

void tw_agent_tell_unarmed(unsigned count, const char *text)
{
	if (!is_news(text))
		return;
	tw_define_note(tw_agent_session, text);
	tw_rs_count_unarmed(&tw_agent_ring_set, count);
}

void tw_agent_count_untraced(enum tw_program_kind program)
{
	tw_rs_image_refuse(&tw_agent_ring_set, program == TW_PROGRAM_STATIC   ? TW_RS_REFUSED_STATIC
					       : program < TW_PROGRAM_SET_UID ? TW_RS_REFUSED_LIBRARY
									      : TW_RS_REFUSED_RIGHTS);
}
