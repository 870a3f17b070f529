/* SPDX-License-Identifier: Apache-2.0 */
/* counted.c - sums of what a capture has counted. */
#include "views/names/counted.h"
#include "views/output/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function is one in all processes. */
static int by_name(const void *a, const void *b)
{
	const struct tw_capture_function *x = *(const struct tw_capture_function *const *)a,
					 *y = *(const struct tw_capture_function *const *)b;
	int order = strcmp(x->name, y->name);
	return order || !x->module || !y->module ? order : strcmp(x->module->name, y->module->name);
}

static size_t count_different(const struct tw_capture_function **functions, size_t count)
{
	size_t different = count != 0;
	if (count)
		qsort(functions, count, sizeof *functions, by_name);
	for (size_t i = 1; i < count; i++)
		different += by_name(&functions[i - 1], &functions[i]) != 0;
	return different;
}

static size_t count_places(const struct tw_capture *capture)
{
	struct tw_capture_counted counted;
	size_t count = 0;
	for (uint32_t image = 0, at; at = 0, tw_capture_image(capture, image); image++)
		while (tw_capture_counted_next(capture, image, &at, &counted))
			count++;
	return count;
}

void tw_counted_sum(const struct tw_capture *capture, struct tw_counted *out)
{
	const struct tw_capture_function **functions = malloc((count_places(capture) + 1) * sizeof *functions);
	const struct tw_capture_count *count;
	const struct tw_capture_function **longer = malloc((count_places(capture) + 1) * sizeof *longer);
	struct tw_capture_counted counted;
	size_t found = 0, found_longer = 0;
	*out = (struct tw_counted){0};
	for (uint32_t image = 0, at; functions && longer && tw_capture_image(capture, image); image++) {
		for (at = 0; tw_capture_counted_next(capture, image, &at, &counted);) {
			const struct tw_capture_place *place = tw_capture_place(capture, image, counted.place_id);
			/* All calls are recorded, as far as they can be. */
			if (!place || !place->function || (counted.condition && !*counted.condition))
				continue;
			functions[found++] = place->function;
			out->has_children |= counted.has_children;
			if (counted.longer_ns || counted.condition || counted.is_child)
				longer[found_longer++] = place->function;
			if (counted.condition)
				out->condition = !out->condition || strcmp(out->condition, counted.condition) == 0
							 ? counted.condition
							 : "";
			if (counted.longer_ns && (!out->longer_ns || counted.longer_ns < out->longer_ns))
				out->longer_ns = counted.longer_ns;
			out->since_ns =
				out->since_ns && out->since_ns < counted.since_ns ? out->since_ns : counted.since_ns;
			out->last_ns = out->last_ns > counted.since_ns ? out->last_ns : counted.since_ns;
		}
		for (at = 0; (count = tw_capture_count_next(capture, image, &at));)
			out->calls += count->count;
	}
	out->functions = functions ? count_different(functions, found) : 0;
	out->longer = longer ? count_different(longer, found_longer) : 0;
	free(functions);
	free(longer);
}

/* "only calls of 1 ms or longer are recorded, and self times contain shorter ones: "; nothing where all calls are counted. */
static int put_longer(const struct tw_counted *counted, char *text)
{
	char functions[TW_FIGURE_BYTES], of[TW_FIGURE_BYTES + 8] = "", longer[TW_FIGURE_BYTES], shown[400];
	if (!counted->longer)
		return 0;
	if (counted->longer < counted->functions)
		snprintf(of, sizeof of, "of %s ", tw_figure_of(functions, counted->longer, "function", "functions"));
	const char *and = counted->has_children ? ", and the calls in them," : "",
		   *around = counted->has_children ? ", those around them, and the calls in these,"
						   : ", and those around them,";
	const char *rest = counted->has_children		       ? ""
			   : counted->longer_ns && !counted->condition ? ", and self times contain shorter ones"
								       : ", and self times contain the rest";
	if (counted->longer_ns && !counted->condition)
		return snprintf(text, TW_COUNTED_TEXT_BYTES, "%sonly calls of %s or longer%s are recorded%s: ", of,
				tw_figure_duration(longer, counted->longer_ns), and, rest);
	if (!counted->condition || !*counted->condition)
		return snprintf(text, TW_COUNTED_TEXT_BYTES,
				"%sonly calls that fulfil their conditions%s are recorded%s: ", of, around, rest);
	shown[tw_clean(counted->condition, strlen(counted->condition), shown, sizeof shown - 1)] = 0;
	return snprintf(text, TW_COUNTED_TEXT_BYTES, "%sonly calls of which '%s' is true%s are recorded%s: ", of, shown,
			around, rest);
}

const char *tw_counted_clause(const struct tw_capture *capture, char text[TW_COUNTED_TEXT_BYTES])
{
	struct tw_counted counted;
	struct tw_capture_info info;
	char calls[TW_FIGURE_BYTES], functions[TW_FIGURE_BYTES], since[TW_FIGURE_BYTES];
	tw_counted_sum(capture, &counted);
	tw_capture_info(capture, &info);
	*text = 0;
	if (!counted.functions)
		return text;
	bool is_all = counted.longer == counted.functions;
	int used = put_longer(&counted, text);
	used += snprintf(text + used, TW_COUNTED_TEXT_BYTES - (size_t)used, "%s of %s %s counted, not recorded",
			 is_all ? tw_figure_of(calls, counted.calls, "other", "others")
				: tw_figure_of(calls, counted.calls, "call", "calls"),
			 tw_figure_of(functions, counted.functions, "function", "functions"),
			 counted.calls == 1 ? "is" : "are");
	/* From their first call on, unless something was recorded before. */
	if (counted.since_ns > info.zero_ns && info.events)
		snprintf(text + used, TW_COUNTED_TEXT_BYTES - (size_t)used, ", since %s",
			 tw_figure_seconds(since, (double)(counted.since_ns - info.zero_ns) / 1e9));
	else if (counted.last_ns > info.zero_ns && info.events)
		snprintf(text + used, TW_COUNTED_TEXT_BYTES - (size_t)used, ", some since %s",
			 tw_figure_seconds(since, (double)(counted.last_ns - info.zero_ns) / 1e9));
	else
		snprintf(text + used, TW_COUNTED_TEXT_BYTES - (size_t)used, ", since the start");
	return text;
}

void tw_counted_say(const struct tw_capture *capture)
{
	char text[TW_COUNTED_TEXT_BYTES];
	if (*tw_counted_clause(capture, text))
		tw_say("%s: `tracewheel report` shows them.", text);
}
