/* SPDX-License-Identifier: Apache-2.0 */
/* ringset.c - creating, mapping and removing the shared memory of a recording. */
#include "ringbuf/ringset.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/answers.h"
#include "ringbuf/backing.h"
#include "ringbuf/guard.h"
#include "ringbuf/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_power_of_two(uint64_t n)
{
	return n && (n & (n - 1)) == 0;
}

static bool are_sizes(uint64_t ring_bytes, uint64_t cap_bytes)
{
	return is_power_of_two(ring_bytes) && ring_bytes >= TW_RB_BYTES_MIN && ring_bytes <= TW_RB_BYTES_MAX &&
	       cap_bytes >= ring_bytes + TW_PAGE_BYTES && cap_bytes % TW_PAGE_BYTES == 0 &&
	       cap_bytes <= TW_RB_CAP_BYTES_MAX;
}

static int fill_config(struct tw_rs_config *config, const struct tw_rs_options *options)
{
	uint64_t start_time = 0;
	size_t text_bytes = options->config ? strlen(options->config) : 0;

	*config = (struct tw_rs_config){
		.magic = TW_RS_MAGIC,
		.version = TW_RS_VERSION,
		.cap_bytes = options->cap_bytes ? options->cap_bytes : TW_RB_CAP_BYTES_DEFAULT,
		.ring_bytes = options->ring_bytes ? options->ring_bytes : TW_RB_BYTES_DEFAULT,
		.owner_process_id = tw_sys_process_id(),
		.policy = (uint32_t)options->policy,
		.owner_pid_namespace = tw_sys_pid_namespace(),
		.block_timeout_ns = options->block_timeout_ns,
		.follow_fork = options->follow_fork,
		.has_fixed_rings = options->has_fixed_rings || options->policy == TW_RB_OVERWRITE,
		.text_bytes = (uint32_t)text_bytes,
	};
	if (!are_sizes(config->ring_bytes, config->cap_bytes))
		return TW_EBADARG;
	if (text_bytes >= TW_RS_CONFIG_BYTES)
		return TW_ELIMIT;
	tw_clock_init();
	config->clock_source = (uint32_t)tw_clock_source();
	if (tw_sys_process_start_time(config->owner_process_id, &start_time) < 0)
		return TW_ENOTSUP;
	config->owner_start_time = start_time;
	return 0;
}

static int make_files(struct tw_rs *rs, const struct tw_rs_options *options)
{
	static _Atomic unsigned next_number;
	char name[64];
	int error;

	if (options->name) {
		error = tw_backing_make_directory(options->name, rs->path, sizeof rs->path);
	} else {
		/* RELAXED rs.number: it only has to be unique. */
		snprintf(name, sizeof name, "%d-%llu-%u", rs->config.owner_process_id,
			 (unsigned long long)rs->config.owner_start_time, tw_fetch_add_relaxed(&next_number, 1));
		error = tw_backing_make_directory(name, rs->path, sizeof rs->path);
	}
	if (error) {
		rs->path[0] = '\0';
		return error;
	}
	error = tw_backing_create(rs->path, "control", TW_RS_CONTROL_BYTES, (void **)&rs->control);
	if (!error && tw_sys_populate_write(rs->control, TW_RS_CONTROL_BYTES) == -EFAULT)
		error = TW_ENOSPC;
	if (!error && options->answers)
		error = tw_rs_answers_append(rs, options->answers);
	/* Written last: without it no member can attach. */
	if (!error)
		error = tw_backing_write(rs->path, "config", &rs->config, sizeof rs->config, rs->text,
					 rs->config.text_bytes);
	return error;
}

/* One mapping: control, followed by the one image of this process. */
static int make_anonymous(struct tw_rs *rs)
{
	int error;

	rs->config.is_anonymous = 1;
	rs->anonymous_bytes = TW_RS_CONTROL_BYTES + tw_rs_image_bytes(&rs->config);
	error = tw_backing_anonymous(rs->anonymous_bytes, (void **)&rs->anonymous);
	rs->control = (struct tw_rs_control *)(void *)rs->anonymous;
	return error;
}

static void start(struct tw_rs *rs)
{
	memset(rs, 0, offsetof(struct tw_rs, own));
	rs->free_ring = TW_RS_NONE;
	tw_rs_own_init(rs);
}

static void unmap_all(struct tw_rs *rs)
{
	tw_rs_own_fini(rs);
	tw_rs_seen_fini(rs);
	if (rs->anonymous)
		tw_backing_unmap(rs->anonymous, rs->anonymous_bytes);
	else
		tw_backing_unmap(rs->control, TW_RS_CONTROL_BYTES);
	free(rs->text);
}

int tw_rs_create(struct tw_rs *rs, const struct tw_rs_options *options)
{
	struct tw_rs made;
	int error;

	start(&made);
	made.is_owner = true;
	error = fill_config(&made.config, options);
	if (error)
		return error;
	made.text = malloc(made.config.text_bytes + 1);
	error = made.text ? tw_rs_seen_init(&made) : TW_ENOMEM;
	if (error)
		goto remove;
	if (made.config.text_bytes)
		memcpy(made.text, options->config, made.config.text_bytes);
	made.text[made.config.text_bytes] = '\0';
	error = options->is_anonymous ? TW_ENOTSUP : make_files(&made, options);
	if (error && (options->allow_anonymous || options->is_anonymous)) {
		tw_backing_unmap(made.control, TW_RS_CONTROL_BYTES);
		made.control = NULL;
		if (made.path[0])
			tw_rs_remove(made.path);
		made.path[0] = '\0';
		error = make_anonymous(&made);
	}
	if (error)
		goto remove;
	tw_rs_heartbeat(&made);
	memcpy(rs, &made, offsetof(struct tw_rs, own.rings));
	return 0;
remove:
	tw_rs_destroy(&made);
	return error;
}

void tw_rs_unlink(struct tw_rs *rs)
{
	if (rs->path[0])
		tw_rs_remove(rs->path);
	rs->path[0] = '\0';
}

void tw_rs_destroy(struct tw_rs *rs)
{
	tw_rs_unlink(rs);
	tw_rs_unguard(rs);
	unmap_all(rs);
	start(rs);
}

void tw_rs_detach(struct tw_rs *rs)
{
	unmap_all(rs);
	start(rs);
}

static bool is_our_file(const char *name)
{
	return strcmp(name, "control") == 0 || strcmp(name, "config") == 0 || strcmp(name, TW_RS_ANSWERS_FILE) == 0 ||
	       strncmp(name, "image-", 6) == 0 || strncmp(name, "plan-", 5) == 0 || strncmp(name, "frames-", 7) == 0;
}

int tw_rs_remove(const char *path)
{
	int error = tw_backing_check_directory(path);

	if (error)
		return error;
	/* A member may be creating its image's file at this moment. */
	for (int tries = 0; tries < 3; tries++) {
		tw_backing_remove_files(path, is_our_file);
		if (rmdir(path) == 0)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			break;
	}
	return tw_error_from_errno(errno);
}

static int read_config(struct tw_rs *rs)
{
	int error = tw_backing_read(rs->path, "config", &rs->config, sizeof rs->config, &rs->text, TW_RS_CONFIG_BYTES);

	if (error)
		return error;
	if (rs->config.magic != TW_RS_MAGIC)
		return TW_EFORMAT;
	if (rs->config.version != TW_RS_VERSION)
		return TW_EVERSION;
	if (!are_sizes(rs->config.ring_bytes, rs->config.cap_bytes) || strlen(rs->text) != rs->config.text_bytes ||
	    rs->config.policy > TW_RB_OVERWRITE)
		return TW_EFORMAT;
	return 0;
}

static int open_set(struct tw_rs *rs, const char *path, bool is_private)
{
	size_t control_bytes = 0;
	int error;

	start(rs);
	if (strlen(path) >= sizeof rs->path || path[0] != '/')
		return TW_EBADARG;
	strcpy(rs->path, path);
	error = tw_backing_check_directory(path);
	if (!error)
		error = read_config(rs);
	if (!error)
		error = tw_backing_open(path, "control", is_private, (void **)&rs->control, &control_bytes);
	if (!error && control_bytes != TW_RS_CONTROL_BYTES) {
		tw_backing_unmap(rs->control, control_bytes);
		rs->control = NULL;
		error = TW_EFORMAT;
	}
	return error;
}

int tw_rs_attach(struct tw_rs *rs, const char *path)
{
	uint64_t own = tw_sys_pid_namespace();
	int error = open_set(rs, path, false);

	rs->own_pid_namespace = own;

	/*
	 * An owner in another namespace would look up our pid among other numbers, and reap our rings as those of a
	 * dead process.
	 */
	if (!error && own && rs->config.owner_pid_namespace && own != rs->config.owner_pid_namespace)
		error = TW_ENOTSUP;
	if (error)
		tw_rs_detach(rs);
	else
		tw_clock_init_as(rs->config.clock_source);
	return error;
}

bool tw_rs_is_owner_gone(const struct tw_rs *rs)
{
	return tw_sys_is_process_gone(rs->config.owner_process_id, rs->config.owner_start_time);
}

int tw_rs_open_dead(struct tw_rs *rs, const char *path, bool may_live)
{
	int error = open_set(rs, path, true);

	if (!error && !may_live && !tw_rs_is_owner_gone(rs))
		error = TW_EEXIST;
	if (!error)
		error = tw_rs_seen_init(rs);
	rs->is_dead = true;
	if (error)
		tw_rs_detach(rs);
	return error;
}

/* ---- dead sets ---- */

struct dead_sets {
	void (*fn)(const char *path, const char *text, uint64_t bytes, void *arg);
	void *arg;
	unsigned count;
};

static void visit_set(const char *path, void *arg)
{
	struct dead_sets *sets = arg;
	struct tw_rs rs;
	int error;

	start(&rs);
	if (strlen(path) >= sizeof rs.path)
		return;
	strcpy(rs.path, path);
	error = read_config(&rs);
	/*
	 * A set without a complete config was abandoned while being created or removed.  A set of another version
	 * cannot be judged.
	 */
	if ((error == 0 && tw_rs_is_owner_gone(&rs)) ||
	    ((error == TW_ENOENT || error == TW_EFORMAT) && tw_backing_is_old(path))) {
		sets->count++;
		if (sets->fn)
			sets->fn(path, error ? "" : rs.text, tw_backing_used_bytes(path), sets->arg);
	}
	free(rs.text);
}

unsigned tw_rs_list_dead(void (*fn)(const char *path, const char *text, uint64_t bytes, void *arg), void *arg)
{
	struct dead_sets sets = {fn, arg, 0};

	tw_backing_each_directory(visit_set, &sets);
	return sets.count;
}
