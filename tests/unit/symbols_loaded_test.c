/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    The loaded objects of this process are found with their names, and every slot has the target that ld.so would
 *         give it, or is refused for a correct reason.
 * Method  Examines itself: cmocka and libc are loaded, so known functions must be found; every slot that is not refused
 *         is compared with dladdr().
 */
#include "symbols/symbols.h"
#include "tests/common/clock.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct tw_sym_object *object_named(struct tw_sym_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->objects[i].name, name))
			return &set->objects[i];
	return NULL;
}

static void objects_have_their_names(void **state)
{
	struct tw_sym_set *set;
	struct tw_sym_object *libc, *cmocka;

	assert_int_equal(tw_sym_load(&set), 0);
	assert_int_equal(set->objects[0].role, TW_SYM_PROGRAM);
	assert_string_equal(set->objects[0].name, "symbols_loaded_test");
	libc = object_named(set, "libc");
	cmocka = object_named(set, "libcmocka");
	assert_non_null(libc);
	assert_non_null(cmocka);
	assert_string_equal(libc->elf.soname, "libc.so.6");
	assert_int_equal(libc->elf.build_id_bytes, 20);
	assert_ptr_equal(tw_sym_object_at(set, (uintptr_t)dlsym(RTLD_DEFAULT, "srandom")), libc);
	assert_ptr_equal(tw_sym_object_at(set, (uintptr_t)objects_have_their_names), &set->objects[0]);
	assert_true(set->loaded_count >= set->count - 1);
	tw_sym_unload(set);
}

static void module_names_lose_what_follows_so(void **state)
{
	static const char *const pairs[][2] = {
		{"/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6", "libsqlite3"},
		{"libpython3.11.so.1.0", "libpython3.11"},
		{"/usr/bin/sqlite3", "sqlite3"},
		{"_json.cpython-311-x86_64-linux-gnu.so", "_json.cpython-311-x86_64-linux-gnu"},
		{"/x/libsomething.sound", "libsomething.sound"},
		{"/x/.so", ".so"},
		{"ld-linux-x86-64.so.2", "ld-linux-x86-64"},
	};
	char out[64], small[5];

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		tw_sym_module_name(pairs[i][0], out, sizeof out);
		assert_string_equal(out, pairs[i][1]);
	}
	tw_sym_module_name("libsqlite3.so", small, sizeof small);
	assert_string_equal(small, "libs");
}

static void check_slot(const struct tw_sym_set *set, const struct tw_sym_slot *slot)
{
	Dl_info info;

	assert_non_null(slot->function);
	assert_int_equal((uintptr_t)slot->where % 8, 0);
	if (slot->refusal)
		return;
	assert_non_null(slot->target);
	assert_non_null(slot->definer);
	assert_true(tw_elf_is_code(&slot->definer->elf, (uintptr_t)slot->target));
	assert_true(dladdr(slot->target, &info));
	assert_ptr_equal(info.dli_fbase, (void *)slot->definer->elf.image.low);
	if (!slot->was_unbound)
		assert_ptr_equal(*slot->where, slot->target);
}

static void every_slot_leads_somewhere(void **state)
{
	struct tw_sym_set *set;
	const uint64_t from_ns = now_ns();
	size_t good = 0, refused[TW_SYM_REFUSALS] = {0};

	assert_int_equal(tw_sym_load(&set), 0);
	for (size_t i = 0; i < set->count; i++) {
		struct tw_sym_slot *slots;
		size_t count;

		assert_int_equal(tw_sym_slots(set, &set->objects[i], NULL, &slots, &count), 0);
		for (size_t j = 0; j < count; j++) {
			check_slot(set, &slots[j]);
			refused[slots[j].refusal]++;
			good += !slots[j].refusal;
		}
		free(slots);
	}
	const uint64_t to_ns = now_ns();
	assert_true(good > 50);
	assert_true(refused[TW_SYM_NEVER] > 0);
	assert_true(refused[TW_SYM_NOT_FUNCTION] > 0);
	printf("%zu objects, %zu slots good, %.2f ms\n", set->count, good, (double)(to_ns - from_ns) / 1e6);
	for (int i = 1; i < TW_SYM_REFUSALS; i++)
		if (refused[i])
			printf("%5zu %s\n", refused[i], tw_sym_refusal_text(i));
	tw_sym_unload(set);
}

static bool wants(const char *function, void *arg)
{
	return !strcmp(function, arg);
}

static bool suits(const struct tw_sym_slot *slot, void *arg)
{
	return !slot->refusal && slot->definer && !strcmp(slot->definer->name, "libc");
}

static void one_function_is_found_by_name(void **state)
{
	const struct tw_sym_wish wish = {.wants = wants, .arg = "srandom"};
	struct tw_sym_set *set;
	struct tw_sym_slot *slots;
	size_t count;

	srandom(1);
	assert_int_equal(tw_sym_load(&set), 0);
	assert_int_equal(tw_sym_slots(set, &set->objects[0], &wish, &slots, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(slots[0].refusal, TW_SYM_OK);
	assert_string_equal(slots[0].definer->name, "libc");
	assert_string_equal(slots[0].version, "GLIBC_2.2.5");
	assert_ptr_equal(slots[0].target, dlsym(RTLD_DEFAULT, "srandom"));
	free(slots);
	tw_sym_unload(set);
}

/* Code that uses a slot as a value is detected only if its definer is requested. */
static size_t skip_taken(const struct tw_sym_slot *slots, size_t at, size_t count)
{
	while (at < count && slots[at].refusal == TW_SYM_ADDRESS_TAKEN)
		at++;
	return at;
}

/* The slots that match are the same as without a filter, in the same order, and there are no others. */
static void slots_are_chosen_by_their_definer(void **state)
{
	const struct tw_sym_wish wish = {.suits = suits};
	struct tw_sym_set *set;
	size_t chosen = 0;

	assert_int_equal(tw_sym_load(&set), 0);
	for (size_t i = 0; i < set->count; i++) {
		struct tw_sym_slot *all, *some;
		size_t all_count, some_count, at = 0;

		assert_int_equal(tw_sym_slots(set, &set->objects[i], NULL, &all, &all_count), 0);
		assert_int_equal(tw_sym_slots(set, &set->objects[i], &wish, &some, &some_count), 0);
		for (size_t j = 0; j < all_count; j++) {
			if (!suits(&all[j], NULL))
				continue;
			at = skip_taken(some, at, some_count);
			assert_true(at < some_count);
			assert_ptr_equal(some[at].where, all[j].where);
			assert_ptr_equal(some[at].target, all[j].target);
			at++;
		}
		at = skip_taken(some, at, some_count);
		assert_int_equal(at, some_count);
		chosen += some_count;
		free(all);
		free(some);
	}
	assert_true(chosen > 20);
	tw_sym_unload(set);
}

static void a_pin_holds_and_lets_go(void **state)
{
	struct tw_sym_set *set, *after;
	void *handle = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL), *pin;
	unsigned sum = 0;

	if (!handle)
		skip();
	assert_int_equal(tw_sym_load(&set), 0);
	assert_non_null(object_named(set, "libsqlite3"));
	assert_true(tw_sym_pin(object_named(set, "libsqlite3"), &pin));
	dlclose(handle);
	assert_int_equal(tw_sym_load(&after), 0);
	assert_non_null(object_named(after, "libsqlite3"));
	tw_sym_unload(after);
	tw_sym_unpin(pin);
	assert_int_equal(tw_sym_load(&after), 0);
	assert_null(object_named(after, "libsqlite3"));
	assert_true(after->unloaded_count > set->unloaded_count);
	assert_false(tw_sym_pin(object_named(set, "libsqlite3"), &pin));
	/* The names outlive it: examining other objects reads it without a pin. */
	assert_string_equal(object_named(set, "libsqlite3")->elf.soname, "libsqlite3.so.0");
	assert_int_equal(object_named(set, "libsqlite3")->elf.build_id_bytes, 20);
	for (unsigned i = 0; i < 20; i++)
		sum |= object_named(set, "libsqlite3")->elf.build_id[i];
	assert_int_not_equal(sum, 0);
	tw_sym_unload(after);
	tw_sym_unload(set);
}

static void lists_know_their_names(void **state)
{
	assert_true(tw_sym_is_never("__tls_get_addr"));
	assert_true(tw_sym_is_never("mcount"));
	assert_false(tw_sym_is_never("malloc"));
	assert_true(tw_sym_is_never_returning("libc.so.6", "_setjmp"));
	assert_true(tw_sym_is_never_returning("libstdc++.so.6", "__cxa_throw"));
	assert_false(tw_sym_is_never_returning("libc.so.6", "malloc"));
	static const char *const words[] = {"err", "clone", "exit", "verr", "savectx"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		assert_true(tw_sym_is_never_returning("libc.so.6", words[i]));
		assert_true(tw_sym_is_never_returning(NULL, words[i]));
		assert_false(tw_sym_is_never_returning("", words[i]));
		assert_false(tw_sym_is_never_returning("libown.so.1", words[i]));
	}
	assert_true(tw_sym_is_never_returning("", "swapcontext"));
	assert_true(tw_sym_may_return_once("", "vfork"));
	assert_false(tw_sym_may_return_once("", "swapcontext"));
	assert_false(tw_sym_may_return_once("libc.so.6", "vfork"));
	assert_false(tw_sym_may_return_once(NULL, "vfork"));
	assert_int_equal(tw_sym_role_of("/x/libtracewheel.so.0", ""), TW_SYM_ROLE_OWN);
	assert_int_equal(tw_sym_role_of("/x/copy.so", "libtracewheel-agent.so"), TW_SYM_ROLE_OWN);
	assert_int_equal(tw_sym_role_of("/lib/liburcu-memb.so.8", "liburcu-memb.so.8"), TW_SYM_ORDINARY);
	assert_int_equal(tw_sym_role_of("/lib64/ld-linux-x86-64.so.2", ""), TW_SYM_ROLE_LOADER);
	for (int i = 0; i < TW_SYM_REFUSALS; i++)
		assert_true(strlen(tw_sym_refusal_text(i)) > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_have_their_names),
		cmocka_unit_test(module_names_lose_what_follows_so),
		cmocka_unit_test(every_slot_leads_somewhere),
		cmocka_unit_test(one_function_is_found_by_name),
		cmocka_unit_test(slots_are_chosen_by_their_definer),
		cmocka_unit_test(a_pin_holds_and_lets_go),
		cmocka_unit_test(lists_know_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
