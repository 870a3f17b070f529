/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch - run a program with the agent preloaded, drain its rings, print the calls.
 *
 *	watch AGENT OUTPUT CONFIG [-f] [-p PRELOAD] -- PROGRAM [ARGUMENT...]
 *
 * CONFIG is the text of the control page, with ';' for newlines; -f follows forked children.  OUTPUT gets, unsorted,
 * one line for each called place, one for each note, and the losses:
 *
 *	call IMAGE CALLER MODULE:FUNCTION COUNT
 *	note IMAGE TEXT
 *	lost FULL NESTED NO_RING
 *	image NUMBER PID
 *
 * The exit status is the program's.  The smallest possible consumer, for tests.
 */
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "ringbuf/ringset.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES_MAX 65536

static struct tw_rs rs;
static uint64_t *calls[TW_RS_IMAGES_MAX]; /* by place; NULL: none */
static uint64_t lost[TW_RB_CAUSES];
static uint64_t told[TW_RS_RINGS_MAX][TW_RB_CAUSES]; /* by ring, in its present lease */

static void add_loss(const struct tw_rb_loss_record *loss, uint64_t *ring_told)
{
	for (int i = 0; i < TW_RB_CAUSES; i++) {
		lost[i] += loss->lost[i];
		ring_told[i] += loss->lost[i];
	}
}

static void take(const uint8_t *records, size_t bytes, uint32_t image, uint64_t *ring_told)
{
	if (!calls[image])
		calls[image] = calloc(PLACES_MAX, sizeof *calls[image]);
	for (size_t at = 0; at < bytes;) {
		const struct tw_rb_record *record = (const void *)(records + at);

		if (TW_RB_HEAD_KIND(record->head) == TW_EVENT_CALL)
			calls[image][TW_RB_HEAD_ID(record->head) % PLACES_MAX]++;
		if (TW_RB_HEAD_KIND(record->head) == TW_EVENT_LOSS)
			add_loss((const struct tw_rb_loss_record *)record, ring_told);
		at += TW_RB_HEAD_BYTES(record->head);
	}
}

static void drain_ring(uint32_t index, enum tw_rb_state state)
{
	struct tw_rb_shared *shared = tw_rs_ring(&rs, index);
	struct tw_rb_loss_record loss;
	const uint8_t *records;
	uint64_t end;
	/* RELAXED watch.tail: this is the only consumer. */
	uint64_t from = tw_load_relaxed(&shared->tail_pos);
	int64_t bytes;

	while ((bytes = tw_rb_peek(shared, from, 1 << 20, &records, &end)) > 0 || end != from) {
		if (bytes > 0)
			take(records, (size_t)bytes, tw_rs_ring_image(&rs, index), told[index]);
		tw_rb_consume(shared, end);
		from = end;
	}
	if (state != TW_RB_ENDED)
		return;
	if (tw_rb_unreported_loss(shared, told[index], &loss))
		add_loss(&loss, told[index]);
	memset(told[index], 0, sizeof told[index]);
	tw_rs_ring_recycle(&rs, index);
}

static void drain(void)
{
	tw_rs_heartbeat(&rs);
	for (uint32_t i = 0; i < tw_rs_scan(&rs); i++) {
		enum tw_rb_state state;

		tw_rs_ring_reap(&rs, i);
		state = tw_rs_ring_state(&rs, i);
		if (state == TW_RB_LIVE || state == TW_RB_ENDED)
			drain_ring(i, state);
	}
}

/* ---- names ---- */

struct names {
	char *modules[4096];
	char *functions[PLACES_MAX]; /* MODULE:FUNCTION */
	char *places[PLACES_MAX];    /* CALLER MODULE:FUNCTION */
};

static void learn(struct names *names, uint32_t image, uint32_t type, const void *payload, FILE *out)
{
	const struct tw_def_module *module = payload;
	const struct tw_def_function *function = payload;
	const struct tw_def_place *place = payload;
	const struct tw_def_note *note = payload;
	const struct tw_def_image *process = payload;
	char text[4096];

	switch (type) {
	case TW_DEF_IMAGE: fprintf(out, "image %u %d\n", image, process->process_id); return;
	case TW_DEF_MODULE:
		names->modules[module->module_id % 4096] = strndup((const char *)(module + 1), module->name_bytes);
		return;
	case TW_DEF_FUNCTION:
		snprintf(text, sizeof text, "%s:%.*s", names->modules[function->module_id % 4096], function->name_bytes,
			 (const char *)(function + 1));
		names->functions[function->function_id % PLACES_MAX] = strdup(text);
		return;
	case TW_DEF_PLACE:
		snprintf(text, sizeof text, "%s %s", names->modules[place->caller_module_id % 4096],
			 names->functions[place->function_id % PLACES_MAX]);
		names->places[place->place_id % PLACES_MAX] = strdup(text);
		return;
	case TW_DEF_NOTE: fprintf(out, "note %u %.*s\n", image, note->text_bytes, (const char *)(note + 1)); return;
	default: return;
	}
}

static void report(const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out)
		exit(125);
	for (uint32_t image = 0; image < tw_rs_image_count(&rs); image++) {
		struct names *names = calloc(1, sizeof *names);
		uint64_t at = 0;
		uint32_t type;
		const void *payload;
		size_t bytes;

		if (!tw_rs_image(&rs, image)->memory) {
			free(names);
			continue;
		}

		while (tw_rs_defs_next(&rs, image, &at, &type, &payload, &bytes) > 0)
			learn(names, image, type, payload, out);
		for (size_t i = 0; i < PLACES_MAX; i++)
			if (calls[image] && calls[image][i])
				fprintf(out, "call %u %s %lu\n", image, names->places[i] ? names->places[i] : "? ?",
					calls[image][i]);
		/* RELAXED rs.no_ring: all writers are dead. */
		lost[TW_RB_LOST_NO_RING] += tw_load_relaxed(&tw_rs_head(&rs, image)->no_ring_lost);
		free(names);
	}
	fprintf(out, "lost %lu %lu %lu\n", lost[TW_RB_LOST_FULL], lost[TW_RB_LOST_NESTED], lost[TW_RB_LOST_NO_RING]);
	fclose(out);
}

/* ---- the program ---- */

static char *lines_of(const char *text)
{
	char *copy = strdup(text);

	for (char *p = copy; *p; p++)
		if (*p == ';')
			*p = '\n';
	return copy;
}

static void run(char **argv, const char *agent, const char *more)
{
	char preload[8192];

	snprintf(preload, sizeof preload, "%s%s%s", agent, more ? ":" : "", more ? more : "");
	setenv("LD_PRELOAD", preload, 1);
	setenv("TRACEWHEEL_AGENT", rs.path, 1);
	execvp(argv[0], argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	struct tw_rs_options options = {.policy = TW_RB_BLOCK, .ring_bytes = 1 << 16};
	const char *more = NULL;
	int at = 4, status;
	pid_t pid;

	for (; at < argc && strcmp(argv[at], "--"); at++) {
		if (!strcmp(argv[at], "-f"))
			options.follow_fork = true;
		else if (!strcmp(argv[at], "-p") && at + 1 < argc)
			more = argv[++at];
	}
	if (at + 1 >= argc)
		return 125;
	options.config = lines_of(argv[3]);
	if (tw_rs_create(&rs, &options))
		return 125;
	pid = fork();
	if (pid == 0)
		run(argv + at + 1, argv[1], more);
	while (waitpid(pid, &status, WNOHANG) != pid) {
		drain();
		tw_rs_wait(&rs, 200000);
	}
	tw_rs_scan(&rs);
	for (uint32_t i = 0; i < tw_rs_image_count(&rs); i++)
		tw_rs_image_reap(&rs, i);
	drain();
	report(argv[2]);
	tw_rs_destroy(&rs);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
