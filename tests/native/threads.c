/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	69 to 71, 75, 76, 242 for plain threads: a thread made by pthread_create inherits its creator's flags, in each
 *	session separately, before its first function begins; it runs its function; no thread is left.
 * Method	A library makes the threads, which report their own identity; two sessions.
 */
#include "tests/unit/session_bed.h"

#include <pthread.h>

int make_thread(pthread_t *thread, void *(*function)(void *), void *arg);

static struct tw_session *a, *b;

struct born {
	uint32_t of_a, of_b;
	tw_pid pid;
	struct born *child; /* makes one itself */
	bool exits;
};

static void *tell(void *arg)
{
	struct born *born = arg;
	pthread_t thread;

	born->pid = tw_process_self();
	assert_int_equal(tw_trace_process_flags(a, born->pid, &born->of_a), 0);
	assert_int_equal(tw_trace_process_flags(b, born->pid, &born->of_b), 0);
	if (born->child) {
		assert_int_equal(make_thread(&thread, tell, born->child), 0);
		pthread_join(thread, NULL);
	}
	if (born->exits)
		pthread_exit(&born->pid);
	return &born->pid;
}

static struct born spawn(struct born born)
{
	pthread_t thread;
	void *result;

	assert_int_equal(make_thread(&thread, tell, &born), 0);
	pthread_join(thread, &result);
	assert_ptr_equal(result, &born.pid);
	return born;
}

static uint32_t own_flags(struct tw_session *session)
{
	uint32_t flags = 0;

	tw_trace_process_flags(session, tw_process_self(), &flags);
	return flags;
}

static int change(struct tw_session *session, bool how, uint32_t flags)
{
	return tw_trace_process(session, tw_process_self(), how, flags);
}

static int begin(void **state)
{
	return tw_session_create("a", NULL, &a) || tw_session_create("b", NULL, &b);
}

static int end(void **state)
{
	/* Only this thread. */
	assert_int_equal(tw_trace_process(a, TW_PID_EXISTING, false, TW_FLAG_ALL), 1);
	tw_session_destroy(a);
	tw_session_destroy(b);
	tw_session_put(a);
	tw_session_put(b);
	return 0;
}

static void line_69_75_76_all_children_inherit(void **state)
{
	const uint32_t flags = TW_FLAG_CALL | TW_FLAG_SET_ON_SPAWN;
	struct born child = {0}, grandchild = {0};

	child = spawn((struct born){0});
	assert_int_equal(child.of_a | child.of_b, 0);
	assert_int_equal(change(a, true, flags), 1);
	child = spawn((struct born){.child = &grandchild, .exits = true});
	assert_int_equal(child.of_a, flags);
	assert_int_equal(grandchild.of_a, flags);
	assert_int_equal(child.of_b | grandchild.of_b, 0);
	assert_true(grandchild.pid > child.pid && child.pid > tw_process_self());
	/* The other session has its own flags. */
	assert_int_equal(change(b, true, TW_FLAG_SEND | TW_FLAG_SET_ON_SPAWN), 1);
	assert_int_equal(change(a, false, TW_FLAG_SET_ON_SPAWN), 1);
	child = spawn((struct born){0});
	assert_int_equal(child.of_a, 0);
	assert_int_equal(child.of_b, TW_FLAG_SEND | TW_FLAG_SET_ON_SPAWN);
	assert_int_equal(change(b, false, TW_FLAG_ALL), 1);
	child = spawn((struct born){0});
	assert_int_equal(child.of_a | child.of_b, 0);
}

static void line_70_71_the_first_child_only(void **state)
{
	struct born child;

	change(a, true, TW_FLAG_CALL | TW_FLAG_SET_ON_FIRST_SPAWN | TW_FLAG_SET_ON_SPAWN);
	child = spawn((struct born){0});
	assert_int_equal(child.of_a, TW_FLAG_CALL);
	assert_int_equal(own_flags(a), TW_FLAG_CALL);
	child = spawn((struct born){0});
	assert_int_equal(child.of_a, 0);
}

static void *tell_at_once(void *arg)
{
	struct born *born = arg;

	tw_trace_process_flags(a, tw_process_self(), &born->of_a);
	born->pid = tw_process_self();
	return NULL;
}

static void many_at_once_are_all_somebody(void **state)
{
	enum { THREADS = 64 };
	static struct born born[THREADS];
	pthread_t threads[THREADS];

	change(a, true, TW_FLAG_CALL | TW_FLAG_SET_ON_SPAWN);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(make_thread(&threads[i], tell_at_once, &born[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(born[i].of_a, TW_FLAG_CALL | TW_FLAG_SET_ON_SPAWN);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(born[i].pid, born[k].pid);
	}
}

struct heir {
	struct tw_term token;
	struct tw_arena arena;
	char buffer[512];
	struct heir *child;
};

static void *tell_token(void *arg)
{
	struct heir *heir = arg;
	pthread_t thread;

	tw_arena_init_fixed(&heir->arena, heir->buffer, sizeof heir->buffer);
	heir->token = tw_seq_token_term(&heir->arena);
	if (heir->child) {
		assert_int_equal(make_thread(&thread, tell_token, heir->child), 0);
		pthread_join(thread, NULL);
	}
	return NULL;
}

static int64_t number_at(const struct heir *heir, unsigned index)
{
	int64_t number = -1;

	tw_term_get_int64(tw_term_element(heir->token, index), &number);
	return number;
}

static void line_242_a_thread_inherits_the_token(void **state)
{
	struct heir first = {0}, second = {0}, third = {.child = &second};
	pthread_t thread;

	/* Without a token, and before any: nothing. */
	assert_int_equal(make_thread(&thread, tell_token, &first), 0);
	pthread_join(thread, NULL);
	assert_int_equal(tw_term_type(first.token), TW_TYPE_NIL);
	assert_int_equal(tw_seq_set_label(tw_term_integer(NULL, 42)), 0);
	assert_int_equal(make_thread(&thread, tell_token, &third), 0);
	pthread_join(thread, NULL);
	/* Request {0,1} and reply {1,2}; then the next request {1,3} and reply {3,4}. */
	assert_int_equal(number_at(&third, 1), 42);
	assert_int_equal(number_at(&third, 2), 2);
	assert_int_equal(number_at(&third, 4), 1);
	assert_int_equal(number_at(&second, 1), 42);
	assert_int_equal(number_at(&second, 2), 4);
	assert_int_equal(number_at(&second, 4), 3);
	assert_int_equal(tw_seq_reset_trace(), 0);
	assert_int_equal(make_thread(&thread, tell_token, &first), 0);
	pthread_join(thread, NULL);
	assert_int_equal(tw_term_type(first.token), TW_TYPE_NIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(line_69_75_76_all_children_inherit, begin, end),
		cmocka_unit_test_setup_teardown(line_70_71_the_first_child_only, begin, end),
		cmocka_unit_test_setup_teardown(many_at_once_are_all_somebody, begin, end),
		cmocka_unit_test_setup_teardown(line_242_a_thread_inherits_the_token, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
