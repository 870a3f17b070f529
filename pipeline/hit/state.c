/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - variables shared by hits and control, and a thread's own. */
#include "pipeline/hit/hit.h"
#include "pipeline/hit/seq.h"
#include "pipeline/thread/thread.h"

__thread struct tw_hit_tls tw_hit_tls;
struct tw_tracee tw_hit_nobody;
struct tw_hit_session tw_hit_sessions[TW_SESSIONS_MAX];
_Atomic uint64_t tw_hit_epoch, tw_hit_alive, tw_hit_cpu_stamped, tw_hit_modules;
struct tw_hit_host tw_hit_host;
_Atomic uint64_t tw_hit_no_clock_ticks;
__thread struct tw_sys_signal_stack tw_thread_signal_stack;
bool tw_thread_hears_signal_stacks;
_Atomic uint32_t tw_seq_epoch = 1;
uint32_t tw_seq_process_key = 1;
_Atomic uint64_t tw_seq_tracer;

static _Atomic uint64_t unique_integer;

uint64_t tw_hit_unique_integer(void)
{
	/* RELAXED hit.unique: a read-modify-write hands out each number once, in one order for all. */
	return tw_fetch_add_relaxed(&unique_integer, 1) + 1;
}

uint64_t tw_hit_newer_than(uint64_t epoch)
{
	uint64_t newer = 0;

	/* PAIR hit.epoch: acquire; release in begin_epoch(), before anything has the bit. */
	if (tw_likely(tw_load_acquire(&tw_hit_epoch) == epoch))
		return 0;
	for (unsigned session = 0; session < TW_SESSIONS_MAX; session++) {
		/* PAIR hit.epoch: acquire; as above. */
		newer |= (uint64_t)(tw_load_acquire(&tw_hit_sessions[session].epoch) > epoch) << session;
	}
	return newer;
}

void tw_thread_open_run(struct tw_hit_tls *t)
{
	t->run_stamp++;
	t->run_seq = TW_RUN_DUE;
	tw_thread_number_run(t);
}
