/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_bench.c - what does the plan of a file cost that the command has seen before?
 *
 * plan_cached	in the command, before the program starts: the plan is read from the cache, checked with the code of the file, each
 *		function compared with a pattern, and the plan written for the agent.
 * plan_mapped	in the program, before main(): the plan is mapped, checked, and each function compared with the pattern.
 *
 * Unit	nanoseconds for the object.
 * Peers	none: docs/unmodified.md has the time to make the plan (./run bench native entries).
 * Method	Files of Debian's; the pattern names one function, so that every name is compared.  The object's file is open, as the
 *		command has opened it for other reasons.
 */
#include "agent/agent.h"
#include "bench/bench.h"
#include "symbols/entry_plan.h"
#include "symbols/file.h"
#include "tools/common/entries.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARIES "/usr/lib/x86_64-linux-gnu/"
#define CONFIG	  "local\npattern _:no_such_function\n"

/* The cache, and beside it what the ring set's folder is to a recording. */
static char folder[] = "/tmp/tracewheel-bench.XXXXXX", shared[sizeof folder + 8];

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command))
		perror(folder);
}

static bool make_folder(void)
{
	if (*shared)
		return true;
	if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1))
		return false;
	snprintf(shared, sizeof shared, "%s/set", folder);
	atexit(remove_folder);
	return !mkdir(shared, 0700);
}

/* The only file in the folder; false: there is none. */
static bool find_plan(char path[512])
{
	DIR *directory = opendir(shared);
	const struct dirent *entry;
	bool is_found = false;

	while (directory && !is_found && (entry = readdir(directory)))
		if (*entry->d_name != '.') {
			snprintf(path, 512, "%s/%s", shared, entry->d_name);
			is_found = true;
		}
	if (directory)
		closedir(directory);
	return is_found;
}

struct chosen {
	const struct tw_pattern *pattern;
	size_t count;
};

static int see(const struct tw_symbols_place *place, void *arg)
{
	struct chosen *chosen = arg;
	const struct tw_pattern_subject subject = {.module = place->module->name,
						   .file = place->module->path,
						   .function = place->function,
						   .arity = TW_PATTERN_ARITY_ANY};

	/* A name that had to be demangled would be counted: none has to be. */
	chosen->count += tw_pattern_match(chosen->pattern, &subject) ||
			 tw_pattern_wants_demangled_of(chosen->pattern, place->function);
	return 0;
}

/* As the command does it for one object.  False: it has no plan. */
static bool use_cached(const struct tw_symbols *symbols, struct chosen *chosen)
{
	struct tw_entries *entries = tw_entries_open(symbols, false, false);
	bool is_used = entries && !tw_entries_problem(entries, tw_symbols_object(symbols, 0)) &&
		       !tw_entries_each(entries, 0, see, chosen) && tw_entries_write(entries, 0, shared);

	tw_entries_close(entries);
	return is_used;
}

static struct tw_symbols *open_object(struct tw_bench *bench, const char *path, struct chosen *chosen)
{
	struct tw_symbols *symbols = NULL;

	if (!make_folder())
		tw_bench_skip(bench, "a folder in /tmp cannot be made");
	else if (tw_symbols_open(path, &symbols))
		tw_bench_skip(bench, "it is not installed");
	else if (!use_cached(symbols, chosen)) {
		tw_symbols_close(symbols);
		symbols = NULL;
		tw_bench_skip(bench, "it has no plan");
	}
	return symbols;
}

static void forget_plan(void)
{
	char path[512];

	if (find_plan(path))
		unlink(path);
}

static void cached(struct tw_bench *bench, const char *path)
{
	struct tw_pattern *pattern;
	struct chosen chosen = {0};
	struct tw_symbols *symbols;
	uint64_t used = 0;

	TW_BENCH_MUST(!tw_pattern_parse("_:no_such_function", &pattern, NULL));
	chosen.pattern = pattern;
	symbols = open_object(bench, path, &chosen);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		forget_plan();
		used += use_cached(symbols, &chosen);
	}
	tw_bench_stop(bench);
	if (symbols) {
		tw_bench_happened(bench, "plans", used, 1);
		tw_bench_happened_in_all(bench, "functions chosen", chosen.count, 0);
	}
	forget_plan();
	tw_symbols_close(symbols);
	tw_pattern_destroy(pattern);
}

/* As agent/entries.c and agent/plan.c do it. */
static size_t use_mapped(const struct tw_agent_config *config, const struct tw_sym_object *object, const char *path,
			 uint64_t *functions)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	struct tw_entry_plan plan;
	size_t count = 0;
	void *bytes;

	TW_BENCH_MUST(fd >= 0 && !fstat(fd, &status));
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	TW_BENCH_MUST(bytes != MAP_FAILED && !tw_entry_plan_open(bytes, (size_t)status.st_size, &plan));
	for (uint32_t i = 0; i < plan.header->row_count; i++) {
		const char *name;

		for (unsigned k = 0; (name = tw_entry_plan_name(&plan, &plan.rows[i], k)); k++)
			count += tw_plan_wants(config, object, name, TW_PATTERN_ARITY_ANY);
	}
	*functions += plan.header->row_count;
	munmap(bytes, (size_t)status.st_size);
	return count;
}

static void mapped(struct tw_bench *bench, const char *path)
{
	struct chosen chosen = {0};
	struct tw_agent_config config;
	struct tw_symbols *symbols;
	struct tw_pattern *pattern;
	struct tw_sym_object object = {0};
	char plan[512] = "";
	uint64_t each = 0, functions = 0;
	size_t count = 0;

	TW_BENCH_MUST(!tw_pattern_parse("_:no_such_function", &pattern, NULL));
	TW_BENCH_MUST(!tw_agent_config_parse(CONFIG, strlen(CONFIG), &config));
	chosen.pattern = pattern;
	symbols = open_object(bench, path, &chosen);
	if (symbols) {
		const struct tw_symbols_object *shown = tw_symbols_object(symbols, 0);

		object.name = strdup(shown->name);
		object.path = strdup(shown->path);
		object.elf = tw_symbols_file(symbols, 0)->elf;
		TW_BENCH_MUST(find_plan(plan));
		/* As many functions as the loop must compare each time. */
		use_mapped(&config, &object, plan, &each);
		TW_BENCH_MUST(each);
	}
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		count += use_mapped(&config, &object, plan, &functions);
	tw_bench_stop(bench);
	tw_bench_happened(bench, "functions", functions, each);
	if (symbols)
		tw_bench_happened_in_all(bench, "functions chosen", count, 0);
	forget_plan();
	tw_symbols_close(symbols);
	free(object.name);
	free(object.path);
	tw_agent_config_fini(&config);
	tw_pattern_destroy(pattern);
}

#define OBJECT(name, path)           \
	TW_BENCH(plan_cached_##name) \
	{                            \
		cached(bench, path); \
	}                            \
	TW_BENCH(plan_mapped_##name) \
	{                            \
		mapped(bench, path); \
	}

OBJECT(libsqlite3, LIBRARIES "libsqlite3.so.0")
OBJECT(sqlite3, "/usr/bin/sqlite3")
OBJECT(python, "/usr/bin/python3.11")
OBJECT(redis_server, "/usr/bin/redis-server")
OBJECT(git, "/usr/bin/git")
OBJECT(libc, LIBRARIES "libc.so.6")
OBJECT(libstdcxx, LIBRARIES "libstdc++.so.6")
OBJECT(bash, "/usr/bin/bash")
OBJECT(libcrypto, LIBRARIES "libcrypto.so.3")
OBJECT(postgres, "/usr/lib/postgresql/15/bin/postgres")
