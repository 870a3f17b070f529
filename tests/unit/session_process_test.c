/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	tw_trace_process() sets and clears flags as trace:process/4 does: its return value, its refusals, and the
 *	processes it leaves alone.
 * Method	Processes that the test declares, beside its own thread; flags as they are reported afterwards.  Each case is
 *	named by its lines in docs/semantics.md.
 */
#include "tests/unit/session_bed.h"
#include "session/tracee.h"
#include "tracewheel/queue.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tw_declared_function f = TW_DECLARED_FUNCTION("process", "f", 0);

static uint32_t flags_of(struct tw_session *s, tw_pid pid)
{
	uint32_t flags = UINT32_MAX;

	assert_int_equal(tw_trace_process_flags(s, pid, &flags), 0);
	return flags;
}

static struct tw_process *make(void)
{
	struct tw_process *process;

	assert_int_equal(tw_process_create("p", &process), 0);
	return process;
}

static void line_31_32_counts(void **state)
{
	struct tw_process *p[10];
	struct bed bed;
	tw_pid self = tw_process_self();

	open_bed(&bed, "counts");
	assert_int_equal(tw_trace_process(bed.session, TW_PID_EXISTING, true, TW_FLAG_CALL), 1);
	for (int i = 0; i < 10; i++)
		p[i] = make();
	assert_int_equal(tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL), 11);
	assert_int_equal(tw_trace_process(bed.session, TW_PID_EXISTING, true, TW_FLAG_CALL), 11);
	assert_int_equal(tw_trace_process(bed.session, TW_PID_NEW, true, TW_FLAG_CALL), 0);
	assert_int_equal(tw_trace_process(bed.session, self, true, TW_FLAG_CALL), 1);
	assert_int_equal(tw_trace_process(bed.session, self, false, TW_FLAG_SEND), 1);
	assert_int_equal(tw_trace_process(bed.session, self, true, 0), 1);
	assert_int_equal(flags_of(bed.session, self), TW_FLAG_CALL);
	for (int i = 0; i < 10; i++)
		tw_process_exit(p[i]);
	assert_int_equal(tw_trace_process(bed.session, TW_PID_ALL, false, TW_FLAG_CALL), 1);
	close_bed(&bed);
}

static void line_33_34_35_bad_arguments_change_nothing(void **state)
{
	struct tw_process *process = make();
	tw_pid self = tw_process_self(), dead = tw_process_pid(process);
	const tw_pid who[] = {self, TW_PID_EXISTING, TW_PID_NEW, TW_PID_ALL};
	struct bed bed;

	tw_process_exit(process);
	open_bed(&bed, "bad");
	assert_int_equal(tw_trace_process(bed.session, dead, true, TW_FLAG_CALL), TW_EBADARG);
	assert_int_equal(tw_trace_process(bed.session, 0, true, TW_FLAG_CALL), TW_EBADARG);
	assert_int_equal(tw_trace_process(NULL, self, true, TW_FLAG_CALL), TW_EBADARG);
	for (size_t i = 0; i < TW_COUNT_OF(who); i++) {
		for (unsigned bit = 22; bit < 32; bit++)
			assert_int_equal(tw_trace_process(bed.session, who[i], true, TW_FLAG_CALL | 1u << bit),
					 TW_EBADARG);
		if (who[i] != TW_PID_ALL)
			assert_int_equal(tw_trace_process(bed.session, who[i], true,
							  TW_FLAG_CALL | TW_FLAG_CPU_TIMESTAMP),
					 TW_EBADARG);
	}
	assert_int_equal(flags_of(bed.session, self), 0);
	assert_int_equal(flags_of(bed.session, TW_PID_NEW), 0);
	close_bed(&bed);
}

static void line_37_38_existing_and_new(void **state)
{
	struct tw_process *old = make(), *while_on, *after;
	struct bed bed;

	open_bed(&bed, "new");
	tw_trace_process(bed.session, TW_PID_NEW, true, TW_FLAG_SEND);
	while_on = make();
	tw_trace_process(bed.session, TW_PID_NEW, false, TW_FLAG_SEND);
	after = make();
	assert_int_equal(flags_of(bed.session, tw_process_pid(old)), 0);
	assert_int_equal(flags_of(bed.session, tw_process_pid(while_on)), TW_FLAG_SEND);
	assert_int_equal(flags_of(bed.session, tw_process_pid(after)), 0);
	assert_int_equal(flags_of(bed.session, TW_PID_NEW), 0);
	tw_process_exit(while_on);
	tw_trace_process(bed.session, TW_PID_EXISTING, true, TW_FLAG_CALL);
	while_on = make();
	assert_int_equal(flags_of(bed.session, tw_process_pid(old)), TW_FLAG_CALL);
	assert_int_equal(flags_of(bed.session, tw_process_pid(while_on)), 0);
	tw_process_exit(while_on);
	tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_PROCS);
	while_on = make();
	assert_int_equal(flags_of(bed.session, tw_process_pid(old)), TW_FLAG_CALL | TW_FLAG_PROCS);
	assert_int_equal(flags_of(bed.session, tw_process_pid(while_on)), TW_FLAG_PROCS);
	tw_process_exit(while_on);
	tw_process_exit(old);
	tw_process_exit(after);
	close_bed(&bed);
}

static void line_39_45_only_the_flags_named_and_only_in_this_session(void **state)
{
	tw_pid self = tw_process_self();
	struct bed a, b;

	open_bed(&a, "a");
	open_bed(&b, "b");
	tw_trace_process(a.session, self, true, TW_FLAG_CALL | TW_FLAG_SEND);
	tw_trace_process(b.session, self, true, TW_FLAG_CALL | TW_FLAG_SILENT);
	assert_int_equal(tw_trace_process(a.session, self, false, TW_FLAG_CALL | TW_FLAG_PROCS | TW_FLAG_TIMESTAMP), 1);
	assert_int_equal(flags_of(a.session, self), TW_FLAG_SEND);
	assert_int_equal(flags_of(b.session, self), TW_FLAG_CALL | TW_FLAG_SILENT);
	close_bed(&a);
	assert_int_equal(flags_of(b.session, self), TW_FLAG_CALL | TW_FLAG_SILENT);
	close_bed(&b);
}

static _Atomic int step;
static tw_pid worker_pid;

/* Runs in a loop that makes calls; reports when it has seen a step. */
static void *work(void *unused)
{
	worker_pid = tw_process_self();
	step = 1;
	while (step < 3) {
		if (step == 2)
			continue; /* no call, no system call: nothing that a switch could wait for */
		tw_call0(&f);
	}
	return NULL;
}

static void line_44_the_effect_is_there_when_the_call_returns(void **state)
{
	struct bed bed;
	pthread_t thread;

	open_bed(&bed, "effect");
	assert_int_equal(tw_trace_function(bed.session, "process", "f", 0, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	step = 0;
	pthread_create(&thread, NULL, work, NULL);
	while (step < 1)
		;
	for (int i = 0; i < 200; i++) {
		tw_trace_process(bed.session, i % 2 ? worker_pid : TW_PID_ALL, true, TW_FLAG_CALL);
		if (i % 10 == 0)
			step = 2;
		assert_true(tw_trace_process(bed.session, i % 2 ? worker_pid : TW_PID_ALL, false, TW_FLAG_CALL) >= 1);
		count_events(&bed);
		if (i % 10 == 0)
			step = 1;
		for (volatile int wait = 0; wait < 1000; wait++)
			;
		assert_int_equal(count_events(&bed), 0);
	}
	step = 3;
	pthread_join(thread, NULL);
	close_bed(&bed);
}

/* After 2^32 processes ids start again, beside living ones, and their runs continue. */
/* A scheduler's child runs no process until it reports one; it does not run the parent's. */
static void *fork_inside_of_a_process(void *arg)
{
	struct tw_process *process = arg;
	int status;
	pid_t child;

	assert_int_equal(tw_scheduler_declare(), 0);
	tw_process_in(process);
	child = fork();
	if (child == 0)
		_exit(tw_process_self() == tw_process_pid(process) ? 1 : 0);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(tw_process_self(), tw_process_pid(process));
	tw_process_out();
	return NULL;
}

static void a_child_runs_none_of_the_parents_processes(void **state)
{
	struct tw_process *process;
	pthread_t thread;

	assert_int_equal(tw_process_create("forking", &process), 0);
	pthread_create(&thread, NULL, fork_inside_of_a_process, process);
	pthread_join(thread, NULL);
	tw_process_exit(process);
}

static void ids_that_begin_anew_are_nobody_elses(void **state)
{
	tw_pid self = tw_process_self();
	struct tw_process *old = make(), *before, *p[4];
	uint64_t reference;
	struct bed bed;

	open_bed(&bed, "ids");
	tw_tracee_ids_go_on_at(UINT32_MAX);
	before = make();
	assert_int_equal(tw_process_pid(before), UINT32_MAX);
	for (int i = 0; i < 4; i++) {
		struct tw_tracee *tracee;

		p[i] = make();
		tracee = (struct tw_tracee *)p[i];
		assert_in_range(tw_process_pid(p[i]), 1, 100);
		assert_int_not_equal(tw_process_pid(p[i]), self);
		assert_int_not_equal(tw_process_pid(p[i]), tw_process_pid(old));
		assert_true(tracee->run_seq >= (uint64_t)1 << 40);
		assert_int_equal(tw_trace_process(bed.session, tw_process_pid(p[i]), true, TW_FLAG_CALL), 1);
		assert_int_equal(flags_of(bed.session, tw_process_pid(p[i])), TW_FLAG_CALL);
	}
	assert_int_equal(flags_of(bed.session, tw_process_pid(old)), 0);
	assert_int_equal(flags_of(bed.session, UINT32_MAX), 0);
	tw_process_exit(before);
	assert_int_equal(tw_delivered(bed.session, UINT32_MAX, &reference), 0);
	for (int i = 0; i < 4; i++)
		tw_process_exit(p[i]);
	tw_process_exit(old);
	close_bed(&bed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_31_32_counts),
		cmocka_unit_test(line_33_34_35_bad_arguments_change_nothing),
		cmocka_unit_test(line_37_38_existing_and_new),
		cmocka_unit_test(line_39_45_only_the_flags_named_and_only_in_this_session),
		cmocka_unit_test(line_44_the_effect_is_there_when_the_call_returns),
		cmocka_unit_test(a_child_runs_none_of_the_parents_processes),
		cmocka_unit_test(ids_that_begin_anew_are_nobody_elses),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	assert_int_equal(tw_function_declare(&f), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
