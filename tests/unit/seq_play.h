/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_play.h - captures of made-up nodes whose processes pass on requests, with serials as seq_trace counts them.
 *
 * A world has one true time. Each node is one process image on a machine, whose clock has an offset and a drift; each
 * node writes a capture of its own.
 */
#ifndef SEQ_PLAY_H
#define SEQ_PLAY_H

#include "views_help.h"

enum { SEQ_NODES = 4, SEQ_PROCESSES = 8 };

struct seq_process {
	uint32_t node, number; /* <0.number.0> */
	uint32_t stream;
	int64_t clock, last; /* curr_cnt, prev_cnt */
	uint64_t now;	     /* the true time up to which it has acted */
};

struct seq_node {
	struct maker *maker;
	uint8_t boot;
	double offset_ns, drift; /* local time = offset + true * (1 + drift) */
	uint64_t last_ticks[MAKER_STREAMS];
	uint32_t streams;
	const char *erlang; /* the name of an Erlang node; NULL: it is none */
};

struct seq_world {
	struct seq_node nodes[SEQ_NODES];
	struct seq_process processes[SEQ_NODES * SEQ_PROCESSES];
	uint32_t node_count, process_count;
	unsigned stamp;
	struct tw_arena arena;
};

/* A message under way. */
struct seq_message {
	uint32_t from, to; /* processes */
	int64_t previous, current;
	uint64_t sent; /* true time */
	const char *text;
};

static inline uint64_t seq_local(const struct seq_node *node, uint64_t now)
{
	return (uint64_t)(int64_t)((__float128)node->offset_ns + (__float128)now * (1 + (__float128)node->drift));
}

static inline struct seq_world *begin_world(void)
{
	struct seq_world *world = calloc(1, sizeof *world);

	tw_arena_init(&world->arena, SIZE_MAX);
	return world;
}

/* @wall_ns: CLOCK_REALTIME of the machine at the true time 0. */
static inline uint32_t seq_add_node(struct seq_world *world, const char *path, uint8_t boot, double offset_ns,
				    double drift, uint64_t wall_ns, uint32_t processes)
{
	uint32_t number = world->node_count++;
	struct seq_node *node = &world->nodes[number];
	uint64_t start = (uint64_t)offset_ns;
	const struct tw_format_clock clock = {start, start, wall_ns, start};
	struct tw_def_image image = {.process_id = (int32_t)(1001 + number),
				     .program_bytes = 9,
				     .command_bytes = 5,
				     .host_bytes = 5};
	static uint8_t bytes[1 << 14];
	char text[64];
	uint32_t at = 0;

	*node = (struct seq_node){.boot = boot, .offset_ns = offset_ns, .drift = drift, .streams = 2};
	node->maker = begin_maker_at(path, boot, &clock, 1 + number);
	memset(bytes, 0, sizeof bytes);
	snprintf(text, sizeof text, "/bin/shopshop%uhost%u", number, boot % 10);
	view_definition(bytes, &at, TW_DEF_IMAGE, &image, sizeof image, text);
	for (uint32_t i = 0; i < processes; i++) {
		char name[16];
		const struct tw_def_tracee tracee = {.tracee_id = i + 1,
						     .pid_number = 40 + i,
						     .name_bytes = (uint16_t)snprintf(name, sizeof name, "%c%u",
										      'a' + (int)number, i)};

		view_definition(bytes, &at, TW_DEF_TRACEE, &tracee, sizeof tracee, name);
		world->processes[world->process_count++] =
			(struct seq_process){.node = number, .number = 40 + i, .stream = i % node->streams};
	}
	maker_definitions(node->maker, bytes, at, 0);
	return number;
}

/* The node is an Erlang node from now on. */
static inline void seq_name_node(struct seq_world *world, uint32_t number, const char *name)
{
	const struct tw_def_node def = {.name_bytes = (uint16_t)strlen(name)};
	uint8_t bytes[256] = {0};
	uint32_t at = 0;

	world->nodes[number].erlang = name;
	view_definition(bytes, &at, TW_DEF_NODE, &def, sizeof def, name);
	maker_definitions(world->nodes[number].maker, bytes, at, 1 << 20);
}

static inline void end_world(struct seq_world *world)
{
	for (uint32_t i = 0; i < world->node_count; i++)
		end_maker(world->nodes[i].maker, true);
	tw_arena_fini(&world->arena);
	free(world);
}

/* The pid of a process as a node sees it: of its own node without a name. */
static inline struct tw_term seq_pid(struct seq_world *world, uint32_t process, uint32_t node)
{
	const struct seq_process *is = &world->processes[process];
	uint8_t boot = world->nodes[is->node].boot;
	struct tw_identifier parts = {.word_count = 2, .words = {is->number, 0}};
	char name[64];

	if (is->node != node) {
		parts.creation = 17;
		snprintf(name, sizeof name, "tw-%u-7@%02x%02x%02x%02x", 1001 + is->node, boot, boot, boot, boot);
		if (world->nodes[is->node].erlang)
			snprintf(name, sizeof name, "%s", world->nodes[is->node].erlang);
		parts.node = tw_term_atom_z(name);
	}
	return tw_term_identifier(&world->arena, TW_TYPE_PID, &parts);
}

/* Writes one event of sequential tracing into the stream of the process that makes it. */
static inline void seq_put(struct seq_world *world, unsigned kind, uint32_t own, uint64_t now, const char *label,
			   const struct seq_message *message)
{
	const struct seq_process *process = &world->processes[own];
	struct seq_node *node = &world->nodes[process->node];
	uint64_t words[512] = {99}, *head = words + (world->stamp == TW_STAMP_STRICT_MONOTONIC);
	struct tw_sink sink = {.start = (char *)(head + 1), .at = (char *)(head + 1), .end = (char *)(words + 512)};
	struct tw_term terms[5], serial[2];
	uint64_t ticks = seq_local(node, now);

	tw_arena_reset(&world->arena);
	assert_int_equal(tw_term_parse(&world->arena, label, strlen(label), &terms[0], NULL), 0);
	serial[0] = tw_term_integer(&world->arena, message->previous);
	serial[1] = tw_term_integer(&world->arena, message->current);
	terms[1] = tw_term_tuple(&world->arena, serial, 2);
	terms[2] = seq_pid(world, message->from, process->node);
	terms[3] = kind == TW_EVENT_SEQ_PRINT ? tw_term_nil() : seq_pid(world, message->to, process->node);
	assert_int_equal(tw_term_parse(&world->arena, message->text, strlen(message->text), &terms[4], NULL), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(tw_etf_encode(terms[i], (struct tw_term){0}, &sink), 0);
	*head = (uint64_t)(sink.at - sink.start) << 32 | 5;
	/* A stream is in order of time. */
	if (ticks < node->last_ticks[process->stream])
		ticks = node->last_ticks[process->stream];
	node->last_ticks[process->stream] = ticks;
	view_put(node->maker, &(struct view_event){process->stream, ticks, kind, world->stamp | TW_EVENT_FLAG_TERMS, 0},
		 words, (uint32_t)(head + 1 - words + (sink.at - sink.start + 7) / 8));
}

/* A process sends; the event is recorded if @is_seen. */
static inline struct seq_message seq_send(struct seq_world *world, uint32_t from, uint32_t to, uint64_t now,
					  const char *label, const char *text, bool is_seen)
{
	struct seq_process *process = &world->processes[from];
	struct seq_message message = {from, to, process->last, ++process->clock, now, text};

	process->now = now;
	if (is_seen)
		seq_put(world, TW_EVENT_SEQ_SEND, from, now, label, &message);
	return message;
}

static inline void seq_receive(struct seq_world *world, const struct seq_message *message, uint64_t now,
			       const char *label, bool is_seen)
{
	struct seq_process *process = &world->processes[message->to];

	process->now = now;
	if (process->clock < message->current)
		process->clock = message->current;
	process->last = message->current;
	if (is_seen)
		seq_put(world, TW_EVENT_SEQ_RECEIVE, message->to, now, label, message);
}

static inline void seq_print(struct seq_world *world, uint32_t own, uint64_t now, const char *label, const char *text)
{
	struct seq_process *process = &world->processes[own];
	const struct seq_message message = {own, own, process->last, ++process->clock, now, text};

	process->now = now;
	seq_put(world, TW_EVENT_SEQ_PRINT, own, now, label, &message);
}

#endif
