/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_replay.h - the state of a replay of calls with descriptors.
 *
 *	native_calls.c	what a function does		native_rows.c	instances, and their sums by port
 *	native_tables.c	the descriptors of processes	native_ports.c	calls and returns, in order
 *
 * Without memory a function sets `error` of the replay, which ends it.
 */
#ifndef TW_TOOLS_NATIVE_REPLAY_H
#define TW_TOOLS_NATIVE_REPLAY_H

#include "tools/report/native_calls.h"
#include "tools/report/native_ports.h"

/* Calls under way on one thread: a handler may interrupt one with another. */
#define DEPTH_MAX 16
/* Descriptors above this are not followed: RLIMIT_NOFILE is less than that. */
#define FD_MAX (1 << 20)
/* Children that have begun nothing yet. */
#define SNAPSHOTS_MAX 64

/* One port, from its opening until no table has it. */
struct tw_native_instance {
	struct tw_native_port sums;
	uint32_t references;
	bool is_accepted, is_closed;
};

struct tw_native_entry {
	struct tw_native_instance
		*instance; /* stays when it is closed: a child that was forked before may have it still */
	bool is_open;
	bool is_inherited;
};

/* What a process had when it called fork(): by the time of the child's first event it may have other descriptors. */
struct tw_native_snapshot {
	struct tw_native_entry *entries;
	size_t entry_count;
	int32_t process_id; /* of the child; 0: not known */
};

struct tw_native_stream {
	uint64_t address;
	int fd;
};

/* A child that was not waited for yet. */
struct tw_native_child {
	int32_t process_id; /* 0: not known */
	struct tw_native_instance *instance;
};

struct tw_native_process {
	struct tw_native_entry *entries;
	size_t entry_count;
	struct tw_native_stream *streams;
	size_t stream_count;
	struct tw_native_function **functions; /* by place; NULL: not asked for yet */
	size_t function_count;
	struct tw_native_snapshot snapshots[SNAPSHOTS_MAX];
	unsigned snapshot_count; /* made so far; the newest stay */
	struct tw_native_child *children;
	size_t child_count, child_space;
	bool has_begun;
};

/* A call under way. */
struct tw_native_call {
	const struct tw_native_function *function;
	uint64_t time_ns;
	int fd, in_fd, out_fd;
	struct tw_native_instance *in, *out; /* held */
	uint64_t stream, size, first, last;
	int command;
	unsigned snapshot; /* 1 + its number; 0: none */
};

struct tw_native_thread {
	struct tw_native_call calls[DEPTH_MAX];
	unsigned depth;
};

struct tw_native_replay {
	struct tw_native_ports *ports;
	struct tw_capture *capture;
	const struct tw_capture_filter *filter;
	struct tw_native_process *processes;
	uint32_t process_count;
	struct tw_native_thread *threads;
	uint32_t thread_count;
	size_t row_room;
	size_t *slots; /* a hash table of rows: 1 + number */
	size_t slot_count;
	int error;
};

/* Makes an array of at least so many elements; new ones are zero.  NULL: no memory. */
void *tw_native_grow(void *array, size_t *count, size_t wanted, size_t bytes);
/* Gives a reference back; the last one adds the instance to its row.  NULL is allowed. */
void tw_native_release(struct tw_native_replay *r, struct tw_native_instance *instance);
/* Takes one more reference; NULL gives NULL. */
struct tw_native_instance *tw_native_hold(struct tw_native_instance *instance);

/* ---- native_tables.c ---- */

/* NULL: no such descriptor, or no memory. */
struct tw_native_entry *tw_native_entry_at(struct tw_native_replay *r, struct tw_native_process *process, int fd);
/* Copies the text.  The caller has the first reference as soon as it takes one.  NULL: no memory. */
struct tw_native_instance *tw_native_instance_create(struct tw_native_replay *r, const char *kind, const char *what);
void tw_native_set_entry(struct tw_native_replay *r, struct tw_native_entry *entry,
			 struct tw_native_instance *instance);
/* The port that a descriptor leads to; one that was not seen to be opened gets a name, and is unseen. */
struct tw_native_instance *tw_native_instance_of(struct tw_native_replay *r, struct tw_native_process *process, int fd,
						 bool *is_unseen);
void tw_native_close_fd(struct tw_native_process *process, int fd);
/* Gives a new process what it inherits. */
void tw_native_begin_process(struct tw_native_replay *r, uint32_t number);
/* -1: the stream was not seen to be opened. */
int tw_native_stream_fd(const struct tw_native_process *process, const struct tw_native_function *function,
			uint64_t stream);
void tw_native_set_stream(struct tw_native_replay *r, struct tw_native_process *process, uint64_t address, int fd);
void tw_native_forget_stream(struct tw_native_process *process, uint64_t address);
/* A child was made: a port until it is waited for.  @process_id: 0 is unknown. */
void tw_native_add_child(struct tw_native_replay *r, struct tw_native_process *process,
			 const struct tw_native_function *function, int32_t process_id, bool is_counted);
/* The child that was waited for, no longer among the children; the caller has its reference.  NULL: none. */
struct tw_native_instance *tw_native_take_child(struct tw_native_process *process, int32_t process_id);
/* What a child that is forked now inherits.  Returns 1 + its number; 0: no memory. */
unsigned tw_native_take_snapshot(struct tw_native_replay *r, struct tw_native_process *process);
void tw_native_free_snapshot(struct tw_native_replay *r, struct tw_native_snapshot *snapshot);

#endif
