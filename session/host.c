/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - callbacks of hits into this folder, and the state in a forked child.
 *
 * In the child the gate is closed (fork() wiped its page), so nothing is traced; sessions remain in name only.  To
 * trace the child (with follow-fork), the agent opens the gate again with rings of its own.
 */
#include "session/change.h"
#include "session/effects.h"
#include "session/session.h"
#include "session/tracee.h"
#include "session/tracer_module.h"
#include "session/monitor_words.h"
#include "session/seq/seq.h"
#include "pipeline/hit/native.h"
#include "pipeline/hit/special.h"
#include "pipeline/thread/seq_label.h"
#include "pipeline/thread/thread.h"
#include "progress/progress.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	tw_progress_before_fork();
	tw_registry_before_fork();
	tw_process_memory_before_fork();
	tw_threads_before_fork();
	tw_seq_labels_before_fork();
	for (struct tw_session *session = tw_sessions_all(); session; session = session->next_of_all)
		tw_quiet_lock_before_fork(&session->definitions);
}

/* Code that holds this lock takes no other one. */
static void unlock_definitions(void)
{
	for (struct tw_session *session = tw_sessions_all(); session; session = session->next_of_all)
		tw_quiet_unlock_after_fork(&session->definitions);
}

static void after_fork_in_parent(void)
{
	unlock_definitions();
	tw_seq_labels_after_fork();
	tw_threads_after_fork_in_parent();
	tw_process_memory_after_fork();
	tw_registry_after_fork();
	tw_progress_after_fork_in_parent();
}

/* The rings are the parent's. */
static void let_go_of_queue(struct tw_session *session)
{
	session->is_queue_of_parent = true;
	/* RELAXED session.tracer_is_gone: the child has one thread. */
	tw_store_relaxed(&session->is_tracer_gone, true);
	session->tracer_pid = session->last_tracer_pid = 0;
	if (session->slot != TW_SESSION_NO_SLOT)
		tw_monitors_forget_locked(tw_tracees(), session->slot);
}

/* The callbacks were given for the parent's processes, and may use its files and locks. */
static void let_go_of_module(struct tw_session *session)
{
	/* RELAXED session.tracer_is_gone: the child has one thread. */
	tw_store_relaxed(&session->is_tracer_gone, true);
	if (session->slot == TW_SESSION_NO_SLOT)
		return;
	tw_hit_sessions[session->slot].module = NULL;
	/* PROGRESS hit.alive: the child has one thread. */
	tw_fetch_and_seq_cst(&tw_hit_alive, ~(UINT64_C(1) << session->slot));
}

static void after_fork_in_child(void)
{
	unlock_definitions();
	tw_seq_labels_after_fork();
	tw_threads_after_fork_in_child();
	tw_process_memory_after_fork();
	/* Writers are threads of the parent, so their ring sets belong to it alone. */
	for (struct tw_session *session = tw_sessions_all(); session; session = session->next_of_all) {
		if (!session->writer && !session->queue && (!session->module || session->rs))
			continue;
		if (session->queue)
			let_go_of_queue(session);
		if (session->module && !session->rs)
			let_go_of_module(session);
		session->writer = NULL;
		session->rs = NULL;
		if (session->slot != TW_SESSION_NO_SLOT)
			tw_hit_sessions[session->slot].rs = NULL;
	}
	tw_seq_after_fork_in_child();
	tw_registry_after_fork();
	tw_progress_after_fork_in_child();
	tw_permit_after_fork_in_child();
	tw_changes_after_fork_in_child();
	tw_tracees_after_fork_in_child();
}

static void init(void)
{
	tw_thread_init();
	tw_hit_host.prepare_run = tw_hit_prepare_run;
	tw_hit_host.make_tracee = tw_tracee_of_thread;
	tw_hit_host.describe = tw_tracee_describe;
	tw_hit_host.exit_tracee = tw_tracee_exit;
	tw_hit_host.thread_began = tw_process_thread_began;
	tw_hit_host.thread_ends = tw_process_thread_ends;
	tw_hit_host.makes_thread = tw_tracee_makes_thread;
	tw_hit_host.passes_token = tw_tracee_passes_token;
	tw_hit_host.trace = tw_effect_trace;
	tw_hit_host.silence = tw_effect_silence;
	tw_hit_host.remove_tracer = tw_tracer_module_remove;
	tw_native_init();
	tw_hit_host.get_seq_token = tw_effect_get_seq_token;
	tw_hit_host.set_seq_token = tw_effect_set_seq_token;
	tw_node_init();
	tw_seq_init();
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void tw_session_init(void)
{
	pthread_once(&once, init);
}
