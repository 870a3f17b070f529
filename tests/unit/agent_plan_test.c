/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    The text of the control page becomes a configuration, and that becomes a list of slots: the requested callers
 *         and functions, and nothing that must not be traced.
 * Method  Configurations as the command writes them, applied to this process itself.
 */
#include "agent/agent.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct tw_agent_config configure(const char *text)
{
	struct tw_agent_config config;

	assert_int_equal(tw_agent_config_parse(text, strlen(text), &config), 0);
	return config;
}

static struct tw_plan *plan_of(const char *text)
{
	struct tw_agent_config config = configure(text);
	struct tw_plan *plan;

	assert_int_equal(tw_plan_make(&config, NULL, NULL, &plan), 0);
	tw_agent_config_fini(&config);
	return plan;
}

static void lines_become_a_configuration(void **state)
{
	struct tw_agent_config config = configure("");

	assert_int_equal(config.pattern_count, 0);
	assert_false(config.has_all_callers);
	tw_agent_config_fini(&config);

	config = configure("pattern libc:_/_\npattern libm:s*\nfuture key\narguments 2\nnoise\npattern /\n");
	assert_int_equal(config.pattern_count, 2);
	assert_true(config.has_all_callers);
	assert_int_equal(config.argument_words, 2);
	tw_agent_config_fini(&config);

	assert_false(config.has_arities);
	config = configure("pattern app:{a/1,b}\nexclude app:c*\nalias typed /usr/bin/app one\n");
	assert_int_equal(config.pattern_count, 1);
	assert_int_equal(config.excluded_count, 1);
	assert_true(config.has_arities);
	assert_string_equal(config.alias, "typed");
	assert_string_equal(config.alias_path, "/usr/bin/app one");
	tw_agent_config_fini(&config);

	config = configure("vectors 2696 231\n");
	assert_true(config.vectors.bytes == 2696 && config.vectors.mask == 231);
	tw_agent_config_fini(&config);

	config = configure("pattern _:_\ncallers main\narguments 99");
	assert_int_equal(config.pattern_count, 1);
	assert_false(config.has_all_callers);
	assert_int_equal(config.argument_words, 6);
	tw_agent_config_fini(&config);
}

static size_t count_of(const struct tw_plan *plan, const char *caller, const char *definer, const char *function)
{
	size_t count = 0;

	for (size_t i = 0; i < plan->count; i++) {
		const struct tw_plan_slot *slot = &plan->slots[i];

		count += (!caller || !strcmp(plan->set->objects[slot->caller].name, caller)) &&
			 (!definer || !strcmp(plan->set->objects[slot->definer].name, definer)) &&
			 (!function || !strcmp(slot->function, function));
	}
	return count;
}

static void without_patterns_the_program_calls(void **state)
{
	struct tw_plan *plan = plan_of("");

	srandom(1);
	assert_true(plan->count > 10);
	assert_int_equal(count_of(plan, "agent_plan_test", NULL, NULL), plan->count);
	assert_int_equal(count_of(plan, NULL, "agent_plan_test", NULL), 0);
	assert_int_equal(count_of(plan, NULL, "libc", "srandom"), 1);
	assert_int_equal(count_of(plan, NULL, NULL, "__cxa_finalize"), 0);
	assert_int_equal(count_of(plan, NULL, NULL, "stderr"), 0);
	tw_plan_destroy(plan);
}

static void patterns_choose(void **state)
{
	struct tw_plan *plan = plan_of("pattern libc:srandom/_\n");

	assert_int_equal(plan->count, 1);
	tw_plan_destroy(plan);
	plan = plan_of("pattern libc.so.6:srand*\n");
	assert_int_equal(plan->count, 1);
	tw_plan_destroy(plan);
	plan = plan_of("pattern libcmocka:srandom\n");
	assert_int_equal(plan->count, 0);
	assert_true(plan->has_definer);
	tw_plan_destroy(plan);
	/* No slot is examined if no object can define the function; the objects are known all the same. */
	plan = plan_of("pattern libnowhere:_\n");
	assert_false(plan->has_definer);
	assert_true(plan->count == 0 && plan->is_new[0]);
	tw_plan_destroy(plan);
	/* The number of a function's arguments is looked up when it is armed. */
	plan = plan_of("pattern libc:srandom/1\n");
	assert_int_equal(plan->count, 1);
	tw_plan_destroy(plan);
	plan = plan_of("pattern libc:srand*\nexclude libc:srandom\n");
	assert_int_equal(plan->count, 0);
	tw_plan_destroy(plan);
	plan = plan_of("pattern _:_\n");
	assert_true(count_of(plan, "libcmocka", "libc", NULL) > 3);
	assert_true(count_of(plan, "libc", NULL, NULL) > 0);
	tw_plan_destroy(plan);
	plan = plan_of("pattern _:_\nglobal 1\n");
	for (size_t i = 0; i < plan->count; i++)
		assert_int_not_equal(plan->slots[i].caller, plan->slots[i].definer);
	assert_true(count_of(plan, "libcmocka", "libc", NULL) > 3);
	tw_plan_destroy(plan);
	plan = plan_of("pattern _:_\ncallers main\n");
	assert_int_equal(count_of(plan, "libcmocka", NULL, NULL), 0);
	tw_plan_destroy(plan);
}

static void a_named_and_refused_function_gets_a_note(void **state)
{
	struct tw_plan *plan = plan_of("pattern __cxa_finalize\n");

	assert_int_equal(plan->count, 0);
	assert_true(plan->note_count >= 1);
	assert_non_null(strstr(plan->notes[0].text, "__cxa_finalize"));
	tw_plan_destroy(plan);
	plan = plan_of("pattern _:_\n");
	assert_int_equal(plan->note_count, 0);
	tw_plan_destroy(plan);
}

static bool all_but_sqlite(const struct tw_sym_object *object, void *arg)
{
	return strcmp(object->name, "libsqlite3") != 0;
}

static void new_objects_are_pinned(void **state)
{
	void *handle = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
	struct tw_agent_config config = configure("pattern _:_\n");
	struct tw_plan *plan;
	void *value;

	if (!handle)
		skip();
	assert_int_equal(tw_plan_make(&config, all_but_sqlite, NULL, &plan), 0);
	assert_true(plan->count > 20);
	assert_int_equal(count_of(plan, "libsqlite3", NULL, NULL), plan->count);
	dlclose(handle);
	/* Unchanged. */
	value = *plan->slots[0].where;
	assert_non_null(value);
	tw_plan_destroy(plan);
	assert_null(dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_NOLOAD));
	tw_agent_config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_become_a_configuration),
		cmocka_unit_test(without_patterns_the_program_calls),
		cmocka_unit_test(patterns_choose),
		cmocka_unit_test(a_named_and_refused_function_gets_a_note),
		cmocka_unit_test(new_objects_are_pinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
