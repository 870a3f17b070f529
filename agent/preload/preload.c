/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload.c - the exports of libtracewheel-agent.so: a constructor, dlopen and dlclose.
 *
 * In a folder of its own: only the preloaded library may define these two names.
 *
 * dlsym is not wrapped, although that would find objects that libc opens itself a little earlier: it depends on its
 * caller (RTLD_NEXT), and every other preloaded library relies on that.  Neither is dlmopen: other namespaces have
 * their own libc and slots, which we do not see.
 */
#include "agent/agent.h"
#include "agent/preload/real.h"
#include "base/clock.h"
#include "base/export.h"
#include "base/filter.h"
#include "breakpoints/returns.h"
#include "session/seq/seq.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/longer.h"

typedef void *(*open_fn)(const char *, int);
typedef int (*close_fn)(void *);

TW_REAL(open_fn, open, "dlopen")
TW_REAL(close_fn, close, "dlclose")

__attribute__((constructor)) static void construct(void)
{
	tw_agent_start();
}

__attribute__((destructor)) static void destruct(void)
{
	if (!tw_thread_may_call_system() || !tw_agent_enter())
		return;
	tw_rs_image_exits(&tw_agent_ring_set, tw_clock_ticks());
	tw_agent_python_end();
	tw_longer_record_open();
	tw_agent_bind_again();
	tw_agent_returns_end();
	tw_seq_tell(tw_agent_session);
	tw_agent_leave();
}

int tw_agent_is_in_hit(void);

/* For tests: true while this thread is inside a hook, where nothing may be allocated. */
TW_API int tw_agent_is_in_hit(void)
{
	return tw_hit_is_under_way() || tw_hit_tls.state == TW_THREAD_JOINING;
}

static __attribute__((noinline)) void *open_and_check(open_fn real, const char *name, int flags, const void *caller)
{
	const struct tw_loader_calls calls = {real, dlclose};
	void *handle = tw_loader_open(&calls, name, flags, caller);

	if (handle && tw_agent_enter()) {
		tw_agent_python_look(handle);
		tw_agent_update();
		tw_agent_leave();
	}
	return handle;
}

/* The true return address of the call whose return address is at `slot`, also if the return is watched. */
static const void *caller_of(const uint64_t *slot)
{
	bool is_watched = tw_returns_is_stub(*slot) && tw_returns_has_shadow(slot);

	return (const void *)(uintptr_t)(is_watched ? tw_returns_entry(slot)->return_address : *slot);
}

TW_API TAIL_CALLING void *dlopen(const char *name, int flags)
{
	const uint64_t *slot = (const uint64_t *)__builtin_frame_address(0) + 1;
	open_fn real = find_open();
	bool is_plain;

	is_plain = !tw_agent_is_active() || tw_agent_is_looking() || !tw_thread_may_call_system();
	if (is_plain && !tw_returns_is_stub(*slot))
		TAIL_CALL real(name, flags);
	if (is_plain)
		return real(name, flags);
	return open_and_check(real, name, flags, caller_of(slot));
}

TW_API int dlclose(void *handle)
{
	close_fn real = find_close();

	return tw_agent_is_active() || tw_agent_is_looking() ? tw_agent_close(real, handle) : real(handle);
}
