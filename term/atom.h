/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atom.h - the table of atoms.
 *
 * Threads  Looking up by name or by index: any thread and signal handlers, without a lock.  Adding a name: any thread,
 *	    one at a time under a lock; the name, its texts and its entry in the hash table are published before the
 *	    index is returned.
 * Units    *_bytes are bytes of UTF-8.
 * Limits   TW_ATOMS_MAX atoms, TW_ATOM_TEXT_BYTES_MAX for all names.
 */
#ifndef TW_TERM_ATOM_H
#define TW_TERM_ATOM_H

#include "tracewheel/kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_ATOMS_MAX	       (1u << 20)
#define TW_ATOM_CHARACTERS_MAX 255
#define TW_ATOM_TEXT_BYTES_MAX ((size_t)64 << 20)

/*
 * The names that every process knows from the start, at the same index: enum tw_atom_index.  A name that is not a C
 * identifier has a separate identifier here.  After these follow the tags of trace messages and the sizes of collections, of
 * tracewheel/kinds.h.
 */
/* clang-format off */
#define TW_ATOM_NAMES(X)                                                                                     \
	/* values and marks */                                                                               \
	X(TRUE, "true") X(FALSE, "false") X(UNDEFINED, "undefined") X(CUT, "...") X(ANY, "_")                \
	X(WHOLE, "$_") X(BINDINGS, "$$") X(NONODE, "nonode@nohost") X(CAUGHT, "EXIT") X(OK, "ok")            \
	X(ERROR, "error") X(NONE, "none") X(EMPTY, "") X(CONST, "const")                                     \
	/* match specifications: guards */                                                                   \
	X(IS_ATOM, "is_atom") X(IS_BOOLEAN, "is_boolean") X(IS_FLOAT, "is_float")                            \
	X(IS_INTEGER, "is_integer") X(IS_LIST, "is_list") X(IS_NUMBER, "is_number") X(IS_PID, "is_pid")      \
	X(IS_PORT, "is_port") X(IS_REFERENCE, "is_reference") X(IS_TUPLE, "is_tuple") X(IS_MAP, "is_map")    \
	X(IS_BINARY, "is_binary") X(IS_BITSTRING, "is_bitstring") X(IS_FUNCTION, "is_function")              \
	X(IS_RECORD, "is_record") X(IS_MAP_KEY, "is_map_key") X(MAP_GET, "map_get") X(MAP_SIZE, "map_size")  \
	X(AND, "and") X(OR, "or") X(XOR, "xor") X(NOT, "not") X(ANDALSO, "andalso") X(ORELSE, "orelse")      \
	X(LT, "<") X(LE, "=<") X(GT, ">") X(GE, ">=") X(EQ, "==") X(NE, "/=") X(EXACT_EQ, "=:=")             \
	X(EXACT_NE, "=/=") X(ADD, "+") X(SUB, "-") X(MUL, "*") X(DIVIDE, "/") X(DIV, "div") X(REM, "rem")    \
	X(ABS, "abs") X(BAND, "band") X(BOR, "bor") X(BXOR, "bxor") X(BNOT, "bnot") X(BSL, "bsl")            \
	X(BSR, "bsr") X(ROUND, "round") X(TRUNC, "trunc") X(FLOOR, "floor") X(CEIL, "ceil")                  \
	X(FLOAT, "float") X(MAX, "max") X(MIN, "min") X(ELEMENT, "element") X(HD, "hd") X(TL, "tl")          \
	X(LENGTH, "length") X(SIZE, "size") X(TUPLE_SIZE, "tuple_size") X(BYTE_SIZE, "byte_size")            \
	X(BIT_SIZE, "bit_size") X(BINARY_PART, "binary_part") X(NODE, "node") X(SELF, "self")                \
	X(IS_SEQ_TRACE, "is_seq_trace") X(GET_TCW, "get_tcw")                                                \
	/* match specifications: bodies */                                                                   \
	X(MESSAGE, "message") X(RETURN_TRACE, "return_trace") X(EXCEPTION_TRACE, "exception_trace")          \
	X(SILENT, "silent") X(ENABLE_TRACE, "enable_trace") X(DISABLE_TRACE, "disable_trace")                \
	X(TRACE, "trace") X(SET_SEQ_TOKEN, "set_seq_token") X(GET_SEQ_TOKEN, "get_seq_token")                \
	X(SET_TCW, "set_tcw") X(CALLER, "caller") X(CALLER_LINE, "caller_line")                              \
	X(CURRENT_STACKTRACE, "current_stacktrace") X(PROCESS_DUMP, "process_dump") X(DISPLAY, "display")    \
	/* trace messages, beside the tags: kinds.h */                                                       \
	X(TRACE_TS, "trace_ts") X(SEQ_TRACE, "seq_trace") X(DROP, "drop") X(LABEL, "label")                  \
	X(SERIAL, "serial") X(PRINT, "print") X(TIMESTAMP, "timestamp")                                      \
	X(MONOTONIC_TIMESTAMP, "monotonic_timestamp")                                                        \
	X(STRICT_MONOTONIC_TIMESTAMP, "strict_monotonic_timestamp")                                          \
	/* flags */                                                                                          \
	X(ALL, "all") X(PROCS, "procs") X(PORTS, "ports") X(RUNNING, "running")                              \
	X(RUNNING_PROCS, "running_procs") X(RUNNING_PORTS, "running_ports")                                  \
	X(GARBAGE_COLLECTION, "garbage_collection") X(CPU_TIMESTAMP, "cpu_timestamp") X(ARITY, "arity")      \
	X(SET_ON_SPAWN, "set_on_spawn") X(SET_ON_FIRST_SPAWN, "set_on_first_spawn")                          \
	X(SET_ON_LINK, "set_on_link") X(SET_ON_FIRST_LINK, "set_on_first_link") X(EXITING, "exiting")        \
	X(TRACER, "tracer") X(PROCESSES, "processes") X(NEW, "new") X(NEW_PROCESSES, "new_processes")        \
	X(NEW_PORTS, "new_ports") X(EXISTING, "existing") X(EXISTING_PROCESSES, "existing_processes")        \
	X(EXISTING_PORTS, "existing_ports") X(GLOBAL, "global") X(LOCAL, "local") X(META, "meta")            \
	X(CALL_COUNT, "call_count") X(CALL_TIME, "call_time") X(CALL_MEMORY, "call_memory")    \
	X(SCHEDULER_ID, "scheduler_id")                                                                      \
	/* words in events */                                                                                \
	X(TIMEOUT, "timeout") X(CLOCK_SERVICE, "clock_service") X(NORMAL, "normal")                          \
	X(LONG_GC, "long_gc") X(LONG_SCHEDULE, "long_schedule")                                              \
	X(LARGE_HEAP, "large_heap") X(LONG_MESSAGE_QUEUE, "long_message_queue") X(BUSY_PORT, "busy_port")    \
	X(BUSY_DIST_PORT, "busy_dist_port") X(PORT_OP, "port_op")                                            \
	/* match specifications: types of machine words */                                                   \
	X(STRING_AT, "string_at") X(VECTOR_FLOAT, "vector_float") X(VECTOR_DOUBLE, "vector_double")
/* clang-format on */

enum tw_atom_index {
#define ATOM(NAME, ...) TW_ATOM_##NAME,
	TW_ATOM_NAMES(ATOM) TW_TRACE_KINDS(ATOM) TW_SYSTEM_KINDS(ATOM) TW_GC_SIZES(ATOM)
#undef ATOM
		TW_ATOMS_KNOWN,
};

/* One atom.  Constant once its index is known. */
struct tw_atom_entry {
	const char *name;    /* UTF-8, ends in NUL */
	const char *printed; /* the name as Erlang text, quoted and escaped if necessary */
	uint32_t name_bytes;
	uint32_t printed_bytes;
	uint64_t hash; /* of the name: the same in every process */
};

/*
 * tw_atom_entry - the entry of a valid index.
 *
 * Lends for the life of the process.  Threads: any.  Progress: no lock; waits while the store by which another processor published the entry is on
 * its way.  Signal handlers: yes.
 */
const struct tw_atom_entry *tw_atom_entry(uint32_t index);

/* The number of atoms in the table. */
uint32_t tw_atom_count(void);

/* Is half of the table used, in atoms or in bytes? Names from outside of the process then find it full: the rest is its own. */
bool tw_atom_table_is_half_full(void);

/*
 * Removes all but the predefined names and frees the memory; for tests and fuzzers.  No other thread
 * may be using terms, and no term with any other atom may be used afterwards.
 */
void tw_atom_table_fini(void);

#endif
