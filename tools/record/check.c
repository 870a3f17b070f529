/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - matches all places against all patterns in one pass; patterns without a place are then searched for among
 * modules and functions.
 *
 * Each name in braces is a pattern of its own here.
 */
#include "tools/record/check_state.h"
#include "base/grow.h"
#include "tools/record/layouts.h"
#include "tools/record/mapped.h"
#include "views/names/names.h"
#include "tools/common/near.h"
#include "tools/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- modules that the program could still load ---- */

static bool is_named(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool begins(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Calls of libc and the loader are made for other objects. */
static void see_call(struct tw_check *check, const struct tw_symbols_object *caller, const char *function)
{
	static const char *const opening[] = {"dlopen", "dlmopen", "__libc_dlopen_mode"};
	static const char *const becoming[] = {"execl",	 "execle",  "execlp",	"execv",   "execve",
					       "execvp", "execvpe", "execveat", "fexecve", "syscall"};
	if (begins(caller->soname, "libc.so") || begins(caller->soname, "ld-linux") ||
	    begins(caller->soname, "libtracewheel"))
		return;
	check->can_open |= is_named(function, opening, sizeof opening / sizeof *opening);
	check->can_become |= is_named(function, becoming, sizeof becoming / sizeof *becoming);
}

static bool may_declare(const struct tw_symbols *symbols)
{
	for (size_t i = 0; i < tw_symbols_object_count(symbols); i++) {
		const struct tw_symbols_object *object = tw_symbols_object(symbols, i);
		if (begins(object->soname, "libtracewheel") || begins(object->name, "libtracewheel"))
			return true;
	}
	return false;
}

struct tw_check *tw_check_open(const struct tw_check_options *options)
{
	struct tw_check *check = calloc(1, sizeof *check);
	if (!check || tw_symbols_open(options->program, &check->symbols)) {
		free(check);
		return NULL;
	}
	const char *preload = getenv("LD_PRELOAD");
	check->options = *options;
	/* A file that cannot be read is not known, as if it came later. */
	if (options->process_id)
		tw_mapped_add(options->process_id, check->symbols);
	check->entries =
		options->has_entries ? tw_entries_open(check->symbols, options->is_careful, !options->is_local) : NULL;
	check->may_declare = options->has_python || may_declare(check->symbols);
	FILE *file = fopen("/etc/ld.so.preload", "re");
	check->has_preloads = (preload && *preload) || (file && getc(file) != EOF);
	if (file)
		fclose(file);
	return check;
}

void tw_check_close(struct tw_check *check)
{
	if (!check)
		return;
	for (size_t i = 0; i < check->count; i++) {
		for (size_t k = 0; k < check->asked[i].refused_count; k++)
			free(check->asked[i].refused[k].function);
		tw_pattern_destroy(check->asked[i].pattern);
	}
	for (size_t i = 0; i < check->linkage_count; i++)
		free(check->linkage[i].pattern);
	free(check->asked);
	tw_patterns_free(&check->patterns);
	tw_entries_close(check->entries);
	tw_symbols_close(check->symbols);
	free(check);
}

bool tw_check_may_declare(const struct tw_check *check)
{
	return !check || check->may_declare || check->options.may_become_another;
}

/* ---- the patterns, one for each name ---- */

static bool add_asked(struct tw_check *check, const struct tw_pattern *pattern, bool is_excluding)
{
	const char *text;
	for (size_t i = 0; (text = tw_pattern_alternative(pattern, i)); i++) {
		if (!tw_grow_one(check->asked, check->count))
			return false;
		struct asked *asked = &check->asked[check->count];
		*asked = (struct asked){.is_excluding = is_excluding};
		if (tw_pattern_parse(text, &asked->pattern, NULL))
			return false;
		asked->text = tw_pattern_alternative(asked->pattern, 0);
		tw_pattern_names(asked->pattern, 0, &asked->module, &asked->function);
		check->count++;
	}
	return true;
}

static bool read_asked(struct tw_check *check, const char *config)
{
	bool is_whole = tw_patterns_read(&check->patterns, config);
	for (size_t i = 0; i < check->patterns.wanted_count && is_whole; i++)
		is_whole = add_asked(check, check->patterns.wanted[i], false);
	for (size_t i = 0; i < check->patterns.excluded_count && is_whole; i++)
		is_whole = add_asked(check, check->patterns.excluded[i], true);
	return is_whole;
}

/* ---- places ---- */

static struct tw_patterns_subject subject_of(const struct tw_check *check, const struct tw_symbols_object *object,
					     const char *function)
{
	struct tw_patterns_subject subject = {.function = function, .arity = TW_PATTERN_ARITY_ANY};
	if (object) {
		subject.module = object->name;
		subject.path = object->path;
		subject.soname = object->soname;
		subject.alias = object == tw_symbols_object(check->symbols, 0) ? check->options.alias : NULL;
	}
	return subject;
}

/* Would the agent, by its rules, record calls there? */
static bool is_of_this_recording(const struct tw_check *check, const struct tw_symbols_place *place)
{
	const struct tw_check_options *options = &check->options;
	if (options->is_main_only && place->caller != tw_symbols_object(check->symbols, 0))
		return false;
	if (place->how != TW_SYMBOLS_SLOT)
		return !options->is_global;
	return !options->is_local && !((options->is_main_only || options->is_global) && place->module == place->caller);
}

void tw_check_add_refused(struct asked *asked, const struct tw_symbols_place *place)
{
	for (size_t i = 0; i < asked->refused_count; i++)
		if (asked->refused[i].caller == place->caller->name &&
		    strcmp(asked->refused[i].function, place->function) == 0)
			return;
	if (asked->refused_count == REFUSED_MAX)
		return;
	struct refused *refused = &asked->refused[asked->refused_count];
	*refused = (struct refused){strdup(place->function), place->caller->name, place->refusal};
	asked->refused_count += refused->function != NULL;
}

static void add_linkage(struct tw_check *check, bool is_excluding, const struct tw_symbols_place *place)
{
	struct linkage *linkage = &check->linkage[check->linkage_count];
	if (check->linkage_count == LINKAGE_MAX ||
	    asprintf(&linkage->pattern, "%s:%s", place->module->name, place->function) < 0)
		return;
	linkage->is_excluding = is_excluding;
	for (size_t i = 0; i < check->linkage_count; i++) {
		if (check->linkage[i].is_excluding == is_excluding &&
		    strcmp(check->linkage[i].pattern, linkage->pattern) == 0) {
			free(linkage->pattern);
			return;
		}
	}
	check->linkage_count++;
}

const char *tw_check_linkage(const struct tw_check *check, size_t index, bool *is_excluding)
{
	if (!check || index >= check->linkage_count)
		return NULL;
	*is_excluding = check->linkage[index].is_excluding;
	return check->linkage[index].pattern;
}

/* Without --local, a function that is recorded at its sled or entry needs no slots. */
static bool is_slot_needless(const struct tw_check *check, const struct tw_symbols_place *place)
{
	return check->entries && !check->options.is_local && place->how == TW_SYMBOLS_SLOT &&
	       !(check->options.is_main_only && place->module != tw_symbols_object(check->symbols, 0)) &&
	       tw_entries_cover(check->entries, place);
}

/* Does the program's agent find the function by the pattern itself? */
static bool is_seen_inside(const struct tw_check *check, const struct tw_pattern *pattern,
			   const struct tw_patterns_subject *subject)
{
	char *demangled = check->can_demangle ? tw_name_demangled_inside(subject->function) : NULL;
	bool is_seen = tw_pattern_is(pattern, subject, demangled);
	free(demangled);
	return is_seen;
}

/* Every call into other objects is seen, and every place that a pattern names. */
static bool is_place_asked_for(const struct tw_symbols_place *place, void *arg)
{
	struct tw_check *check = arg;
	struct tw_patterns_subject subject = subject_of(check, place->module, place->function);
	char *demangled = NULL;
	bool is_asked = false;
	if (place->how == TW_SYMBOLS_SLOT)
		see_call(check, place->caller, place->function);
	for (size_t i = 0; i < check->count && !is_asked; i++) {
		if (!demangled && tw_pattern_wants_demangled_of(check->asked[i].pattern, place->function))
			demangled = tw_name_demangled(place->function);
		is_asked = tw_pattern_is(check->asked[i].pattern, &subject, demangled);
	}
	free(demangled);
	return is_asked;
}

static int see_place(const struct tw_symbols_place *place, void *arg)
{
	struct tw_check *check = arg;
	struct tw_patterns_subject subject = subject_of(check, place->module, place->function);
	char *demangled = NULL;
	bool is_first = true;
	for (size_t i = 0; i < check->count; i++) {
		struct asked *asked = &check->asked[i];
		if (!demangled && tw_pattern_wants_demangled_of(asked->pattern, place->function))
			demangled = tw_name_demangled(place->function);
		if (!tw_pattern_is(asked->pattern, &subject, demangled))
			continue;
		if (is_first && is_slot_needless(check, place))
			break;
		is_first = false;
		if (demangled && !is_seen_inside(check, asked->pattern, &subject))
			add_linkage(check, asked->is_excluding, place);
		if (!is_of_this_recording(check, place))
			continue;
		if (place->refusal)
			tw_check_add_refused(asked, place);
		else if (!asked->is_excluding && !tw_patterns_match(&check->patterns, &subject))
			asked->excluded_count++;
		else
			asked->place_count++, asked->endless_count += place->has_no_end;
	}
	free(demangled);
	return 0;
}

static bool is_entry_module(const struct tw_check *check, size_t index)
{
	struct tw_patterns_subject subject = subject_of(check, tw_symbols_object(check->symbols, index), NULL);
	if (!check->entries || (index && check->options.is_main_only))
		return false;
	for (size_t i = 0; i < check->count; i++)
		if (!check->asked[i].is_excluding && tw_pattern_is_module(check->asked[i].pattern, &subject))
			return true;
	return !check->count;
}

static int each_place(struct tw_check *check, tw_symbols_wants_fn wants, tw_symbols_place_fn see, void *arg)
{
	int error = tw_symbols_each_wanted_place(check->symbols, wants, see, arg);
	for (size_t i = 0; i < tw_symbols_object_count(check->symbols) && !error; i++) {
		if (!is_entry_module(check, i))
			continue;
		error = tw_entries_each(check->entries, i, see, arg);
		if (!error)
			error = tw_entries_each_chosen(check->entries, i, see, arg);
	}
	return error;
}

struct recorded {
	struct tw_check *check;
	tw_symbols_place_fn visit;
	void *arg;
};

static int see_recorded(const struct tw_symbols_place *place, void *arg)
{
	const struct recorded *recorded = arg;
	struct tw_patterns_subject subject = subject_of(recorded->check, place->module, place->function);
	if (place->refusal || !is_of_this_recording(recorded->check, place) ||
	    !tw_patterns_match(&recorded->check->patterns, &subject) || is_slot_needless(recorded->check, place))
		return 0;
	return recorded->visit(place, recorded->arg);
}

int tw_check_each_recorded(struct tw_check *check, tw_symbols_place_fn visit, void *arg)
{
	return each_place(check, NULL, see_recorded, &(struct recorded){check, visit, arg});
}

void tw_check_write_plans(const struct tw_check *check, const char *folder)
{
	bool has_frames = check && check->options.has_frames;
	for (size_t i = 0; check && i < tw_symbols_object_count(check->symbols); i++) {
		if ((is_entry_module(check, i) || tw_check_has_probes(check, i)) &&
		    !tw_entries_write(check->entries, i, folder))
			tw_say("functions without sleds are %s: a plan of them cannot be written: %s.",
			       check->options.is_local ? "not traced" : "traced only where other objects call them",
			       strerror(errno));
		if (has_frames && !tw_entries_write_frames(check->symbols, i, folder)) {
			tw_say("callers are found by frame pointers only: tables of frames cannot be written: %s.",
			       strerror(errno));
			has_frames = false;
		}
	}
}

/* ---- patterns without a place ---- */

static bool is_exact(const char *name)
{
	return name && !strpbrk(name, "*?[\\");
}

static bool has_module(const struct tw_check *check, const struct asked *asked, const struct tw_symbols_object *object)
{
	struct tw_patterns_subject subject = subject_of(check, object, NULL);
	return tw_pattern_is_module(asked->pattern, &subject);
}

struct search {
	const struct asked *asked;
	const struct tw_check *check;
	size_t object;	  /* the one being searched */
	bool is_exported; /* a function that was found is exported */
	struct tw_near near;
	char *found; /* the first name that matches; NULL: none */
};

static int see_function(const char *name, void *arg)
{
	struct search *search = arg;
	char *demangled = tw_pattern_wants_demangled(search->asked->pattern) ? tw_name_demangled(name) : NULL;
	bool is_found = tw_pattern_match_function(search->asked->pattern, name, demangled);
	bool is_exported = is_found && tw_symbols_exports(search->check->symbols, search->object, name);
	if (is_found && (!search->found || is_exported)) {
		free(search->found);
		search->found = strdup(name);
		search->is_exported = is_exported;
	} else if (!is_found && demangled) {
		tw_near_see_demangled(&search->near, demangled);
	} else if (!is_found) {
		tw_near_see(&search->near, name);
	}
	free(demangled);
	return is_exported;
}

static void explain_module(struct tw_check *check, struct asked *asked)
{
	struct tw_near near = {.wanted = asked->module};
	int used = snprintf(asked->reason, sizeof asked->reason,
			    "the program and its libraries have no module '%.200s'", asked->module);
	for (size_t i = 0; i < tw_symbols_object_count(check->symbols); i++)
		tw_near_see(&near, tw_symbols_object(check->symbols, i)->name);
	if (*near.best)
		snprintf(asked->reason + used, sizeof asked->reason - (size_t)used, " (did you mean '%s'?)", near.best);
	asked->may_come = check->may_declare || check->options.may_become_another || check->can_open ||
			  check->can_become || check->has_preloads || tw_near_library(check->symbols, asked->pattern);
}

static void explain_function(const struct tw_check *check, struct asked *asked, const char *module,
			     const struct search *search)
{
	int used = snprintf(asked->reason, sizeof asked->reason, "%s%.200s has %s function '%.300s'",
			    module ? "" : "no module that it names", module ? module : "", module ? "no" : "a",
			    asked->function);
	const char *pair = strstr(asked->function, "::");
	if (pair && !asked->module && pair[2] && is_exact(asked->function))
		snprintf(asked->reason + used, sizeof asked->reason - (size_t)used,
			 " (a module is followed by one colon: '%.*s:%s'?)", (int)(pair - asked->function),
			 asked->function, pair + 2);
	else if (*search->near.best)
		snprintf(asked->reason + used, sizeof asked->reason - (size_t)used, " (did you mean '%s'?)",
			 search->near.best);
	else if (strpbrk(asked->function, "^$|") || strstr(asked->function, ".*"))
		snprintf(asked->reason + used, sizeof asked->reason - (size_t)used,
			 " (patterns are globs such as mem*, not regular expressions)");
	else if (strchr(asked->text, ','))
		snprintf(asked->reason + used, sizeof asked->reason - (size_t)used,
			 " (several patterns need -t each, or braces: {a,b})");
	/* A part of a name that is there was meant, and not what may be loaded later. */
	bool is_part = *search->near.best && !search->near.distance;
	asked->may_come =
		check->may_declare || check->options.may_become_another ||
		(!is_exact(asked->module) && !is_part && (check->can_open || check->can_become || check->has_preloads));
}

/* The function exists, and no call of it can be seen. */
static void explain_place(const struct tw_check *check, struct asked *asked, const struct tw_symbols_object *object,
			  bool is_exported, const char *name)
{
	const struct refused *refused = asked->refused_count && is_exact(asked->function) ? &asked->refused[0] : NULL;
	if (asked->excluded_count && !asked->is_excluding)
		strcpy(asked->reason, "its functions are excluded, by -N or by --local, --global or --callers");
	else if (refused && refused->caller == object->name && (!is_exported || check->options.is_local))
		snprintf(asked->reason, sizeof asked->reason, "%.200s of %.200s cannot be traced: %s",
			 refused->function, object->name, refused->reason);
	else if (refused)
		snprintf(asked->reason, sizeof asked->reason, "the calls of %.200s by %.200s cannot be seen: %s",
			 refused->function, refused->caller, refused->reason);
	else if (check->entries && check->options.is_main_only && object != tw_symbols_object(check->symbols, 0))
		snprintf(asked->reason, sizeof asked->reason,
			 check->options.is_local
				 ? "--callers main with --local leaves out those of %.200s"
				 : "--callers main leaves out those of %.200s that the program does not call itself",
			 object->name);
	else if (tw_entries_problem(check->entries, object))
		snprintf(asked->reason, sizeof asked->reason,
			 "%.200s has no sleds%s, and its entries are left alone: %s", object->name,
			 check->options.is_local ? "" : " for them and no other object calls them",
			 tw_entries_problem(check->entries, object));
	else
		snprintf(asked->reason, sizeof asked->reason, "%.200s %s, but %s no sled%s%s: %s",
			 is_exact(asked->function) ? name : object->name,
			 is_exact(asked->function) ? "exists" : "has such functions",
			 is_exact(asked->function) ? "has" : "they have",
			 check->options.is_local && !asked->refused_count ? " and no call frame information"
			 : check->entries				  ? " and no entry that can be traced"
									  : "",
			 check->options.is_local     ? " (--local)"
			 : is_exact(asked->function) ? ", and no other object calls it"
						     : ", and no other object calls them",
			 check->options.is_local && is_exported
				 ? "without --local, calls by other objects are recorded"
				 : "compile with -fpatchable-function-entry=9, see docs/instrumenting.md");
	asked->may_come = check->may_declare || check->options.may_become_another ||
			  ((is_exported || !is_exact(asked->module)) && !check->options.is_local &&
			   (check->can_open || check->can_become || check->has_preloads));
}

static void explain_nothing(struct tw_check *check, struct asked *asked)
{
	const struct tw_symbols_object *object = NULL, *first = NULL;
	struct search search = {.asked = asked,
				.check = check,
				.near = {.wanted = asked->function ? asked->function : ""}};
	for (size_t i = 0; i < tw_symbols_object_count(check->symbols) && !search.found; i++) {
		object = tw_symbols_object(check->symbols, i);
		if (!has_module(check, asked, object))
			continue;
		first = first ? first : object;
		search.object = i;
		tw_symbols_each_function(check->symbols, i, see_function, &search);
	}
	if (!first && asked->module) {
		explain_module(check, asked);
		asked->may_be_declared = check->may_declare;
	} else if (search.found || asked->refused_count || asked->excluded_count)
		explain_place(check, asked, search.found ? object : first, search.is_exported,
			      search.found ? search.found : asked->text);
	else if (asked->function)
		explain_function(check, asked, is_exact(asked->module) ? first->name : NULL, &search);
	else
		snprintf(asked->reason, sizeof asked->reason, "%s has no functions that have a name", first->name);
	free(search.found);
}

/* There are places, but the pattern specifies a number of arguments. */
static void explain_arity(struct tw_check *check, struct asked *asked, const char *config)
{
	uint32_t arity = tw_pattern_arity(asked->pattern);
	struct tw_layouts layouts = {.is_for_arities = true};
	char *lines = NULL;
	const char *alias = strstr(config, "alias ");
	if (arity == TW_PATTERN_ARITY_UNKNOWN ||
	    asprintf(&lines, "pattern %s\n%s", asked->text, alias ? alias : "") < 0)
		return;
	tw_layouts_find(check->options.program, lines, true, &layouts);
	free(lines);
	if (layouts.function_count == 0 && layouts.other_count == 1)
		snprintf(asked->reason, sizeof asked->reason,
			 "it has %u parameters, not %u: write /%u, or leave the number out", layouts.other_arity, arity,
			 layouts.other_arity);
	else if (layouts.function_count == 0)
		snprintf(asked->reason, sizeof asked->reason, "%s; leave out /%u",
			 layouts.other_count ? "no function that it matches has that many parameters"
					     : "the number of its arguments is not known without debug information",
			 arity);
	asked->may_come = check->may_declare || check->options.may_become_another;
	tw_layouts_free(&layouts);
}

/* ---- messages ---- */

static void say_refused(const struct tw_check *check, const struct asked *asked)
{
	if (!is_exact(asked->function) || asked->is_excluding || tw_pattern_is_of_probes(asked->pattern))
		return;
	if (check->wants_ends && asked->endless_count && asked->endless_count == asked->place_count)
		tw_say("the calls of -t '%s' are recorded without ends: it returns twice or never, or uses its return address.",
		       asked->text);
	for (size_t i = 0; i < asked->refused_count; i++)
		if (tw_refused_is_of_program(check, &asked->refused[i]))
			tw_say("the calls of %s by %s cannot be seen: %s.", asked->refused[i].function,
			       asked->refused[i].caller, asked->refused[i].reason);
}

/* False: the pattern can match nothing. */
static bool say(const struct tw_check *check, const struct asked *asked)
{
	bool is_right = !*asked->reason || asked->is_excluding || asked->may_come || check->options.allows_nothing;
	if (!is_right)
		tw_say("-t '%s' can match nothing: %s.", asked->text, asked->reason);
	else if (check->options.is_quiet || (asked->may_be_declared && !asked->is_excluding))
		return true;
	else if (!*asked->reason)
		say_refused(check, asked);
	else if (asked->is_excluding)
		tw_say("-N '%s' excludes nothing: %s.", asked->text, asked->reason);
	else
		tw_say("-t '%s' matches nothing yet: %s%s.", asked->text, asked->reason,
		       asked->may_come
			       ? "; modules that the program loads later, and programs that it executes, are traced"
			       : "");
	return is_right;
}

void tw_check_patterns(struct tw_check *check, const char *config)
{
	static const char *const demanglers[] = {"libstdc++", "libc++abi", "libc++"};
	for (size_t i = 0; check && i < tw_symbols_object_count(check->symbols); i++)
		check->can_demangle |= is_named(tw_symbols_object(check->symbols, i)->name, demanglers,
						sizeof demanglers / sizeof *demanglers);
	if (!check || !read_asked(check, config) || each_place(check, is_place_asked_for, see_place, check) ||
	    tw_check_see_probes(check))
		return;
	check->wants_ends = config && strstr(config, "returns ");
	for (size_t i = 0; i < check->count; i++) {
		if (tw_check_explain_probes(check, &check->asked[i]))
			continue;
		if (!check->asked[i].place_count)
			explain_nothing(check, &check->asked[i]);
		else
			explain_arity(check, &check->asked[i], config);
	}
}

bool tw_check_say(const struct tw_check *check)
{
	bool is_right = true;
	for (size_t i = 0; check && i < check->count; i++)
		is_right &= say(check, &check->asked[i]);
	return is_right ||
	       tw_complain("%s; `tracewheel functions` shows what can be traced, --allow-nothing records anyway.",
			   check->options.process_id ? "the process is left alone" : "nothing was started");
}

const char *tw_check_reason(const struct tw_check *check, size_t index, const char **pattern)
{
	for (size_t i = 0; check && i < check->count; i++)
		if (*check->asked[i].reason && !check->asked[i].is_excluding && index-- == 0) {
			*pattern = check->asked[i].text;
			return check->asked[i].reason;
		}
	return NULL;
}
