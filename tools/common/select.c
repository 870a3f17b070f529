/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - selects a part of a capture. */
#include "views/names/names.h"
#include "views/folds/pass.h"
#include "tools/common/select.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"
#include "tracewheel/flight.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TAIL_MAX 10000000u

bool tw_selection_wants_end(const struct tw_selection *selection)
{
	return selection->tail || (selection->from && *selection->from == '-') ||
	       (selection->to && *selection->to == '-');
}

bool tw_selection_take(struct tw_selection *selection, const struct tw_command *command, int key, const char *value)
{
	if (key == TW_KEY_FROM)
		selection->from = value;
	else if (key == TW_KEY_TO)
		selection->to = value;
	else if (key == TW_KEY_HIDE_WAITS)
		selection->hides_waits = true;
	else if (key == TW_KEY_PAIR)
		return tw_pairs_take(&selection->pairs, command, value);
	else if (key == TW_KEY_AROUND) {
		selection->is_around = true;
		if (!value || (tw_parse_duration(value, &selection->around_ns) && selection->around_ns))
			return true;
		return tw_refuse(command, "--around-trigger is a duration, such as 5ms, not '%s'.", value);
	} else if (key == TW_KEY_TAIL) {
		if (tw_parse_count(value, &selection->tail) && selection->tail && selection->tail <= TAIL_MAX)
			return true;
		return tw_refuse(command, "--tail is a number of events, at most %u, not '%s'.", TAIL_MAX, value);
	} else if (key == TW_KEY_LONGER) {
		if (tw_parse_duration(value, &selection->longer_ns) && selection->longer_ns)
			return true;
		return tw_refuse(command, "--longer is a duration, such as 10ms or 0.5, not '%s'.", value);
	} else if (key == TW_KEY_WHEN) {
		if (!selection->when) {
			selection->when = value;
			return true;
		}
		return tw_refuse(
			command,
			"--when is given twice: join conditions by `and` or `or`, or give each function its own, -t 'PATTERN if EXPR'.");
	} else if (key == TW_KEY_THREAD) {
		selection->thread = value;
		if (*value && strcmp(value, "0") != 0)
			return true;
		return tw_refuse(command, "--thread wants the number or the name of a thread, not '%s'.", value);
	} else {
		return tw_patterns_take(&selection->patterns, command, key == 'N', value);
	}
	return true;
}

/* "17:03:12.25" on the day of `start_ns`, or with a date: nanoseconds since 1970. */
static bool parse_wall(const char *text, uint64_t start_ns, uint64_t *out_ns)
{
	time_t day = (time_t)(start_ns / 1000000000);
	struct tm when;
	int year, month, date, used = 0;
	if (!localtime_r(&day, &when))
		return false;
	if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &date, &used) == 3 && used == 10) {
		when.tm_year = year - 1900;
		when.tm_mon = month - 1;
		when.tm_mday = date;
		text += used;
		if (*text != 'T' && *text != ' ')
			return false;
		text++;
	}
	int bytes = 0;
	when.tm_sec = 0;
	if (sscanf(text, "%2d:%2d%n:%2d%n", &when.tm_hour, &when.tm_min, &bytes, &when.tm_sec, &bytes) < 2)
		return false;
	uint64_t fraction_ns = 0;
	if (text[bytes] == '.' && !tw_parse_duration(text + bytes, &fraction_ns))
		return false;
	if (text[bytes] && text[bytes] != '.')
		return false;
	when.tm_isdst = -1;
	time_t seconds = mktime(&when);
	if (seconds < 0)
		return false;
	*out_ns = (uint64_t)seconds * 1000000000 + fraction_ns;
	return true;
}

/* A time on the capture's own clock: never 0, which means none. */
static bool parse_time(const char *text, const struct tw_capture *capture, const struct tw_capture_info *info,
		       uint64_t *out_ns)
{
	uint64_t offset;
	bool is_before_end = *text == '-';
	if (!strchr(text, ':')) {
		if (!tw_parse_duration(text + is_before_end, &offset))
			return false;
		*out_ns = is_before_end ? (info->end_ns > offset ? info->end_ns - offset : 1) : info->zero_ns + offset;
		return true;
	}
	uint64_t wall;
	if (!parse_wall(text, info->start_wall_ns, &wall))
		return false;
	*out_ns = tw_capture_of_wall(capture, wall);
	/* Without a date: on the next day, if the time would precede the capture. */
	if (*out_ns < info->start_ns && !strchr(text, '-') &&
	    tw_capture_of_wall(capture, wall + UINT64_C(86400000000000)) <= info->end_ns)
		*out_ns = tw_capture_of_wall(capture, wall + UINT64_C(86400000000000));
	if (!*out_ns)
		*out_ns = 1;
	return true;
}

static bool has_patterns(const struct tw_selection *selection)
{
	return selection->patterns.wanted_count || selection->patterns.excluded_count;
}

/* Finds programs that were started by another name than their file's. */
static void find_aliases(struct tw_selection *selection, const struct tw_capture *capture)
{
	const struct tw_capture_image *images[TW_SELECTION_ALIASES_MAX];
	size_t count = tw_names_images(capture, images, TW_SELECTION_ALIASES_MAX);
	selection->alias_count = 0;
	for (size_t i = 0; i < count; i++) {
		const char *name = memchr(images[i]->command, 0, images[i]->command_bytes)
					   ? tw_patterns_alias(images[i]->command, images[i]->program)
					   : NULL;
		if (name && *images[i]->program)
			selection->aliases[selection->alias_count++] =
				(struct tw_selection_alias){images[i]->program, name};
	}
}

static const char *alias_of(const struct tw_selection *selection, const struct tw_capture_module *module)
{
	for (size_t i = 0; module->path && i < selection->alias_count; i++)
		if (strcmp(selection->aliases[i].path, module->path) == 0)
			return selection->aliases[i].name;
	return NULL;
}

static struct tw_patterns_subject subject_of(const struct tw_selection *selection,
					     const struct tw_capture_function *function)
{
	return (struct tw_patterns_subject){.module = function->module->name,
					    .path = function->module->path,
					    .soname = function->module->soname,
					    .alias = alias_of(selection, function->module),
					    .function = function->name,
					    .arity = function->arity};
}

bool tw_selection_wants_place(const struct tw_selection *selection, const struct tw_capture_place *place)
{
	if (!has_patterns(selection))
		return true;
	const struct tw_capture_function *function = place->function;
	if (!function || !function->module)
		return selection->patterns.wanted_count == 0;
	const struct tw_patterns_subject subject = subject_of(selection, function);
	return tw_patterns_match(&selection->patterns, &subject);
}

/* ---- conditions ---- */

bool tw_selection_has_conditions(const struct tw_selection *selection)
{
	return selection->when || selection->patterns.has_conditions;
}

struct tw_when *tw_selection_when(struct tw_selection *selection)
{
	return tw_when_selects(&selection->calls) ? &selection->calls : NULL;
}

/* The first pattern that matches decides; one without a condition has that of --when, or none. */
static uint64_t of_place(void *context, const struct tw_capture_place *place)
{
	struct tw_selection *selection = context;
	uint64_t rest = selection->when ? UINT64_C(1) << selection->when_number : TW_WHEN_ALWAYS;
	size_t number = 0;
	if (!place || !place->function || !place->function->module)
		return rest;
	const struct tw_patterns_subject subject = subject_of(selection, place->function);
	size_t first = tw_patterns_first(&selection->patterns, &subject);
	if (first == selection->patterns.wanted_count)
		return 0;
	for (size_t i = 0; i < first; i++)
		number += selection->patterns.conditions[i] != NULL;
	return selection->patterns.conditions[first] ? UINT64_C(1) << number : rest;
}

/* Does the command choose among calls? It has --when then. */
static bool takes_conditions(const struct tw_command *command)
{
	for (const struct tw_option *option = command->options; option->name; option++)
		if (option->key == TW_KEY_WHEN)
			return true;
	return false;
}

/* False: a condition is refused, which has been reported. */
static bool make_conditions(struct tw_selection *selection, struct tw_capture *capture,
			    const struct tw_command *command)
{
	struct tw_when *calls = &selection->calls;
	char sentence[TW_WHEN_SENTENCE_BYTES];
	const char *text, *option;
	if (tw_selection_has_conditions(selection) && !takes_conditions(command))
		return tw_refuse(
			command,
			"`%s` takes functions, and all their calls: conditions are for report, print and flame.",
			command->name);
	tw_when_free(calls);
	tw_when_init(calls, capture);
	calls->least_ns = selection->longer_ns;
	calls->context = selection;
	calls->of_place = selection->patterns.has_conditions ? of_place : NULL;
	for (size_t i = 0; i <= selection->patterns.wanted_count; i++) {
		bool is_last = i == selection->patterns.wanted_count;
		text = is_last ? selection->when : selection->patterns.conditions[i];
		option = is_last ? "--when" : "the condition";
		selection->when_number = calls->condition_count;
		if (text && !tw_when_add(calls, text, sentence))
			return tw_refuse(command, "%s '%s' is refused: %s.", option, text, sentence);
	}
	return true;
}

static bool wants_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	(void)image;
	return tw_selection_wants_place(context, place);
}

static bool wants_stream(void *context, const struct tw_capture_stream *stream)
{
	const struct tw_selection *selection = context;
	uint64_t number;
	char name[TW_THREAD_NAME_BYTES];
	if (selection->around_part != TW_AROUND_ALL &&
	    (stream->thread_id == selection->around_thread) != (selection->around_part == TW_AROUND_TRIGGER))
		return false;
	if (!selection->thread || fnmatch(selection->thread, tw_thread_name(selection->capture, stream, name), 0) == 0)
		return true;
	return tw_parse_count(selection->thread, &number) && number == (uint32_t)stream->thread_id;
}

struct tail {
	uint64_t *times; /* of the last `count` events, in a circle */
	uint64_t count, seen;
};

static int see_tail(void *self, const struct tw_capture_event *event)
{
	struct tail *tail = self;
	if (event->kind != TW_CAPTURE_LOSS)
		tail->times[tail->seen++ % tail->count] = event->time_ns;
	return 0;
}

/* The time at which the last `count` events that the filter selects begin; UINT64_MAX: no memory, or reading failed. */
static uint64_t tail_of(const struct tw_capture *capture, const struct tw_capture_filter *filter,
			const struct tw_capture_info *info, uint64_t count)
{
	struct tail tail = {.times = malloc(count * sizeof *tail.times), .count = count};
	uint64_t end_ns = filter->to_ns ? filter->to_ns : info->end_ns + 1, from_ns = UINT64_MAX;
	bool is_found = false;
	/* Reads ever longer parts at the end of the capture, until one has enough events; the rest is not read. */
	for (uint64_t length_ns = 1000000; tail.times && !is_found; length_ns *= 4) {
		struct tw_fold fold = {.self = &tail, .filter = *filter, .see = see_tail};
		bool is_whole = end_ns < length_ns || end_ns - length_ns <= info->start_ns;
		fold.filter.from_ns = is_whole ? 0 : end_ns - length_ns;
		if (fold.filter.from_ns < filter->from_ns)
			fold.filter.from_ns = filter->from_ns;
		fold.filter.wants_own_time = false;
		tail.seen = 0;
		if (tw_pass_one((struct tw_capture *)capture, &fold, NULL))
			break;
		is_found = is_whole || tail.seen >= count;
		if (is_found)
			from_ns = tail.seen >= count ? tail.times[tail.seen % count] : filter->from_ns;
	}
	free(tail.times);
	return from_ns;
}

/* If no call has ended, this long before. */
#define AROUND_NS 10000000

/* From the record of the call to the moment when its trigger noted the time. */
#define SLACK_NS 2000

/* --around-trigger as --from and --to. False: there is none, which has been reported. */
static bool take_around(struct tw_selection *selection, const struct tw_capture *capture,
			const struct tw_capture_info *info, const struct tw_command *command)
{
	struct tw_capture_trigger trigger;
	bool has_times = selection->from != selection->around_texts[0] && (selection->from || selection->to);
	if (has_times || selection->tail)
		return tw_refuse(command, "--around-trigger is a time of its own: without --from, --to and --tail.");
	if (!tw_capture_trigger(capture, &trigger))
		return tw_refuse(
			command,
			"--around-trigger is for snapshots of a flight recorder, record --flight (docs/flight.md).");
	uint64_t before = selection->around_ns ? selection->around_ns : trigger.call_ns ? 0 : AROUND_NS;
	uint64_t end = trigger.ns > info->zero_ns ? trigger.ns - info->zero_ns : 0;
	before += trigger.call_ns + SLACK_NS;
	/* The call may lie before all that is left of the threads. */
	uint64_t ns[2] = {end > before ? end - before : 1, end > 1 ? end + 1 : 2};
	for (int i = 0; i < 2; i++)
		snprintf(selection->around_texts[i], sizeof selection->around_texts[i], "%llu.%09llu",
			 (unsigned long long)(ns[i] / 1000000000), (unsigned long long)(ns[i] % 1000000000));
	selection->from = selection->around_texts[0];
	selection->to = selection->around_texts[1];
	selection->around_thread = trigger.thread_id;
	return true;
}

const char tw_selection_why_not_around[] =
	"was overwritten before it could be copied, and a larger ring holds it (--flight=64M); or such calls are not recorded (--when).";

bool tw_selection_filter(struct tw_selection *selection, const struct tw_capture *capture,
			 const struct tw_command *command, struct tw_capture_filter *out)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	if (selection->is_around && !take_around(selection, capture, &info, command))
		return false;
	selection->capture = capture;
	*out = (struct tw_capture_filter){.context = selection, .wants_own_time = true};
	if (selection->from && !parse_time(selection->from, capture, &info, &out->from_ns))
		return tw_refuse(command, "--from '%s' is not a time such as 1.5, 200ms, -2s or 17:03:12.",
				 selection->from);
	if (selection->to && !parse_time(selection->to, capture, &info, &out->to_ns))
		return tw_refuse(command, "--to '%s' is not a time such as 1.5, 200ms, -2s or 17:03:12.",
				 selection->to);
	/* A part shows no more than itself. */
	if (info.from_ns > out->from_ns)
		out->from_ns = info.from_ns;
	if (info.to_ns && (!out->to_ns || info.to_ns < out->to_ns))
		out->to_ns = info.to_ns;
	if (selection->to && out->to_ns <= out->from_ns)
		return tw_refuse(command, "--to '%s' is not after --from.", selection->to);
	if (has_patterns(selection)) {
		find_aliases(selection, capture);
		out->wants_place = wants_place;
	}
	if (selection->thread || selection->around_part != TW_AROUND_ALL)
		out->wants_stream = wants_stream;
	if (!make_conditions(selection, (struct tw_capture *)capture, command))
		return false;
	if (!selection->tail)
		return true;
	out->from_ns = tail_of(capture, out, &info, selection->tail);
	if (out->from_ns != UINT64_MAX)
		return true;
	return tw_complain("--tail %llu: the end of the capture cannot be read.", (unsigned long long)selection->tail);
}

/* ---- an empty selection ---- */

struct sentence {
	char *text;
	size_t used;
};

static void add(struct sentence *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct sentence *sentence, const char *format, ...)
{
	size_t capacity = TW_SELECTION_SENTENCE_BYTES - sentence->used;
	va_list list;
	va_start(list, format);
	int bytes = vsnprintf(sentence->text + sentence->used, capacity, format, list);
	va_end(list);
	if (bytes > 0)
		sentence->used += (size_t)bytes < capacity ? (size_t)bytes : capacity - 1;
}

static void add_name(struct sentence *sentence, const char *name)
{
	char clean[200];
	clean[tw_clean(name, strlen(name), clean, sizeof clean - 1)] = 0;
	add(sentence, "%s", clean);
}

static bool has_wanted_place(const struct tw_selection *selection, const struct tw_capture *capture, uint32_t images)
{
	const struct tw_capture_place *place;
	for (uint32_t i = 0; i < images; i++) {
		uint32_t at = 0;
		while ((place = tw_capture_place_next(capture, i, &at)))
			if (tw_selection_wants_place(selection, place))
				return true;
	}
	return false;
}

/* Adds some of the modules that have places. */
static void add_modules(struct sentence *sentence, const struct tw_capture *capture, uint32_t images)
{
	const char *shown[6];
	size_t count = 0;
	const struct tw_capture_place *place;
	for (uint32_t i = 0; i < images; i++) {
		uint32_t at = 0;
		while ((place = tw_capture_place_next(capture, i, &at))) {
			size_t known = 0;
			if (!place->function || !place->function->module)
				continue;
			while (known < count && strcmp(shown[known], place->function->module->name))
				known++;
			if (known < count)
				continue;
			if (count == sizeof shown / sizeof *shown) {
				add(sentence, " ...");
				return;
			}
			shown[count] = place->function->module->name;
			add(sentence, count++ ? ", " : ": functions of ");
			add_name(sentence, shown[known]);
		}
	}
}

static void add_threads(struct sentence *sentence, const struct tw_capture *capture, uint32_t streams)
{
	const struct tw_capture_stream *stream;
	uint32_t shown = 0;
	for (uint32_t i = 0; i < streams && (stream = tw_capture_stream(capture, i)); i++) {
		if (shown == 8) {
			add(sentence, " ...");
			return;
		}
		char text[TW_THREAD_TEXT_BYTES];
		tw_thread_text(capture, stream, text);
		add(sentence, "%s%s", shown++ ? ", " : ": there are ", text);
	}
}

static bool has_wanted_stream(const struct tw_capture_filter *filter, const struct tw_capture *capture,
			      uint32_t streams)
{
	const struct tw_capture_stream *stream;
	for (uint32_t i = 0; i < streams && (stream = tw_capture_stream(capture, i)); i++)
		if (filter->wants_stream(filter->context, stream))
			return true;
	return false;
}

bool tw_selection_explain(const struct tw_selection *selection, const struct tw_capture *capture,
			  const struct tw_capture_filter *filter, char *text)
{
	struct sentence sentence = {.text = text};
	struct tw_capture_info info;
	char figure[TW_FIGURE_BYTES];
	tw_capture_info(capture, &info);
	double seconds = info.end_ns > info.zero_ns ? (double)(info.end_ns - info.zero_ns) / 1e9 : 0;
	*text = 0;
	if (selection->is_around) {
		add(&sentence, "nothing of the snapshot is in the time of its call, which %.*s",
		    (int)strlen(tw_selection_why_not_around) - 1, tw_selection_why_not_around);
		return true;
	}
	if (!info.events || (!selection->from && !selection->to && !selection->tail && !filter->wants_stream &&
			     !has_patterns(selection)))
		return false;
	size_t wanted_count = selection->patterns.wanted_count,
	       pattern_count = wanted_count + selection->patterns.excluded_count;
	if (pattern_count && !has_wanted_place(selection, capture, info.images)) {
		add(&sentence, "nothing in the capture matches");
		for (size_t i = 0; i < pattern_count && i < 4; i++) {
			bool is_wanted = i < wanted_count;
			add(&sentence, is_wanted ? " -t " : " -N ");
			add_name(&sentence,
				 tw_pattern_text(is_wanted ? selection->patterns.wanted[i]
							   : selection->patterns.excluded[i - wanted_count]));
		}
		if (pattern_count > 4)
			add(&sentence, " ...");
		add_modules(&sentence, capture, info.images);
		add(&sentence, " are in it");
	} else if (filter->wants_stream && !has_wanted_stream(filter, capture, info.streams)) {
		add(&sentence, "no thread of the capture is --thread ");
		add_name(&sentence, selection->thread);
		add_threads(&sentence, capture, info.streams);
	} else if (filter->from_ns > info.end_ns) {
		add(&sentence, "--from ");
		add_name(&sentence, selection->from);
		add(&sentence, " is after the last event of the capture, at %s", tw_figure_seconds(figure, seconds));
	} else if (filter->to_ns && filter->to_ns <= info.start_ns) {
		add(&sentence, "--to ");
		add_name(&sentence, selection->to);
		add(&sentence, " is before the first event of the capture");
	} else {
		char begin[TW_FIGURE_BYTES];
		add(&sentence, "no event of the capture, which goes from %s to %s, matches the whole selection",
		    info.start_ns > info.zero_ns
			    ? tw_figure_seconds(begin, (double)(info.start_ns - info.zero_ns) / 1e9)
			    : "0",
		    tw_figure_seconds(figure, seconds));
	}
	return true;
}

void tw_selection_say_empty(const struct tw_selection *selection, const struct tw_capture *capture,
			    const struct tw_capture_filter *filter)
{
	char text[TW_SELECTION_SENTENCE_BYTES];
	struct tw_capture_info info;
	if (tw_selection_explain(selection, capture, filter, text))
		tw_say("%s.", text);
	else if (tw_capture_info(capture, &info), !info.events)
		tw_say("the capture holds no events%s.", info.is_live ? " yet" : "");
}

int tw_selection_fail(const struct tw_selection *selection, const char *path, int error)
{
	if (error == TW_ENOTSUP && (selection->longer_ns || tw_selection_has_conditions(selection)))
		return tw_fail("%s, and '%s' has no returns: record with --returns.",
			       selection->longer_ns ? "--longer needs durations"
						    : "the condition is about how calls end",
			       path);
	return tw_fail("reading '%s' failed: %s", path, tw_strerror(error));
}

void tw_selection_free(struct tw_selection *selection)
{
	tw_threads_forget();
	tw_patterns_free(&selection->patterns);
	tw_pairs_free(&selection->pairs);
	tw_when_free(&selection->calls);
}

bool tw_selection_is_of_events(const struct tw_selection *selection)
{
	return selection->tail || selection->thread || selection->patterns.wanted_count ||
	       selection->patterns.excluded_count;
}
