/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h - all limits of the project and the relations between them.
 */
#ifndef TW_BASE_LIMITS_H
#define TW_BASE_LIMITS_H

#include <stdint.h>

/* ---- sessions ---- */

/* Sessions alive at once in one process: one bit each in the words that a hit reads. */
#define TW_SESSIONS_MAX 64
/* Ports open at once in one process, less one. */
#define TW_PORTS_MAX (UINT32_C(1) << 20)

/* The most that a hit takes of the program's stack, its stub included; all else is done elsewhere (breakpoints/own_stack.h). */
#define TW_HIT_STACK_BYTES 512

/* ---- rings ---- */

#define TW_RB_BYTES_MIN	    (UINT64_C(64) << 10)
#define TW_RB_BYTES_MAX	    (UINT64_C(1) << 30)
#define TW_RB_BYTES_DEFAULT (UINT64_C(4) << 20)
/* All rings of one recording together. */
#define TW_RB_CAP_BYTES_DEFAULT (UINT64_C(256) << 20)
#define TW_RB_CAP_BYTES_MAX	(UINT64_C(1) << 40)
/* Positions and records move in steps of this; the smallest record is one step. */
#define TW_RB_ALIGN_BYTES 16
/* The length field of a record head has 16 bits. */
#define TW_RB_RECORD_BYTES_MAX 8192
/* An overwriting ring discards old events in this many pieces. */
#define TW_RB_CHUNKS 8
/* Interval at which a thread that waits for the owner of rings polls; each poll spends at most this much of its stall timer. */
#define TW_RS_SLICE_NS UINT64_C(50000000)
/* An owner without a sign of life for this much stall timer is not waited for until it gives one. */
#define TW_RS_STALLED_NS UINT64_C(1000000000)
/* Rings of one ring set, and of one process image. */
#define TW_RS_RINGS_MAX	      65536
#define TW_RS_IMAGE_RINGS_MAX 4096
/* Process images (a process between two exec calls) in one ring set at a time. */
#define TW_RS_IMAGES_MAX 8192
/* More events than a thread can lose, or processes can exist: a larger count was forged. */
#define TW_RB_LOST_MAX	  (UINT64_C(1) << 52)
#define TW_RS_REFUSED_MAX (UINT64_C(1) << 32)
/* A thread's first ring; when a ring is full, the thread takes a larger one, in these steps. */
#define TW_RS_FIRST_RING_BYTES TW_RB_BYTES_MIN
/* The part of a thread's first ring that has memory at first, and the amount added each time that is used up. */
#define TW_RS_PRESENT_BYTES	 (UINT64_C(12) << 10)
#define TW_RS_PRESENT_STEP_BYTES (UINT64_C(64) << 10)
/*
 * First rings prepared before threads need them: as many as the process has rings, up to this limit, and the limit of
 * their address space in bytes.
 */
#define TW_RS_RINGS_AHEAD_MAX 16
#define TW_RS_AHEAD_BYTES_MAX (UINT64_C(1088) << 10)
#define TW_RS_GROWTH	      4
/* The definitions log of one process image, and how much of it a process maps at a time. */
#define TW_RS_DEFS_BYTES      (UINT64_C(32) << 20)
#define TW_RS_DEFS_STEP_BYTES (UINT64_C(128) << 10)
/*
 * Ids of functions and places of one process image: one from here on was made up. And what a reader of a capture keeps of
 * the definitions of one image, in bytes of their records: the names of 22 million threads.
 */
#define TW_DEF_IDS_MAX	     (UINT32_C(1) << 20)
#define TW_CATALOG_BYTES_MAX (UINT64_C(1) << 30)
/*
 * Calls that are counted and not recorded, of one process image: threads at a time whose counts are apart, places of one block of
 * words, and blocks, which are at most 64 MiB.  Further threads count together.
 */
#define TW_RS_COUNT_ROWS_MAX   4096
#define TW_RS_COUNT_GROUP      64
#define TW_RS_COUNT_BLOCKS_MAX 131072
/*
 * Rows of aggregates of one thread: slots of its table, those used by keys, and those that also calls without room for their
 * key may use.  They lie in the blocks above.
 */
#define TW_AGGREGATE_SLOTS    16384
#define TW_AGGREGATE_KEYS_MAX 12288
#define TW_AGGREGATES_MAX     16000
/* The bytes that a thread keeps of the calls in a call that is recorded by how it ends: the least and the most. */
#define TW_CHILDREN_BYTES_MIN (UINT64_C(32) << 10)
#define TW_CHILDREN_BYTES_MAX (UINT64_C(1) << 30)
/* Configuration text that the command hands to the agents. */
#define TW_RS_CONFIG_BYTES (UINT64_C(64) << 10)

_Static_assert(TW_DEF_IDS_MAX / TW_RS_COUNT_GROUP <= TW_RS_COUNT_BLOCKS_MAX / 8,
	       "most blocks are for threads, if all places are counted");
_Static_assert(TW_AGGREGATE_KEYS_MAX < TW_AGGREGATES_MAX && TW_AGGREGATES_MAX < TW_AGGREGATE_SLOTS,
	       "calls beyond the keys have rows, and a search ends");
_Static_assert(TW_RS_COUNT_ROWS_MAX < (1 << 24), "a row's number fits the word of a block");
_Static_assert(TW_RS_STALLED_NS >= 10 * TW_RS_SLICE_NS, "a machine that pauses now and then stalls no thread");
_Static_assert(TW_RB_RECORD_BYTES_MAX < (1 << 16), "a record's length fits its head");
_Static_assert(TW_RB_RECORD_BYTES_MAX % TW_RB_ALIGN_BYTES == 0, "the largest record ends on a step");
_Static_assert(TW_RB_RECORD_BYTES_MAX * 2 <= TW_RB_BYTES_MIN / 2,
	       "the largest record, its padding and a loss record fit half of the smallest ring");
_Static_assert(TW_RB_RECORD_BYTES_MAX * 3 <= TW_RS_PRESENT_STEP_BYTES - TW_RS_PRESENT_BYTES,
	       "with a step more there is memory for the largest record, its padding and a loss record");
_Static_assert(TW_RB_RECORD_BYTES_MAX <= TW_RB_BYTES_MIN / TW_RB_CHUNKS,
	       "the largest record fits one piece of the smallest overwriting ring");

/* ---- captures ---- */

/* Records of a block before encoding, in ring bytes; LZ4 input is never larger than this. */
#define TW_BLOCK_RAW_BYTES_MAX (UINT64_C(256) << 10)
/* Largest stored block that a reader accepts: encoding may enlarge unusual records. */
#define TW_BLOCK_STORED_BYTES_MAX (UINT64_C(1) << 20)

_Static_assert(TW_RB_RECORD_BYTES_MAX * 4 <= TW_BLOCK_RAW_BYTES_MAX, "a block holds several of the largest records");

/* ---- match specifications ---- */

/* Text of one specification. */
#define TW_MATCH_TEXT_BYTES_MAX (UINT64_C(4) << 20)
/* Nesting of patterns and expressions; constants may nest deeper. */
#define TW_MATCH_DEPTH_MAX 256
/* Instructions of a program.  There are no backward jumps, so this is also the bound of its steps. */
#define TW_MATCH_INSNS_MAX 32768
/* Variables bound inside of arguments (an argument that is a variable as a whole costs none). */
#define TW_MATCH_VARIABLES_MAX 128
/* All variables of a head.  A call has 255 arguments at the most; looking one up is linear. */
#define TW_MATCH_NAMES_MAX 2048
/* Values on the stack. */
#define TW_MATCH_STACK_MAX 384
/* Working memory of a run: variables and stack, and the rest for terms it builds. */
#define TW_MATCH_SCRATCH_BYTES_MIN     8192
#define TW_MATCH_SCRATCH_BYTES_DEFAULT 16384
/* Frames of {current_stacktrace} (OTP: system_flag(backtrace_depth)). */
#define TW_BACKTRACE_DEPTH_DEFAULT 8
#define TW_BACKTRACE_DEPTH_MAX	   1024

_Static_assert(TW_MATCH_INSNS_MAX < (1 << 16), "a jump's target has 16 bits");
_Static_assert((TW_MATCH_VARIABLES_MAX + TW_MATCH_STACK_MAX) * 8 <= TW_MATCH_SCRATCH_BYTES_MIN / 2,
	       "half of the smallest scratch memory is left for terms");

/* ---- returns of native calls ---- */

/* Pieces of 1 MiB of addresses in which stacks lie, each with 4 MiB of addresses for the shadow of either half of each 16 bytes. */
#define TW_RETURNS_CHUNKS_MAX 16384
/* Blocks of 256 bytes and three frames, for chains of tail calls: at most 32 MiB per process, kept by stack slots. */
#define TW_RETURNS_BLOCKS_MAX 131072

/* ---- data that hits keep per process ---- */

/*
 * Blocks of 256 bytes for chains of tail calls and for accounts beyond the first: per process (16 MiB) and per program
 * (256 MiB).  A chain leaves some of a process' blocks to the accounts.
 */
#define TW_PROCESS_BLOCKS_MAX 65536
#define TW_BLOCKS_MAX	      1048576
#define TW_BLOCK_NUMBER_BITS  20
#define TW_TAIL_BLOCKS_LEFT   4096

_Static_assert(TW_PROCESS_BLOCKS_MAX < TW_BLOCKS_MAX, "one process leaves something to the others");
_Static_assert(TW_TAIL_BLOCKS_LEFT < TW_PROCESS_BLOCKS_MAX / 8, "most of a process' blocks are for its chains");

/* ---- slots ---- */

/* Slots that have a stub, over all sessions of a process: the stubs are text of the library (TW_GOT_STUBS). */
#define TW_SLOTS_MAX 65536

/* ---- counters ---- */

/*
 * Functions with call_count, and with call_time or call_memory, over all sessions of a process.  A thread has words for those that it
 * calls, in blocks of TW_RS_COUNT_GROUP.
 */
#define TW_COUNTERS_BITS 20
#define TW_COUNTERS_MAX	 (1u << TW_COUNTERS_BITS)
/* Functions, sessions and processes of call_time and call_memory that one thread counts. */
#define TW_COUNT_ROWS 65536

_Static_assert(TW_COUNTERS_BITS <= 24, "256 times an account is made again before its id is that of an earlier one");

/* ---- names ---- */

/* Module, function and atom names, in bytes of UTF-8 without the terminator (OTP: 255 characters). */
#define TW_NAME_BYTES_MAX 1020
/* A label of sequential tracing in the external term format. */
#define TW_SEQ_LABEL_BYTES_MAX 2048
/* A path in the definitions. */
#define TW_PATH_BYTES_MAX 4095
/* Files that a capture, a traced process or another file names: larger ones are not read, */
#define TW_FILE_BYTES_MAX (UINT64_C(8) << 30)
/* nor, above this size, one with data in less than a sixteenth of it: memory for its contents costs its maker no disk. */
#define TW_FILE_HOLES_BYTES_MIN (UINT64_C(16) << 20)
#define TW_FILE_HOLES_FACTOR	16u
/* The largest arity of a function (OTP: 255). */
#define TW_ARITY_MAX 255
/* Word arguments that a declared function may hand to a hit. */
#define TW_ARGS_MAX 6
/* The most bytes copied of a string argument. */
#define TW_ARG_STRING_BYTES_MAX 256
/* Pieces of one request to write into a process whose threads are stopped; further ones are requests of their own. */
#define TW_RS_HELD_PIECES_MAX 16384
/* More threads are not stopped for it: each adds to the time for which all stand still (bench/hold_bench.c). */
#define TW_RS_HELD_THREADS_MAX 4096u
/* How long a member waits for the owner to begin, and to end. */
#define TW_RS_HELD_TAKE_NS UINT64_C(700000000)
#define TW_RS_HELD_DONE_NS UINT64_C(3000000000)
/*
 * How long threads are stopped at most: then the process that stops them lets them go.  If it does not, because it has been
 * stopped itself, the kernel continues it, or ends it, which lets them go too.
 */
#define TW_HOLD_NS	     UINT64_C(300000000)
#define TW_HOLD_CONTINUED_NS UINT64_C(20000000)
#define TW_HOLD_ENDED_NS     UINT64_C(500000000)
/* How long one request is tried, in several stops. */
#define TW_RS_HELD_TRY_NS UINT64_C(800000000)
/* How long the end of a recording may take to take back what was written into living processes. */
#define TW_RESTORE_NS UINT64_C(2000000000)
/* The file of layouts that a command hands to the agents. */
#define TW_RS_ANSWERS_BYTES_MAX (UINT64_C(256) << 20)

#endif
