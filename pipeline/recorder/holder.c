/* SPDX-License-Identifier: Apache-2.0 */
/* holder.c - a child that waits for jobs in memory that it shares with the recorder. */
#include "pipeline/recorder/holder.h"

#include "base/clock.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A holder that has not answered for this long stands still somewhere. */
#define BUSY_NS_MAX UINT64_C(5000000000)
#define END_NS	    UINT64_C(1000000000)

struct tw_holder_shared {
	_Atomic uint32_t wanted; /* PAIR holder.wanted; a futex: the number of the job */
	_Atomic uint32_t done;	 /* PAIR holder.done; a futex: the number of the last job done */
	struct tw_holder_job job;
};

/* ---- in the holder ---- */

/* The recorder's files are closed: whoever waits for the end of one must not wait for us. */
static void leave_recorder(void)
{
	int nothing = open("/dev/null", O_RDWR);

	for (int i = 0; i < 3; i++)
		if (nothing < 0 || dup2(nothing, i) < 0)
			close(i);
	close_range(3, ~0U, 0);
	/* Not a session: the kernel's autogroups left one without a processor for seconds, on a busy machine. */
	setpgid(0, 0);
}

static void serve(struct tw_holder *holder, const struct tw_rs *rs)
{
	struct tw_holder_shared *shared = holder->shared;
	uint32_t done = 0;

	leave_recorder();
	if (!tw_hold_guard(&holder->held.hold))
		_exit(1);
	for (;;) {
		/* PAIR holder.wanted: acquire; release in tw_holder_begin().  The job. */
		uint32_t wanted = tw_load_acquire(&shared->wanted);

		if (wanted == done) {
			tw_sys_futex_wait(&shared->wanted, wanted, UINT64_MAX);
			continue;
		}
		shared->job.run(&holder->held, rs, &shared->job);
		done = wanted;
		/* PAIR holder.done: release; acquire in tw_holder_look().  The result. */
		tw_store_release(&shared->done, done);
		tw_sys_futex_wake(&shared->done, 1);
		/* A thread that still has not stopped is let go by our end. */
		if (holder->held.hold.late_count)
			_exit(0);
	}
}

/* ---- in the recorder ---- */

static bool is_alive(struct tw_holder *holder)
{
	siginfo_t info = {0};

	/* A forked child of the recorder's process has none. */
	if (!holder->process_id || holder->parent_id != getpid())
		return false;
	if (waitid(P_PID, (id_t)holder->process_id, &info, WEXITED | WNOHANG | __WALL) && errno != EINTR)
		info.si_pid = holder->process_id;
	if (info.si_pid)
		holder->process_id = 0;
	return holder->process_id != 0;
}

static bool make_shared(struct tw_holder *holder)
{
	void *memory = holder->shared;

	if (!memory)
		memory = mmap(NULL, sizeof *holder->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	holder->shared = memory;
	return true;
}

static void start(struct tw_holder *holder, const struct tw_rs *rs)
{
	int child = tw_sys_fork("tw-holder");

	if (child == 0)
		serve(holder, rs);
	holder->parent_id = getpid();
	holder->process_id = child > 0 ? child : 0;
}

/* False: there is no memory. */
static bool has_memory(struct tw_holder *holder)
{
	if (!is_alive(holder))
		tw_holder_end(holder);
	return make_shared(holder);
}

void tw_holder_prepare(struct tw_holder *holder, const struct tw_rs *rs)
{
	if (has_memory(holder) && !holder->process_id)
		start(holder, rs);
}

void tw_holder_begin(struct tw_holder *holder, const struct tw_rs *rs, const struct tw_holder_job *job)
{
	holder->begun_ns = tw_clock_monotonic_ns();
	if (!has_memory(holder))
		return;
	holder->shared->job = *job;
	if (!holder->process_id)
		start(holder, rs);
	holder->job_number++;
	/* PAIR holder.wanted: release; acquire in serve(). */
	tw_store_release(&holder->shared->wanted, holder->job_number);
	tw_sys_futex_wake(&holder->shared->wanted, 1);
}

enum tw_holder_state tw_holder_look(struct tw_holder *holder, struct tw_holder_job *out)
{
	bool is_here = is_alive(holder);

	if (!holder->shared)
		return TW_HOLDER_ENDED;
	/* PAIR holder.done: acquire; release in serve(). */
	if (tw_load_acquire(&holder->shared->done) == holder->job_number) {
		*out = holder->shared->job;
		return TW_HOLDER_DONE;
	}
	if (is_here && tw_clock_monotonic_ns() - holder->begun_ns > BUSY_NS_MAX)
		kill(holder->process_id, SIGKILL);
	/* Stopped where it holds nothing. */
	else if (is_here)
		kill(holder->process_id, SIGCONT);
	return is_here ? TW_HOLDER_BUSY : TW_HOLDER_ENDED;
}

void tw_holder_wait(const struct tw_holder *holder)
{
	uint32_t before = holder->job_number - 1;

	if (holder->shared)
		tw_sys_futex_wait(&holder->shared->done, before, TW_HOLDER_LOOK_NS);
}

void tw_holder_end(struct tw_holder *holder)
{
	if (holder->process_id && holder->parent_id == getpid()) {
		kill(holder->process_id, SIGKILL);
		/* One that waits for a device does not end yet; nothing needs its end. */
		tw_sys_await_end(holder->process_id, END_NS);
	}
	holder->process_id = 0;
	if (holder->shared)
		munmap(holder->shared, sizeof *holder->shared);
	holder->shared = NULL;
	holder->job_number = 0;
}
