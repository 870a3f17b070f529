/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - ring files that lose pages while the owner reads them.
 *
 * A program can remove pages of its own file (MADV_REMOVE) and, with the owner's permissions, truncate the file.  The
 * owner's next access past the end, or to a page that a full tmpfs cannot provide, is a SIGBUS. The handler maps empty
 * memory over the whole image: it is invalid from then on, which is counted, and nothing else is affected.
 */
#include "ringbuf/guard.h"
#include "base/guard.h"
#include "base/sys.h"
#include "ringbuf/inside.h"

static struct tw_rs *guarded;

static bool is_within(uintptr_t at, const void *memory, uint64_t bytes)
{
	return memory && at - (uintptr_t)memory < bytes;
}

static bool replace(void *arg, uintptr_t at)
{
	struct tw_rs *rs = arg;

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

void tw_rs_guard(struct tw_rs *rs)
{
	if (!rs->anonymous && tw_guard_set(TW_GUARDED_RINGS, replace, rs))
		guarded = rs;
}

void tw_rs_unguard(struct tw_rs *rs)
{
	if (guarded != rs)
		return;
	tw_guard_end(TW_GUARDED_RINGS);
	guarded = NULL;
}
