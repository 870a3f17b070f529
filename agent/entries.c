/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entries.c - plans of function entries, and tables of frames, which the command leaves in the ring set: one file an object's file.
 *
 * The command makes those of the program that it starts beforehand.  For objects that are opened later, and for programs that
 * are executed by the first, a plan may be among those that the command keeps; else it is asked here.  The time of waiting
 * is limited: a command that is stopped or dead delays one dlopen() of a process, and no program's start.
 *
 * A plan that was read once stays mapped: places refer to it until the process ends.  It is not trusted: it is checked as a
 * whole here, and the bytes of each function before they are changed.
 */
#include "agent/agent.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/lock.h"
#include "ringbuf/answers.h"
#include "symbols/entry_plan.h"
#include "symbols/frame_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct read_plan {
	struct read_plan *next;
	struct tw_entry_plan plan;
};

struct read_rows {
	struct read_rows *next;
	struct tw_frame_rows rows;
};

/* The names of a kind of file: BEFORE... in the ring set, ...BEHIND where the command keeps it. */
struct kind {
	const char *before, *behind;
};
static const struct kind plan_kind = {"plan-", ".plan"}, rows_kind = {"frames-", ".frames"};

static struct tw_lock lock = TW_LOCK_INIT;
static struct read_plan *plans;
static struct read_rows *all_rows;
static const struct tw_agent_config *config;
/* The number of the last question that was not answered in time, + 1 << 32; 0: each was. */
static _Atomic uint64_t given_up;

void tw_agent_entries_init(const struct tw_agent_config *new_config)
{
	config = new_config;
	/* RELAXED agent.given_up: nothing is asked yet. */
	tw_store_relaxed(&given_up, 0);
}

void tw_agent_entries_before_fork(void)
{
	tw_lock_seize(&lock);
}

void tw_agent_entries_after_fork(void)
{
	tw_lock_drop(&lock);
}

/*
 * The file that the object was loaded from, by its name.  Another file that has the name by now has another build-id, or other first
 * instructions; who can put a file there that has not could have put it there before.
 */
static bool identify(const struct tw_sym_object *object, struct tw_file_identity *out)
{
	struct stat status;

	if (stat(object->path, &status))
		return false;
	tw_file_identify(&status, out);
	return true;
}

/* Opens the file that keeps the plan: FOLDER/BEFORE...BEHIND.  Negative: there is none. */
static int open_plan(const struct tw_sym_object *object, const struct tw_file_identity *identity, const char *folder,
		     const char *before, const char *behind)
{
	char path[TW_PATH_BYTES_MAX + 1], name[TW_ENTRY_PLAN_NAME_BYTES];
	int length;

	tw_entry_plan_name_file(before, &object->elf, identity, name);
	length = snprintf(path, sizeof path, "%s/%s%s", folder, name, behind);
	return length > 0 && (size_t)length < sizeof path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
							  : -1;
}

/* The file of the ring set, which lives as long as the recording: shared by all processes.  NULL: none. */
static void *map_plan(const struct tw_sym_object *object, const struct tw_file_identity *identity,
		      const struct kind *kind, size_t *count)
{
	int fd = open_plan(object, identity, tw_agent_ring_set.path, kind->before, "");
	struct stat status = {0};
	void *bytes = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	*count = (size_t)status.st_size;
	return bytes == MAP_FAILED ? NULL : bytes;
}

static bool read_all(int fd, uint8_t *bytes, size_t count)
{
	while (count) {
		ssize_t got = read(fd, bytes, count);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		bytes += got;
		count -= (size_t)got;
	}
	return true;
}

/* A copy of a file that the command keeps, which may lie on any file system.  It must be this user's, and nobody else's to write. */
static void *copy_plan(const struct tw_sym_object *object, const struct tw_file_identity *identity,
		       const struct kind *kind, size_t *count)
{
	int fd =
		config && config->plan_folder ? open_plan(object, identity, config->plan_folder, "", kind->behind) : -1;
	struct stat status;
	void *bytes = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
	    !(status.st_mode & 022) && status.st_size > 0)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes != MAP_FAILED &&
	    (!read_all(fd, bytes, (size_t)status.st_size) || mprotect(bytes, (size_t)status.st_size, PROT_READ))) {
		munmap(bytes, (size_t)status.st_size);
		bytes = MAP_FAILED;
	}
	close(fd);
	*count = (size_t)status.st_size;
	return bytes == MAP_FAILED ? NULL : bytes;
}

/* Checks it, and keeps it; takes the memory. */
static const struct tw_entry_plan *keep_plan(const struct tw_sym_object *object,
					     const struct tw_file_identity *identity, void *bytes, size_t count)
{
	struct read_plan *made = bytes ? malloc(sizeof *made) : NULL;

	if (!made || tw_entry_plan_open(bytes, count, &made->plan) ||
	    !tw_entry_plan_is_of(&made->plan, &object->elf, identity)) {
		if (bytes)
			munmap(bytes, count);
		free(made);
		return NULL;
	}
	made->next = plans;
	plans = made;
	return &made->plan;
}

static const struct tw_entry_plan *read_plan(const struct tw_sym_object *object,
					     const struct tw_file_identity *identity)
{
	size_t count = 0;
	void *bytes = map_plan(object, identity, &plan_kind, &count);
	const struct tw_entry_plan *plan = keep_plan(object, identity, bytes, count);

	if (plan)
		return plan;
	bytes = copy_plan(object, identity, &plan_kind, &count);
	return keep_plan(object, identity, bytes, count);
}

/* Could the command make a plan of it? */
static bool may_have_plan(const struct tw_sym_object *object)
{
	return object->elf.build_id_bytes && tw_agent_ring_set.path[0] && !tw_sym_left_alone(object->elf.soname);
}

/* Under the lock.  @identity	NULL: of any file with the object's build-id. */
static const struct tw_entry_plan *known_plan(const struct tw_sym_object *object,
					      const struct tw_file_identity *identity)
{
	for (const struct read_plan *known = plans; known; known = known->next)
		if (tw_entry_plan_is_of(&known->plan, &object->elf, identity))
			return &known->plan;
	return NULL;
}

const struct tw_entry_plan *tw_agent_entry_plan(const struct tw_sym_object *object)
{
	const struct tw_entry_plan *plan;
	struct tw_file_identity identity;

	if (!may_have_plan(object) || !identify(object, &identity))
		return NULL;
	tw_lock_seize(&lock);
	plan = known_plan(object, &identity);
	if (!plan)
		plan = read_plan(object, &identity);
	tw_lock_drop(&lock);
	return plan;
}

/* ---- tables of frames ---- */

/* As keep_plan(). */
static const struct tw_frame_rows *keep_rows(const struct tw_sym_object *object,
					     const struct tw_file_identity *identity, void *bytes, size_t count)
{
	struct read_rows *made = bytes ? malloc(sizeof *made) : NULL;

	if (!made || tw_frame_rows_open(bytes, count, &made->rows) ||
	    !tw_frame_rows_is_of(&made->rows, &object->elf, identity)) {
		if (bytes)
			munmap(bytes, count);
		free(made);
		return NULL;
	}
	made->next = all_rows;
	all_rows = made;
	return &made->rows;
}

static const struct tw_frame_rows *find_rows(const struct tw_sym_object *object,
					     const struct tw_file_identity *identity)
{
	const struct tw_frame_rows *rows;
	size_t count = 0;
	void *bytes;

	for (const struct read_rows *known = all_rows; known; known = known->next)
		if (tw_frame_rows_is_of(&known->rows, &object->elf, identity))
			return &known->rows;
	bytes = map_plan(object, identity, &rows_kind, &count);
	rows = keep_rows(object, identity, bytes, count);
	if (rows)
		return rows;
	bytes = copy_plan(object, identity, &rows_kind, &count);
	return keep_rows(object, identity, bytes, count);
}

/* *could_be: the command could make a table of the object, which is a file. */
static const struct tw_frame_rows *rows_of(const struct tw_sym_object *object, bool *could_be)
{
	const struct tw_frame_rows *rows;
	struct tw_file_identity identity;

	*could_be = object->elf.build_id_bytes && object->elf.frame_table && tw_agent_ring_set.path[0] &&
		    identify(object, &identity);
	if (!*could_be)
		return NULL;
	tw_lock_seize(&lock);
	rows = find_rows(object, &identity);
	tw_lock_drop(&lock);
	return rows;
}

const struct tw_frame_rows *tw_agent_frame_rows(const struct tw_sym_object *object)
{
	bool could_be;

	return rows_of(object, &could_be);
}

bool tw_agent_frame_rows_lack(const struct tw_sym_object *object)
{
	bool could_be;

	return !rows_of(object, &could_be) && could_be;
}

/* Asked for each slot: by the build-id, because a wrong answer writes nothing. */
bool tw_agent_keeps_return(const struct tw_sym_object *object, uintptr_t address)
{
	const struct tw_entry_plan_row *row = NULL;
	const struct tw_entry_plan *plan;

	tw_lock_seize(&lock);
	plan = known_plan(object, NULL);
	tw_lock_drop(&lock);
	if (plan)
		row = tw_entry_plan_find(plan, address - object->elf.base);
	return row && row->flags & TW_ENTRY_UNWATCHED;
}

/* ---- asking ---- */

/* Has a thread waited in vain for an answer that has not come since? */
static bool is_given_up(const struct tw_rs *rs)
{
	/* RELAXED agent.given_up: a hint: a thread that sees an old number waits once more, for a bounded time. */
	uint64_t number = tw_load_relaxed(&given_up);

	return number && !tw_rs_answers_have(rs, TW_RS_QUESTION_PLANS, (uint32_t)number);
}

/* No sign of life for so long that a program's start need not wait for it. */
static bool is_silent(const struct tw_rs *rs)
{
	uint64_t beat = tw_rs_beat(rs), now = tw_clock_monotonic_ns();

	return now > beat && now - beat > 2 * TW_RS_STALLED_NS;
}

bool tw_agent_entries_lack(const struct tw_sym_object *object)
{
	return may_have_plan(object) && !tw_agent_entry_plan(object);
}

void tw_agent_entries_ask(struct tw_rs *rs, unsigned count)
{
	uint64_t limit_ns;
	uint32_t number;

	if (!config || !config->plan_ns)
		return;
	limit_ns = tw_agent_is_active() ? config->plan_ns : config->plan_start_ns;
	if (is_silent(rs) || is_given_up(rs))
		limit_ns = 0;
	number = tw_rs_answers_want(rs, TW_RS_QUESTION_PLANS);
	if (tw_rs_answers_wait(rs, TW_RS_QUESTION_PLANS, number, limit_ns))
		return;
	/* RELAXED agent.given_up: see above. */
	tw_store_relaxed(&given_up, UINT64_C(1) << 32 | number);
	if (count)
		tw_rs_count_late(rs, count);
}

const char *tw_agent_entries_why_none(const struct tw_sym_object *object, const struct tw_rs *rs, bool *is_unforeseen)
{
	struct tw_file_identity identity;
	bool is_closed = object->elf.build_id_bytes && !identify(object, &identity) && errno == EACCES;

	*is_unforeseen = object->elf.build_id_bytes && (is_closed || is_given_up(rs));
	if (!object->elf.build_id_bytes)
		return "it has no build-id, by which a plan of its file would be known";
	if (is_closed)
		return "the program may not look into the folder of its file any more, by which its plan would be known";
	if (*is_unforeseen)
		return "its plan was not ready in time when it was opened or executed";
	return "no plan can be made of its file";
}
