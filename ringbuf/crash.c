/* SPDX-License-Identifier: Apache-2.0 */
/* crash.c - see crash.h. */
#include "ringbuf/crash.h"
#include "ringbuf/ringset.h"

#include <string.h>

struct tw_rs_crash_report *tw_rs_crash_take(struct tw_rs *rs)
{
	struct tw_rs_crash *crash = &rs->own.head->crash;
	uint32_t none = TW_RS_CRASH_NONE;

	/* PAIR rs.crash: acquire; of several threads one writes. */
	return tw_cas_acq_rel(&crash->state, &none, TW_RS_CRASH_TAKEN) ? &crash->report : NULL;
}

void tw_rs_crash_put(struct tw_rs *rs, enum tw_rs_crash_state state)
{
	/* PAIR rs.crash: release; acquire in read_report() and tw_rs_crash_is_whole(). */
	tw_store_release(&rs->own.head->crash.state, state);
}

bool tw_rs_crash_is_whole(const struct tw_rs *rs)
{
	/* PAIR rs.crash: acquire; release in tw_rs_crash_put(). */
	return tw_load_acquire(&rs->own.head->crash.state) == TW_RS_CRASH_WALKED;
}

/* Members can write anything there. */
static bool read_report(const struct tw_rs_crash *crash, struct tw_rs_crash_report *out)
{
	/* PAIR rs.crash: acquire; release in tw_rs_crash_put(). */
	uint32_t state = tw_load_acquire(&crash->state);

	if (state != TW_RS_CRASH_TOLD && state != TW_RS_CRASH_WALKED)
		return false;
	*out = crash->report;
	if (state == TW_RS_CRASH_TOLD)
		out->end = TW_RS_CRASH_UNWALKED;
	if (state == TW_RS_CRASH_TOLD || !out->frame_count)
		out->frame_count = 1;
	if (out->frame_count > TW_RS_CRASH_FRAMES)
		out->frame_count = TW_RS_CRASH_FRAMES;
	return true;
}

bool tw_rs_crash_read(const struct tw_rs *rs, int32_t process_id, uint32_t *image, struct tw_rs_crash_report *out)
{
	struct tw_rs_crash_report found;
	bool is_found = false;

	/* A process that was executed anew has several. */
	for (uint32_t i = 0; i < rs->image_count; i++) {
		const struct tw_rs_seen_image *seen = &rs->images[i];

		if (!seen->lease || !seen->memory || seen->process_id != process_id ||
		    !read_report(&tw_rs_head(rs, i)->crash, &found) || (is_found && found.ticks < out->ticks))
			continue;
		*image = i;
		*out = found;
		is_found = true;
	}
	return is_found;
}
