/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers.c - text of any size beside the rings: members ask, the owner appends its answers, members read them.
 *
 * Text is complete before members see it: they read up to answers_bytes, wherever the file ends.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "ringbuf/answers.h"
#include "ringbuf/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_it(const char *path, int flags)
{
	char name[512];
	int used = snprintf(name, sizeof name, "%s/%s", path, TW_RS_ANSWERS_FILE), fd;

	if (used < 0 || (size_t)used >= sizeof name)
		return TW_EBADARG;
	fd = open(name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? tw_error_from_errno(errno) : fd;
}

int tw_rs_answers_append(struct tw_rs *rs, const char *text)
{
	uint64_t at = rs->answers_bytes;
	size_t bytes = strlen(text);
	int fd, error;

	if (!rs->path[0])
		return TW_ENOTSUP;
	if (bytes > TW_RS_ANSWERS_BYTES_MAX - at)
		return TW_ELIMIT;
	fd = open_it(rs->path, O_WRONLY | O_CREAT);
	if (fd < 0)
		return fd;
	error = tw_file_write_at(fd, text, bytes, at);
	close(fd);
	if (error)
		return error;
	rs->answers_bytes = at + bytes;
	/* PAIR rs.answers: release; acquire in tw_rs_answers_read().  The text is in the file. */
	tw_store_release(&rs->control->answers_bytes, at + bytes);
	return 0;
}

static int read_some(int fd, uint64_t at, size_t bytes, char **text)
{
	struct stat st;
	char *all;

	if (fstat(fd, &st) < 0)
		return tw_error_from_errno(errno);
	if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		return TW_EPERM;
	all = malloc(bytes + 1);
	if (!all)
		return TW_ENOMEM;
	if (tw_file_read_at(fd, all, bytes, at)) {
		free(all);
		return TW_EIO;
	}
	all[bytes] = '\0';
	*text = all;
	return 0;
}

int tw_rs_answers_read(const struct tw_rs *rs, uint64_t *at_bytes, char **text, size_t *bytes)
{
	/* PAIR rs.answers: acquire; release in tw_rs_answers_append(). */
	uint64_t end = tw_load_acquire(&rs->control->answers_bytes);
	int fd, error;

	if (end > TW_RS_ANSWERS_BYTES_MAX || end < *at_bytes)
		return TW_ELIMIT;
	fd = end ? open_it(rs->path, O_RDONLY | O_NONBLOCK) : TW_ENOENT;
	if (fd < 0)
		return fd;
	*bytes = (size_t)(end - *at_bytes);
	error = read_some(fd, *at_bytes, *bytes, text);
	close(fd);
	if (!error)
		*at_bytes = end;
	return error;
}

/* ---- requests ---- */

uint32_t tw_rs_answers_want(struct tw_rs *rs, enum tw_rs_question what)
{
	uint32_t number;

	/* RELAXED rs.asks: published with the number. */
	tw_fetch_or_relaxed(&rs->control->slots[rs->own.slot].asks, 1u << what);
	/* PAIR rs.answers_wanted: release; acquire in tw_rs_answers_poll().  The requester's image is in the table, and asks. */
	number = tw_fetch_add_acq_rel(&rs->control->answers_wanted[what], 1) + 1;
	tw_rs_wake(rs);
	return number;
}

static bool may_answer(struct tw_rs *rs)
{
	/* PAIR rs.closed: acquire; release in tw_rs_close(). */
	return !tw_load_acquire(&rs->control->is_closed) && !tw_rs_is_stalled(rs);
}

bool tw_rs_answers_wait(struct tw_rs *rs, enum tw_rs_question what, uint32_t number, uint64_t timeout_ns)
{
	struct tw_stall_timer stall_timer = {0};
	uint64_t spent_ns, left_ns;

	for (;;) {
		/* PAIR rs.answers_given: acquire; release in tw_rs_answers_done().  The answer has been appended. */
		uint32_t answered = tw_load_acquire(&rs->control->answers_given[what]);

		if (tw_rs_is_answered(answered, number))
			return true;
		spent_ns = tw_stall_timer_check(&stall_timer, 0, tw_clock_monotonic_ns(), TW_RS_SLICE_NS);
		if (spent_ns >= timeout_ns || !may_answer(rs))
			return false;
		left_ns = timeout_ns - spent_ns;
		tw_sys_futex_wait(&rs->control->answers_given[what], answered,
				  left_ns < TW_RS_SLICE_NS ? left_ns : TW_RS_SLICE_NS);
	}
}

bool tw_rs_answers_have(const struct tw_rs *rs, enum tw_rs_question what, uint32_t number)
{
	/* PAIR rs.answers_given: acquire; release in tw_rs_answers_done(). */
	return tw_rs_is_answered(tw_load_acquire(&rs->control->answers_given[what]), number);
}

bool tw_rs_answers_are_awaited(const struct tw_rs *rs, enum tw_rs_question what)
{
	/* RELAXED rs.answers_awaited: a hint, like the other word. */
	uint32_t answered = tw_load_relaxed(&rs->control->answers_given[what]);

	/* RELAXED rs.answers_awaited: as above. */
	return !tw_rs_is_answered(answered, tw_load_relaxed(&rs->control->answers_wanted[what]));
}

bool tw_rs_answers_poll(const struct tw_rs *rs, enum tw_rs_question what, uint32_t *number)
{
	/* PAIR rs.answers_wanted: acquire; release in tw_rs_answers_want().  The requester is among the images, and asks. */
	*number = tw_load_acquire(&rs->control->answers_wanted[what]);
	return !tw_rs_is_answered(rs->answers_given[what], *number);
}

bool tw_rs_answers_take(struct tw_rs *rs, enum tw_rs_question what, uint32_t slot)
{
	/* RELAXED rs.asks: published with the number; a later question, taken with an earlier number, is answered twice. */
	return tw_fetch_and_relaxed(&rs->control->slots[slot].asks, ~(1u << what)) & 1u << what;
}

void tw_rs_answers_done(struct tw_rs *rs, enum tw_rs_question what, uint32_t number)
{
	rs->answers_given[what] = number;
	/* PAIR rs.answers_given: release; acquire in tw_rs_answers_wait(). */
	tw_store_release(&rs->control->answers_given[what], number);
	tw_sys_futex_wake(&rs->control->answers_given[what], INT32_MAX);
}
