/* SPDX-License-Identifier: Apache-2.0 */
/*
 * definitions.h - the definitions log of a process image: the meaning of the ids in its events.
 *
 * Appended on the control path, published before the id is handed out, never changed; ids are never reused for the
 * life of the image. Threads are not in the log: the headers of their rings define them. Strings are UTF-8, counted,
 * not terminated, and follow the fixed part in the order of their *_bytes fields. A capture's segments contain the same
 * records.
 *
 * Types and layouts are part of the capture format (docs/format.md): little-endian, no padding.
 */
#ifndef TW_PIPELINE_DEFINITIONS_H
#define TW_PIPELINE_DEFINITIONS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum tw_def_type {
	TW_DEF_IMAGE = 1,
	TW_DEF_MODULE = 2,
	TW_DEF_FUNCTION = 3,
	TW_DEF_PLACE = 4,
	TW_DEF_ATOM = 5,
	TW_DEF_TRACEE = 6,
	TW_DEF_SESSION = 7,
	/* 8 was the clock of the image, in older captures: the segment's header has it. */
	TW_DEF_NOTE = 9,
	TW_DEF_LAYOUT = 10,
	TW_DEF_DESCRIPTOR = 11,
	TW_DEF_POINTER = 12,
	TW_DEF_NODE = 13,
	TW_DEF_END = 14,
	TW_DEF_COUNTED = 15,
	TW_DEF_COUNTS = 16,
	TW_DEF_AGGREGATES = 17,
	TW_DEF_RECORDED_COUNTS = 18,
	TW_DEF_PART = 19,
	TW_DEF_LINE = 20,
	TW_DEF_WHOLE_PLACE = 21,
	TW_DEF_TRIGGER = 22,
	TW_DEF_CRASH = 23
};

/* The process image itself; the first record of a log. */
struct tw_def_image {
	int32_t process_id;
	int32_t parent_process_id;
	uint64_t start_ticks;
	uint16_t program_bytes; /* the path of the executable */
	uint16_t command_bytes; /* its arguments, separated by zero bytes, cut at TW_PATH_BYTES_MAX */
	uint16_t host_bytes;
	uint16_t reserved;
};

/* An ELF object, or a module that a run-time declares (base_address 0). */
struct tw_def_module {
	uint32_t module_id;
	uint32_t is_declared;
	uint64_t base_address; /* the load address: address = base_address + value in the file */
	uint64_t end_address;
	uint16_t name_bytes;	 /* as patterns and events show it: "libsqlite3", "sqlite3" */
	uint16_t path_bytes;	 /* of the file; 0 when declared */
	uint16_t soname_bytes;	 /* "libsqlite3.so.0" */
	uint16_t build_id_bytes; /* binary */
};

#define TW_DEF_ARITY_UNKNOWN UINT32_MAX

struct tw_def_function {
	uint32_t function_id;
	uint32_t module_id;
	uint32_t arity; /* or TW_DEF_ARITY_UNKNOWN */
	uint16_t name_bytes;
	uint16_t reserved;
	uint64_t address; /* 0 when declared */
};

enum tw_place_kind { TW_PLACE_DECLARED = 1, TW_PLACE_SLED = 2, TW_PLACE_SLOT = 3, TW_PLACE_ENTRY = 4 };

/* The places where events of a function arise. The id of a call event is a place id. */
/*
 * The calls of the function report no return, and no later event lies inside of them: vfork(), sigsetjmp(), dlsym(),
 * which return twice or read their return address; longjmp() and __cxa_throw(), which continue elsewhere; _exit(),
 * which ends a child of vfork() in its parent's thread.
 */
#define TW_PLACE_HAS_NO_END (UINT32_C(1) << 16)

struct tw_def_place {
	uint32_t place_id;
	uint32_t function_id;
	uint32_t kind;		   /* enum tw_place_kind; TW_PLACE_HAS_NO_END */
	uint32_t caller_module_id; /* TW_PLACE_SLOT: the object whose slot it is; 0 otherwise */
	uint64_t address;	   /* of the slot, the sled, or the instructions that a jump replaces */
};

struct tw_def_atom {
	uint32_t atom_id;
	uint16_t text_bytes;
	uint16_t reserved;
};

enum tw_tracee_kind { TW_TRACEE_PROCESS = 0, TW_TRACEE_PORT = 1 };

/* A process in OTP's sense, by default a thread; or a port. */
struct tw_def_tracee {
	uint32_t tracee_id;
	int32_t thread_id;   /* the kernel's; 0 for a process that a run-time declares */
	uint32_t pid_number; /* printed <0.number.serial>, or #Port<0.number> */
	uint32_t pid_serial;
	uint16_t name_bytes;
	uint16_t kind;	       /* enum tw_tracee_kind */
	uint16_t origin_bytes; /* behind the name: lines as of struct tw_producer_origin */
	uint16_t reserved;
};

#define TW_ORIGIN_BYTES_MAX 1023

/* The last line of an origin, which the program has chosen as it runs; empty: there is none.  @payload: of @bytes, with a whole tw_def_tracee. */
static inline const uint8_t *tw_def_label(const uint8_t *payload, size_t bytes, size_t *label_bytes)
{
	struct tw_def_tracee def;
	const uint8_t *at, *end;

	memcpy(&def, payload, sizeof def);
	at = payload + sizeof def + def.name_bytes;
	end = at + def.origin_bytes;
	*label_bytes = 0;
	if ((size_t)(end - payload) > bytes)
		return at;
	for (unsigned lines = 0; lines < 3; lines++) {
		const uint8_t *line = memchr(at, '\n', (size_t)(end - at));

		if (!line)
			return end;
		at = line + 1;
	}
	*label_bytes = (size_t)(end - at);
	return at;
}

/* The payload of a thread's definition, with its name. */
#define TW_DEF_THREAD_BYTES_MAX (sizeof(struct tw_def_tracee) + 16)

/* Fills in the definition of a thread that is a process by itself; returns its bytes. */
static inline size_t tw_def_thread(void *payload, uint32_t tracee_id, int32_t thread_id, const char name[16])
{
	struct tw_def_tracee def = {.tracee_id = tracee_id,
				    .thread_id = thread_id,
				    .pid_number = tracee_id,
				    .name_bytes = (uint16_t)strnlen(name, 16)};

	memcpy(payload, &def, sizeof def);
	memcpy((char *)payload + sizeof def, name, def.name_bytes);
	return sizeof def + def.name_bytes;
}

/* Returns of recorded calls are asked for: those that are open at the end have times, though none returned. */
#define TW_SESSION_HAS_RETURNS UINT32_C(1)

/* A later definition of a session adds its flags. */
struct tw_def_session {
	uint32_t session_index;
	uint32_t flags;	     /* TW_SESSION_HAS_RETURNS */
	uint64_t session_id; /* never reused in the image */
	uint16_t name_bytes;
	uint16_t reserved2[3];
};

/* How the payloads of a function's events encode its arguments: the text of tracewheel/layout.h. */
struct tw_def_layout {
	uint32_t function_id;
	uint32_t text_bytes; /* at most TW_LAYOUT_TEXT_BYTES_MAX */
};

/* A descriptor that the program had when it started: of `record --ports`, not in forked children. */
struct tw_def_descriptor {
	uint32_t fd;
	uint32_t word_bytes; /* a description as behind a result (tracewheel/layout.h) */
};

/* A pointer to a function of libc that transfers bytes, which an object holds: calls through it are not recorded. */
struct tw_def_pointer {
	uint16_t module_bytes;	 /* the name of the object, as patterns and events show it */
	uint16_t function_bytes; /* the name of the function */
	uint32_t is_stream;	 /* it uses streams, not descriptors */
};

/* The node of an image, where its process id does not say enough. */
struct tw_def_node {
	uint16_t name_bytes;  /* of an Erlang node: the atom; 0: it is none, or not known */
	uint16_t shown_bytes; /* as views call it beside other nodes; 0: no name is needed */
	uint32_t creation;
};

/* When the process of an image ended, or the thread of a ring. Not in the log: the recorder adds it. */
struct tw_def_end {
	uint64_t lease; /* of the ring; 0: the process */
	uint64_t ticks;
};

/* From then on calls of the place are counted, and make no events. */
struct tw_def_counted {
	uint32_t place_id;
	uint32_t reserved;
	uint64_t since_ticks;
};

/*
 * The same, but some calls are recorded when they end, and are not counted: a definition of type TW_DEF_COUNTED with more fields.  The
 * text of a condition follows, perhaps with zeros, if longer_ns is 0: calls that fulfil it are recorded; no text: all are.
 */
struct tw_def_longer {
	struct tw_def_counted counted;
	uint64_t longer_ns; /* calls that took so long are recorded; and two flags: */
};
/* The calls in these are recorded too; and the place decides nothing: only its calls in such calls are recorded. */
#define TW_DEF_LONGER_CHILDREN	 (UINT64_C(1) << 63)
#define TW_DEF_LONGER_CHILD_ONLY (UINT64_C(1) << 62)
/* The longest text. */
#define TW_DEF_CONDITION_BYTES_MAX 400

/*
 * How often a thread has called counted functions so far; pairs follow.  Not in the log: the recorder adds it, with ever larger
 * numbers for the same lease and place, of which a reader takes the largest.
 *
 * The same with type TW_DEF_RECORDED_COUNTS: how many of these calls were recorded (struct tw_def_longer), or lost.  The difference of
 * both is what was counted only.
 */
struct tw_def_counts {
	uint64_t
		lease; /* of the thread's row of counters, other than leases of rings; 0: calls of no thread in particular */
	uint32_t tracee_id; /* 0: none */
	uint32_t pair_count;
};

struct tw_def_count {
	uint64_t place_id;
	uint64_t count;
};

/*
 * Rows of an aggregation of a thread; they follow.  Not in the log: the recorder adds it, as counts; a reader takes the largest count of
 * each row.
 */
struct tw_def_aggregates {
	uint64_t lease; /* as in struct tw_def_counts */
	uint32_t tracee_id;
	uint32_t row_count;
	uint64_t aggregation[2]; /* struct tw_aggregation of tracewheel/counts.h */
};

struct tw_def_aggregate {
	uint32_t place_id;
	uint32_t is_rest;
	uint64_t key, number;
	uint64_t count, sum;
};

/* The capture is a part of another: views show this part by default. Not in the log: cutting adds it. */
struct tw_def_part {
	uint64_t from_ns, to_ns;	    /* CLOCK_MONOTONIC; 0: no bound */
	uint64_t start_ns, zero_ns, end_ns; /* of the whole, as in struct tw_capture_info */
	uint64_t kinds[64];		    /* records of the whole by kind; those above 62 in the last */
};

/* The whole capture's knowledge of a place. Not in the log: cutting adds it. */
struct tw_def_whole_place {
	uint32_t place_id;
	uint32_t is_moment; /* its returns were not recorded */
	uint64_t calls;
};

/* The line of a code address, resolved where the program's files were. Not in the log: cutting adds it. */
struct tw_def_line {
	uint64_t address; /* behind a call */
	uint32_t line;
	uint32_t is_return;	 /* the instruction before the address is a call */
	uint16_t function_bytes; /* linkage name; 0: not known */
	uint16_t file_bytes;	 /* 0: not known */
	uint16_t reserved[2];
};

/* The cause of a snapshot of a flight recorder.  Not in the log; one in a capture. */
struct tw_def_trigger {
	uint64_t ticks;
	int32_t process_id; /* where; 0: not known */
	int32_t thread_id;
	uint16_t reason_bytes; /* a clause */
	uint16_t call_ticks
		[3]; /* of the call that ended then: how long it took, the lowest 16 bits first; 0: none did */
};

static inline uint64_t tw_def_trigger_call_ticks(const struct tw_def_trigger *def)
{
	return def->call_ticks[0] | (uint64_t)def->call_ticks[1] << 16 | (uint64_t)def->call_ticks[2] << 32;
}

static inline void tw_def_trigger_set_call_ticks(struct tw_def_trigger *def, uint64_t ticks)
{
	/* A day or more. */
	ticks = ticks >> 48 ? (UINT64_C(1) << 48) - 1 : ticks;
	for (unsigned i = 0; i < 3; i++)
		def->call_ticks[i] = (uint16_t)(ticks >> 16 * i);
}

/* The signal that ended the process of the image, which was the trigger; addresses of code follow.  Not in the log. */
struct tw_def_crash {
	uint64_t address; /* that could not be used; 0: none, or that address */
	uint64_t stack_pointer;
	int32_t process_id, thread_id;
	int32_t signal, code; /* as in siginfo_t */
	uint32_t sender;      /* the process that has sent the signal; 0: none has */
	uint16_t frame_count; /* the instruction, then return addresses */
	uint16_t end;	      /* enum tw_crash_end of tracewheel/flight.h */
};

/* A note for people: why a function could not be traced, that memory is anonymous. */
struct tw_def_note {
	uint16_t text_bytes;
	uint16_t reserved[3];
};

#endif
