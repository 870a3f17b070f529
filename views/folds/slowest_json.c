/* SPDX-License-Identifier: Apache-2.0 */
/* slowest_json.c - the slowest calls as JSON (docs/json.md). */
#include "views/folds/slowest.h"

#include <string.h>

static void put_times(struct tw_json *json, uint64_t zero_ns, uint64_t from_ns, uint64_t total_ns, uint64_t self_ns)
{
	tw_json_u64(json, "ns", from_ns > zero_ns ? from_ns - zero_ns : 0);
	tw_json_u64(json, "total_ns", total_ns);
	tw_json_u64(json, "self_ns", self_ns);
}

static void put_states(struct tw_json *json, const struct tw_slow_node *node)
{
	if (!tw_state_sums_all(&node->states))
		return;
	tw_json_u64(json, "ran_ns", node->states.ns[TW_STATE_RAN]);
	tw_json_u64(json, "preempted_ns", node->states.ns[TW_STATE_PREEMPTED]);
	tw_json_u64(json, "off_ns", node->states.ns[TW_STATE_OFF]);
}

static void put_function(struct tw_json *json, const struct tw_slowest *slowest, uint32_t function)
{
	const struct tw_name *name = &slowest->places.names[function];
	tw_json_name(json, name->text, name->bytes, name->lacks_arity);
}

struct inside {
	struct tw_json *json;
	const struct tw_slowest *slowest;
	uint64_t zero_ns, least_ns, left_out;
	unsigned depth_max;
};

static void put_inside(struct inside *inside, uint32_t parent, unsigned depth)
{
	struct tw_json *json = inside->json;
	for (uint32_t at = inside->slowest->nodes[parent].first; at; at = inside->slowest->nodes[at].next) {
		const struct tw_slow_node *node = &inside->slowest->nodes[at];
		if (node->total_ns < inside->least_ns || depth > inside->depth_max) {
			inside->left_out += node->calls;
			continue;
		}
		tw_json_open(json, NULL, '{');
		put_function(json, inside->slowest, node->function);
		tw_json_u64(json, "depth", depth);
		tw_json_u64(json, "calls", node->calls);
		put_times(json, inside->zero_ns, node->first_ns, node->total_ns, node->self_ns);
		put_states(json, node);
		if (node->call)
			tw_json_u64(json, "slowest", node->call);
		tw_json_close(json, '}');
		if (!node->call)
			put_inside(inside, at, depth + 1);
	}
}

static void put_wait(struct tw_json *json, const struct tw_slowest *slowest, uint64_t zero_ns,
		     const struct tw_slow_wait *wait)
{
	const struct tw_locks *locks = &slowest->waits.locks;
	const struct tw_lock_row *lock = &locks->locks[wait->lock];
	const struct tw_capture_stream *stream = tw_lock_thread(locks, wait->by.thread);
	const char *kind = tw_lock_kind_name(lock->kind);
	char text[TW_LOCK_NAME_BYTES];
	tw_json_open(json, NULL, '{');
	tw_json_string(json, "kind", kind);
	tw_json_u64(json, "address", lock->address);
	tw_json_text(json, "symbol", text, tw_lock_symbol(locks, lock, text));
	tw_json_text(json, lock->is_made_there ? "made_in" : "used_in", text, tw_lock_site(locks, lock, text));
	tw_json_u64(json, "ns", wait->begin_ns > zero_ns ? wait->begin_ns - zero_ns : 0);
	tw_json_u64(json, "wait_ns", wait->ns);
	if (stream) {
		tw_json_open(json, "by", '{');
		tw_json_u64(json, "thread", (uint64_t)stream->thread_id);
		if (wait->by.took_ns > zero_ns)
			tw_json_u64(json, "took_ns", wait->by.took_ns - zero_ns);
		if (wait->by.function != TW_PLACES_UNKNOWN) {
			put_function(json, slowest, wait->by.function);
			tw_json_u64(json, "ns", wait->by.call_ns > zero_ns ? wait->by.call_ns - zero_ns : 0);
		}
		tw_json_close(json, '}');
	}
	tw_json_close(json, '}');
}

void tw_slowest_json(struct tw_json *json, const struct tw_slowest *slowest, uint32_t number, uint64_t zero_ns,
		     unsigned least_part)
{
	const struct tw_slow_call *call = &slowest->calls[number];
	struct inside inside = {json,	 slowest,
				zero_ns, least_part ? call->total_ns / least_part : 0,
				0,	 least_part ? 100 : UINT32_MAX};
	const char *end = tw_stacks_end_name(call->how);
	tw_json_open(json, NULL, '{');
	tw_json_u64(json, "slowest", number + 1);
	put_function(json, slowest, call->function);
	put_times(json, zero_ns, call->start_ns, call->total_ns, call->self_ns);
	put_states(json, &slowest->nodes[call->node]);
	tw_json_u64(json, "before_ns", call->before_ns);
	tw_json_u64(json, "tracer_ns", tw_slowest_tracer_ns(slowest, call));
	tw_json_string(json, "end", end);
	tw_json_bool(json, "lossy", call->is_lossy);
	tw_json_string(json, "process", call->process);
	tw_json_string(json, "callers", call->callers);
	tw_json_open(json, "inside", '[');
	put_inside(&inside, call->node, 0);
	tw_json_close(json, ']');
	if (least_part)
		tw_json_u64(json, "left_out", inside.left_out);
	tw_json_u64(json, "wait_count", call->wait_count);
	tw_json_u64(json, "wait_ns", call->wait_ns);
	tw_json_open(json, "waits", '[');
	for (uint64_t i = 0; i < call->wait_count && i < TW_SLOW_WAITS_MAX; i++)
		put_wait(json, slowest, zero_ns, &call->waits[i]);
	tw_json_close(json, ']');
	tw_json_close(json, '}');
}
