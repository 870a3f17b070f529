/* SPDX-License-Identifier: Apache-2.0 */
/* groups_counted.c - calls that the program has summed up (tracewheel/counts.h), as groups beside those of recorded calls. */
#include "base/grow.h"
#include "base/range.h"
#include "views/folds/groups.h"
#include "views/output/output.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- do they answer what is asked? ---- */

static enum tw_group_key key_of(unsigned value)
{
	return value == TW_AGGREGATE_ARGUMENT ? TW_BY_ARGUMENT
	       : value == TW_AGGREGATE_CALLER ? TW_BY_CALLER
	       : value == TW_AGGREGATE_RESULT ? TW_BY_RESULT
					      : TW_BY_DURATION;
}

static bool is_same(const struct tw_grouping *by, unsigned value, unsigned number)
{
	return value != TW_AGGREGATE_NOTHING && by->key == key_of(value) &&
	       (value != TW_AGGREGATE_ARGUMENT || by->number == number);
}

/* Can ranges be joined to those that are asked for? */
static bool has_ranges(const struct tw_grouping *by, const struct tw_aggregation *what)
{
	if (by->is_summary)
		return true;
	if (what->form == TW_AGGREGATE_STEPS)
		return by->step && what->step && by->step % what->step == 0;
	return what->form == TW_AGGREGATE_PARTS ? !by->step : what->form == TW_AGGREGATE_POWERS && !by->step;
}

static bool answers(const struct tw_grouping *by, const struct tw_aggregation *what)
{
	return by->is_histogram ? is_same(by, what->of, what->of_number) && has_ranges(by, what)
				: is_same(by, what->by, what->by_number);
}

static const struct tw_capture_aggregate *first_of(const struct tw_capture *capture)
{
	const struct tw_capture_aggregate *row = NULL;
	for (uint32_t image = 0, at; at = 0, !row && tw_capture_image(capture, image); image++)
		row = tw_capture_aggregate_next(capture, image, &at);
	return row;
}

void tw_groups_find_counted(struct tw_groups *groups)
{
	const struct tw_capture_aggregate *row = first_of(groups->capture);
	groups->has_counted = row && answers(&groups->by, &row->aggregation);
	if (groups->has_counted)
		groups->aggregation = row->aggregation;
	groups->is_coarse = groups->has_counted && row->aggregation.form != TW_AGGREGATE_PARTS;
}

bool tw_grouping_of_capture(const struct tw_capture *capture, struct tw_grouping *out)
{
	static char name[8];
	const struct tw_capture_aggregate *row = first_of(capture);
	if (!row)
		return false;
	const struct tw_aggregation *what = &row->aggregation;
	bool is_of = what->of != TW_AGGREGATE_NOTHING;
	unsigned number = is_of ? what->of_number : what->by_number;
	snprintf(name, sizeof name, "%u", number);
	*out = (struct tw_grouping){.key = key_of(is_of ? what->of : what->by),
				    .number = number,
				    .name = name,
				    .is_histogram = is_of,
				    .step = what->form == TW_AGGREGATE_STEPS && what->step <= INT64_MAX ? what->step
													: 0,
				    .is_summary = is_of &&
						  (what->form == TW_AGGREGATE_SUM || what->form == TW_AGGREGATE_PARTS)};
	return is_of || what->by != TW_AGGREGATE_NOTHING;
}

/* ---- owners ---- */

const struct tw_group_owner *tw_groups_owner(const struct tw_groups *groups, uint32_t name)
{
	uint32_t found = tw_map_find(&groups->by_owner, name, i, groups->owners[i].name == name);
	return found == TW_MAP_NONE ? NULL : &groups->owners[found];
}

/* "libc:malloc from app:parse", "libc:read $1 = 3", "libc:read = 0"; to be freed. */
static char *name_owner(const struct tw_groups *groups, const struct tw_group_owner *owner)
{
	const char *function = groups->places.names[owner->function].text;
	char *name = NULL;
	int used = groups->aggregation.by == TW_AGGREGATE_ARGUMENT
			   ? asprintf(&name, "%s $%u = %s", function, groups->aggregation.by_number, owner->value)
			   : asprintf(&name, "%s %s %s", function,
				      groups->aggregation.by == TW_AGGREGATE_CALLER ? "from" : "=", owner->value);
	return used < 0 ? NULL : name;
}

static char *text_of(const struct tw_groups *groups, uint64_t key)
{
	static struct tw_out text;
	if (groups->aggregation.by == TW_AGGREGATE_CALLER)
		return strdup(groups->places.names[key].text);
	tw_out_init(&text, -1);
	tw_groups_put_word(&text, key);
	return strndup(text.data, text.used);
}

/* The owner of a function's rows with this key: the function itself if calls have no key. TW_PLACES_NONE: no memory. */
static uint32_t owner_of(struct tw_groups *groups, uint32_t function, uint64_t key)
{
	struct tw_group_owner owner = {.function = function, .key = key};
	uint64_t hash = tw_hash_word(key, function);
	if (!groups->by.is_histogram || groups->aggregation.by == TW_AGGREGATE_NOTHING)
		return function;
	uint32_t known = tw_map_find(&groups->by_owner, hash, i,
				     groups->owners[i].function == function && groups->owners[i].key == key);
	if (known != TW_MAP_NONE)
		return groups->owners[known].name;
	owner.value = text_of(groups, key);
	char *name = owner.value ? name_owner(groups, &owner) : NULL;
	owner.name = name ? tw_places_add(&groups->places, name, strlen(name), false) : TW_PLACES_NONE;
	free(name);
	if (owner.name == TW_PLACES_NONE || !tw_grow(groups->owners, groups->owner_count, groups->owner_capacity) ||
	    !tw_map_add(&groups->by_owner, hash, groups->owner_count) ||
	    !tw_map_add(&groups->by_owner, owner.name, groups->owner_count)) {
		free(owner.value);
		return TW_PLACES_NONE;
	}
	groups->owners[groups->owner_count++] = owner;
	return owner.name;
}

/* ---- rows ---- */

/* The group of a row. @key: its key, of a caller the function. */
static uint32_t group_of(struct tw_groups *groups, const struct tw_capture_aggregate *row, uint32_t function,
			 uint64_t key)
{
	static struct tw_out scratch;
	uint32_t owner = owner_of(groups, function, key);
	struct tw_group group = {.function = owner, .word = key};
	if (owner == TW_PLACES_NONE) {
		groups->has_no_memory = true;
		return TW_GROUPS_VALUELESS;
	}
	if (groups->by.is_histogram)
		return tw_groups_range(groups, owner, row->number, &scratch);
	tw_out_init(&scratch, -1);
	if (groups->aggregation.by == TW_AGGREGATE_CALLER) {
		tw_out_text(&scratch, groups->places.names[key].text);
	} else {
		tw_groups_put_word(&scratch, key);
		group.word = tw_hash_bytes(scratch.data, scratch.used, 1);
	}
	return tw_groups_like(groups, &group, &scratch);
}

/* Calls whose row found no room. */
static uint32_t group_of_rest(struct tw_groups *groups, uint32_t function)
{
	static struct tw_out scratch;
	const struct tw_group group = {.function = function, .word = UINT64_MAX - 1};
	tw_out_init(&scratch, -1);
	tw_out_text(&scratch, "(others)");
	return tw_groups_like(groups, &group, &scratch);
}

static bool add_row(struct tw_groups *groups, uint32_t image, const struct tw_capture_aggregate *row)
{
	uint32_t function = tw_places_function(&groups->places, image, row->place_id);
	uint64_t key = row->key;
	if (groups->wanted && !groups->wanted[function])
		return true;
	if (!row->is_rest && row->aggregation.by == TW_AGGREGATE_CALLER)
		key = tw_frames_function(&groups->frames, image, row->key);
	if (key == TW_PLACES_NONE && row->aggregation.by == TW_AGGREGATE_CALLER)
		return false;
	uint32_t number = row->is_rest ? group_of_rest(groups, function) : group_of(groups, row, function, key);
	struct tw_group *group = &groups->groups[number];
	group->sums.calls += row->count;
	group->sum += (uint64_t)row->sum;
	/* The difference to all calls has no value. */
	groups->groups[TW_GROUPS_VALUELESS].sums.calls -= row->count;
	return !groups->has_no_memory;
}

/* All counted calls of an image that are selected. */
static uint64_t calls_of(const struct tw_groups *groups, uint32_t image)
{
	const struct tw_capture_count *count;
	uint64_t calls = 0;
	for (uint32_t at = 0; (count = tw_capture_count_next(groups->capture, image, &at));) {
		uint32_t function = tw_places_function(&groups->places, image, count->place_id);
		calls += !groups->wanted || groups->wanted[function] ? count->count : 0;
	}
	return calls;
}

int tw_groups_add_counted(struct tw_groups *groups)
{
	uint64_t before = groups->groups[TW_GROUPS_VALUELESS].sums.calls, *valueless;
	const struct tw_capture_aggregate *row;
	bool is_done = true;
	for (uint32_t image = 0; is_done && tw_capture_image(groups->capture, image); image++) {
		groups->groups[TW_GROUPS_VALUELESS].sums.calls += calls_of(groups, image);
		for (uint32_t at = 0; is_done && (row = tw_capture_aggregate_next(groups->capture, image, &at));)
			is_done = memcmp(&row->aggregation, &groups->aggregation, sizeof row->aggregation) != 0 ||
				  add_row(groups, image, row);
	}
	/* A program that was killed has counted a row's call that its counter lacks. */
	valueless = &groups->groups[TW_GROUPS_VALUELESS].sums.calls;
	if (*valueless > INT64_MAX)
		*valueless = before;
	return is_done ? 0 : TW_ENOMEM;
}
