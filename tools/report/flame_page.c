/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_page.c - the page of `tracewheel flame`.
 *
 * The page is flame.html, which is built into the program; the tree is inserted as JSON, escaped so that names of
 * functions cannot end the element that contains it. However many stacks there are, a page has some megabytes at most: small frames are
 * drawn together, and where these are too many as well, larger ones, which the page says.
 */
#include "tools/report/flame.h"
#include "views/output/page.h"
#include "base/grow.h"
#include "base/map.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_ROWS 1000
/* Frames that are not drawn together, if --least does not ask for more. */
#define FRAMES_MAX 20000

TW_PAGE(tw_flame_html, TW_PAGE_FILE);

struct page {
	struct tw_out *out;
	const struct tw_calltree *tree;
	const struct tw_treediff *diff; /* NULL: of one capture */
	struct tw_treediff_sums least[TW_SIDES];
	double least_percent;
	bool has_times, is_by_stack;
	bool is_next;
	/* Names, each once: borrowed. */
	const char **names;
	uint32_t name_count, name_capacity;
	struct tw_map by_name;
	uint32_t count;	   /* of nodes that were written */
	uint32_t *written; /* by node of the tree: in which of them it is; NULL: not wanted */
	uint32_t *lossy;
	uint32_t lossy_count, lossy_capacity;
	bool has_no_memory;
};

static uint32_t name_number(struct page *page, const char *name)
{
	uint64_t key = tw_hash_bytes(name, strlen(name), 0);
	uint32_t known = tw_map_find(&page->by_name, key, i, strcmp(page->names[i], name) == 0);
	if (known != TW_MAP_NONE)
		return known;
	if (!tw_grow(page->names, page->name_count, page->name_capacity) ||
	    !tw_map_add(&page->by_name, key, page->name_count)) {
		page->has_no_memory = true;
		return 0;
	}
	page->names[page->name_count] = name;
	return page->name_count++;
}

/* ---- frames ---- */

static void get_sums(const struct page *page, uint32_t number, struct tw_treediff_sums sides[TW_SIDES])
{
	const struct tw_call_node *node = &page->tree->nodes[number];
	if (page->diff)
		memcpy(sides, page->diff->nodes[number].sides, sizeof page->diff->nodes[number].sides);
	else
		sides[TW_NEW] = (struct tw_treediff_sums){node->calls, node->total_ns, node->self_ns};
}

static void put_sums(struct page *page, const struct tw_treediff_sums *sums)
{
	tw_out_format(page->out, ",%llu,%llu,%llu", (unsigned long long)sums->calls, (unsigned long long)sums->total_ns,
		      (unsigned long long)sums->self_ns);
}

/* The part of chance in the difference, in ns; -1: not known. */
static void put_noise(struct page *page, bool has_noise, uint64_t noise_ns)
{
	tw_out_format(page->out, ",%lld", has_noise ? (long long)noise_ns : -1LL);
}

/* A row of numbers: the depth, the name, sums; of two sides the old ones behind the new, and the noise. */
static void begin_node(struct page *page, unsigned depth, int64_t name, const struct tw_treediff_sums *sides)
{
	tw_out_format(page->out, "%s%u,%lld", page->is_next ? "," : "", depth, (long long)name);
	put_sums(page, &sides[TW_NEW]);
	if (page->diff)
		put_sums(page, &sides[TW_OLD]);
	page->is_next = true;
	page->count++;
}

static void put_node(struct page *page, unsigned depth, uint32_t number, const struct tw_treediff_sums *sides)
{
	if (page->tree->nodes[number].is_lossy) {
		if (tw_grow(page->lossy, page->lossy_count, page->lossy_capacity))
			page->lossy[page->lossy_count++] = page->count;
		else
			page->has_no_memory = true;
	}
	if (page->written)
		page->written[number] = page->count;
	begin_node(page, depth, name_number(page, tw_calltree_name(page->tree, number)), sides);
	if (page->diff)
		put_noise(page, page->diff->nodes[number].has_noise, page->diff->nodes[number].noise_ns);
}

static bool is_small(const struct page *page, const struct tw_treediff_sums *sides)
{
	for (unsigned side = page->diff ? TW_OLD : TW_NEW; side < TW_SIDES; side++) {
		if (sides[side].total_ns >= page->least[side].total_ns || sides[side].calls >= page->least[side].calls)
			return false;
	}
	return true;
}

/* Adds the calls of a node and of all nodes below it, and its time. */
static void add_below(const struct page *page, uint32_t number, struct tw_treediff_sums *rest, bool is_top)
{
	struct tw_treediff_sums sides[TW_SIDES];
	get_sums(page, number, sides);
	for (unsigned side = page->diff ? TW_OLD : TW_NEW; side < TW_SIDES; side++) {
		rest[side].calls += page->tree->nodes[number].is_process ? 0 : sides[side].calls;
		rest[side].total_ns += is_top ? sides[side].total_ns : 0;
	}
	for (uint32_t at = page->tree->nodes[number].first_child; at; at = page->tree->nodes[at].next_sibling)
		add_below(page, at, rest, false);
}

/* A node and all below it are in the node that is written next. */
static void note_rest(struct page *page, uint32_t number)
{
	page->written[number] = page->count;
	for (uint32_t at = page->tree->nodes[number].first_child; at; at = page->tree->nodes[at].next_sibling)
		note_rest(page, at);
}

static bool put_nodes(struct page *page, uint32_t number, unsigned depth)
{
	size_t count;
	uint32_t *children = tw_calltree_children(page->tree, number, &count);
	struct tw_treediff_sums rest[TW_SIDES] = {0}, sides[TW_SIDES];
	uint32_t left_out = 0;
	bool is_done = children != NULL;
	for (size_t i = 0; is_done && i < count; i++) {
		get_sums(page, children[i], sides);
		if (is_small(page, sides)) {
			add_below(page, children[i], rest, true);
			left_out++;
			continue;
		}
		put_node(page, depth, children[i], sides);
		is_done = put_nodes(page, children[i], depth + 1);
	}
	for (size_t i = 0; is_done && left_out && page->written && i < count; i++) {
		if (page->written[children[i]] == TW_PARTS_NO_NODE)
			note_rest(page, children[i]);
	}
	if (is_done && left_out) {
		begin_node(page, depth, -(int64_t)left_out, rest);
		if (page->diff)
			put_noise(page, false, 0);
	}
	free(children);
	return is_done;
}

/* Frames with less than a share of all time and of all calls are drawn together, as "(N smaller)". */
static void set_least(struct page *page, double percent)
{
	struct tw_treediff_sums whole[TW_SIDES];
	double calls[TW_SIDES] = {0};
	for (uint32_t i = TW_CALLTREE_FIRST; i < page->tree->node_count; i++) {
		get_sums(page, i, whole);
		calls[TW_NEW] += page->tree->nodes[i].is_process ? 0 : (double)whole[TW_NEW].calls;
		calls[TW_OLD] += page->diff ? (double)whole[TW_OLD].calls : 0;
	}
	get_sums(page, TW_CALLTREE_ROOT, whole);
	for (unsigned side = page->diff ? TW_OLD : TW_NEW; side < TW_SIDES; side++) {
		page->least[side].total_ns = page->has_times || page->is_by_stack
						     ? (uint64_t)((double)whole[side].total_ns * percent / 100)
						     : UINT64_MAX;
		page->least[side].calls = (uint64_t)(calls[side] * percent / 100);
	}
	page->least_percent = percent;
}

static uint32_t count_large(const struct page *page)
{
	uint32_t large = 0;
	for (uint32_t i = TW_CALLTREE_FIRST; i < page->tree->node_count; i++) {
		struct tw_treediff_sums sides[TW_SIDES];
		get_sums(page, i, sides);
		large += !is_small(page, sides);
	}
	return large;
}

/* ---- the rest of the data ---- */

/* The nodes with losses in their sums, by their index in the list. */
static void put_lossy(const struct page *page)
{
	tw_out_text(page->out, "],\"lossy\":[");
	for (uint32_t i = 0; i < page->lossy_count; i++)
		tw_out_format(page->out, "%s%u", i ? "," : "", page->lossy[i]);
}

static void put_functions(struct page *page, size_t *count)
{
	struct tw_report_row *rows = tw_report_rows(page->tree, page->has_times ? "self" : "calls", count);
	for (size_t i = 0; rows && i < *count && i < TABLE_ROWS; i++) {
		struct tw_treediff_sums sums = {rows[i].sums->calls, rows[i].sums->total_ns, rows[i].sums->self_ns};
		tw_out_format(page->out, "%s[%u", i ? "," : "", name_number(page, rows[i].name));
		put_sums(page, &sums);
		tw_out_format(page->out, ",%llu,%llu,%llu]", (unsigned long long)rows[i].median_ns,
			      (unsigned long long)rows[i].p99_ns, (unsigned long long)rows[i].tracer_ns);
	}
	page->has_no_memory |= !rows;
	free(rows);
}

static void put_differences(struct page *page, const struct tw_differences *differences)
{
	for (size_t i = 0; i < differences->count && i < TABLE_ROWS; i++) {
		const struct tw_difference *row = &differences->rows[i];
		tw_out_format(page->out, "%s[%u", i ? "," : "", name_number(page, row->name));
		for (unsigned side = TW_SIDES; side-- > 0;) {
			const struct tw_difference_side *sums = &row->sides[side];
			put_sums(page, &(struct tw_treediff_sums){sums->calls, sums->total_ns, sums->self_ns});
		}
		put_noise(page, row->has_noise, row->noise_ns);
		tw_out_text(page->out, "]");
	}
}

static void put_names(const struct page *page)
{
	tw_out_text(page->out, "],\"names\":[");
	for (uint32_t i = 0; i < page->name_count; i++) {
		tw_out_text(page->out, i ? "," : "");
		tw_page_text(page->out, page->names[i], strlen(page->names[i]));
	}
}

/* All but the title and the sentences. */
static bool put_data(struct page *page, const struct tw_flame *flame)
{
	size_t functions = flame->sides.differences.count;
	double percent = flame->least_percent;
	set_least(page, percent);
	while (!flame->is_least_given && percent < 50 && count_large(page) > FRAMES_MAX)
		set_least(page, percent *= 2);
	tw_out_format(page->out, ",\"hasTimes\":%s,\"hasStacks\":%s,\"nodes\":[", page->has_times ? "true" : "false",
		      page->is_by_stack ? "true" : "false");
	bool is_done = put_nodes(page, TW_CALLTREE_ROOT, 1);
	put_lossy(page);
	tw_out_text(page->out, "],\"functions\":[");
	if (page->diff)
		put_differences(page, &flame->sides.differences);
	else
		put_functions(page, &functions);
	put_names(page);
	tw_out_format(page->out, "],\"functionCount\":%zu", functions);
	return is_done && !page->has_no_memory;
}

/* Ends the page. Returns 0 or TW_ENOMEM. */
static int end_page(struct page *page, const char *rest, const char *more, bool is_done)
{
	const char *end = strstr(rest, "</body>");
	tw_out_text(page->out, "]}");
	tw_out_bytes(page->out, rest, (size_t)(end - rest));
	tw_out_text(page->out, more ? more : "");
	tw_out_text(page->out, end);
	tw_map_fini(&page->by_name);
	free(page->names);
	free(page->lossy);
	return is_done ? 0 : TW_ENOMEM;
}

static void put_title(struct tw_out *out, const struct tw_calltree *tree, const struct tw_flame_memory *kind,
		      const char *path)
{
	const struct tw_capture_image *image;
	char title[300];
	size_t bytes = 0;
	if (tw_names_images(tree->capture, &image, 1) && image->command_bytes) {
		size_t left = image->command_bytes - (image->command[image->command_bytes - 1] == 0);
		for (const char *at = image->command; left && bytes + TW_CLEAN_PIECE_BYTES < sizeof title;) {
			size_t more, taken = tw_clean_piece(*at ? at : " ", left, title + bytes, &more);
			bytes += more;
			at += taken;
			left -= taken;
		}
	}
	if (!bytes)
		bytes = (size_t)snprintf(title, sizeof title, "%.200s", path);
	const char *what = kind ? kind->title : tree->is_by_stack ? "by number of events" : NULL;
	if (what) {
		bytes = bytes < 200 ? bytes : 200;
		bytes += (size_t)snprintf(title + bytes, sizeof title - bytes, " (%s)", what);
	}
	tw_page_text(out, title, bytes);
}

int tw_flame_page(struct tw_out *out, const struct tw_flame *flame, const struct tw_calltree *tree,
		  const struct tw_capture_filter *filter, const char *path)
{
	struct page page = {.out = out,
			    .tree = tree,
			    .has_times = flame->kind || tw_places_have_returns(&tree->places),
			    .is_by_stack = tree->is_by_stack};
	const char *rest = tw_page_begin(out, tw_flame_html);
	if (!rest)
		return TW_ENOMEM;
	tw_out_text(out, "{\"title\":");
	put_title(out, tree, flame->kind, path);
	if (flame->kind)
		tw_out_text(out, ",\"isMemory\":true");
	page.written = tree->parts ? malloc((tree->node_count + (size_t)1) * sizeof *page.written) : NULL;
	page.has_no_memory = tree->parts && !page.written;
	for (uint32_t i = 0; page.written && i < tree->node_count; i++)
		page.written[i] = TW_PARTS_NO_NODE;
	bool is_done = put_data(&page, flame);
	if (page.written)
		is_done &= tw_flame_parts(out, tree, page.written);
	free(page.written);
	if (flame->put_more)
		is_done &= flame->put_more(out, flame->context);
	tw_out_text(out, ",\"notes\":[");
	if (flame->kind)
		tw_flame_memory_notes(out, flame, tree, page.least_percent);
	else
		tw_flame_notes(out, tree, filter, page.has_times, page.least_percent);
	return end_page(&page, rest, flame->more_page, is_done);
}

/* ---- two sides ---- */

/* The first capture of a side, and how many more there are. */
static size_t name_side(const struct tw_sides *sides, unsigned side, char *text, size_t capacity)
{
	const char *first = NULL;
	unsigned more = sides->tree.captures[side] - 1;
	for (unsigned i = sides->count; i-- > 0;)
		first = sides->captures[i].side == side ? sides->captures[i].path : first;
	int bytes = more ? snprintf(text, capacity, "%.200s and %u more", first, more)
			 : snprintf(text, capacity, "%.200s", first);
	return (size_t)bytes;
}

int tw_flame_diff_page(struct tw_out *out, const struct tw_flame *flame)
{
	const struct tw_sides *sides = &flame->sides;
	struct page page = {.out = out,
			    .tree = &sides->tree.tree,
			    .diff = &sides->tree,
			    .has_times = !sides->differences.lacks_times,
			    .is_by_stack = sides->tree.is_by_stack};
	const char *rest = tw_page_begin(out, tw_flame_html);
	char name[TW_SIDES][240], title[500];
	size_t bytes[TW_SIDES];
	if (!rest)
		return TW_ENOMEM;
	for (unsigned side = 0; side < TW_SIDES; side++)
		bytes[side] = name_side(sides, side, name[side], sizeof name[side]);
	tw_out_text(out, "{\"title\":");
	tw_page_text(out, title,
		     (size_t)snprintf(title, sizeof title, "%s, compared with %s", name[TW_NEW], name[TW_OLD]));
	tw_out_text(out, ",\"diff\":{\"old\":");
	tw_page_text(out, name[TW_OLD], bytes[TW_OLD]);
	tw_out_text(out, ",\"new\":");
	tw_page_text(out, name[TW_NEW], bytes[TW_NEW]);
	tw_out_text(out, "}");
	bool is_done = put_data(&page, flame);
	tw_out_text(out, ",\"notes\":[");
	tw_flame_diff_notes(out, sides, page.least_percent);
	return end_page(&page, rest, NULL, is_done);
}
