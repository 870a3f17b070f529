/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broken.c - Goal: `tracewheel stress` notices what it is there to notice.
 *
 *	stress_broken MISTAKE
 *
 * Method  The run behind the command, for a moment at a time, with one mistake in the control path (--wrap of the linker):
 *
 *	nothing		none: must pass
 *	no_wait		nobody waits for thread progress: what is freed may still be read, and what was changed may
 *			still be as before when the change returns
 *	forgotten_place	one place in sixteen is never made to fire, once all have been tried
 *	torn_sled	a sled becomes a call in two stores
 *	torn_slot	a slot is written in two halves
 *
 *	A run in a child process fails, or dies by a signal, within a few of them.
 */
#include "breakpoints/patch.h"
#include "progress/progress.h"
#include "tools/stress.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS 8

static const char *mistake = "nothing";

void __wrap_tw_progress_wait(void);
void __real_tw_progress_wait(void);
void __wrap_tw_patch_install(struct tw_place *place);
void __real_tw_patch_install(struct tw_place *place);
void __wrap_tw_sled_install(struct tw_place *place);
void __real_tw_sled_install(struct tw_place *place);
void __wrap_tw_got_install(struct tw_place *place);
void __real_tw_got_install(struct tw_place *place);

static bool is(const char *name)
{
	return !strcmp(mistake, name);
}

void __wrap_tw_progress_wait(void)
{
	if (!is("no_wait"))
		__real_tw_progress_wait();
}

void __wrap_tw_patch_install(struct tw_place *place)
{
	static unsigned count;

	if (!is("forgotten_place") || ++count < 200 || count % 16)
		__real_tw_patch_install(place);
}

static void make_writable(void *at, int protection)
{
	uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;

	mprotect((void *)page, 8192, protection);
}

/* The opcode of the call first, and then where it leads. */
void __wrap_tw_sled_install(struct tw_place *place)
{
	if (is("torn_sled") && !place->is_parked) {
		uint8_t *window = (uint8_t *)place->where + place->sled_offset;

		make_writable(window, PROT_READ | PROT_WRITE | PROT_EXEC);
		__atomic_store_n(window, 0xe8, __ATOMIC_RELAXED);
		usleep(50);
	}
	__real_tw_sled_install(place);
}

void __wrap_tw_got_install(struct tw_place *place)
{
	if (is("torn_slot")) {
		make_writable(place->where, PROT_READ | PROT_WRITE);
		__atomic_store_n((uint32_t *)place->where, (uint32_t)(uintptr_t)place->stub, __ATOMIC_RELAXED);
		usleep(50);
	}
	__real_tw_got_install(place);
}

static void run(unsigned seed)
{
	const struct tw_stress_options options = {
		.seconds = 0.5,
		.threads = 3,
		.changers = 1,
		.functions = 64,
		.pause_us = 200,
		.what = TW_STRESS_ALL,
		.seed = seed,
	};
	struct tw_stress_result result;

	if (tw_stress_run(&options, &result)) {
		fprintf(stderr, "the test could not be made\n");
		_exit(77);
	}
	for (uint32_t i = 0; i < result.told_count; i++)
		fprintf(stderr, "%s\n", result.told[i]);
	_exit(tw_stress_has_passed(&result) ? 0 : 1);
}

/* ---- what a run that dies leaves behind ---- */

static char folder[4096];

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	return remove(path);
}

static void remove_folder(void)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The runs' captures go there. */
static bool make_folder(void)
{
	const char *parent = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/stress-broken.XXXXXX", parent && *parent ? parent : "/tmp");
	return mkdtemp(folder) && !setenv("TMPDIR", folder, 1) && !atexit(remove_folder);
}

int main(int argc, char **argv)
{
	const struct rlimit none = {0, 0};
	unsigned noticed = 0, runs = 0;

	if (argc > 1)
		mistake = argv[1];
	setrlimit(RLIMIT_CORE, &none);
	if (!make_folder())
		return 2;
	while (!noticed && runs < (is("nothing") ? 2 : RUNS)) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			/* What waits for ever is noticed too; without a mistake nothing may be, however slow the machine. */
			alarm(is("nothing") ? 300 : 20);
			run(runs + 1);
		}
		runs++;
		if (child < 0 || waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) == 77))
			return 2;
		noticed += status != 0;
		if (WIFSIGNALED(status))
			printf("died by signal %d\n", WTERMSIG(status));
	}
	printf("%s: %s in run %u\n", mistake, noticed ? "noticed" : "not noticed", runs);
	return is("nothing") ? noticed != 0 : noticed == 0;
}
