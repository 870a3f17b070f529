/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	One name is one atom for every caller, from any number of threads while others add; known names have their
 *	index; a fork does not leave the table locked.
 * Method	Threads intern the same names in different orders, and look up names that others passed to them; the
 *	results are compared.  A child of a busy process interns a new name.
 */
#include "term/term.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define THREADS 4
#define NAMES	20000

static struct tw_term got[THREADS][NAMES];
static pthread_barrier_t barrier;

static void *intern_all(void *argument)
{
	size_t self = (size_t)(uintptr_t)argument;
	char name[40];

	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < NAMES; i++) {
		size_t n = self % 2 ? NAMES - 1 - i : i;
		size_t bytes = (size_t)snprintf(name, sizeof(name), "Name number %zu", n);
		const char *kept;
		size_t kept_bytes;

		got[self][n] = tw_term_atom(name, bytes);
		kept = tw_term_atom_name(got[self][n], &kept_bytes);
		if (kept_bytes != bytes || strcmp(kept, name) != 0)
			return "the name differs";
		if (!tw_term_is_same(tw_term_atom_existing(name, bytes), got[self][n]))
			return "look-up finds another";
	}
	return NULL;
}

static void threads_agree(void **state)
{
	pthread_t threads[THREADS];
	uint32_t before = tw_atom_count();
	char text[60];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, intern_all, (void *)i), 0);
	for (size_t i = 0; i < THREADS; i++) {
		void *complaint;

		pthread_join(threads[i], &complaint);
		assert_null(complaint);
	}
	pthread_barrier_destroy(&barrier);
	for (size_t i = 1; i < THREADS; i++)
		assert_memory_equal(got[0], got[i], sizeof(got[0]));
	assert_int_equal(tw_atom_count(), before + NAMES);
	tw_term_format(got[0][17], TW_PRINT_WRITE, text, sizeof(text));
	assert_string_equal(text, "'Name number 17'");
}

static _Atomic uint64_t handed_over;

static void *read_names(void *argument)
{
	for (unsigned i = 0; i < NAMES; i++) {
		struct tw_term atom;
		char name[40];

		while (!(atom.word = atomic_load_explicit(&handed_over, memory_order_relaxed)))
			sched_yield();
		snprintf(name, sizeof(name), "handed over %u", i);
		if (!tw_atom_is_known(atom) || strcmp(tw_term_atom_name(atom, NULL), name) != 0)
			return "the name differs";
		atomic_store_explicit(&handed_over, 0, memory_order_relaxed);
	}
	return NULL;
}

/* An atom is a number: a program may pass it on without any order. */
static void an_atom_is_handed_over_without_order(void **state)
{
	pthread_t thread;
	void *complaint;

	assert_int_equal(pthread_create(&thread, NULL, read_names, NULL), 0);
	for (unsigned i = 0; i < NAMES; i++) {
		char name[40];

		snprintf(name, sizeof(name), "handed over %u", i);
		atomic_store_explicit(&handed_over, tw_term_atom_z(name).word, memory_order_relaxed);
		while (atomic_load_explicit(&handed_over, memory_order_relaxed))
			sched_yield();
	}
	pthread_join(thread, &complaint);
	assert_null(complaint);
}

static void known_names_have_their_index(void **state)
{
	static const char *const names[] = {
#define NAME(identifier, name)					  name,
#define KIND_NAME(identifier, number, word, group, first, second) word,
#define SIZE_NAME(identifier, field)				  #field,
		TW_ATOM_NAMES(NAME) TW_TRACE_KINDS(KIND_NAME) TW_SYSTEM_KINDS(KIND_NAME) TW_GC_SIZES(SIZE_NAME)
#undef NAME
#undef KIND_NAME
#undef SIZE_NAME
	};

	for (uint32_t i = 0; i < TW_ATOMS_KNOWN; i++) {
		assert_true(tw_term_is_same(tw_term_atom_z(names[i]), tw_atom(i)));
		assert_string_equal(tw_term_atom_name(tw_atom(i), NULL), names[i]);
	}
	assert_true(tw_term_is_same(tw_term_bool(1), tw_term_atom_z("true")));
	assert_null(tw_term_atom_name(tw_small(1), NULL));
}

static void names_have_limits(void **state)
{
	char name[1100];
	size_t i;

	for (i = 0; i < 256; i++)
		memcpy(name + i * 4, "\xf0\x9f\x98\x80", 4);
	assert_false(tw_term_is_none(tw_term_atom(name, 255 * 4)));
	assert_true(tw_term_is_none(tw_term_atom(name, 256 * 4)));
	assert_true(tw_term_is_none(tw_term_atom(name, 7)));
	assert_true(tw_term_is_none(tw_term_atom("\xed\xa0\x80", 3)));
	assert_true(tw_term_is_none(tw_term_atom("\xc0\x80", 2)));
	assert_true(tw_term_is_none(tw_term_atom_existing("nobody made this", 16)));
	assert_true(tw_term_is_same(tw_term_atom("", 0), tw_atom(TW_ATOM_EMPTY)));
	assert_true(tw_term_is_same(tw_term_atom(NULL, 0), tw_atom(TW_ATOM_EMPTY)));
	assert_true(tw_term_is_same(tw_term_atom("a\0b", 3), tw_term_atom("a\0b", 3)));
	assert_false(tw_term_is_same(tw_term_atom("a\0b", 3), tw_term_atom("a", 1)));
}

static _Atomic int is_stopping;

static void *keep_adding(void *argument)
{
	char name[40];

	for (unsigned i = 0; !is_stopping; i++) {
		snprintf(name, sizeof(name), "busy %u", i % 200000);
		tw_term_atom_z(name);
	}
	return NULL;
}

static void a_child_can_add(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, keep_adding, NULL), 0);
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			alarm(120);
			_exit(tw_term_is_none(tw_term_atom_z("new in the child")));
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	is_stopping = 1;
	pthread_join(thread, NULL);
}

static void the_table_can_start_again(void **state)
{
	tw_atom_table_fini();
	assert_int_equal(tw_atom_count(), TW_ATOMS_KNOWN);
	assert_true(tw_term_is_none(tw_term_atom_existing("Name number 1", 13)));
	known_names_have_their_index(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_names_have_their_index),
		cmocka_unit_test(threads_agree),
		cmocka_unit_test(an_atom_is_handed_over_without_order),
		cmocka_unit_test(names_have_limits),
		cmocka_unit_test(a_child_can_add),
		cmocka_unit_test(the_table_can_start_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
