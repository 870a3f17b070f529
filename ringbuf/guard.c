/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - ring files that lose pages while the owner reads them.
 *
 * A program can remove pages of its own file (MADV_REMOVE) and, with the owner's permissions, truncate the file.  The
 * owner's next access past the end, or to a page that a full tmpfs cannot provide, is a SIGBUS. The handler maps empty
 * memory over the whole image: it is invalid from then on, which is counted, and nothing else is affected.
 */
#include "ringbuf/guard.h"
#include "base/atomic.h"
#include "base/sys.h"
#include "ringbuf/inside.h"

#include <errno.h>
#include <signal.h>

static struct tw_rs *_Atomic guarded;
static struct sigaction before;

static bool is_within(uintptr_t at, const void *memory, uint64_t bytes)
{
	return memory && at - (uintptr_t)memory < bytes;
}

static bool replace(struct tw_rs *rs, uintptr_t at)
{
	if (is_within(at, rs->control, TW_RS_CONTROL_BYTES)) {
		rs->damaged_tables++;
		return tw_sys_map_over(rs->control, TW_RS_CONTROL_BYTES) == 0;
	}
	for (uint32_t i = 0; i < rs->image_count; i++) {
		struct tw_rs_seen_image *image = &rs->images[i];

		if (!is_within(at, image->memory, tw_rs_image_bytes(&rs->config)))
			continue;
		image->is_damaged = true;
		rs->damaged_tables++;
		return tw_sys_map_over(image->memory, tw_rs_image_bytes(&rs->config)) == 0;
	}
	return false;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	/* RELAXED rs.guarded: set before the handler was installed. */
	struct tw_rs *rs = tw_load_relaxed(&guarded);
	int saved_errno = errno;

	/* A fault outside this set occurs again, under the previous handler. */
	if (!rs || info->si_code != BUS_ADRERR || !replace(rs, (uintptr_t)info->si_addr))
		sigaction(SIGBUS, &before, NULL);
	errno = saved_errno;
}

void tw_rs_guard(struct tw_rs *rs)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_RESTART};

	/* RELAXED rs.guarded: as above. */
	if (rs->anonymous || tw_load_relaxed(&guarded))
		return;
	/* RELAXED rs.guarded: as above. */
	tw_store_relaxed(&guarded, rs);
	sigaction(SIGBUS, &action, &before);
}

void tw_rs_unguard(struct tw_rs *rs)
{
	/* RELAXED rs.guarded: as above. */
	if (tw_load_relaxed(&guarded) != rs)
		return;
	sigaction(SIGBUS, &before, NULL);
	/* RELAXED rs.guarded: as above. */
	tw_store_relaxed(&guarded, NULL);
}
