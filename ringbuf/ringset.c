/* SPDX-License-Identifier: Apache-2.0 */
/* ringset.c - making, mapping and removing the shared memory of a recording. */
#include "ringbuf/ringset.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/backing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFS_BYTES ((size_t)TW_RS_IMAGES_MAX * TW_RS_DEFS_BYTES)

static const char *const files[] = { "control", "rings", "defs", TW_RS_LAYOUTS_FILE };

static bool is_power_of_two(uint64_t n)
{
	return n && (n & (n - 1)) == 0;
}

static int check_options(const struct tw_rs_options *options, uint64_t *ring_bytes, uint64_t *cap_bytes)
{
	*ring_bytes = options->ring_bytes ? options->ring_bytes : TW_RB_BYTES_DEFAULT;
	*cap_bytes = options->cap_bytes ? options->cap_bytes : TW_RB_CAP_BYTES_DEFAULT;
	if (!is_power_of_two(*ring_bytes) || *ring_bytes < TW_RB_BYTES_MIN || *ring_bytes > TW_RB_BYTES_MAX)
		return TW_EBADARG;
	if (*cap_bytes < *ring_bytes + TW_PAGE_BYTES || *cap_bytes % TW_PAGE_BYTES)
		return TW_EBADARG;
	if (options->config && strlen(options->config) >= TW_RS_CONFIG_BYTES)
		return TW_ELIMIT;
	return 0;
}

static int make_files(struct tw_rs *rs, const struct tw_rs_options *options, uint64_t start_time)
{
	static _Atomic unsigned next_number;
	char name[64];
	int error;

	if (options->name) {
		error = tw_backing_make_directory(options->name, rs->path, sizeof rs->path);
	} else {
		/* RELAXED rs.number: only its being different matters. */
		snprintf(name, sizeof name, "%d-%llu-%u", tw_sys_process_id(), (unsigned long long)start_time,
			 tw_fetch_add_relaxed(&next_number, 1));
		error = tw_backing_make_directory(name, rs->path, sizeof rs->path);
	}
	if (error)
		return error;
	error = tw_backing_create(rs->path, "control", sizeof(struct tw_rs_control), (void **)&rs->control, NULL);
	if (!error)
		error = tw_backing_create(rs->path, "rings", rs->cap_bytes, (void **)&rs->rings, &rs->rings_fd);
	if (!error)
		error = tw_backing_create(rs->path, "defs", DEFS_BYTES, (void **)&rs->defs, NULL);
	if (!error && tw_sys_populate_write(rs->control, sizeof(struct tw_rs_control)) == -EFAULT)
		error = TW_ENOSPC;
	if (!error && options->layouts)
		error = tw_rs_layouts_append(rs, options->layouts);
	return error;
}

static int make_anonymous(struct tw_rs *rs)
{
	int error = tw_backing_anonymous(sizeof(struct tw_rs_control), (void **)&rs->control);

	if (!error)
		error = tw_backing_anonymous(rs->cap_bytes, (void **)&rs->rings);
	if (!error)
		error = tw_backing_anonymous(DEFS_BYTES, (void **)&rs->defs);
	return error;
}

static void unmap_all(struct tw_rs *rs)
{
	tw_backing_unmap(rs->control, sizeof(struct tw_rs_control));
	tw_backing_unmap(rs->rings, rs->cap_bytes);
	tw_backing_unmap(rs->defs, DEFS_BYTES);
	if (rs->rings_fd >= 0)
		close(rs->rings_fd);
}

static void start(struct tw_rs *rs)
{
	memset(rs, 0, sizeof *rs);
	rs->rings_fd = -1;
}

static void fill_control(struct tw_rs *rs, const struct tw_rs_options *options, uint64_t ring_bytes,
			 uint64_t start_time)
{
	struct tw_rs_control *control = rs->control;

	control->version = TW_RS_VERSION;
	control->clock_source = (uint32_t)tw_clock_source();
	control->cap_bytes = rs->cap_bytes;
	control->ring_bytes = ring_bytes;
	control->owner_process_id = tw_sys_process_id();
	control->owner_start_time = start_time;
	control->owner_pid_namespace = tw_sys_pid_namespace();
	control->policy = (uint32_t)options->policy;
	control->block_timeout_ns = options->block_timeout_ns;
	control->follow_fork = options->follow_fork;
	if (options->config) {
		control->config_bytes = (uint32_t)strlen(options->config);
		memcpy(control->config, options->config, control->config_bytes);
	}
	control->magic = TW_RS_MAGIC;
	tw_rs_heartbeat(rs);
}

int tw_rs_create(struct tw_rs *rs, const struct tw_rs_options *options)
{
	struct tw_rs made;
	uint64_t ring_bytes, start_time = 0;
	bool is_anonymous = false;
	int error;

	start(&made);
	error = check_options(options, &ring_bytes, &made.cap_bytes);
	if (error)
		return error;
	tw_clock_init();
	made.is_owner = true;
	if (tw_sys_process_start_time(tw_sys_process_id(), &start_time) < 0)
		return TW_ENOTSUP;
	error = options->is_anonymous ? TW_ENOTSUP : make_files(&made, options, start_time);
	if (error && (options->allow_anonymous || options->is_anonymous)) {
		uint64_t cap_bytes = made.cap_bytes;

		tw_rs_destroy(&made);
		start(&made);
		made.is_owner = is_anonymous = true;
		made.cap_bytes = cap_bytes;
		error = make_anonymous(&made);
	}
	if (error)
		goto remove;
	fill_control(&made, options, ring_bytes, start_time);
	made.control->is_anonymous = is_anonymous;
	if (tw_rs_refill(&made, options->first_rings ? options->first_rings : 2) == 0) {
		error = TW_ENOSPC;
		goto remove;
	}
	*rs = made;
	return 0;
remove:
	tw_rs_destroy(&made);
	return error;
}

void tw_rs_destroy(struct tw_rs *rs)
{
	unmap_all(rs);
	if (rs->path[0])
		tw_rs_remove(rs->path);
	start(rs);
}

void tw_rs_detach(struct tw_rs *rs)
{
	unmap_all(rs);
	start(rs);
}

int tw_rs_remove(const char *path)
{
	int error = tw_backing_check_directory(path);

	if (error)
		return error;
	for (size_t i = 0; i < TW_COUNT_OF(files); i++)
		tw_backing_remove_file(path, files[i]);
	return rmdir(path) < 0 ? tw_error_from_errno(errno) : 0;
}

/* Does every entry of the table lie inside the file?  The file may come from a dead, damaged process. */
static bool is_sound(const struct tw_rs_control *control, uint64_t rings_bytes)
{
	/* PAIR rs.ring_count: acquire; release in add_ring(). */
	uint32_t count = tw_load_acquire(&control->ring_count);

	if (count > TW_RS_RINGS_MAX || control->config_bytes >= TW_RS_CONFIG_BYTES)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct tw_rs_ring *ring = &control->rings[i];

		if (!is_power_of_two(ring->data_bytes) || ring->data_bytes < TW_RB_BYTES_MIN ||
		    ring->data_bytes > TW_RB_BYTES_MAX || ring->offset_bytes % TW_PAGE_BYTES ||
		    ring->offset_bytes > rings_bytes ||
		    rings_bytes - ring->offset_bytes < ring->data_bytes + TW_PAGE_BYTES)
			return false;
	}
	return true;
}

static int map_existing(struct tw_rs *rs, const char *path, bool is_private)
{
	size_t control_bytes = 0, rings_bytes = 0, defs_bytes = 0;
	int error;

	if (strlen(path) >= sizeof rs->path || path[0] != '/')
		return TW_EBADARG;
	error = tw_backing_check_directory(path);
	if (!error)
		error = tw_backing_open(path, "control", is_private, (void **)&rs->control, &control_bytes);
	if (error)
		return error;
	if (control_bytes < offsetof(struct tw_rs_control, cap_bytes) || rs->control->magic != TW_RS_MAGIC) {
		tw_backing_unmap(rs->control, control_bytes);
		rs->control = NULL;
		return TW_EFORMAT;
	}
	if (rs->control->version != TW_RS_VERSION || control_bytes != sizeof(struct tw_rs_control)) {
		tw_backing_unmap(rs->control, control_bytes);
		rs->control = NULL;
		return TW_EVERSION;
	}
	error = tw_backing_open(path, "rings", is_private, (void **)&rs->rings, &rings_bytes);
	rs->cap_bytes = rings_bytes;
	if (!error)
		error = tw_backing_open(path, "defs", is_private, (void **)&rs->defs, &defs_bytes);
	if (!error && defs_bytes != DEFS_BYTES) {
		tw_backing_unmap(rs->defs, defs_bytes);
		rs->defs = NULL;
		error = TW_EFORMAT;
	}
	if (!error && (rings_bytes != rs->control->cap_bytes || !is_sound(rs->control, rings_bytes)))
		error = TW_EFORMAT;
	return error;
}

static int open_set(struct tw_rs *rs, const char *path, bool is_private)
{
	struct tw_rs opened;
	int error;

	start(&opened);
	error = map_existing(&opened, path, is_private);
	if (error) {
		unmap_all(&opened);
		return error;
	}
	strcpy(opened.path, path);
	*rs = opened;
	return 0;
}

int tw_rs_attach(struct tw_rs *rs, const char *path)
{
	struct tw_rs opened;
	uint64_t own = tw_sys_pid_namespace();
	int error = open_set(&opened, path, false);

	if (error)
		return error;
	/* Its owner would look for our pid among other numbers, and take our rings away as those of the dead. */
	if (own && opened.control->owner_pid_namespace && own != opened.control->owner_pid_namespace) {
		tw_rs_detach(&opened);
		return TW_ENOTSUP;
	}
	*rs = opened;
	return 0;
}

int tw_rs_open_dead(struct tw_rs *rs, const char *path)
{
	struct tw_rs opened;
	int error = open_set(&opened, path, true);

	if (error)
		return error;
	if (!tw_sys_is_process_gone(opened.control->owner_process_id, opened.control->owner_start_time)) {
		tw_rs_detach(&opened);
		return TW_EEXIST;
	}
	/* The tables can change no more, the data may: its program can still be alive. */
	*rs = opened;
	return 0;
}
