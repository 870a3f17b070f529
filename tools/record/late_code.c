/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_code.c - answers questions of agents.
 *
 *	agent: opened something -> question -> the thread: maps, debug information -> answer -> agent: arms it
 *
 * Each file is read once, by path and inode: a library that is rebuilt and opened again is another file.
 */
#include "tools/record/late_code.h"
#include "tools/tool.h"
#include "tools/record/when.h"

#include "tracewheel/consumer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* The most files of one process, and of all; no program opens so many that patterns name. */
#define FILES_MAX 4096

struct tw_late_code {
	const struct tw_arguments *arguments;
	const char *config;
	struct tw_recorder *recorder;
	pthread_t thread;
	bool is_running;
	/* Shared by the two threads. */
	int stop, is_done;
	/* Used by the thread while it runs. */
	struct tw_recorder_question question;
	struct tw_layouts text;
	char **seen; /* "INODE PATH" */
	size_t seen_count;
	char problem[4400];
	struct tw_when_left left;
};

/* START-END PERMISSIONS OFFSET DEVICE INODE   PATH */
const char *tw_late_code_file(char *line)
{
	char *rest = line, *word, *permissions = NULL;
	line[strcspn(line, "\n")] = 0;
	for (int i = 0; i < 5; i++) {
		word = strsep(&rest, " ");
		if (!rest || !*word)
			return NULL;
		if (i == 1)
			permissions = word;
	}
	rest += strspn(rest, " ");
	size_t bytes = strlen(rest);
	static const char gone[] = " (deleted)";
	if (strlen(permissions) != 4 || permissions[2] != 'x' || *rest != '/' ||
	    (bytes >= sizeof gone && strcmp(rest + bytes - (sizeof gone - 1), gone) == 0))
		return NULL;
	return rest;
}

/* ---- on the thread ---- */

static bool is_seen(struct tw_late_code *late, const char *key)
{
	for (size_t i = 0; i < late->seen_count; i++)
		if (strcmp(late->seen[i], key) == 0)
			return true;
	return false;
}

static bool remember(struct tw_late_code *late, char *key)
{
	char **grown =
		late->seen_count < FILES_MAX ? realloc(late->seen, (late->seen_count + 1) * sizeof *grown) : NULL;
	if (grown) {
		late->seen = grown;
		late->seen[late->seen_count++] = key;
	}
	return grown != NULL;
}

static void read_file_of(struct tw_late_code *late, const char *path)
{
	const struct tw_arguments *arguments = late->arguments;
	bool has_layouts = arguments->string_bytes || arguments->has_arities;
	struct tw_layouts found = {.stop = &late->stop,
				   .is_for_arities = !arguments->string_bytes && !arguments->guard};
	bool is_taken = tw_layouts_find_file(path, late->config, &arguments->layouts, &found);
	if (is_taken && has_layouts && found.text)
		tw_layouts_append(&late->text, found.text, found.bytes);
	if (is_taken && arguments->guard)
		tw_when_translate(&found, arguments->guard, &late->text, &late->left);
	if (is_taken && found.problem[0] && !late->problem[0])
		memcpy(late->problem, found.problem, sizeof late->problem);
	tw_layouts_free(&found);
}

static void read_process(struct tw_late_code *late, int process_id)
{
	char name[64], *line = NULL;
	size_t capacity = 0;
	snprintf(name, sizeof name, "/proc/%d/maps", process_id);
	FILE *maps = fopen(name, "re");
	while (maps && getline(&line, &capacity, maps) > 0 && !__atomic_load_n(&late->stop, __ATOMIC_RELAXED)) {
		char *key = strdup(line);
		const char *path = tw_late_code_file(line);
		/* From the inode on: the part that all mappings of a file share. */
		char *inode = key;
		for (int i = 0; i < 4 && inode; i++)
			inode = (inode = strchr(inode, ' ')) ? inode + 1 : NULL;
		char *known = path && inode ? strdup(inode) : NULL;
		free(key);
		if (known && !is_seen(late, known) && remember(late, known))
			read_file_of(late, path);
		else
			free(known);
	}
	free(line);
	if (maps)
		fclose(maps);
}

static void *answer(void *arg)
{
	struct tw_late_code *late = arg;
	for (uint32_t i = 0; i < late->question.process_count; i++)
		read_process(late, late->question.process_ids[i]);
	__atomic_store_n(&late->is_done, 1, __ATOMIC_RELEASE);
	tw_recorder_wake(late->recorder);
	return NULL;
}

/* ---- on the recorder's thread ---- */

struct tw_late_code *tw_late_code_begin(const struct tw_arguments *arguments, const char *config,
					struct tw_recorder *recorder)
{
	struct tw_late_code *late =
		arguments->string_bytes || arguments->guard || arguments->has_arities ? calloc(1, sizeof *late) : NULL;
	if (late) {
		late->arguments = arguments;
		late->config = config;
		late->recorder = recorder;
	}
	return late;
}

/* Signals are handled by the other thread. */
static bool start(struct tw_late_code *late)
{
	sigset_t all, before;
	sigfillset(&all);
	/* Raised if the program truncates a mapped file. */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	__atomic_store_n(&late->is_done, 0, __ATOMIC_RELAXED);
	late->is_running = pthread_create(&late->thread, NULL, answer, late) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return late->is_running;
}

void tw_late_code_poll(struct tw_late_code *late)
{
	if (!late)
		return;
	if (late->is_running && __atomic_load_n(&late->is_done, __ATOMIC_ACQUIRE)) {
		pthread_join(late->thread, NULL);
		late->is_running = false;
		tw_recorder_answer(late->recorder, late->question.number, late->text.text);
		tw_layouts_free(&late->text);
	}
	if (!late->is_running && tw_recorder_question(late->recorder, &late->question) && !start(late))
		tw_recorder_answer(late->recorder, late->question.number, NULL);
}

void tw_late_code_end(struct tw_late_code *late, bool is_quiet)
{
	if (!late)
		return;
	if (late->is_running) {
		__atomic_store_n(&late->stop, 1, __ATOMIC_RELAXED);
		pthread_join(late->thread, NULL);
	}
	if (late->problem[0] && !is_quiet)
		tw_say(late->arguments->guard	       ? "%s; its functions were not traced."
		       : late->arguments->string_bytes ? "%s; its arguments are raw words."
						       : "%s; the numbers of its arguments are not known.",
		       late->problem);
	else if (late->left.count && !is_quiet)
		tw_say("%zu function%s of libraries that were opened later %s not traced: for --when, %s.",
		       late->left.count, late->left.count == 1 ? "" : "s", late->left.count == 1 ? "was" : "were",
		       late->left.reason);
	for (size_t i = 0; i < late->seen_count; i++)
		free(late->seen[i]);
	free(late->seen);
	tw_layouts_free(&late->text);
	free(late);
}
