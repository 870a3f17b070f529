/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame.c - `tracewheel flame`: the call tree as one page for a browser, or as folded stacks.
 *
 * The page is flame.html, which is built into the program; the tree is inserted as JSON, escaped so that names of
 * functions cannot end the element that contains it.
 */
#include "views/folds/calltree.h"
#include "views/names/counted.h"
#include "views/output/page.h"
#include "views/names/lines.h"
#include "views/names/missing.h"
#include "tools/report/report.h"
#include "tools/common/select.h"

#include "tracewheel/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Nodes with less than this share of all time and of all calls are drawn together, as "(N smaller)". */
#define LEAST_SHARE_DEFAULT 0.01 /* in percent */
#define TABLE_ROWS	    100

enum { KEY_FOLDED = 256, KEY_BY_PROCESS, KEY_LEAST };

static const struct tw_option options_table[] =
	{{KEY_FOLDED, "folded", NULL,
	  "folded stacks for other tools instead of a page: a;b;c N,\nwhere N is the self time in ns, or "
	  "calls"},
	 {KEY_BY_PROCESS, "by-process", NULL, "a tree for each process, not one of all"},
	 {KEY_LEAST, "least", "PERCENT",
	  "draw frames with a smaller share of the whole together with\ntheir neighbours (0.01); 0 keeps all"},
	 TW_LONGER_OPTION,
	 TW_HIDE_WAITS_OPTION,
	 TW_SELECTION_OPTIONS,
	 {0}};

static const struct tw_command command = {
	.name = "flame",
	.arguments = "[OPTION]... [NAME.tw | FILE | -] > NAME.html",
	.summary = "Makes a flame graph: one page for a browser, without network. Frames are\n"
		   "functions below their callers, as wide as their share of the time; if no\n"
		   "returns were recorded, as their share of the calls, by the call stacks of\n"
		   "`record --stack` if there are any.\n" TW_STREAM_HELP,
	.options = options_table,
	.examples = "  tracewheel flame sqlite3.tw > sqlite3.html\n"
		    "  tracewheel flame --by-process --from 1.5 --to 2 app.tw > app.html\n"
		    "  tracewheel record -q --returns -o - -- ls | tracewheel flame - > ls.html\n"
		    "  tracewheel flame --folded sqlite3.tw | flamegraph.pl > sqlite3.svg\n",
};

struct request {
	struct tw_selection selection;
	double least_percent;
	bool is_folded;
	bool is_by_process;
};

static struct tw_out out;

TW_PAGE(tw_flame_page, TW_PAGE_FILE);

/* ---- the page ---- */

struct page {
	const struct tw_calltree *tree;
	uint64_t least_ns, least_calls;
	bool has_times;
	bool is_next;
	/* Numbers of names: first those of functions, then those of processes. */
	uint32_t *process_names;
	uint32_t process_count;
	uint32_t count; /* of nodes that were written */
	uint32_t *lossy;
	uint32_t lossy_count;
	bool has_no_memory;
};

static void put_node(struct page *page, unsigned depth, int64_t name, const struct tw_call_node *node)
{
	tw_out_format(&out, "%s%u,%lld,%llu,%llu,%llu", page->is_next ? "," : "", depth, (long long)name,
		      (unsigned long long)node->calls, (unsigned long long)node->total_ns,
		      (unsigned long long)node->self_ns);
	page->is_next = true;
	if (node->is_lossy && (page->lossy_count & (page->lossy_count + 1)) == 0) {
		uint32_t *grown = realloc(page->lossy, ((size_t)page->lossy_count + 1) * 2 * sizeof *grown);
		page->lossy = grown ? grown : page->lossy;
		page->has_no_memory |= !grown;
	}
	if (node->is_lossy && !page->has_no_memory)
		page->lossy[page->lossy_count++] = page->count;
	page->count++;
}

/* Writes the nodes with losses in their sums, by their index in the list. */
static void put_lossy(const struct page *page)
{
	tw_out_text(&out, "],\"lossy\":[");
	for (uint32_t i = 0; i < page->lossy_count; i++)
		tw_out_format(&out, "%s%u", i ? "," : "", page->lossy[i]);
}

/* The calls of a node and of all nodes below it. */
static uint64_t calls_below(const struct tw_calltree *tree, uint32_t number)
{
	uint64_t calls = tree->nodes[number].is_process ? 0 : tree->nodes[number].calls;
	for (uint32_t at = tree->nodes[number].first_child; at; at = tree->nodes[at].next_sibling)
		calls += calls_below(tree, at);
	return calls;
}

static bool put_nodes(struct page *page, uint32_t number, unsigned depth)
{
	size_t count;
	uint32_t *children = tw_calltree_children(page->tree, number, &count);
	struct tw_call_node rest = {0};
	uint32_t left_out = 0;
	bool is_done = children != NULL;
	for (size_t i = 0; is_done && i < count; i++) {
		const struct tw_call_node *node = &page->tree->nodes[children[i]];
		if (node->total_ns < page->least_ns && node->calls < page->least_calls) {
			rest.calls += calls_below(page->tree, children[i]);
			rest.total_ns += node->total_ns;
			left_out++;
			continue;
		}
		int64_t name = node->function;
		if (node->is_process) {
			page->process_names[page->process_count++] = children[i];
			name = page->tree->places.function_count + page->process_count - 1;
		}
		put_node(page, depth, name, node);
		is_done = put_nodes(page, children[i], depth + 1);
	}
	if (is_done && left_out)
		put_node(page, depth, -(int64_t)left_out, &rest);
	free(children);
	return is_done;
}

static void put_names(const struct page *page)
{
	tw_out_text(&out, "],\"names\":[");
	for (uint32_t i = 0; i < page->tree->places.function_count; i++) {
		tw_out_text(&out, i ? "," : "");
		tw_page_text(&out, page->tree->places.names[i].text, page->tree->places.names[i].bytes);
	}
	for (uint32_t i = 0; i < page->process_count; i++) {
		const char *name = tw_calltree_name(page->tree, page->process_names[i]);
		tw_out_text(&out, ",");
		tw_page_text(&out, name, strlen(name));
	}
}

static void put_functions(const struct tw_calltree *tree, bool has_times)
{
	size_t count = 0;
	struct tw_report_row *rows = tw_report_rows(tree, has_times ? "self" : "calls", &count);
	tw_out_text(&out, "],\"functions\":[");
	for (size_t i = 0; rows && i < count && i < TABLE_ROWS; i++)
		tw_out_format(&out, "%s[%u,%llu,%llu,%llu]", i ? "," : "", rows[i].function,
			      (unsigned long long)rows[i].sums->calls, (unsigned long long)rows[i].sums->total_ns,
			      (unsigned long long)rows[i].sums->self_ns);
	free(rows);
}

/* Formatted first, then escaped like any other text. */
static void put_note(bool warns, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put_note(bool warns, const char *format, ...)
{
	static bool is_next;
	char text[400];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	tw_out_text(&out, is_next ? ",{\"text\":" : "{\"text\":");
	tw_page_text(&out, text, strlen(text));
	tw_out_format(&out, ",\"warns\":%s}", warns ? "true" : "false");
	is_next = true;
}

/* Of calls whose times are those of a part, or of others. */
static void put_notes_of_calls(const struct tw_calltree *tree)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES];
	if (tree->stacks.open)
		put_note(false, "Calls that were open at the end, and count up to %s: %s.",
			 tw_stacks_open_until(&tree->stacks), tw_figure_count(a, tree->stacks.open));
	if (tree->stacks.before)
		put_note(false, "Calls that were open at the beginning of this part: %s. Their time counts from there.",
			 tw_figure_count(a, tree->stacks.before));
	if (tree->longer_ns)
		put_note(false, "Calls of %s or longer only: %s left out, and their time is that of the calls around.",
			 tw_figure_duration(b, tree->longer_ns),
			 tw_figure_of(a, tree->stacks.hidden, "call is", "calls are"));
	if (tree->hides_waits)
		put_note(false, "Without %s, %s: the calls around do not have this time.",
			 tw_figure_of(a, tree->hidden_waits, "call that waits", "calls that wait"),
			 tw_figure_duration(b, tree->hidden_wait_ns));
	if (tree->stacks.cut || tree->stacks.unmatched)
		put_note(false, "Calls without a return: %s; returns without a call: %s. They have no time.",
			 tw_figure_count(b, tree->stacks.cut), tw_figure_count(c, tree->stacks.unmatched));
}

/* Notes on the recording, and on missing data. */
static void put_notes(const struct request *request, const struct tw_calltree *tree,
		      const struct tw_capture_filter *filter, bool has_times)
{
	struct tw_capture_info info;
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	bool is_part = filter->from_ns || filter->to_ns;
	tw_capture_info(tree->capture, &info);
	uint64_t from_ns = filter->from_ns > info.start_ns ? filter->from_ns : info.start_ns,
		 lost = is_part ? tree->lost : 0;
	uint64_t to_ns = filter->to_ns && filter->to_ns < info.end_ns ? filter->to_ns : info.end_ns;
	for (unsigned cause = 0; !is_part && cause < TW_LOST_CAUSES; cause++)
		lost += info.lost[cause];
	for (uint32_t i = 0; is_part && i < info.images; i++)
		lost += tw_capture_no_ring_lost(tree->capture, i, filter->from_ns, filter->to_ns);
	tw_out_text(&out, "],\"notes\":[");
	tw_figure_count(a, tree->events);
	tw_figure_seconds(b, to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0);
	if (is_part)
		put_note(
			false,
			"%s event%s in %s, a part of the capture. Frames of less than %g %% of the whole are drawn together.",
			a, tree->events == 1 ? "" : "s", b, request->least_percent);
	else
		put_note(false,
			 "%s event%s of %u thread%s in %s. Frames of less than %g %% of the whole are drawn together.",
			 a, tree->events == 1 ? "" : "s", info.threads, info.threads == 1 ? "" : "s", b,
			 request->least_percent);
	if (tree->is_by_stack)
		put_note(
			false,
			"No returns were recorded: widths are numbers of events, by the call stacks that were recorded "
			"with them. A stack ends at the requested depth, or where it could not be followed.");
	else if (!has_times)
		put_note(true, "No returns were recorded: widths are calls, and nothing is known of calls "
			       "within calls.");
	char counted[TW_COUNTED_TEXT_BYTES];
	if (*tw_counted_clause(tree->capture, counted))
		put_note(false, "%s: they are not drawn, and their time is that of their callers.", counted);
	if (tree->stackless)
		put_note(false, "Calls without a stack: %s.", tw_figure_count(a, tree->stackless));
	if (lost)
		put_note(true, "%s lost: calls around that are cut or unseen.",
			 tw_figure_of(a, lost, "event was", "events were"));
	struct tw_capture_account account;
	char clause[TW_MISSING_TEXT_BYTES];
	tw_capture_account(tree->capture, &account);
	for (unsigned cause = TW_MISSING_OVERWRITTEN; cause < TW_MISSING_CAUSES; cause++) {
		if (*tw_missing_clause(&account, cause, clause))
			put_note(cause != TW_MISSING_OVERWRITTEN && cause != TW_MISSING_REMOVED, "%c%s.",
				 toupper((unsigned char)*clause), clause + 1);
	}
	if (info.is_live)
		put_note(true, "The capture is not complete: %s.", tw_names_unfinished());
	if (*tw_missing_waits(&account, clause))
		put_note(false, "The program %s: this is not in the times of calls.", clause);
	if (*tw_missing_setups(&account, clause))
		put_note(false, "%c%s: this is not in the times of calls.", toupper((unsigned char)*clause),
			 clause + 1);
	put_notes_of_calls(tree);
	if (tree->is_full)
		put_note(true, "The tree has too many nodes: some calls are missing in it.");
}

static void put_title(const struct tw_calltree *tree, const char *path)
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
	if (tree->is_by_stack) {
		bytes = bytes < 200 ? bytes : 200;
		bytes += (size_t)snprintf(title + bytes, sizeof title - bytes, " (by number of events)");
	}
	tw_page_text(&out, title, bytes);
}

static int put_page(const struct request *request, const struct tw_calltree *tree,
		    const struct tw_capture_filter *filter, const char *path)
{
	struct page page = {.tree = tree, .has_times = tw_places_have_returns(&tree->places)};
	page.process_names = malloc((tree->stacks.count + (size_t)1) * sizeof *page.process_names);
	const char *rest = page.process_names ? tw_page_begin(&out, tw_flame_page) : NULL;
	if (!rest) {
		free(page.process_names);
		return TW_ENOMEM;
	}
	double share = request->least_percent / 100, calls = 0;
	for (uint32_t i = 0; i < tree->places.function_count; i++)
		calls += (double)tree->functions[i].calls;
	page.least_ns = (uint64_t)((double)tree->nodes[TW_CALLTREE_ROOT].total_ns * share);
	page.least_calls = (uint64_t)(calls * share);
	tw_out_text(&out, "{\"title\":");
	put_title(tree, path);
	tw_out_format(&out, ",\"hasTimes\":%s,\"hasStacks\":%s,\"nodes\":[", page.has_times ? "true" : "false",
		      tree->is_by_stack ? "true" : "false");
	bool is_done = put_nodes(&page, TW_CALLTREE_ROOT, 1) && !page.has_no_memory;
	put_lossy(&page);
	put_names(&page);
	put_functions(tree, page.has_times);
	put_notes(request, tree, filter, page.has_times);
	tw_out_text(&out, "]}");
	tw_out_text(&out, rest);
	free(page.process_names);
	free(page.lossy);
	return is_done ? 0 : TW_ENOMEM;
}

/* ---- folded stacks ---- */

struct chain {
	char *text;
	size_t bytes, capacity;
};

/* The separator is replaced in names. */
static bool add_to_chain(struct chain *chain, const char *name)
{
	size_t bytes = strlen(name);
	if (chain->bytes + bytes + 2 > chain->capacity) {
		size_t capacity = (chain->bytes + bytes + 2) * 2;
		char *grown = realloc(chain->text, capacity);
		if (!grown)
			return false;
		chain->text = grown;
		chain->capacity = capacity;
	}
	if (chain->bytes)
		chain->text[chain->bytes++] = ';';
	for (size_t i = 0; i < bytes; i++)
		chain->text[chain->bytes++] = name[i] == ';' ? ':' : name[i];
	return true;
}

static bool put_folded(const struct tw_calltree *tree, uint32_t number, struct chain *chain, bool has_times)
{
	size_t count, before = chain->bytes;
	uint32_t *children = tw_calltree_children(tree, number, &count);
	bool is_done = children != NULL;
	for (size_t i = 0; is_done && i < count; i++) {
		const struct tw_call_node *node = &tree->nodes[children[i]];
		is_done = add_to_chain(chain, tw_calltree_name(tree, children[i]));
		uint64_t own = has_times ? node->self_ns : node->is_process ? 0 : node->calls;
		if (is_done && own) {
			tw_out_bytes(&out, chain->text, chain->bytes);
			tw_out_format(&out, " %llu\n", (unsigned long long)own);
		}
		is_done = is_done && put_folded(tree, children[i], chain, has_times);
		chain->bytes = before;
	}
	free(children);
	return is_done;
}

/* ---- the command ---- */

static bool take_option(void *context, int key, const char *value)
{
	struct request *request = context;
	char *end;
	switch (key) {
	case KEY_FOLDED: request->is_folded = true; return true;
	case KEY_BY_PROCESS: request->is_by_process = true; return true;
	case KEY_LEAST:
		request->least_percent = strtod(value, &end);
		if (*end || end == value || !(request->least_percent >= 0 && request->least_percent <= 100)) {
			tw_usage(&command, "--least is a percentage, not '%s'.", value);
			return false;
		}
		return true;
	default: return tw_selection_take(&request->selection, &command, key, value);
	}
}

static int flame(struct request *request, struct tw_capture *capture, const char *path)
{
	struct tw_capture_filter filter;
	struct tw_calltree tree = {.is_by_process = request->is_by_process,
				   .longer_ns = request->selection.longer_ns,
				   .hides_waits = request->selection.hides_waits};
	if (!tw_selection_filter(&request->selection, capture, &command, &filter))
		return TW_EXIT_USAGE;
	int error = tw_calltree_make(&tree, capture, &filter), code = TW_EXIT_FAILURE;
	tw_out_init(&out, STDOUT_FILENO);
	if (error == 0 && request->is_folded) {
		struct chain chain = {0};
		if (!put_folded(&tree, TW_CALLTREE_ROOT, &chain, tw_places_have_returns(&tree.places)))
			error = TW_ENOMEM;
		free(chain.text);
	} else if (error == 0) {
		error = put_page(request, &tree, &filter, path);
	}
	if (!error && !tree.events && !tree.stacks.before)
		tw_selection_say_empty(&request->selection, capture, &filter);
	else if (!error && request->is_folded && tree.node_count <= TW_CALLTREE_FIRST)
		tw_say("no calls are in the selection, only other events.");
	if (!error && request->is_folded)
		tw_missing_say(capture);
	if (error)
		tw_selection_fail(&request->selection, path, error);
	else
		code = tw_out_finish(&out);
	tw_calltree_free(&tree);
	tw_lines_forget();
	return tw_names_end(capture, path, code);
}

int tw_tool_flame(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {.least_percent = LEAST_SHARE_DEFAULT};
	int code;
	const char *path = tw_options_take(&options, take_option, &request, &code);
	if (!path)
		goto free_selection;
	code = TW_EXIT_FAILURE;
	if (!request.is_folded && isatty(STDOUT_FILENO)) {
		tw_say("a page is not for a terminal: tracewheel flame %s > flame.html", path);
		goto free_selection;
	}
	struct tw_capture *capture = tw_names_open(path);
	if (capture) {
		code = flame(&request, capture, path);
		tw_capture_close(capture);
	}
free_selection:
	tw_selection_free(&request.selection);
	return code;
}
