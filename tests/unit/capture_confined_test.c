/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A recorder soon sees that a traced thread has set a seccomp filter without libc, and says so in the word that
 *	the thread's process reads; for a thread without a filter it says nothing.
 * Method	A child with a ring sets a filter that allows everything, by the bare system call, and goes on writing.
 *	"Soon" is counted in rounds of the recorder with a pause of a millisecond, of which there are many more in a
 *	second.
 */
#include "capture_help.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { ROUNDS_BEFORE = 20, ROUNDS_MAX = 250 };

static int to_child[2], from_child[2];

static long bare_call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static void pause_1_ms(void)
{
	nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void write_record(struct tw_rb_producer *producer)
{
	void *space;

	if (tw_rb_reserve(producer, 32, 1, &space) != TW_RB_OK)
		return;
	memset(space, 0, 32);
	((uint64_t *)space)[1] = TW_RB_HEAD(TW_EVENT_CALL, 0, 32, 1);
	tw_rb_commit(producer, 32);
}

/* Writes, and sets its filter on request. */
static void live(const char *path)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {1, allow};
	struct tw_rs_claim who = {.scheduler_id = 1, .tracee_id = 1};
	struct tw_rb_producer producer;
	struct tw_rs member;
	uint32_t image;
	char answer = 'n';

	if (tw_rs_attach(&member, path) || tw_rs_image_claim(&member, &image) ||
	    !tw_rs_ring_claim(&member, &who, &producer))
		_exit(2);
	write(from_child[1], "r", 1);
	fcntl(to_child[0], F_SETFL, O_NONBLOCK);
	for (bool is_set = false;; pause_1_ms()) {
		write_record(&producer);
		if (is_set || read(to_child[0], &answer, 1) != 1)
			continue;
		bare_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);
		is_set = bare_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program) == 0;
		write(from_child[1], is_set ? "s" : "n", 1);
	}
}

static void a_filter_is_soon_seen(void **unused)
{
	struct tw_recorder_options options = {.path = capture_path, .ring_bytes = 1 << 22};
	struct tw_recorder *recorder;
	_Atomic uint32_t *seen;
	unsigned rounds = 0;
	char answer;
	pid_t child;

	assert_int_equal(pipe(to_child) | pipe(from_child), 0);
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	seen = &tw_recorder_ring_set(recorder)->control->slots[0].filter_seen;
	child = fork();
	if (child == 0)
		live(tw_recorder_ring_set_path(recorder));
	assert_int_equal(read(from_child[0], &answer, 1), 1);
	for (unsigned i = 0; i < ROUNDS_BEFORE; i++, pause_1_ms())
		tw_recorder_poll(recorder, 0);
	assert_int_equal(atomic_load(seen), 0);
	write(to_child[1], "s", 1);
	assert_int_equal(read(from_child[0], &answer, 1), 1);
	for (; answer == 's' && !atomic_load(seen) && rounds < ROUNDS_MAX; rounds++, pause_1_ms())
		tw_recorder_poll(recorder, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	tw_recorder_abort(recorder);
	if (answer == 's')
		assert_true(rounds < ROUNDS_MAX);
	else
		print_message("filters are refused here: not tested\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_filter_is_soon_seen)};

	tw_clock_init();
	return RUN_IN_DIRECTORY(tests);
}
