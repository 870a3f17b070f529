/* SPDX-License-Identifier: Apache-2.0 */
/* crash.c - writes down where a signal ended the program: ringbuf/crash.h. */
#include "agent/crash.h"
#include "agent/agent.h"

#include "base/clock.h"
#include "base/sys.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/walk.h"
#include "pipeline/thread/thread.h"

#include <ucontext.h>

#define NAP_NS	 1000000
#define NAPS_MAX 200

void (*tw_agent_crash_watch)(void);

void tw_agent_crash_begin(void)
{
	tw_thread_gives_signal_stacks = true;
	if (tw_agent_crash_watch)
		tw_agent_crash_watch();
}

/* For a thread that is interrupted in code that is not known: in a hit, or behind a call that leads nowhere. */
static const uint64_t *slot_of(const greg_t *registers)
{
	return tw_hit_is_under_way() ? (const uint64_t *)tw_hit_tls.state + 1 : (const uint64_t *)registers[REG_RSP];
}

static void write_report(struct tw_rs_crash_report *report, const siginfo_t *info, const greg_t *registers)
{
	const struct tw_walk_registers at = {.pc = (uintptr_t)registers[REG_RIP],
					     .rsp = (uintptr_t)registers[REG_RSP],
					     .rbp = (uintptr_t)registers[REG_RBP],
					     .slot = slot_of(registers)};
	enum tw_walk_end end;

	report->ticks = tw_clock_ticks();
	report->thread_id = tw_sys_thread_id();
	report->signal = info->si_signo;
	report->code = info->si_code;
	/* Others have no such field. */
	report->address = info->si_code > 0 ? (uintptr_t)info->si_addr : 0;
	report->sender = info->si_code <= 0 ? (uint32_t)info->si_pid : 0;
	report->stack_pointer = at.rsp;
	report->frames[0] = at.pc;
	tw_rs_crash_put(&tw_agent_ring_set, TW_RS_CRASH_TOLD);
	report->frame_count = tw_walk_interrupted(&at, report->frames, TW_RS_CRASH_FRAMES, &end);
	report->end = end;
	tw_rs_crash_put(&tw_agent_ring_set, TW_RS_CRASH_WALKED);
}

void tw_agent_crash_tell(const siginfo_t *info, const void *context)
{
	struct tw_rs_crash_report *report;

	/* A child shares the handler, and perhaps this memory; the program may have gone on without us. */
	if (!tw_agent_is_active() || tw_agent_ring_set.own.process_id != tw_sys_process_id())
		return;
	report = tw_rs_crash_take(&tw_agent_ring_set);
	if (report)
		write_report(report, info, ((const ucontext_t *)context)->uc_mcontext.gregs);
	/* The first thread to crash is that of the core, too. */
	for (unsigned i = 0; !report && i < NAPS_MAX && !tw_rs_crash_is_whole(&tw_agent_ring_set); i++)
		tw_sys_sleep(NAP_NS);
}
