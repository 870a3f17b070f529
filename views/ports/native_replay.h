/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_replay.h - the state of a replay of calls with descriptors.
 *
 *	native_calls.c	what a function does		native_rows.c	instances, and their sums by port
 *	native_tables.c	the descriptors of processes	native_ports.c	calls and returns, in order
 *	native_begin.c	what a process begins with
 *	native_children.c	children of vfork() and those that are waited for
 *
 * Without memory a function sets `error` of the replay, which ends it.
 */
#ifndef TW_VIEWS_NATIVE_REPLAY_H
#define TW_VIEWS_NATIVE_REPLAY_H

#include "views/ports/native_calls.h"
#include "views/ports/native_ports.h"
#include "base/map.h"

/* Calls under way on one thread: a handler may interrupt one with another. */
#define DEPTH_MAX 16
/* Descriptors from this on are not followed: the default of fs.nr_open. Their calls count as unseen. */
#define FD_MAX (1 << 20)
/* As the descriptor of a stream: it has none, its bytes stay in memory. */
#define FD_OF_MEMORY (-2)
/* Children that have begun nothing yet. */
#define SNAPSHOTS_MAX 64

/* One port, from its opening until no table has it. */
struct tw_native_instance {
	struct tw_native_port sums;
	uint64_t inode;
	uint32_t mode; /* S_IFREG, ...; with the inode it is the same for all descriptors of the port */
	uint32_t references;
	uint32_t open_count; /* descriptors of the process that opened it; 0: closed */
	bool is_accepted;
	bool is_read_end; /* of a pipe */
	bool is_unseen;	  /* it was not seen to be opened, and is not a standard descriptor */
};

struct tw_native_entry {
	struct tw_native_instance
		*instance; /* stays when it is closed: a child that was forked before may have it still */
	bool is_open;
	bool is_inherited;
};

/* Descriptors by number. */
struct tw_native_table {
	struct tw_native_entry *entries;
	size_t entry_count;
};

/* The descriptors of a process when it called fork(): by the time of the child's first event it may have other descriptors. */
struct tw_native_snapshot {
	struct tw_native_table table;
	int32_t process_id;  /* of the child; 0: not known, -1: there is none */
	bool is_for_program; /* of vfork() or posix_spawn(): the child executes a program before its first event */
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
	struct tw_native_table table;
	struct tw_native_instance *unseen_streams; /* of all streams that were not seen to be opened; held */
	struct tw_native_stream *streams;
	size_t stream_count;
	struct tw_native_function **functions; /* by place; NULL: not asked for yet */
	size_t function_count;
	struct tw_native_snapshot snapshots[SNAPSHOTS_MAX];
	unsigned snapshot_count; /* made so far; the newest stay */
	struct tw_native_child *children;
	size_t child_count, child_space;
	bool has_begun;
	bool is_marked; /* all its open ports are lower bounds, since events were lost */
};

/* A call under way. */
struct tw_native_call {
	const struct tw_native_function *function;
	uint64_t time_ns;
	int fd, in_fd, out_fd;
	struct tw_native_instance *in, *out; /* held */
	uint64_t stream, size, first, last;
	uint64_t flags;
	unsigned snapshot; /* 1 + its number; 0: none */
	bool is_untracked; /* its descriptor is FD_MAX or more */
};

struct tw_native_thread {
	struct tw_native_call calls[DEPTH_MAX];
	unsigned depth;
	/*
	 * After vfork() the events of the thread are those of the child, until that executes a program or ends: it
	 * closes and duplicates descriptors of its own.
	 */
	bool is_in_child;
	unsigned child_snapshot; /* 1 + its number; 0: none */
	struct tw_native_table child_table;
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
	struct tw_map by_port; /* rows */
	int error;
};

/* Gives a reference back; the last one adds the instance to its row.  NULL is allowed. */
void tw_native_release(struct tw_native_replay *r, struct tw_native_instance *instance);
/* Takes one more reference; NULL gives NULL. */
struct tw_native_instance *tw_native_hold(struct tw_native_instance *instance);

/* ---- native_tables.c ---- */

/* NULL: no such descriptor, or no memory. */
struct tw_native_entry *tw_native_entry_at(struct tw_native_replay *r, struct tw_native_table *table, int fd);
/* Copies the text.  The caller has the first reference as soon as it takes one.  NULL: no memory. */
struct tw_native_instance *tw_native_instance_create(struct tw_native_replay *r, const char *kind, const char *what);
/* A descriptor that was open is closed by it. */
void tw_native_set_entry(struct tw_native_replay *r, struct tw_native_entry *entry, struct tw_native_instance *instance,
			 bool is_inherited);
/* The same, of a description; @is_accepted as tw_descriptor_text(). */
struct tw_native_instance *tw_native_instance_describe(struct tw_native_replay *r,
						       const struct tw_layout_description *what, bool is_accepted);
/* The port is known better now. */
void tw_native_instance_rename(struct tw_native_replay *r, struct tw_native_instance *instance,
			       const struct tw_layout_description *what);
/* The port that a descriptor leads to; one that was not seen to be opened gets a name.  NULL: beyond FD_MAX, no memory. */
struct tw_native_instance *tw_native_instance_of(struct tw_native_replay *r, struct tw_native_table *table, int fd);
void tw_native_close_fd(struct tw_native_table *table, int fd);
void tw_native_copy_table(struct tw_native_replay *r, struct tw_native_table *to, const struct tw_native_table *from);
void tw_native_free_table(struct tw_native_replay *r, struct tw_native_table *table);
/* FD_OF_MEMORY, or -1: the stream was not seen to be opened. */
int tw_native_stream_fd(const struct tw_native_process *process, const struct tw_native_function *function,
			uint64_t stream);
void tw_native_set_stream(struct tw_native_replay *r, struct tw_native_process *process, uint64_t address, int fd);
void tw_native_forget_stream(struct tw_native_process *process, uint64_t address);
/* Saves what a child that is forked now inherits.  Returns 1 + its number; 0: no memory. */
unsigned tw_native_take_snapshot(struct tw_native_replay *r, struct tw_native_process *process,
				 const struct tw_native_table *table, bool is_for_program);
/* NULL: its place was taken by newer ones. */
struct tw_native_snapshot *tw_native_snapshot_at(struct tw_native_process *process, unsigned number);

/* ---- native_begin.c ---- */

/* Gives a new process what it inherits. */
void tw_native_begin_process(struct tw_native_replay *r, uint32_t number);
/* Does the module hold pointers to functions that transfer bytes?  @is_stream: of streams.  Keeps its name if so. */
bool tw_native_has_pointers(struct tw_native_replay *r, const char *module, bool is_stream);

/* ---- native_children.c ---- */

/* A child was made: a port until it is waited for.  @process_id: 0 is unknown. */
void tw_native_add_child(struct tw_native_replay *r, struct tw_native_process *process,
			 const struct tw_native_function *function, int32_t process_id, bool is_counted);
/* The child that was waited for, no longer among the children; the caller has its reference.  NULL: none. */
struct tw_native_instance *tw_native_take_child(struct tw_native_process *process, int32_t process_id);
/* The thread runs a child of vfork() from here on. */
void tw_native_enter_child(struct tw_native_replay *r, struct tw_native_process *process,
			   struct tw_native_thread *thread);
/* @has_executed: the child is another program now, which inherits the child's descriptors; else it has ended. */
void tw_native_leave_child(struct tw_native_replay *r, struct tw_native_process *process,
			   struct tw_native_thread *thread, bool has_executed);

#endif
