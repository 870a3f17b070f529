/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dry_run.c - what an attach would do, before anything is done: dry_run.h.
 *
 * Functions are counted by the rules of the agent, in the files of the program, of the libraries that it is linked with, and of those that it
 * has opened, as far as the command may read them as they are mapped.  Costs are those measured in docs/costs.md, on one machine.
 */
#include "tools/attach/dry_run.h"

#include "tools/attach/dormant.h"
#include "tools/common/proc.h"
#include "tools/tool.h"

#include "base/grow.h"

#include "tracewheel/error.h"
#include "tracewheel/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nanoseconds of the calling thread, of the table in docs/costs.md. */
enum { CALL_NS = 22, ARGUMENTS_NS = 11, END_NS = 20, STACK_NS = 48, COUNT_NS = 7, REFUSED_NS = 8 };

/* Of a thread's ring, and of all, where no option says another. */
#define RING_BYTES (UINT64_C(4) << 20)
#define CAP_BYTES  (UINT64_C(256) << 20)

struct function {
	const struct tw_symbols_object *module;
	uint64_t value;
};

struct tally {
	struct function *rows; /* those recorded at sleds and entries, under each of their names */
	size_t count, capacity, slots;
};

static int add(const struct tw_symbols_place *place, void *arg)
{
	struct tally *tally = arg;
	if (place->how == TW_SYMBOLS_SLOT) {
		tally->slots++;
		return 0;
	}
	if (!tw_grow(tally->rows, tally->count, tally->capacity))
		return TW_ENOMEM;
	tally->rows[tally->count++] = (struct function){place->module, place->value};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	int order = (x->module > y->module) - (x->module < y->module);
	return order ? order : (x->value > y->value) - (x->value < y->value);
}

/* A function has one entry under all its names. */
static size_t count_once(struct tally *tally)
{
	size_t count = 0;
	if (tally->count)
		qsort(tally->rows, tally->count, sizeof *tally->rows, compare);
	for (size_t i = 0; i < tally->count; i++)
		count += !i || compare(&tally->rows[i - 1], &tally->rows[i]) != 0;
	return count;
}

static int show_functions(const struct tw_request *request)
{
	char figure[TW_FIGURE_BYTES];
	struct tally tally = {0};
	int error = request->check ? tw_check_each_recorded(request->check, add, &tally) : TW_ENOENT;
	size_t count = count_once(&tally);
	free(tally.rows);
	if (error == TW_ENOENT) {
		printf("functions  not known from the files\n");
		return 0;
	}
	if (error)
		return error;
	printf("functions  %s at their entries or sleds", tw_figure_of(figure, count, "function", "functions"));
	if (tally.slots)
		printf(", and calls through %s", tw_figure_of(figure, tally.slots, "slot", "slots"));
	if (!request->has_patterns && count > strtoul(TW_RECORDED_MOST, NULL, 10))
		printf("; the largest %s are recorded, calls of the others counted",
		       tw_figure_count(figure, strtoul(TW_RECORDED_MOST, NULL, 10)));
	putchar('\n');
	return 0;
}

static void show_memory(const struct tw_request *request, int process)
{
	char one[TW_FIGURE_BYTES], all[TW_FIGURE_BYTES], cap[TW_FIGURE_BYTES], number[TW_FIGURE_BYTES];
	long threads =
		tw_proc_status(process, "Threads", 0) - (tw_dormant_thread(process) ? 1 : 0); /* not the agent's */
	uint64_t ring = request->recorder.ring_bytes ? request->recorder.ring_bytes : RING_BYTES;
	uint64_t most = request->recorder.cap_bytes ? request->recorder.cap_bytes : CAP_BYTES;
	uint64_t wanted = ring * (uint64_t)(threads > 0 ? threads : 1);
	printf("memory     %s for events in %s: %s a thread, and %s in all at most\n",
	       tw_figure_bytes(all, wanted < most ? wanted : most),
	       tw_figure_of(number, (uint64_t)(threads > 0 ? threads : 1), "thread", "threads"),
	       tw_figure_bytes(one, ring), tw_figure_bytes(cap, most));
}

static void show_costs(const struct tw_request *request)
{
	const char *config = request->config.text;
	int call = CALL_NS + (request->arguments.is_wanted ? ARGUMENTS_NS : 0) + (request->has_stack ? STACK_NS : 0);
	bool has_ends = config && strstr(config, "returns ");
	printf("a call     about %d ns%s", call + (has_ends ? END_NS : 0), has_ends ? " with its end" : "");
	if (request->counted.wanted_count)
		printf(", %d ns if it is only counted", COUNT_NS);
	if (tw_conditions_are_there(&request->conditions))
		printf(", %d ns if a condition refuses it", REFUSED_NS);
	printf(" (docs/costs.md)\n");
}

int tw_dry_run(const struct tw_request *request, const struct tw_limits *limits, int process)
{
	char name[64], text[192];
	tw_proc_read(process, "comm", name, sizeof name);
	printf("process    %d (%s), which is left alone\n", process, name);
	int error = show_functions(request);
	if (error)
		return tw_fail("the functions of process %d cannot be looked up: %s", process, tw_strerror(error));
	show_memory(request, process);
	show_costs(request);
	tw_limits_text(limits, text, sizeof text);
	printf("the end    %s\n", *text ? text : "no limit: by Ctrl-C or `tracewheel detach`");
	return tw_flush_stdout() ? TW_EXIT_OK : TW_EXIT_FAILURE;
}
