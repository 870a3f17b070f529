/* SPDX-License-Identifier: Apache-2.0 */
/* check_end.c - at the end of a recording: why a pattern matched nothing, or no call was made. */
#include "tools/record/check_state.h"
#include "views/names/names.h"
#include "tools/tool.h"

#include "tracewheel/capture.h"

#include <stdlib.h>

/* The number of functions that became traced by the pattern, in all processes. */
static size_t count_traced(const struct tw_check *check, const struct tw_capture *capture, const struct asked *asked)
{
	const struct tw_capture_image *images[256];
	size_t count = tw_names_images(capture, images, sizeof images / sizeof *images), traced = 0;
	for (size_t i = 0; i < count; i++) {
		const struct tw_capture_function *function;
		uint32_t at = 0;
		while ((function = tw_capture_function_next(capture, images[i]->image, &at))) {
			const struct tw_capture_module *module = function->module;
			if (!module)
				continue;
			struct tw_patterns_subject subject = {.module = module->name,
							      .path = module->path,
							      .soname = module->soname,
							      .function = function->name,
							      .arity = function->arity};
			if (module->path && strcmp(module->path, images[i]->program) == 0)
				subject.alias = check->options.alias;
			char *demangled =
				tw_pattern_wants_demangled(asked->pattern) ? tw_name_demangled(function->name) : NULL;
			traced += tw_pattern_is(asked->pattern, &subject, demangled);
			free(demangled);
		}
	}
	return traced;
}

static void say_end(const struct tw_check *check, const struct asked *asked, size_t traced, uint64_t events,
		    bool has_guard)
{
	bool has_unseen = false;
	char figure[TW_FIGURE_BYTES];
	bool is_no_python = !traced && check->options.has_python;
	/* The agent says why there is nothing of Python. */
	if (is_no_python && strcmp(asked->text, "py:_") == 0)
		return;
	if (is_no_python && tw_pattern_arity(asked->pattern) != TW_PATTERN_ARITY_UNKNOWN)
		tw_say("functions of Python have no number of parameters here: leave out that of -t '%s'.",
		       asked->text);
	for (size_t i = 0; i < asked->refused_count; i++)
		has_unseen |= tw_refused_is_of_program(check, &asked->refused[i]);
	if (traced && !events)
		tw_say("-t '%s': %s traced, and no call %s.", asked->text,
		       tw_figure_of(figure, traced, "function was", "functions were"),
		       has_guard    ? "was made, or none that fulfilled its condition"
		       : has_unseen ? "was made but by the program's own file, whose calls cannot be seen"
				    : "was made");
	else if (!traced && *asked->reason)
		tw_say("-t '%s' matched nothing: %s%s%s.", asked->text,
		       is_no_python ? "no code of Python that ran defines it, and " : "", asked->reason,
		       asked->may_come ? ", and nothing that was opened later has it" : "");
	else if (!traced)
		tw_say("-t '%s' matched nothing in the program that ran, though its files have such functions; `tracewheel info` shows "
		       "the notes of the program's agent.",
		       asked->text);
}

void tw_check_end(const struct tw_check *check, const char *path, uint64_t events, bool has_guard)
{
	struct tw_capture *capture;
	bool is_due = events == 0;
	for (size_t i = 0; check && i < check->count; i++)
		is_due |= *check->asked[i].reason && !check->asked[i].is_excluding;
	if (!check || !path || !is_due || tw_capture_open(path, NULL, &capture))
		return;
	for (size_t i = 0; i < check->count; i++) {
		const struct asked *asked = &check->asked[i];
		if (!asked->is_excluding && (events == 0 || *asked->reason))
			say_end(check, asked, count_traced(check, capture, asked), events, has_guard);
	}
	tw_capture_close(capture);
}
