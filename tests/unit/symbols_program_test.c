/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    The file of a program gives all that could be traced in it, with its libraries, sleds and refusals; a damaged
 *         file gives an error and nothing else.
 * Method  Reads its own executable, which has a function with an entry sled; then damaged copies of it: cut
 *         off at many lengths, and with bytes changed at random places of its headers and tables.
 */
#include "symbols/symbols.h"
#include "tracewheel/error.h"
#include "tracewheel/symbols.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Not static: the optimizer would give it another name. */
int has_a_sled(int x);

__attribute__((patchable_function_entry(5, 0), noinline)) int has_a_sled(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

struct found {
	const char *function;
	enum tw_symbols_how how;
	const char *module;
	const char *caller;
	const char *refusal;
	unsigned count, total;
};

static int look_for(const struct tw_symbols_place *place, void *arg)
{
	struct found *found = arg;

	found->total++;
	assert_non_null(place->caller);
	assert_non_null(place->function);
	if (place->how != found->how || strcmp(place->function, found->function) ||
	    strcmp(place->caller->name, found->caller))
		return 0;
	found->count++;
	found->module = place->module ? place->module->name : NULL;
	found->refusal = place->refusal;
	return 0;
}

static struct found find(const struct tw_symbols *symbols, enum tw_symbols_how how, const char *function)
{
	struct found found = {.function = function, .how = how, .caller = "symbols_program_test"};

	assert_int_equal(tw_symbols_each_place(symbols, look_for, &found), 0);
	return found;
}

static int stop_at_once(const struct tw_symbols_place *place, void *arg)
{
	return 42;
}

static void reads_itself(void **state)
{
	struct tw_symbols *symbols;
	struct found found;
	bool has_libc = false;

	assert_int_equal(has_a_sled(1), 2);
	assert_int_equal(tw_symbols_open("/proc/self/exe", &symbols), 0);
	assert_string_equal(tw_symbols_object(symbols, 0)->name, "symbols_program_test");
	assert_null(tw_symbols_refusal(symbols));
	assert_null(tw_symbols_missing(symbols, 0));
	for (size_t i = 0; i < tw_symbols_object_count(symbols); i++)
		has_libc |= !strcmp(tw_symbols_object(symbols, i)->soname, "libc.so.6");
	assert_true(has_libc);
	assert_null(tw_symbols_object(symbols, tw_symbols_object_count(symbols)));

	found = find(symbols, TW_SYMBOLS_SLED, "has_a_sled");
	assert_int_equal(found.count, 1);
	assert_null(found.refusal);
	assert_string_equal(found.module, "symbols_program_test");
	found = find(symbols, TW_SYMBOLS_SLOT, "unlink");
	assert_int_equal(found.count, 1);
	assert_null(found.refusal);
	assert_non_null(found.module);
	/* lld gives a function that is both asked for its address and called two slots. */
	found = find(symbols, TW_SYMBOLS_SLOT, "__cxa_finalize");
	assert_in_range(found.count, 1, 2);
	assert_string_equal(found.refusal, tw_sym_refusal_text(TW_SYM_NEVER));
	assert_int_equal(tw_symbols_each_place(symbols, stop_at_once, NULL), 42);
	tw_symbols_close(symbols);
}

/* Of each place: a number made of its names and its refusal. */
struct sums {
	const char *begin; /* of the names wanted; NULL: all are */
	uint64_t sum;
	unsigned count, refused;
};

static bool begins_so(const struct tw_symbols_place *place, void *arg)
{
	const struct sums *sums = arg;

	return !strncmp(place->function, sums->begin, strlen(sums->begin));
}

static int add_place(const struct tw_symbols_place *place, void *arg)
{
	struct sums *sums = arg;
	const char *texts[] = {place->function, place->caller->name, place->refusal ? place->refusal : ""};
	uint64_t hash = place->how;

	if (sums->begin && !begins_so(place, arg))
		return 0;
	for (size_t i = 0; i < 3; i++)
		for (const char *c = texts[i]; *c; c++)
			hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	sums->sum += hash;
	sums->count++;
	sums->refused += place->refusal != NULL;
	return 0;
}

/* The places of interest are told as in the walk over all, refusals that take a search through code too. */
static void wanted_places_are_those_of_the_whole_walk(void **state)
{
	static const char *const begins[] = {"", "mem", "pthread_", "str", "nothing is called so"};
	struct tw_symbols *symbols;

	assert_int_equal(tw_symbols_open("/proc/self/exe", &symbols), 0);
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
		struct sums all = {.begin = begins[i]}, wanted = {.begin = begins[i]};

		assert_int_equal(tw_symbols_each_place(symbols, add_place, &all), 0);
		assert_int_equal(tw_symbols_each_wanted_place(symbols, begins_so, add_place, &wanted), 0);
		assert_int_equal(all.sum, wanted.sum);
		assert_int_equal(all.count, wanted.count);
		assert_int_equal(all.refused, wanted.refused);
		assert_true(i ? i < 4 || !all.count : all.count > 100 && all.refused);
	}
	tw_symbols_close(symbols);
}

static void other_files_are_no_programs(void **state)
{
	struct tw_symbols *symbols;

	assert_int_equal(tw_symbols_open("/nonexistent/program", &symbols), TW_ENOENT);
	assert_int_equal(tw_symbols_open("/etc/passwd", &symbols), TW_EFORMAT);
	assert_int_equal(tw_symbols_open("/dev/zero", &symbols), TW_EFORMAT);
	assert_int_equal(tw_symbols_open("/", &symbols), TW_EFORMAT);
	assert_int_equal(tw_symbols_open("", &symbols), TW_EBADARG);
	assert_int_equal(tw_symbols_open(NULL, &symbols), TW_EBADARG);
}

static char *read_self(size_t *bytes)
{
	FILE *file = fopen("/proc/self/exe", "rb");
	char *data;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*bytes = (size_t)ftell(file);
	rewind(file);
	data = malloc(*bytes);
	assert_int_equal(fread(data, 1, *bytes, file), *bytes);
	fclose(file);
	return data;
}

static int count_places(const struct tw_symbols_place *place, void *arg)
{
	*(size_t *)arg += strlen(place->function);
	return 0;
}

/* Any answer is accepted, but it must return. */
static void try_damaged(const char *path, const char *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");
	struct tw_symbols *symbols;
	size_t sum = 0;

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	fclose(file);
	if (tw_symbols_open(path, &symbols) == 0) {
		tw_symbols_each_place(symbols, count_places, &sum);
		tw_symbols_refusal(symbols);
		tw_symbols_close(symbols);
	}
}

static void damaged_files_do_no_harm(void **state)
{
	char path[] = "/tmp/tracewheel-symbols-XXXXXX";
	size_t bytes;
	char *data = read_self(&bytes);
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (size_t cut = 0; cut < bytes; cut += cut < 2000 ? 97 : bytes / 13)
		try_damaged(path, data, cut);
	srandom(20250101);
	for (int round = 0; round < 40; round++) {
		size_t at[4];
		char old[4];

		for (int i = 0; i < 4; i++) {
			/* The headers and dynamic tables lie in the first 8 KiB; sections and data near the
			 * end. */
			size_t near = i % 2 ? bytes : bytes < 8192 ? bytes : 8192;

			at[i] = (size_t)random() % near;
			old[i] = data[at[i]];
			data[at[i]] = (char)random();
		}
		try_damaged(path, data, bytes);
		for (int i = 3; i >= 0; i--)
			data[at[i]] = old[i];
	}
	unlink(path);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_itself),
		cmocka_unit_test(wanted_places_are_those_of_the_whole_walk),
		cmocka_unit_test(other_files_are_no_programs),
		cmocka_unit_test(damaged_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
