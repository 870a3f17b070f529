/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - reads summaries of segments. No object is trusted: what is no summary is named and left out. */
#include "fleet/fleet.h"
#include "fleet/rows.h"
#include "views/output/output.h"
#include "base/grow.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

/* The most functions of one segment, and of all: docs/format.md limits ids likewise. */
#define IDS_MAX (UINT32_C(1) << 20)

static uint64_t number_of(const json_t *row, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(row, name));
	return value > 0 ? (uint64_t)value : 0;
}

static const char *text_of(const json_t *row, const char *name)
{
	const char *text = json_string_value(json_object_get(row, name));
	return text ? text : "";
}

static uint64_t hash_of(const char *text, size_t bytes)
{
	return tw_hash_bytes(text, bytes, 1);
}

/* ---- functions ---- */

uint32_t tw_fleet_sum_of(struct tw_fleet_rows *rows, const char *name)
{
	uint64_t key = hash_of(name, strlen(name));
	uint32_t number = tw_map_get(&rows->by_name, key);
	if (number != TW_MAP_NONE)
		return number;
	if (!tw_grow(rows->sums, rows->sum_count, rows->sum_capacity))
		return UINT32_MAX;
	struct tw_fleet_sum *sum = &rows->sums[rows->sum_count];
	*sum = (struct tw_fleet_sum){.name = strdup(name), .min_ns = UINT64_MAX};
	if (!sum->name || !tw_map_put(&rows->by_name, key, (uint32_t)rows->sum_count)) {
		free(sum->name);
		return UINT32_MAX;
	}
	return (uint32_t)rows->sum_count++;
}

unsigned tw_fleet_bin(uint64_t ns)
{
	unsigned top = ns < 8 ? 0 : 63 - (unsigned)__builtin_clzll(ns);
	return ns < 8 ? (unsigned)ns : 8 * (top - 2) + (unsigned)(ns >> (top - 3)) % 8;
}

uint64_t tw_fleet_bin_middle(unsigned bin)
{
	unsigned top = bin / 8 + 2;
	return bin < 8 ? bin : top > 62 ? UINT64_MAX : ((UINT64_C(8) + bin % 8) * 2 + 1) << (top - 3) >> 1;
}

void tw_fleet_time(struct tw_fleet_rows *rows, struct tw_fleet_sum *sum, uint64_t ns)
{
	if (!sum->bins && !(sum->bins = calloc(TW_FLEET_BINS, sizeof *sum->bins))) {
		rows->has_no_memory = true;
		return;
	}
	sum->bins[tw_fleet_bin(ns)]++;
	sum->timed++;
	sum->min_ns = ns < sum->min_ns ? ns : sum->min_ns;
	sum->max_ns = ns > sum->max_ns ? ns : sum->max_ns;
}

uint64_t tw_fleet_quantile(const struct tw_fleet_sum *sum, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)sum->timed), seen = 0, value = 0;
	for (unsigned bin = 0; sum->bins && bin < TW_FLEET_BINS; bin++) {
		seen += sum->bins[bin];
		if (!sum->bins[bin] || seen <= wanted)
			continue;
		value = tw_fleet_bin_middle(bin);
		break;
	}
	value = value < sum->min_ns ? sum->min_ns : value;
	return value > sum->max_ns ? sum->max_ns : value;
}

/* The sums of a function in its segment, as its row has them. @bins: zeroed, for its times. */
static struct tw_fleet_sum read_function(const json_t *row, uint64_t bins[TW_FLEET_BINS])
{
	struct tw_fleet_sum sum = {
		.name = (char *)text_of(row, "name"),
		.calls = number_of(row, "calls"),
		.returned = number_of(row, "returned"),
		.exceptions = number_of(row, "exceptions"),
		.cut = number_of(row, "cut"),
		.lossy = number_of(row, "lossy"),
		.total_ns = number_of(row, "total"),
		.self_ns = number_of(row, "self"),
		.min_ns = UINT64_MAX,
		.bins = bins,
	};
	const json_t *at = json_object_get(row, "bins"), *counts = json_object_get(row, "counts");
	for (size_t i = 0; i < json_array_size(at) && i < json_array_size(counts); i++) {
		json_int_t bin = json_integer_value(json_array_get(at, i));
		json_int_t count = json_integer_value(json_array_get(counts, i));
		if (count <= 0)
			continue;
		bins[bin >= 0 && bin < TW_FLEET_BINS ? bin : TW_FLEET_BINS - 1] += (uint64_t)count;
		sum.timed += (uint64_t)count;
	}
	if (sum.timed) {
		sum.min_ns = number_of(row, "min");
		sum.max_ns = number_of(row, "max");
	}
	return sum;
}

/* False: no memory. */
static bool add_function(struct tw_fleet_sum *sum, const struct tw_fleet_sum *more)
{
	if (more->timed && !sum->bins && !(sum->bins = calloc(TW_FLEET_BINS, sizeof *sum->bins)))
		return false;
	sum->calls += more->calls;
	sum->returned += more->returned;
	sum->exceptions += more->exceptions;
	sum->cut += more->cut;
	sum->lossy += more->lossy;
	sum->total_ns += more->total_ns;
	sum->self_ns += more->self_ns;
	sum->timed += more->timed;
	sum->min_ns = more->min_ns < sum->min_ns ? more->min_ns : sum->min_ns;
	sum->max_ns = more->max_ns > sum->max_ns ? more->max_ns : sum->max_ns;
	for (unsigned bin = 0; more->timed && bin < TW_FLEET_BINS; bin++)
		sum->bins[bin] += more->bins[bin];
	return true;
}

bool tw_fleet_take_function(struct tw_fleet_rows *rows, const json_t *row)
{
	uint64_t bins[TW_FLEET_BINS] = {0};
	const struct tw_fleet_sum here = read_function(row, bins);
	uint32_t number = *here.name ? tw_fleet_sum_of(rows, here.name) : UINT32_MAX;
	return number != UINT32_MAX && add_function(&rows->sums[number], &here);
}

/* Which function an id of the segment means. False: no memory. */
static bool set_id(struct tw_fleet_segment *segment, uint64_t id, uint32_t number)
{
	size_t before = segment->sum_count;
	if (!tw_grow_to(segment->sums, segment->sum_count, id))
		return false;
	for (size_t i = before; i < segment->sum_count; i++)
		segment->sums[i] = UINT32_MAX;
	segment->sums[id] = number;
	return true;
}

/* False: no memory. */
static bool take_function(struct tw_fleet_rows *rows, struct tw_fleet_segment *segment, const json_t *row)
{
	uint64_t bins[TW_FLEET_BINS] = {0};
	const struct tw_fleet_sum here = read_function(row, bins);
	uint32_t number = tw_fleet_sum_of(rows, here.name);
	return number != UINT32_MAX && (rows->names || set_id(segment, number_of(row, "id"), number)) &&
	       add_function(&rows->sums[number], &here) &&
	       (!rows->slowest || tw_fleet_slowest_take(rows, segment, 0, &here));
}

/* An engine has the same ids in all segments. False: no memory. */
static bool name_id(struct tw_fleet_rows *rows, struct tw_fleet_segment *segment, const json_t *id)
{
	json_int_t at = json_integer_value(id);
	const char *name =
		at > 0 && at < IDS_MAX ? json_string_value(json_array_get(rows->names, (size_t)at - 1)) : NULL;
	uint32_t number = name ? tw_fleet_sum_of(rows, name) : UINT32_MAX;
	return !name || (number != UINT32_MAX && set_id(segment, (uint64_t)at, number));
}

static bool name_ids(struct tw_fleet_rows *rows, struct tw_fleet_segment *segment, const json_t *row)
{
	bool is_named = name_id(rows, segment, json_object_get(row, "id"));
	const json_t *ids = json_object_get(row, "ids");
	for (size_t i = 0; i < json_array_size(ids) && is_named; i++)
		is_named = name_id(rows, segment, json_array_get(ids, i));
	return is_named;
}

/* ---- segments ---- */

static uint32_t image_of(struct tw_fleet_rows *rows, const json_t *row)
{
	char key[512];
	const char *seg = text_of(row, "seg");
	int bytes = snprintf(key, sizeof key, "%.63s %.49s %llu %llu %llu", text_of(row, "node"), seg,
			     (unsigned long long)number_of(row, "process"), (unsigned long long)number_of(row, "start"),
			     (unsigned long long)number_of(row, "lease"));
	uint64_t hash = hash_of(key, (size_t)bytes);
	uint32_t number = tw_map_get(&rows->by_image, hash);
	if (number != TW_MAP_NONE)
		return number;
	if (!tw_grow(rows->images, rows->image_count, rows->image_capacity) ||
	    !tw_map_put(&rows->by_image, hash, (uint32_t)rows->image_count))
		return UINT32_MAX;
	rows->images[rows->image_count] =
		(struct tw_fleet_image){.node = strdup(text_of(row, "node")), .process = number_of(row, "process")};
	snprintf(rows->images[rows->image_count].program, sizeof rows->images->program, "%s", text_of(row, "program"));
	return (uint32_t)rows->image_count++;
}

static bool is_wanted(const struct tw_fleet_rows *rows, const json_t *row)
{
	return (!rows->node || fnmatch(rows->node, text_of(row, "node"), 0) == 0) &&
	       (!rows->from_ns || number_of(row, "to") >= rows->from_ns) &&
	       (!rows->to_ns || number_of(row, "from") < rows->to_ns);
}

/* Its segment was read already: under the same key, or another content. */
static bool is_double(struct tw_fleet_rows *rows, const json_t *row, const char *path)
{
	const char *seg = text_of(row, "seg"), *last = strrchr(seg, '-');
	char name[256];
	int bytes = snprintf(name, sizeof name, "%.63s %.*s", text_of(row, "node"), last ? (int)(last - seg) : 0, seg);
	uint64_t key = hash_of(name, (size_t)bytes), content = last ? hash_of(last, strlen(last)) : 0;
	uint32_t before = tw_map_get(&rows->by_segment, key);
	if (before == TW_MAP_NONE)
		return !tw_map_put(&rows->by_segment, key, (uint32_t)content & (UINT32_MAX >> 1));
	if (before != ((uint32_t)content & (UINT32_MAX >> 1))) {
		tw_say("%s was set aside: another segment of this number has other contents.", path);
		rows->set_aside++;
	}
	return true;
}

static bool is_head(const json_t *row)
{
	struct tw_segment_identity identity;
	const char *kind = text_of(row, "kind"), *seg = text_of(row, "seg");
	return (strcmp(kind, "dropped") == 0 || strcmp(kind, "segment") == 0) &&
	       number_of(row, "version") == TW_FLEET_VERSION && tw_segment_parse_key(seg, strlen(seg), &identity);
}

/* False: no memory. */
static bool take_head(struct tw_fleet_rows *rows, const json_t *row, struct tw_fleet_segment **out)
{
	bool is_dropped = strcmp(text_of(row, "kind"), "dropped") == 0;
	uint32_t image = image_of(rows, row);
	if (image == UINT32_MAX || !tw_grow(rows->segments, rows->segment_count, rows->segment_capacity))
		return false;
	*out = &rows->segments[rows->segment_count++];
	**out = (struct tw_fleet_segment){.image = image,
					  .image_segment = (uint32_t)number_of(row, "image_segment"),
					  .is_dropped = is_dropped,
					  .is_last = json_is_true(json_object_get(row, "last")),
					  .events = number_of(row, "events"),
					  .events_before = number_of(row, "events_before"),
					  .lost = number_of(row, "lost"),
					  .damaged = number_of(row, "damaged"),
					  .from_ns = number_of(row, "from"),
					  .to_ns = number_of(row, "to"),
					  .kept = number_of(row, "kept"),
					  .crossing = is_dropped ? NULL : json_array()};
	snprintf((*out)->key, sizeof(*out)->key, "%s", text_of(row, "seg"));
	return true;
}

static bool take_row(struct tw_fleet_rows *rows, struct tw_fleet_segment *segment, json_t *row)
{
	const char *kind = text_of(row, "kind");
	if (strcmp(kind, "function") == 0)
		return take_function(rows, segment, row);
	if (strcmp(kind, "lost") == 0) {
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
			if (strcmp(text_of(row, "cause"), tw_lost_cause_name(cause)) == 0)
				rows->images[segment->image].lost[cause] += number_of(row, "events");
		}
		return true;
	}
	if (strcmp(kind, "token") == 0) {
		segment->knows_label |=
			rows->label && (number_of(row, "left_out") || strcmp(text_of(row, "label"), rows->label) == 0 ||
					(rows->trace_id && strcmp(text_of(row, "trace_id"), rows->trace_id) == 0));
		return true;
	}
	/* Of a later version: not for us. */
	if (strcmp(kind, "return") != 0 && strcmp(kind, "thread") != 0 && strcmp(kind, "open") != 0)
		return true;
	if (rows->names && !name_ids(rows, segment, row))
		return false;
	return segment->crossing && json_array_append(segment->crossing, row) == 0;
}

static bool is_right(const json_t *row)
{
	bool is_function = strcmp(text_of(row, "kind"), "function") == 0;
	return json_is_object(row) && (!is_function || (*text_of(row, "name") && number_of(row, "id") < IDS_MAX));
}

/* All lines before any counts: a summary that is wrong somewhere is left out whole. NULL: *reason says why. */
static json_t *parse(const char *text, size_t bytes, const char **reason)
{
	json_t *lines = json_array();
	const char *end;
	*reason = NULL;
	for (const char *line = text; lines && line < text + bytes && !*reason; line = end + 1) {
		end = memchr(line, '\n', bytes - (size_t)(line - text));
		json_t *row = end ? json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL) : NULL;
		if (!end)
			*reason = "it was cut off";
		else if (!is_right(row))
			*reason = "it is no summary";
		else if (json_array_append(lines, row) < 0)
			*reason = "there is no memory";
		json_decref(row);
	}
	if (!lines || !json_array_size(lines))
		*reason = *reason ? *reason : "it is empty";
	if (*reason)
		json_decref(lines);
	return *reason ? NULL : lines;
}

static void take_all(struct tw_fleet_rows *rows, const json_t *lines, const char *path)
{
	struct tw_fleet_segment *segment = NULL;
	json_t *row = json_array_get(lines, 0);
	size_t i;
	if (is_double(rows, row, path))
		return;
	rows->has_no_memory |= !take_head(rows, row, &segment);
	json_array_foreach(lines, i, row)
	{
		if (segment && i)
			rows->has_no_memory |= !take_row(rows, segment, row);
	}
}

const char *tw_fleet_take_lines(struct tw_fleet_rows *rows, const char *path, const json_t *lines)
{
	const json_t *head = json_array_get(lines, 0);
	struct tw_fleet_rows *taking;
	if (!is_head(head))
		return "it is no summary, or one of another version";
	if (!is_wanted(rows, head))
		return NULL;
	if (!rows->taking)
		take_all(rows, lines, path);
	for (unsigned i = 0;
	     rows->taking && (taking = rows->taking(rows->context, i, text_of(head, "node"), number_of(head, "to")));
	     i++) {
		if (!taking->names)
			taking->names = json_incref(rows->names);
		take_all(taking, lines, path);
	}
	return NULL;
}

/* ---- objects ---- */

static const char *take_bytes(struct tw_fleet_rows *rows, const char *path, const struct tw_fleet_bytes *packed)
{
	struct tw_fleet_bytes plain;
	if (!tw_fleet_unpack(packed, TW_FLEET_SUMMARY_BYTES_MAX, &plain))
		return "it is not compressed by zstd, too large, or was cut off";
	const char *reason;
	json_t *lines = parse((const char *)plain.data, plain.bytes, &reason);
	free(plain.data);
	if (!lines)
		return reason;
	reason = tw_fleet_take_lines(rows, path, lines);
	json_decref(lines);
	return reason;
}

static void take_object(void *context, const char *path, struct tw_fleet_bytes *packed, const char *reason)
{
	struct tw_fleet_rows *rows = context;
	if (!reason)
		reason = take_bytes(rows, path, packed);
	if (reason) {
		tw_say("%s was set aside: %s.", path, reason);
		rows->set_aside++;
	}
}

bool tw_fleet_wants_path(const struct tw_fleet_rows *rows, const char *path)
{
	struct tw_segment_identity key;
	char node[TW_FLEET_NODE_BYTES];
	if (!tw_fleet_parse_path(path, node, &key))
		return true;
	return (!rows->node || fnmatch(rows->node, node, 0) == 0) &&
	       (!rows->of_capture || (memcmp(rows->of_capture->boot_id, key.boot_id, sizeof key.boot_id) == 0 &&
				      rows->of_capture->capture_id == key.capture_id));
}

/* So that it need not be read. */
static bool is_wanted_path(void *context, const char *path)
{
	return tw_fleet_wants_path(context, path);
}

bool tw_fleet_read(struct tw_fleet_rows *rows, struct tw_fleet_store *store)
{
	char after[TW_FLEET_PATH_BYTES] = "";
	struct tw_fleet_reading reading = {.below = "sum/",
					   .after = after,
					   .suffix = TW_FLEET_SUMMARY_SUFFIX,
					   .most = TW_FLEET_SUMMARY_BYTES_MAX,
					   .wants = is_wanted_path,
					   .take = take_object,
					   .context = rows};
	/* Objects of a bucket are in the order of the minutes in which segments ended. */
	if (rows->from_ns)
		tw_fleet_minute_path(rows->from_ns, after);
	if (!tw_fleet_store_read(store, &reading))
		return false;
	if (!reading.found && !rows->from_ns)
		tw_say("there is no summary below '%s': `tracewheel ship --to` writes them.",
		       tw_fleet_store_name(store));
	return reading.found || rows->from_ns;
}

void tw_fleet_rows_free(struct tw_fleet_rows *rows)
{
	for (size_t i = 0; i < rows->sum_count; i++) {
		free(rows->sums[i].name);
		free(rows->sums[i].bins);
	}
	for (size_t i = 0; i < rows->image_count; i++)
		free(rows->images[i].node);
	for (size_t i = 0; i < rows->segment_count; i++) {
		json_decref(rows->segments[i].crossing);
		free(rows->segments[i].sums);
	}
	json_decref(rows->names);
	free(rows->sums);
	free(rows->images);
	free(rows->segments);
	tw_map_fini(&rows->by_name);
	tw_map_fini(&rows->by_image);
	tw_map_fini(&rows->by_segment);
}
