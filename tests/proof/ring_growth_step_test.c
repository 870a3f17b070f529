/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	While a ring grows, its owner finds every record of the stream at each moment: a ring that has ENDED leads to a
 *	larger one that is LIVE, and a LIVE ring continues where the one before it ended.
 * Method	A parent that owns the set single-steps a child through each of its calls of tw_rs_ring_grow(), which block
 *	signals. Before each instruction the parent scans the set, and follows the stream from its first ring. The last
 *	attempt finds no larger ring.
 */
#include "base/clock.h"
#include "ringbuf/ringset.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child stops here: before the calls that are stepped, and after them. */
#define MARK() __asm__ volatile("int3" ::: "memory")

enum { EXIT_REFUSED = 77, GROWN = 2 }; /* 64 KiB, 256 KiB, 1 MiB */

/* Shared with the child. */
struct shared {
	uint64_t made;
	unsigned grown;
};

static struct tw_rs owner;
static volatile struct shared *shared;
static uint64_t lease;
static long steps;
static unsigned changes, wrong;

static void complain(const char *what)
{
	if (wrong++ < 5)
		printf("FAIL: before instruction %ld: %s\n", steps, what);
}

/* The records in one ring of the stream; notes where the next ring must begin. */
static uint64_t count_records(const struct tw_rb_shared *ring, uint64_t *next_pos)
{
	uint64_t end_pos = tw_rb_committed(ring);

	if (ring->lease != lease)
		complain("a ring of the stream has another lease");
	if (ring->first_pos != *next_pos)
		complain("a ring does not begin where the one before it ended");
	*next_pos = end_pos;
	return (end_pos - ring->first_pos) / 16;
}

/* Follows the stream through the rings that have ended; returns its last ring, or UINT32_MAX. */
static uint32_t follow(uint64_t *found, uint64_t *next_pos, unsigned *rings)
{
	uint32_t index = 0;

	*next_pos = 0;
	*found = count_records(tw_rs_ring(&owner, index), next_pos);
	for (*rings = 1; tw_rs_ring_state(&owner, index) == TW_RB_ENDED; (*rings)++) {
		/* RELAXED test.grown_to: the child stands still. */
		uint32_t number = tw_load_relaxed(&tw_rs_ring(&owner, index)->grown_to);
		enum tw_rb_state state;

		index = number ? tw_rs_ring_sibling(&owner, index, number - 1) : UINT32_MAX;
		if (index == UINT32_MAX) {
			complain("a ring has ended and leads to no other");
			return index;
		}
		state = tw_rs_ring_state(&owner, index);
		if (state != TW_RB_LIVE && state != TW_RB_ENDED) {
			complain("a ring has ended and leads to one that is not LIVE");
			return UINT32_MAX;
		}
		*found += count_records(tw_rs_ring(&owner, index), next_pos);
	}
	return index;
}

static void look(void)
{
	static unsigned rings_before = 1;
	uint64_t found, next_pos;
	unsigned rings;
	uint32_t last;

	tw_rs_scan(&owner);
	last = follow(&found, &next_pos, &rings);
	if (last == UINT32_MAX)
		return;
	/* If the child died here, the stream would end in two rings: the larger one begins at the end of the other. */
	for (uint32_t i = 0; i < owner.ring_count; i++) {
		if (tw_rs_ring_state(&owner, i) == TW_RB_LIVE && i != last)
			found += count_records(tw_rs_ring(&owner, i), &next_pos);
	}
	if (found != shared->made)
		complain("the rings hold more or fewer records than were made");
	changes += rings != rings_before;
	rings_before = rings;
}

/* ---- the child ---- */

/* Until a larger ring is needed; false: the ring has its largest size, and is full. */
static bool fill(struct tw_rs *rs, struct tw_rb_producer *producer)
{
	void *space;

	for (;;) {
		enum tw_rb_outcome outcome = tw_rb_reserve(producer, 16, shared->made + 1, &space);

		if (outcome == TW_RB_WAIT && tw_rb_lacks_memory(producer, 16)) {
			if (!tw_rs_ring_populate(rs, producer, true))
				_exit(2);
			continue;
		}
		if (outcome != TW_RB_OK)
			return outcome == TW_RB_WAIT;
		*(struct tw_rb_record *)space = (struct tw_rb_record){shared->made + 1, TW_RB_HEAD(3, 0, 16, 0)};
		tw_rb_commit(producer, 16);
		shared->made++;
	}
}

static void be_member(void)
{
	struct tw_rb_producer producer;
	struct tw_rs_claim who = {0};
	bool has_grown = true;
	struct tw_rs rs;
	uint32_t image;

	/* A failing test must not leave it behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (tw_rs_attach(&rs, owner.path) || tw_rs_image_claim(&rs, &image) || !tw_rs_ring_claim(&rs, &who, &producer))
		_exit(1);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
		_exit(EXIT_REFUSED);
	while (has_grown) {
		/* Once more than it needs. */
		fill(&rs, &producer);
		MARK();
		has_grown = tw_rs_ring_grow(&rs, &producer);
		MARK();
		shared->grown += has_grown;
	}
	_exit(0);
}

/* ---- the parent ---- */

/* Returns whether the child has stopped; *is_mark: at a mark. */
static bool wait_stop(pid_t child, int *status, bool *is_mark)
{
	siginfo_t info;

	if (waitpid(child, status, 0) != child || !WIFSTOPPED(*status))
		return false;
	*is_mark = WSTOPSIG(*status) == SIGTRAP && !ptrace(PTRACE_GETSIGINFO, child, 0, &info) &&
		   info.si_code == SI_KERNEL;
	return WSTOPSIG(*status) == SIGTRAP;
}

/* Steps the child from each first mark to the second; returns its status when it has ended. */
static int step_through(pid_t child)
{
	bool is_mark, is_inside = false;
	int status;

	while (wait_stop(child, &status, &is_mark)) {
		if (is_mark)
			is_inside = !is_inside;
		if (is_inside) {
			tw_rs_scan(&owner);
			lease = lease ? lease : tw_rs_ring(&owner, 0)->lease;
			look();
			steps++;
		}
		ptrace(is_inside ? PTRACE_SINGLESTEP : PTRACE_CONT, child, 0, 0);
	}
	return status;
}

int main(void)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 20, .cap_bytes = 1 << 24};
	bool has_failed;
	pid_t child;
	int status;

	tw_clock_init();
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || tw_rs_create(&owner, &options))
		return 1;
	child = fork();
	if (child == 0)
		be_member();
	status = step_through(child);
	tw_rs_destroy(&owner);
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REFUSED) {
		printf("ptrace is refused here: not tested\n");
		return EXIT_REFUSED;
	}
	has_failed = status || wrong || shared->grown != GROWN || changes != GROWN;
	printf("%ld instructions, grown %u times, seen %u times, status %d, %u wrong: %s\n", steps, shared->grown,
	       changes, status, wrong, has_failed ? "FAIL" : "PASS");
	return has_failed;
}
