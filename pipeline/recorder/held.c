/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.c - writes into members whose threads are all stopped meanwhile (docs/decisions: planting while threads run).
 *
 *	1 sort the pieces
 *	2 stop all threads; where is each of them when it stands, and where are the frames that its signal handlers return to?
 *	3 is it still wanted?
 *	4 write all pieces that no thread is inside of and whose bytes are those expected
 *	5 let all go; pieces that are left: again from 2 on, TRIES times
 *
 * The thread that stopped the others writes.  If it dies, the kernel lets the threads go after its last write, and a
 * write inside one page is whole or not done at all: so each piece is there or not.  The descriptor of the memory
 * belongs to the program that was there when it was opened: what is written after an exec() goes nowhere.  So the process that
 * does all this may be ended at any instant (holder.h).
 *
 * Step 2.  A thread is inside if its next instruction is, or if a signal handler interrupted it there and will return:
 * that address lies in the signal's frame, somewhere on the thread's stacks.  Each aligned word of the used part of
 * these stacks is taken for such an address if the code segment of a frame, always one of user code, stands two words
 * behind it, as the kernel writes frames: without that, what an earlier call left on a stack would refuse a function
 * for good.  The used part:
 *
 *	on the thread's own stack	from the stack pointer to its beginning
 *	on another one (a handler's)	FOREIGN_BYTES from the stack pointer on, and the thread's own stack from the lowest
 *					address of it that these bytes contain
 */
#include "pipeline/recorder/held.h"

#include "base/clock.h"
#include "base/search.h"
#include "base/sys.h"
#include "pipeline/recorder/member_memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A thread that is inside leaves as soon as it has a processor, for which it may wait long on a busy machine. */
#define TRIES	      30
#define SHORT_TRIES   8
#define MIDDLE_TRIES  18
#define SHORT_NAP_NS  UINT64_C(1000000)
#define MIDDLE_NAP_NS UINT64_C(5000000)
#define LONG_NAP_NS   UINT64_C(25000000)
/* A thread that reads from a disk, or starts a process by vfork(), does not stop; mostly it is done soon. */
#define STUCK_TRIES   20
#define FOREIGN_BYTES (256u << 10)
/* A stack pointer this far below the stack's beginning is one of another stack. */
#define STACK_BYTES_MAX (UINT64_C(64) << 20)
#define CHUNK_WORDS	8192u

struct work {
	struct tw_held *held;
	int memory;
	uint64_t first_stack;
	struct tw_rs_held_piece *pieces;
	size_t count;
	bool *is_done;	 /* written, or never to be */
	bool *is_inside; /* in this try */
	uint64_t low, high;
};

void *tw_held_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* ---- where threads are ---- */

static void see_address(struct work *work, uint64_t address)
{
	size_t before;

	if (address <= work->low || address >= work->high)
		return;
	before = tw_search(i, work->count, work->pieces[i].at < address);
	if (before && address - work->pieces[before - 1].at < work->pieces[before - 1].count &&
	    !work->is_done[before - 1] && !work->is_inside[before - 1]) {
		work->is_inside[before - 1] = true;
		work->held->inside_count++;
	}
}

/* The words of a signal frame that follow one another: address, flags, segments (16 bits each, the first for code). */
#define FRAME_WORDS  3u
#define USER_SEGMENT 3u /* the level of privilege, in the lowest bits */

static bool is_frame(const uint64_t *words)
{
	return (words[2] & 0xffff) > USER_SEGMENT && (words[2] & USER_SEGMENT) == USER_SEGMENT;
}

/* Looks at all readable words from `from` to `to`; returns the lowest that points between low and high, or high. */
static uint64_t see_stack(struct work *work, uint64_t from, uint64_t to, uint64_t low, uint64_t high)
{
	uint64_t words[CHUNK_WORDS], lowest = high;

	from &= ~UINT64_C(7);
	while (from < to && !tw_hold_is_due(&work->held->hold)) {
		size_t wanted = to - from < sizeof words ? (size_t)(to - from) : sizeof words;
		size_t bytes = tw_hold_read(&work->held->hold, from, words, wanted), got = bytes / sizeof *words;

		for (size_t i = 0; i < got; i++) {
			if (words[i] > work->low && words[i] < work->high && i + FRAME_WORDS <= got &&
			    is_frame(words + i))
				see_address(work, words[i]);
			if (words[i] >= low && words[i] < lowest)
				lowest = words[i];
		}
		/* A frame at the end of what was read is seen as a whole in the next turn. */
		from += bytes == wanted && from + bytes < to ? bytes - (FRAME_WORDS - 1) * sizeof *words : bytes;
		/* A gap, between another stack and the thread's own. */
		if (bytes < wanted)
			from = (from / TW_PAGE_BYTES + 1) * TW_PAGE_BYTES;
	}
	return lowest;
}

/* False: it cannot be known, or not in time.  Nothing of it changes until the thread goes on, so others may still run. */
static bool see_thread(void *arg, const struct tw_held_thread *thread)
{
	struct work *work = arg;
	bool is_first = thread->thread_id == work->held->hold.process_id;
	uint64_t top = is_first ? work->first_stack : thread->descriptor;
	uint64_t bottom = top > STACK_BYTES_MAX ? top - STACK_BYTES_MAX : 0;

	see_address(work, thread->pc);
	if (thread->call)
		see_address(work, thread->call);
	if (!top)
		return false;
	if (thread->stack >= bottom && thread->stack < top) {
		see_stack(work, thread->stack, top, top, top);
		return !tw_hold_is_due(&work->held->hold);
	}
	/* The own stack's lowest address that is mentioned on the other one. */
	bottom = see_stack(work, thread->stack, thread->stack + FOREIGN_BYTES, bottom, top);
	see_stack(work, bottom, top, top, top);
	return !tw_hold_is_due(&work->held->hold);
}

/* ---- writing ---- */

/* The pieces of one page, by one write.  False: the system refuses. */
static bool write_page(struct work *work, size_t first, size_t end)
{
	uint64_t from = work->pieces[first].at, to = work->pieces[end - 1].at + work->pieces[end - 1].count;
	uint8_t bytes[4096];
	bool is_changed = false;

	/* Unmapped meanwhile: nothing is written there any more. */
	if (!tw_member_memory_read(work->memory, from, bytes, (size_t)(to - from))) {
		for (size_t i = first; i < end; i++)
			work->is_done[i] = true;
		return true;
	}
	for (size_t i = first; i < end; i++) {
		const struct tw_rs_held_piece *piece = &work->pieces[i];
		uint8_t *at = bytes + (piece->at - from);

		if (work->is_done[i] || work->is_inside[i])
			continue;
		work->is_done[i] = true;
		if (memcmp(at, piece->before, piece->count) != 0)
			continue;
		memcpy(at, piece->after, piece->count);
		is_changed = true;
	}
	return !is_changed || pwrite(work->memory, bytes, (size_t)(to - from), (off_t)from) == (ssize_t)(to - from);
}

static bool write_all(struct work *work)
{
	for (size_t first = 0, end; first < work->count; first = end) {
		for (end = first + 1; end < work->count; end++)
			if (work->pieces[end].at / TW_PAGE_BYTES != work->pieces[first].at / TW_PAGE_BYTES)
				break;
		if (!write_page(work, first, end))
			return false;
	}
	return true;
}

static size_t count_left(const struct work *work)
{
	size_t left = 0;

	for (size_t i = 0; i < work->count; i++)
		left += !work->is_done[i];
	return left;
}

/* ---- a request ---- */

/* Moves a piece down a heap whose greatest address is on top. */
static void sink(struct tw_rs_held_piece *pieces, size_t at, size_t count)
{
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		struct tw_rs_held_piece piece = pieces[at];

		child += child + 1 < count && pieces[child].at < pieces[child + 1].at;
		if (piece.at >= pieces[child].at)
			return;
		pieces[at] = pieces[child];
		pieces[child] = piece;
	}
}

/* By address; qsort() allocates. */
static void sort(struct tw_rs_held_piece *pieces, size_t count)
{
	for (size_t i = count / 2; i--;)
		sink(pieces, i, count);
	while (count-- > 1) {
		struct tw_rs_held_piece last = pieces[count];

		pieces[count] = pieces[0];
		pieces[0] = last;
		sink(pieces, 0, count);
	}
}

/* Sorted, apart from each other, each within a page. */
static bool are_right(const struct tw_rs_held_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct tw_rs_held_piece *piece = &pieces[i];

		if (!piece->count || piece->count > TW_RS_HELD_BYTES_MAX || piece->at > UINT64_MAX - TW_PAGE_BYTES ||
		    piece->at % TW_PAGE_BYTES + piece->count > TW_PAGE_BYTES ||
		    (i && piece->at < piece[-1].at + piece[-1].count))
			return false;
	}
	return true;
}

/* Threads that stop late do not wait for the end of the pause. */
static void rest(struct tw_held *held, uint64_t ns)
{
	for (; ns > SHORT_NAP_NS; ns -= SHORT_NAP_NS) {
		tw_sys_sleep(SHORT_NAP_NS);
		if (held->hold.late_count)
			tw_hold_end_late(&held->hold);
	}
	tw_sys_sleep(ns);
}

static enum tw_rs_held_outcome outcome_of(enum tw_hold_outcome outcome)
{
	switch (outcome) {
	case TW_HOLD_OK: return TW_RS_HELD_WRITTEN;
	case TW_HOLD_DENIED: return TW_RS_HELD_DENIED;
	case TW_HOLD_TRACED: return TW_RS_HELD_TRACED;
	case TW_HOLD_TOO_MANY: return TW_RS_HELD_TOO_MANY;
	case TW_HOLD_STUCK: return TW_RS_HELD_STUCK;
	default: return TW_RS_HELD_UNANSWERED;
	}
}

/* Steps 2 to 5, once. */
static enum tw_rs_held_outcome try_once(struct work *work, int process_id, tw_held_is_wanted_fn is_wanted, void *arg,
					uint32_t *number)
{
	struct tw_hold *hold = &work->held->hold;
	enum tw_rs_held_outcome outcome = TW_RS_HELD_WRITTEN;

	if (work->held->is_running)
		return write_all(work) ? TW_RS_HELD_WRITTEN : TW_RS_HELD_DENIED;
	memset(work->is_inside, 0, work->count * sizeof *work->is_inside);
	hold->see = work->held->is_unchecked ? NULL : see_thread;
	hold->see_arg = work;
	outcome = outcome_of(tw_hold_begin(hold, process_id));
	hold->see = NULL;
	*number = hold->count;
	if (outcome != TW_RS_HELD_WRITTEN)
		return outcome;
	if (work->held->while_held)
		work->held->while_held(hold);
	if (is_wanted && !is_wanted(arg))
		outcome = TW_RS_HELD_UNANSWERED;
	else if (!write_all(work))
		outcome = TW_RS_HELD_DENIED;
	tw_hold_end(hold);
	return outcome;
}

static uint64_t nap_before(unsigned tries, unsigned stuck)
{
	if (tries <= SHORT_TRIES && !stuck)
		return SHORT_NAP_NS;
	return tries <= MIDDLE_TRIES ? MIDDLE_NAP_NS : LONG_NAP_NS;
}

/* Steps 2 to 5. */
static enum tw_rs_held_outcome try_often(struct work *work, int process_id, tw_held_is_wanted_fn is_wanted, void *arg,
					 uint32_t *number)
{
	enum tw_rs_held_outcome outcome = TW_RS_HELD_WRITTEN;
	uint64_t deadline_ns = tw_clock_monotonic_ns() + TW_RS_HELD_TRY_NS;

	for (unsigned tries = 0, stuck = 0; tries < TRIES && stuck < STUCK_TRIES && count_left(work); tries++) {
		if (tries)
			rest(work->held, nap_before(tries, stuck));
		if (tries && tw_clock_monotonic_ns() >= deadline_ns)
			break;
		outcome = try_once(work, process_id, is_wanted, arg, number);
		if (outcome != TW_RS_HELD_WRITTEN && outcome != TW_RS_HELD_STUCK)
			break;
		stuck += outcome == TW_RS_HELD_STUCK;
	}
	return outcome;
}

enum tw_rs_held_outcome tw_held_write(struct tw_held *held, int process_id, int memory, struct tw_rs_held_piece *pieces,
				      size_t count, tw_held_is_wanted_fn is_wanted, void *arg, uint32_t *number)
{
	struct work work = {.held = held, .memory = memory, .pieces = pieces, .count = count};
	enum tw_rs_held_outcome outcome;

	*number = 0;
	if (!count)
		return TW_RS_HELD_WRITTEN;
	sort(pieces, count);
	if (!are_right(pieces, count))
		return TW_RS_HELD_DENIED;
	work.is_done = tw_held_memory(2 * count * sizeof *work.is_done);
	if (!work.is_done)
		return TW_RS_HELD_UNANSWERED;
	work.is_inside = work.is_done + count;
	work.low = pieces[0].at;
	work.high = pieces[count - 1].at + pieces[count - 1].count;
	work.first_stack = tw_hold_first_stack(process_id);
	outcome = try_often(&work, process_id, is_wanted, arg, number);
	munmap(work.is_done, 2 * count * sizeof *work.is_done);
	return outcome;
}
