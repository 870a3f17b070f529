/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_code.c - answers questions of agents.
 *
 *	agent: opened something -> question -> a thread: maps, files (mapped.h) -> answer -> agent: arms it
 *
 * Each file is read once, as long as it is the same by path, inode and time of change: a library that is rebuilt and opened
 * again is another file.
 */
#include "tools/record/late_code.h"
#include "base/grow.h"
#include "tools/common/entries.h"
#include "tools/common/patterns.h"
#include "tools/record/mapped.h"
#include "tools/record/when.h"
#include "tools/tool.h"
#include "base/worker.h"

#include "base/file.h"

#include "tracewheel/consumer.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most files of one process, and of all; no program opens so many that patterns name. */
#define FILES_MAX 4096

/* How long dlopen waits for a plan, and how long the start of a program, where nothing of it waits. */
#define DLOPEN_MS "50"
#define START_MS  "2000"

/* A file that a process has mapped, open. */
struct mapped_file {
	int process_id;
	const char *path;
	int fd;
	const struct stat *status;
};

/* The questions of one kind, and the thread that answers them. */
struct worker {
	struct tw_late_code *late;
	enum tw_recorder_question_kind ask;
	/* Can a pattern select this file of the process that asks? */
	bool (*is_wanted)(const struct worker *worker, int process_id, const char *path);
	void (*read_file)(struct worker *worker, const struct mapped_file *file);
	pthread_t thread;
	bool is_running;
	int is_done; /* shared by the two threads */
	/* Used by the thread while it runs. */
	struct tw_recorder_question question;
	char **seen; /* of key_of() */
	size_t seen_count;
	char problem[4400]; /* the first */
	unsigned problem_count;
};

enum { LAYOUTS, PLANS, WORKERS };

struct tw_late_code {
	struct tw_late_options options;
	int stop; /* shared by all threads */
	struct worker workers[WORKERS];
	/* Used by the thread of layouts. */
	struct tw_layouts text;
	struct tw_when_left left;
	/* Used by the thread of plans. */
	struct tw_patterns patterns;
	bool needs_sonames;
};

/* ---- on the threads ---- */

static bool is_seen(struct worker *worker, const char *key)
{
	for (size_t i = 0; i < worker->seen_count; i++)
		if (strcmp(worker->seen[i], key) == 0)
			return true;
	return false;
}

static bool remember(struct worker *worker, char *key)
{
	if (worker->seen_count >= FILES_MAX || !tw_grow_one(worker->seen, worker->seen_count))
		return false;
	worker->seen[worker->seen_count++] = key;
	return true;
}

static void keep_problem(struct worker *worker, const char *problem)
{
	if (!*problem)
		return;
	worker->problem_count++;
	if (!worker->problem[0])
		snprintf(worker->problem, sizeof worker->problem, "%s", problem);
}

static void keep_problem_of(struct worker *worker, const char *path, const char *why)
{
	char text[4400];
	snprintf(text, sizeof text, "%s: %s", path, why);
	keep_problem(worker, text);
}

static bool wants_layouts(const struct worker *worker, int process_id, const char *path)
{
	(void)process_id;
	const struct tw_arguments *arguments = worker->late->options.arguments;
	return worker->late->needs_sonames ||
	       tw_layouts_are_wanted(path, worker->late->options.config,
				     !arguments->string_bytes && !arguments->guard_count);
}

/* Debug information is read by the file's name: it must lead to the mapped file. */
static bool has_name(const char *path, const struct stat *mapped)
{
	struct stat status;
	int fd = tw_file_open_exactly(path, &status);
	if (fd < 0)
		return false;
	close(fd);
	return status.st_dev == mapped->st_dev && status.st_ino == mapped->st_ino;
}

static void read_layouts(struct worker *worker, const struct mapped_file *file)
{
	struct tw_late_code *late = worker->late;
	const struct tw_arguments *arguments = late->options.arguments;
	bool has_layouts = arguments->string_bytes || arguments->has_arities;
	struct tw_layouts found = {.stop = &late->stop,
				   .prototypes = arguments->prototypes,
				   .hides_strings = arguments->layouts.hides_strings,
				   .is_for_arities = !arguments->string_bytes && !arguments->guard_count};
	if (!has_name(file->path, file->status)) {
		keep_problem_of(worker, file->path, "its file cannot be opened by its name");
		return;
	}
	bool is_taken = tw_layouts_find_file(file->path, late->options.config, &arguments->layouts, &found);
	if (is_taken && has_layouts && found.text)
		tw_layouts_append(&late->text, found.text, found.bytes);
	for (size_t i = 0; i < arguments->guard_count && is_taken; i++)
		tw_when_translate(&found, &arguments->guards[i], &late->text, &late->left);
	if (is_taken)
		keep_problem(worker, found.problem);
	tw_layouts_free(&found);
}

/* A file whose plan is to be made. */
struct planned {
	const struct tw_late_code *late;
	const char *path, *alias;
};

static bool wants_plan(const char *name, const char *soname, void *arg)
{
	const struct planned *planned = arg;
	const struct tw_patterns *patterns = &planned->late->patterns;
	const struct tw_patterns_subject subject = {.module = name,
						    .path = planned->path,
						    .soname = *soname ? soname : NULL,
						    .alias = planned->alias};
	for (size_t i = 0; i < patterns->wanted_count; i++)
		if (tw_pattern_is_module(patterns->wanted[i], &subject))
			return true;
	return !patterns->wanted_count;
}

static bool asks_for_probes(const struct tw_patterns *patterns)
{
	for (size_t i = 0; i < patterns->wanted_count; i++)
		if (tw_pattern_is_of_probes(patterns->wanted[i]))
			return true;
	return false;
}

static bool is_program_of(int process_id, const char *path)
{
	char name[64], program[PATH_MAX];
	snprintf(name, sizeof name, "/proc/%d/exe", process_id);
	ssize_t bytes = readlink(name, program, sizeof program - 1);
	if (bytes <= 0)
		return false;
	program[bytes] = 0;
	return strcmp(program, path) == 0;
}

/* @alias	gives: free(). */
static struct tw_entries_file wish_of(const struct worker *worker, int process_id, const char *path,
				      struct planned *planned, char **alias)
{
	const struct tw_late_options *options = &worker->late->options;
	bool is_program = is_program_of(process_id, path);
	*alias = is_program ? tw_config_alias(options->config, path) : NULL;
	*planned = (struct planned){worker->late, path, *alias};
	return (struct tw_entries_file){.path = path,
					.is_program = is_program,
					.wants = options->has_plans && (is_program || !options->is_main_only)
							 ? wants_plan
							 : NULL,
					.has_frames = options->has_frames,
					.has_probes = asks_for_probes(&worker->late->patterns),
					.has_slots = options->has_slots,
					.needs_soname = worker->late->needs_sonames,
					.arg = planned};
}

static bool wants_plans(const struct worker *worker, int process_id, const char *path)
{
	struct planned planned;
	char *alias;
	const struct tw_entries_file wish = wish_of(worker, process_id, path, &planned, &alias);
	bool is_wanted = tw_entries_may_want(&wish);
	free(alias);
	return is_wanted;
}

static void read_plan(struct worker *worker, const struct mapped_file *file)
{
	struct planned planned;
	char *alias;
	const struct tw_entries_file wish = wish_of(worker, file->process_id, file->path, &planned, &alias);
	const char *problem = tw_entries_write_file(&wish, file->fd, file->status,
						    tw_recorder_ring_set_path(worker->late->options.recorder));
	if (problem)
		keep_problem_of(worker, file->path, problem);
	free(alias);
}

/* Can a pattern match a library by its soname (libfoo.so.1), and not by its name (libfoo)? */
static bool have_sonames(const char *config)
{
	static const char key[] = "pattern ";
	for (const char *line = config; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *module = line + sizeof key - 1;
		if (strncmp(line, key, sizeof key - 1) == 0 && strcspn(module, ".*?[{\n") < strcspn(module, ":\n"))
			return true;
	}
	return false;
}

/* DEVICE INODE TIME PATH, or what the kernel lists of a file that cannot be opened; NULL: no memory. */
static char *key_of(const struct tw_mapped *mapped, const struct stat *status)
{
	char *key;
	int bytes = status ? asprintf(&key, "%llx %llu %lld.%09ld %s", (unsigned long long)status->st_dev,
				      (unsigned long long)status->st_ino, (long long)status->st_ctim.tv_sec,
				      status->st_ctim.tv_nsec, mapped->path)
			   : asprintf(&key, "%x:%x %llu %s", mapped->device_major, mapped->device_minor,
				      (unsigned long long)mapped->inode, mapped->path);
	return bytes < 0 ? NULL : key;
}

static void read_mapped(struct worker *worker, int process_id, const struct tw_mapped *mapped)
{
	struct stat status;
	const char *why;
	int fd = tw_mapped_open(process_id, mapped, &status, &why);
	if (fd < 0 && !why)
		return;
	char *key = key_of(mapped, fd < 0 ? NULL : &status);
	bool is_new = key && !is_seen(worker, key), is_kept = is_new && remember(worker, key);
	if (fd < 0 && is_kept)
		keep_problem_of(worker, mapped->path, why);
	/* A plan that is there is found out soon; layouts would be written again. */
	if (fd >= 0 && (is_kept || (is_new && worker->ask == TW_RECORDER_QUESTION_PLANS)))
		worker->read_file(worker, &(struct mapped_file){process_id, mapped->path, fd, &status});
	if (!is_kept)
		free(key);
	if (fd >= 0)
		close(fd);
}

static bool read_wanted(int process_id, const struct tw_mapped *mapped, void *arg)
{
	struct worker *worker = arg;
	/* By the name alone first: most files are not opened. */
	if (worker->is_wanted(worker, process_id, mapped->path))
		read_mapped(worker, process_id, mapped);
	return !__atomic_load_n(&worker->late->stop, __ATOMIC_RELAXED);
}

static void *answer(void *arg)
{
	struct worker *worker = arg;
	for (uint32_t i = 0; i < worker->question.process_count; i++)
		tw_mapped_each(worker->question.process_ids[i], read_wanted, worker);
	__atomic_store_n(&worker->is_done, 1, __ATOMIC_RELEASE);
	tw_recorder_wake(worker->late->options.recorder);
	return NULL;
}

/* ---- on the recorder's thread ---- */

bool tw_late_code_config(struct tw_config *config)
{
	const char *asked = getenv("TRACEWHEEL_PLAN_WAIT_MS");
	char text[64];
	bool is_asked = asked && *asked;
	snprintf(text, sizeof text, "%.20s %.20s", is_asked ? asked : DLOPEN_MS, is_asked ? asked : START_MS);
	char folder[1024];
	/* Agents read plans that are there themselves: no command has to answer in time. */
	if (tw_entries_folder(folder, sizeof folder) && !strchr(folder, '\n') &&
	    !tw_config_add(config, "plan_folder", folder))
		return false;
	return tw_config_add(config, "plans", text);
}

struct tw_late_code *tw_late_code_begin(const struct tw_late_options *options)
{
	const struct tw_arguments *arguments = options->arguments;
	bool has_layouts = arguments->string_bytes || arguments->guard_count || arguments->has_arities;
	bool has_files = options->has_plans || options->has_frames;
	struct tw_late_code *late = has_layouts || has_files ? calloc(1, sizeof *late) : NULL;
	if (!late)
		return NULL;
	late->options = *options;
	if (options->has_plans && !tw_patterns_read(&late->patterns, options->config)) {
		tw_late_code_end(late, true);
		return NULL;
	}
	late->needs_sonames = have_sonames(options->config);
	late->workers[LAYOUTS] = (struct worker){.late = has_layouts ? late : NULL,
						 .ask = TW_RECORDER_QUESTION_LAYOUTS,
						 .is_wanted = wants_layouts,
						 .read_file = read_layouts};
	late->workers[PLANS] = (struct worker){.late = has_files ? late : NULL,
					       .ask = TW_RECORDER_QUESTION_PLANS,
					       .is_wanted = wants_plans,
					       .read_file = read_plan};
	return late;
}

/* Signals are handled by the other thread. */
static bool start(struct worker *worker)
{
	__atomic_store_n(&worker->is_done, 0, __ATOMIC_RELAXED);
	/* SIGBUS is raised if the program truncates a mapped file. */
	worker->is_running = tw_worker_start(&worker->thread, SIGBUS, answer, worker) == 0;
	return worker->is_running;
}

static void poll_worker(struct worker *worker)
{
	struct tw_late_code *late = worker->late;
	if (!late)
		return;
	struct tw_recorder *recorder = late->options.recorder;
	if (worker->is_running && __atomic_load_n(&worker->is_done, __ATOMIC_ACQUIRE)) {
		bool has_text = worker->ask == TW_RECORDER_QUESTION_LAYOUTS;
		pthread_join(worker->thread, NULL);
		worker->is_running = false;
		tw_recorder_answer(recorder, worker->ask, worker->question.number, has_text ? late->text.text : NULL);
		if (has_text)
			tw_layouts_free(&late->text);
	}
	if (!worker->is_running && tw_recorder_question(recorder, worker->ask, &worker->question) && !start(worker))
		tw_recorder_answer(recorder, worker->ask, worker->question.number, NULL);
}

void tw_late_code_poll(struct tw_late_code *late)
{
	for (int i = 0; late && i < WORKERS; i++)
		poll_worker(&late->workers[i]);
}

/* " (so 3 more files)": files with a problem beside the one that is named. */
static const char *more_files(const struct worker *worker, char text[64])
{
	char figure[TW_FIGURE_BYTES];
	*text = 0;
	if (worker->problem_count > 1)
		snprintf(text, 64, " (so it was with %s)",
			 tw_figure_of(figure, worker->problem_count - 1, "more file", "more files"));
	return text;
}

static void report(const struct tw_late_code *late)
{
	const struct tw_arguments *arguments = late->options.arguments;
	const struct worker *layouts = &late->workers[LAYOUTS], *plans = &late->workers[PLANS];
	char figure[TW_FIGURE_BYTES], more[64];
	if (layouts->problem[0])
		tw_say(arguments->guard_count	 ? "%s; its functions were not traced%s."
		       : arguments->string_bytes ? "%s; its arguments are raw words%s."
						 : "%s; the numbers of its arguments are not known%s.",
		       layouts->problem, more_files(layouts, more));
	else if (late->left.count)
		tw_say("%s of libraries that were opened later %s not traced: for the condition, %s.",
		       tw_figure_of(figure, late->left.count, "function", "functions"),
		       late->left.count == 1 ? "was" : "were", late->left.reason);
	if (plans->problem[0])
		tw_say("%s; its functions without sleds were %s%s.", plans->problem,
		       late->options.has_slots ? "traced only where other objects call them" : "not traced",
		       more_files(plans, more));
}

void tw_late_code_end(struct tw_late_code *late, bool is_quiet)
{
	if (!late)
		return;
	__atomic_store_n(&late->stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < WORKERS; i++)
		if (late->workers[i].is_running)
			pthread_join(late->workers[i].thread, NULL);
	if (!is_quiet)
		report(late);
	for (int i = 0; i < WORKERS; i++) {
		for (size_t k = 0; k < late->workers[i].seen_count; k++)
			free(late->workers[i].seen[k]);
		free(late->workers[i].seen);
	}
	tw_layouts_free(&late->text);
	tw_patterns_free(&late->patterns);
	free(late);
}
