/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.c - a member asks the owner to write into the member's memory while none of its threads runs.
 *
 * The words lie in the image's head.  The member's side has one request at a time:
 *
 *	IDLE --member: fills the request--> ASKED --owner--> TAKEN --owner: outcome--> DONE --member--> IDLE
 *	            member: waited in vain    |                 |
 *	            IDLE <--------------------'                 '--> DROPPED --member, before the next request--> IDLE
 *
 * The owner looks at the state again when it has stopped all threads of the member: the member cannot change it then,
 * so after DROPPED nothing is written, and while something is written nothing is dropped.
 */
#include "base/clock.h"
#include "base/stall_timer.h"
#include "base/sys.h"
#include "ringbuf/backing.h"
#include "ringbuf/inside.h"

/* ---- member ---- */

static bool give_up(struct tw_rs_held *held)
{
	uint32_t asked = TW_RS_HELD_ASKED, taken = TW_RS_HELD_TAKEN;

	/* PAIR rs.held: acquire and release; the owner takes the request or finds it withdrawn. */
	if (tw_cas_acq_rel(&held->state, &asked, TW_RS_HELD_IDLE))
		return true;
	/* PAIR rs.held: acquire and release; the owner has not finished, and writes nothing from now on. */
	return tw_cas_acq_rel(&held->state, &taken, TW_RS_HELD_DROPPED);
}

static bool may_wait(struct tw_rs *rs, uint32_t state, uint64_t spent_ns)
{
	/* PAIR rs.closed: acquire; release in tw_rs_close(). */
	if (tw_load_acquire(&rs->control->is_closed) || tw_rs_is_stalled(rs))
		return false;
	return spent_ns < (state == TW_RS_HELD_ASKED ? TW_RS_HELD_TAKE_NS : TW_RS_HELD_DONE_NS);
}

enum tw_rs_held_outcome tw_rs_held_write(struct tw_rs *rs, struct tw_rs_held_table *table, uint32_t *number)
{
	struct tw_rs_held *held = &rs->own.head->held;
	struct tw_stall_timer stall_timer = {0};
	enum tw_rs_held_outcome outcome;

	*number = 0;
	if (!tw_rs_is_own_process(rs) || rs->config.is_anonymous)
		return TW_RS_HELD_UNANSWERED;
	table->magic = TW_RS_HELD_MAGIC;
	table->lease = rs->own.lease;
	held->table = (uint64_t)(uintptr_t)table;
	held->thread_id = tw_sys_thread_id();
	/* PAIR rs.held: release; acquire in tw_rs_held_take().  The request is filled. */
	tw_store_release(&held->state, TW_RS_HELD_ASKED);
	/* RELAXED rs.held_wanted: a hint to look at the states. */
	tw_fetch_add_relaxed(&rs->control->held_wanted, 1);
	tw_rs_wake(rs);
	for (;;) {
		/* PAIR rs.held: acquire; release in tw_rs_held_done().  The outcome and all that was written. */
		uint32_t state = tw_load_acquire(&held->state);
		uint64_t spent_ns;

		if (state == TW_RS_HELD_DONE)
			break;
		spent_ns = tw_stall_timer_check(&stall_timer, state, tw_clock_monotonic_ns(), TW_RS_SLICE_NS);
		if (!may_wait(rs, state, spent_ns) && give_up(held))
			return TW_RS_HELD_UNANSWERED;
		tw_sys_futex_wait(&held->state, state, TW_RS_SLICE_NS);
	}
	outcome = (enum tw_rs_held_outcome)held->outcome;
	*number = held->number;
	/* PAIR rs.held: release; the owner no longer writes here. */
	tw_store_release(&held->state, TW_RS_HELD_IDLE);
	return outcome;
}

/* ---- what was written: member ---- */

void tw_rs_written_show(struct tw_rs *rs, struct tw_rs_written *written)
{
	if (!tw_rs_is_own_process(rs) || rs->config.is_anonymous)
		return;
	rs->written = written;
	written->magic = TW_RS_WRITTEN_MAGIC;
	written->lease = rs->own.lease;
	/* PAIR rs.written: release; acquire in tw_rs_written_find(). */
	tw_store_release(&rs->own.head->held.written, (uint64_t)(uintptr_t)written);
}

void tw_rs_written_begin(struct tw_rs_written *written)
{
	/*
	 * RELAXED rs.version: the owner reads it while this thread is stopped, and then sees all that the thread has done
	 * before; seq_cst keeps the compiler from moving stores of the change before it.
	 */
	tw_fetch_add_seq_cst(&written->version, 1);
}

void tw_rs_written_end(struct tw_rs_written *written)
{
	/* RELAXED rs.version: as above. */
	tw_fetch_add_seq_cst(&written->version, 1);
}

/* ---- owner ---- */

static struct tw_rs_held *held_in(void *image)
{
	return &((struct tw_rs_image_head *)image)->held;
}

struct tw_rs_held *tw_rs_held_of(struct tw_rs *rs, const struct tw_rs_held_request *request)
{
	const struct tw_rs_seen_image *image = &rs->images[request->slot];

	return image->memory && image->lease == request->lease ? held_in(image->memory) : NULL;
}

bool tw_rs_held_map(const struct tw_rs *rs, const struct tw_rs_held_request *request, struct tw_rs_held_mapping *out)
{
	char name[40];

	tw_rs_image_name(request->lease, name);
	if (tw_backing_open(rs->path, name, false, &out->memory, &out->bytes))
		return false;
	out->held = held_in(out->memory);
	if (out->bytes >= sizeof(struct tw_rs_image_head))
		return true;
	tw_rs_held_unmap(out);
	return false;
}

void tw_rs_held_unmap(struct tw_rs_held_mapping *mapping)
{
	tw_backing_unmap(mapping->memory, mapping->bytes);
}

bool tw_rs_held_poll(struct tw_rs *rs)
{
	/* RELAXED rs.held_wanted: a hint; the states decide. */
	uint32_t wanted = tw_load_relaxed(&rs->control->held_wanted);
	bool is_new = wanted != rs->held_seen;

	rs->held_seen = wanted;
	return is_new;
}

bool tw_rs_held_take(struct tw_rs *rs, uint32_t slot, struct tw_rs_held_request *out)
{
	const struct tw_rs_seen_image *image = &rs->images[slot];
	uint32_t asked = TW_RS_HELD_ASKED;
	struct tw_rs_held *held;

	if (image->state != TW_RS_IMAGE_LIVE || !image->memory || image->process_id == tw_sys_process_id())
		return false;
	held = held_in(image->memory);
	/* PAIR rs.held: acquire and release; release in tw_rs_held_write(). */
	if (!tw_cas_acq_rel(&held->state, &asked, TW_RS_HELD_TAKEN))
		return false;
	*out = (struct tw_rs_held_request){.slot = slot,
					   .process_id = image->process_id,
					   .thread_id = held->thread_id,
					   .lease = image->lease,
					   .table = held->table};
	return true;
}

bool tw_rs_held_is_wanted(const struct tw_rs_held *held)
{
	/* PAIR rs.held: acquire; of DROPPED.  All threads that may store it are stopped. */
	return tw_load_acquire(&held->state) == TW_RS_HELD_TAKEN;
}

void tw_rs_held_done(struct tw_rs_held *held, enum tw_rs_held_outcome outcome, uint32_t number)
{
	uint32_t taken = TW_RS_HELD_TAKEN;

	if (!tw_rs_held_is_wanted(held))
		return;
	held->outcome = (uint32_t)outcome;
	held->number = number;
	/* PAIR rs.held: release; acquire in tw_rs_held_write(). */
	if (tw_cas_acq_rel(&held->state, &taken, TW_RS_HELD_DONE))
		tw_sys_futex_wake(&held->state, INT32_MAX);
}

bool tw_rs_written_find(struct tw_rs *rs, uint32_t slot, struct tw_rs_held_request *out)
{
	const struct tw_rs_seen_image *image = &rs->images[slot];
	uint64_t table;

	if (image->state != TW_RS_IMAGE_LIVE || !image->memory || image->process_id == tw_sys_process_id())
		return false;
	/* PAIR rs.written: acquire; release in tw_rs_written_show(). */
	table = tw_load_acquire(&held_in(image->memory)->written);
	*out = (struct tw_rs_held_request){.slot = slot,
					   .process_id = image->process_id,
					   .thread_id = image->process_id,
					   .lease = image->lease,
					   .table = table};
	return table != 0;
}
