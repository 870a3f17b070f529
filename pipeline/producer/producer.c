/* SPDX-License-Identifier: Apache-2.0 */
/*
 * producer.c - events of a run-time's own tracer, from a call to a record in the thread's ring.
 *
 *	ring		claimed at the thread's first event; grows and waits as those of hits do
 *	run		a switch record where another process' event, or another thread's event of this process, came between
 *	record		one release store
 *
 * Calls that made no events are sums of the image (ringbuf/counts.h), in the row of all threads.
 */
#include "tracewheel/counts.h"
#include "tracewheel/producer.h"
#include "base/clock.h"
#include "base/export.h"
#include "base/quiet_lock.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "pipeline/thread/image.h"
#include "pipeline/thread/space.h"
#include "ringbuf/ringset.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct tw_rb_record) + 2 * TW_RB_ALIGN_BYTES + 8 * TW_PRODUCER_WORDS_MAX + 32 <=
		       TW_RB_RECORD_BYTES_MAX,
	       "the largest event and a switch record fit a record's limit");

/* As in thread_ring.c: the time for which a thread without a ring counts its events before it tries again. */
#define RETRY_US 1000

struct tw_producer_thread {
	TW_CACHELINE_ALIGNED struct tw_rb_producer ring;
	struct tw_producer *producer;
	struct tw_producer_process *process; /* of the last record */
	uint64_t run_seq;		     /* of that process, when the last record was written */
	uint32_t scheduler_id;
	uint64_t start_ticks, retry_ticks;
	bool has_left;
	struct tw_producer_thread *next;
};

#define COUNT_GROUPS (TW_DEF_IDS_MAX / TW_RS_COUNT_GROUP)

struct tw_producer {
	struct tw_rs rs;
	uint32_t image;
	struct tw_quiet_lock definitions;
	uint32_t modules, functions; /* under `definitions` */
	_Atomic uint32_t last_id;    /* of processes */
	struct tw_lock threads_lock;
	struct tw_producer_thread *threads;
	uint64_t start_ticks;
	/* Sums of calls. */
	struct tw_rs_count_words *count_blocks[COUNT_GROUPS]; /* of so many places each */
	struct tw_rs_aggregate *time_rows;		      /* the block with free rows */
	uint32_t time_rows_left;
};

/* ---- definitions ---- */

static int append(struct tw_producer *producer, uint32_t type, const void *payload, size_t bytes)
{
	int error;

	tw_quiet_lock(&producer->definitions);
	error = tw_rs_defs_append(&producer->rs, type, payload, bytes);
	tw_quiet_unlock(&producer->definitions);
	return error;
}

static uint16_t put_name(char *to, struct tw_producer_name name, size_t max)
{
	size_t bytes = name.bytes < max ? name.bytes : max;

	if (bytes)
		memcpy(to, name.text, bytes);
	return (uint16_t)bytes;
}

static int define_session(struct tw_producer *producer, const char *name)
{
	struct {
		struct tw_def_session fixed;
		char text[256];
	} record = {.fixed = {.session_index = 1, .session_id = 1}};

	record.fixed.name_bytes = put_name(record.text, (struct tw_producer_name){name, strlen(name)}, 255);
	return append(producer, TW_DEF_SESSION, &record, sizeof record.fixed + record.fixed.name_bytes);
}

TW_API int tw_producer_define_module(struct tw_producer *producer, struct tw_producer_name name, uint32_t *id)
{
	struct {
		struct tw_def_module fixed;
		char text[TW_NAME_BYTES_MAX];
	} record = {.fixed = {.is_declared = 1}};
	int error;

	record.fixed.name_bytes = put_name(record.text, name, TW_NAME_BYTES_MAX);
	tw_quiet_lock(&producer->definitions);
	record.fixed.module_id = producer->modules + 1;
	error = tw_rs_defs_append(&producer->rs, TW_DEF_MODULE, &record, sizeof record.fixed + record.fixed.name_bytes);
	if (!error)
		*id = ++producer->modules;
	tw_quiet_unlock(&producer->definitions);
	return error;
}

TW_API int tw_producer_define_function(struct tw_producer *producer, uint32_t module, struct tw_producer_name name,
				       unsigned arity, uint32_t *id)
{
	struct {
		struct tw_def_function fixed;
		char text[TW_NAME_BYTES_MAX];
	} record = {.fixed = {.module_id = module, .arity = arity}};
	struct tw_def_place place = {.kind = TW_PLACE_DECLARED};
	int error;

	record.fixed.name_bytes = put_name(record.text, name, TW_NAME_BYTES_MAX);
	tw_quiet_lock(&producer->definitions);
	/* A function has one place, of the same number. */
	record.fixed.function_id = place.function_id = place.place_id = producer->functions + 1;
	error = tw_rs_defs_append(&producer->rs, TW_DEF_FUNCTION, &record,
				  sizeof record.fixed + record.fixed.name_bytes);
	if (!error)
		error = tw_rs_defs_append(&producer->rs, TW_DEF_PLACE, &place, sizeof place);
	if (!error)
		*id = ++producer->functions;
	tw_quiet_unlock(&producer->definitions);
	return error;
}

static int define_process(struct tw_producer *producer, uint32_t id, bool is_port, uint64_t number, uint32_t serial,
			  struct tw_producer_name name)
{
	struct {
		struct tw_def_tracee fixed;
		char text[256];
	} record = {.fixed = {.tracee_id = id,
			      .pid_number = (uint32_t)number,
			      .pid_serial = serial,
			      .kind = is_port ? TW_TRACEE_PORT : TW_TRACEE_PROCESS}};

	record.fixed.name_bytes = put_name(record.text, name, 255);
	return append(producer, TW_DEF_TRACEE, &record, sizeof record.fixed + record.fixed.name_bytes);
}

TW_API int tw_producer_define_process(struct tw_producer *producer, bool is_port, uint64_t number, uint32_t serial,
				      struct tw_producer_name name, struct tw_producer_process *out)
{
	/* RELAXED producer.id: a number of its own is all that is wanted. */
	uint32_t id = tw_fetch_add_relaxed(&producer->last_id, 1) + 1;
	int error = define_process(producer, id, is_port, number, serial, name);

	if (error)
		return error;
	out->id = id;
	out->run_seq = 0;
	return 0;
}

TW_API int tw_producer_name_process(struct tw_producer *producer, const struct tw_producer_process *process,
				    bool is_port, uint64_t number, uint32_t serial, struct tw_producer_name name)
{
	return define_process(producer, process->id, is_port, number, serial, name);
}

/* A line has one end. */
static size_t put_line(char *to, struct tw_producer_name name)
{
	size_t bytes = put_name(to, name, 255);

	for (size_t i = 0; i < bytes; i++)
		to[i] = (unsigned char)to[i] < ' ' ? ' ' : to[i];
	return bytes;
}

TW_API int tw_producer_describe_process(struct tw_producer *producer, const struct tw_producer_process *process,
					bool is_port, uint64_t number, uint32_t serial,
					const struct tw_producer_origin *origin)
{
	const struct tw_producer_name names[] = {origin->initial_call, origin->behaviour, origin->application,
						 origin->label};
	struct {
		struct tw_def_tracee fixed;
		char text[TW_ORIGIN_BYTES_MAX];
	} record = {.fixed = {.tracee_id = process->id,
			      .pid_number = (uint32_t)number,
			      .pid_serial = serial,
			      .kind = is_port ? TW_TRACEE_PORT : TW_TRACEE_PROCESS}};
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (i)
			record.text[bytes++] = '\n';
		bytes += put_line(record.text + bytes, names[i]);
	}
	record.fixed.origin_bytes = (uint16_t)bytes;
	return append(producer, TW_DEF_TRACEE, &record, sizeof record.fixed + bytes);
}

TW_API int tw_producer_name_node(struct tw_producer *producer, struct tw_producer_name name)
{
	struct {
		struct tw_def_node fixed;
		char text[TW_NAME_BYTES_MAX];
	} record = {.fixed = {0}};

	record.fixed.name_bytes = put_name(record.text, name, sizeof record.text);
	return append(producer, TW_DEF_NODE, &record, sizeof record.fixed + record.fixed.name_bytes);
}

TW_API int tw_producer_note(struct tw_producer *producer, struct tw_producer_name text)
{
	struct {
		struct tw_def_note fixed;
		char text[1024];
	} record = {.fixed = {0}};

	record.fixed.text_bytes = put_name(record.text, text, sizeof record.text);
	return append(producer, TW_DEF_NOTE, &record, sizeof record.fixed + record.fixed.text_bytes);
}

/* ---- sums ---- */

static int add_count(struct tw_producer *producer, uint32_t place, uint64_t calls)
{
	struct tw_rs_count_words **block = &producer->count_blocks[place / TW_RS_COUNT_GROUP];

	if (!*block)
		*block = tw_rs_counts_take(&producer->rs, 0, place / TW_RS_COUNT_GROUP);
	if (!*block)
		return TW_ENOSPC;
	/* RELAXED count.add: the owner reads it after the image has ended, or later. */
	tw_store_relaxed(&(*block)->words[place % TW_RS_COUNT_GROUP], calls);
	return 0;
}

static int add_time(struct tw_producer *producer, uint32_t place, uint64_t calls, uint64_t total_ns)
{
	static const struct tw_aggregation what = {.of = TW_AGGREGATE_DURATION, .form = TW_AGGREGATE_SUM};
	struct tw_rs_aggregate *row;

	if (!producer->time_rows_left) {
		producer->time_rows = (void *)tw_rs_counts_take(&producer->rs, 0, TW_RS_AGGREGATE_GROUP);
		if (!producer->time_rows)
			return TW_ENOSPC;
		producer->time_rows_left = TW_RS_AGGREGATES;
	}
	row = &producer->time_rows[TW_RS_AGGREGATES - producer->time_rows_left--];
	row->place_id = place;
	memcpy(row->aggregation, &what, sizeof row->aggregation);
	/* RELAXED count.add: before the first count. */
	tw_store_relaxed(&row->sum, total_ns);
	/* PAIR rs.aggregate: release; acquire in read_aggregates().  The key is there. */
	tw_store_release(&row->count, calls);
	return 0;
}

TW_API int tw_producer_sum_calls(struct tw_producer *producer, uint32_t function, uint64_t calls, uint64_t total_ns)
{
	/* A function has one place, of the same number. */
	const struct tw_def_counted counted = {.place_id = function, .since_ticks = producer->start_ticks};
	int error;

	if (function >= TW_DEF_IDS_MAX)
		return TW_ELIMIT;
	tw_quiet_begin();
	error = tw_rs_counts_open(&producer->rs);
	tw_quiet_end();
	if (!error)
		error = append(producer, TW_DEF_COUNTED, &counted, sizeof counted);
	if (!error)
		error = add_count(producer, function, calls);
	if (!error && total_ns != TW_PRODUCER_NO_TIME)
		error = add_time(producer, function, calls, total_ns);
	return error;
}

/* ---- life ---- */

static int begin(struct tw_producer *producer, const char *session_name)
{
	int error = tw_rs_image_claim(&producer->rs, &producer->image);

	if (error)
		return error;
	tw_quiet_lock(&producer->definitions);
	error = tw_image_define(&producer->rs);
	tw_quiet_unlock(&producer->definitions);
	if (!error)
		error = define_session(producer, session_name);
	if (error)
		tw_rs_image_end(&producer->rs, producer->image);
	return error;
}

TW_API int tw_producer_open(const char *ring_set_path, const char *session_name, struct tw_producer **out)
{
	struct tw_producer *producer = calloc(1, sizeof *producer);
	int error;

	if (!producer)
		return TW_ENOMEM;
	error = tw_rs_attach(&producer->rs, ring_set_path);
	if (error)
		goto free_producer;
	tw_clock_init_as(producer->rs.config.clock_source);
	producer->start_ticks = tw_clock_ticks();
	error = begin(producer, session_name);
	if (error)
		goto detach;
	*out = producer;
	return 0;
detach:
	tw_rs_detach(&producer->rs);
free_producer:
	free(producer);
	return error;
}

TW_API void tw_producer_close(struct tw_producer *producer)
{
	struct tw_producer_thread *thread, *next;

	if (!producer)
		return;
	for (thread = producer->threads; thread; thread = next) {
		next = thread->next;
		if (thread->ring.shared)
			tw_rs_ring_end(&producer->rs, &thread->ring);
		free(thread);
	}
	tw_rs_image_end(&producer->rs, producer->image);
	tw_rs_detach(&producer->rs);
	free(producer);
}

TW_API bool tw_producer_is_closed(const struct tw_producer *producer)
{
	/* PAIR rs.closed: acquire; release in tw_rs_close(). */
	return tw_load_acquire(&producer->rs.control->is_closed);
}

/* ---- threads ---- */

TW_API struct tw_producer_thread *tw_producer_join(struct tw_producer *producer, uint32_t scheduler_id)
{
	struct tw_producer_thread *thread = aligned_alloc(_Alignof(struct tw_producer_thread), sizeof *thread);

	if (!thread)
		return NULL;
	memset(thread, 0, sizeof *thread);
	thread->producer = producer;
	thread->scheduler_id = scheduler_id;
	thread->start_ticks = tw_clock_ticks();
	tw_lock_seize(&producer->threads_lock);
	thread->next = producer->threads;
	producer->threads = thread;
	tw_lock_drop(&producer->threads_lock);
	return thread;
}

TW_API void tw_producer_leave(struct tw_producer_thread *thread)
{
	struct tw_producer *producer = thread->producer;
	struct tw_producer_thread **at;

	if (thread->ring.shared) {
		tw_rs_ring_note_thread_end(&producer->rs, &thread->ring, tw_clock_ticks());
		tw_rs_ring_end(&producer->rs, &thread->ring);
	}
	tw_lock_seize(&producer->threads_lock);
	for (at = &producer->threads; *at != thread; at = &(*at)->next)
		;
	*at = thread->next;
	tw_lock_drop(&producer->threads_lock);
	free(thread);
}

/* Takes the thread's ring; false: there is none, which is counted. */
static __attribute__((noinline)) bool claim_ring(struct tw_producer_thread *thread, uint64_t ticks)
{
	struct tw_rs *rs = &thread->producer->rs;
	const struct tw_rs_claim who = {.session_index = 1,
					.scheduler_id = thread->scheduler_id,
					.thread_start_ticks = thread->start_ticks};
	bool has_ring = false;

	if (ticks >= thread->retry_ticks) {
		tw_quiet_begin();
		has_ring = tw_rs_ring_claim(rs, &who, &thread->ring);
		tw_quiet_end();
		thread->retry_ticks = has_ring ? 0 : ticks + tw_clock_ticks_of_us(RETRY_US);
	}
	if (!has_ring)
		tw_rs_count_no_ring(rs, ticks);
	return has_ring;
}

/* The tracer's own work before an event is written. */
struct own_work {
	bool has_set_up, has_waited;
};

/* Gets memory, a larger ring, or, where `block` was asked for, waits.  False: none, which is counted. */
static bool make_space(struct tw_producer_thread *thread, uint32_t bytes, uint64_t ticks, struct own_work *own)
{
	struct tw_rb_producer *ring = &thread->ring;
	struct tw_rs *rs = &thread->producer->rs;

	own->has_set_up = true;
	if (tw_rb_lacks_memory(ring, bytes))
		return tw_space_populate(ring, rs, ticks);
	if (tw_space_grow(ring, rs, ticks))
		return true;
	if (ring->policy == TW_RB_BLOCK) {
		tw_rb_tell_waiting(ring, ticks);
		own->has_waited = tw_space_wait(ring, rs, bytes + TW_OWN_TIME_BYTES);
		if (own->has_waited)
			return true;
	}
	tw_rb_refuse(ring, TW_RB_LOST_FULL, ticks);
	return false;
}

/* ---- events ---- */

#define SWITCH_BYTES ((uint32_t)sizeof(struct tw_rb_record) + 16)

/* Begins a run of the process, and writes its switch record, for which there is space. */
static inline void put_switch(struct tw_producer_thread *thread, struct tw_producer_process *process,
			      struct tw_rb_record *record, uint64_t ticks)
{
	thread->process = process;
	/*
	 * PAIR tracee.run_seq: release; acquire in put_switch() of any thread.  The process' earlier events, by whichever
	 * thread, have smaller numbers.
	 */
	thread->run_seq = tw_fetch_add_acq_rel((_Atomic uint64_t *)&process->run_seq, 1) + 1;
	record->ticks = ticks;
	record->head = TW_RB_HEAD(TW_EVENT_SWITCH, TW_EVENT_FLAG_HALF, SWITCH_BYTES, process->id);
	*(uint64_t *)(record + 1) = thread->run_seq;
}

/* Space for one record, made where there is none; NULL: the event is lost, and counted. */
static struct tw_rb_record *reserve_making(struct tw_producer_thread *thread, uint32_t bytes, uint64_t ticks,
					   struct own_work *own)
{
	struct tw_rb_record *record;
	enum tw_rb_outcome outcome;

	while ((outcome = tw_rb_reserve(&thread->ring, bytes, ticks, (void **)&record)) == TW_RB_WAIT)
		if (!make_space(thread, bytes, ticks, own))
			return NULL;
	return outcome == TW_RB_OK ? record : NULL;
}

/*
 * The slow path: takes a ring, makes space, and writes the switch record and the time that this took, apart from the event that
 * follows.
 */
static __attribute__((noinline)) struct tw_rb_record *reserve_slow(struct tw_producer_thread *thread,
								   struct tw_producer_process *run_of, uint32_t bytes,
								   uint64_t ticks)
{
	struct tw_rb_record *record;
	struct own_work own = {.has_set_up = !thread->ring.shared};

	if (!thread->ring.shared && !claim_ring(thread, ticks))
		return NULL;
	if (run_of) {
		record = reserve_making(thread, SWITCH_BYTES, ticks, &own);
		if (!record)
			return NULL;
		put_switch(thread, run_of, record, ticks);
		tw_rb_commit_uncounted(&thread->ring, SWITCH_BYTES);
	}
	/* A reservation that is not committed costs nothing; the record of the time comes first. */
	if (!reserve_making(thread, bytes, ticks, &own))
		return NULL;
	/* However short: a set-up of some microseconds would be most of the time of a thread's first call. */
	if (own.has_waited || own.has_set_up) {
		tw_rb_keep_waiting(&thread->ring);
		tw_space_tell(&thread->ring, own.has_waited ? TW_OWN_TIME_WAIT : TW_OWN_TIME_SETUP, ticks,
			      tw_clock_ticks() - ticks);
		tw_rb_tell_waiting(&thread->ring, ticks);
	}
	return reserve_making(thread, bytes, ticks, &own);
}

/*
 * The slow path of a ring that overwrites.  Its records are given up by chunks, the older ones of a long run first: each chunk begins
 * with a switch record, so that the run's process is known by what is left.  Both records lie in one chunk.
 */
static __attribute__((noinline)) struct tw_rb_record *reserve_in_chunk(struct tw_producer_thread *thread,
								       struct tw_producer_process *process,
								       uint32_t bytes, uint64_t ticks)
{
	struct tw_rb_record *record;
	struct own_work own = {0};

	if (!thread->ring.shared && !claim_ring(thread, ticks))
		return NULL;
	record = reserve_making(thread, SWITCH_BYTES + bytes, ticks, &own);
	if (!record)
		return NULL;
	put_switch(thread, process, record, ticks);
	return (struct tw_rb_record *)((uint8_t *)record + SWITCH_BYTES);
}

static bool is_overwriting(const struct tw_producer_thread *thread)
{
	return thread->producer->rs.config.policy == TW_RB_OVERWRITE;
}

TW_API enum tw_producer_outcome tw_producer_write(struct tw_producer_thread *thread,
						  struct tw_producer_process *process,
						  const struct tw_producer_event *event)
{
	uint32_t bytes = (uint32_t)sizeof(struct tw_rb_record) + (event->count + 1u) / 2 * 16, committed = bytes;
	uint64_t ticks = tw_clock_ticks(), *payload;
	struct tw_rb_producer *ring = &thread->ring;
	struct tw_rb_record *record;
	/* RELAXED tracee.follow: as in tw_thread_follow_runs(): if this thread can know of another's event, it sees its number. */
	bool is_run_new =
		thread->process != process || tw_load_relaxed((_Atomic uint64_t *)&process->run_seq) != thread->run_seq;

	if (is_run_new)
		committed += SWITCH_BYTES;
	/* A thread without a ring has no space either. */
	if (tw_unlikely(ring->pos + committed > ring->limit_pos) && is_overwriting(thread)) {
		record = reserve_in_chunk(thread, process, bytes, ticks);
		committed = SWITCH_BYTES + bytes;
		if (!record)
			return TW_PRODUCER_LOST;
	} else if (tw_unlikely(ring->pos + committed > ring->limit_pos)) {
		record = reserve_slow(thread, is_run_new ? process : NULL, bytes, ticks);
		committed = bytes;
		if (!record)
			return TW_PRODUCER_LOST;
	} else {
		tw_rb_reserve(ring, committed, ticks, (void **)&record);
		if (is_run_new) {
			put_switch(thread, process, record, ticks);
			record = (struct tw_rb_record *)((uint8_t *)record + SWITCH_BYTES);
		}
	}
	record->ticks = ticks;
	record->head =
		TW_RB_HEAD(event->kind, event->flags | (event->count % 2 ? TW_EVENT_FLAG_HALF : 0), bytes, event->id);
	payload = (uint64_t *)(record + 1);
	for (unsigned i = 0; i < event->count; i++)
		payload[i] = event->words[i];
	tw_rb_commit(ring, committed);
	return TW_PRODUCER_WRITTEN;
}

TW_API void tw_producer_count_lost(struct tw_producer *producer)
{
	tw_rs_count_no_ring(&producer->rs, tw_clock_ticks());
}

/* The producers' own counts are read while they change: each is a little old. */
TW_API void tw_producer_count(struct tw_producer *producer, struct tw_producer_counts *out)
{
	const struct tw_rs_image_head *head = producer->rs.own.head;
	struct tw_producer_counts counts = {0};

	tw_lock_seize(&producer->threads_lock);
	for (const struct tw_producer_thread *thread = producer->threads; thread; thread = thread->next) {
		const struct tw_rb_shared *shared = thread->ring.shared;

		if (!shared)
			continue;
		counts.rings++;
		/* RELAXED producer.counts: a number for people, a little old. */
		counts.written += tw_load_relaxed((const _Atomic uint64_t *)&thread->ring.records);
		for (unsigned cause = 0; cause < TW_RB_CAUSES; cause++) {
			/* RELAXED producer.counts: as above. */
			counts.lost += tw_load_relaxed(&shared->lost[cause]);
		}
	}
	tw_lock_drop(&producer->threads_lock);
	/* RELAXED producer.counts: as above. */
	counts.lost += tw_load_relaxed(&head->no_ring_lost);
	/* RELAXED producer.counts: as above. */
	counts.definitions_refused = tw_load_relaxed(&head->defs_refused);
	*out = counts;
}
