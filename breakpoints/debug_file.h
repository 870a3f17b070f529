/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_file.h - an ELF file in memory that names code made at run time, for debuggers.
 *
 * gdb and lldb read the list of such files from a process, or from its core dump, and look at it again at each call of an empty
 * function (gdb's manual, "JIT Compilation Interface").  The file lies beside the code:
 *
 *	head	ELF header and section headers, TW_DEBUG_HEAD_BYTES
 *	...	what does not belong to the file
 *	frames	the section .eh_frame: where unwinders of the process find it, too
 *	...
 *	symbols	.symtab, for a number of symbols
 *	strings	.strtab, and the names of sections
 *
 * Under the permit.
 */
#ifndef TW_BREAKPOINTS_DEBUG_FILE_H
#define TW_BREAKPOINTS_DEBUG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_DEBUG_HEAD_BYTES   384u
#define TW_DEBUG_SYMBOL_BYTES 24u

/* The debugger's view of a file. */
struct tw_debug_entry {
	struct tw_debug_entry *next, *previous;
	const void *file;
	uint64_t bytes;
};

struct tw_debug_file {
	struct tw_debug_entry entry;
	bool is_shown, has_news;
	/* Set by the owner; the parts ascend. */
	uint8_t *head, *frames, *symbols;
	char *strings;
	uint32_t symbols_max, string_bytes_max;
	const uint8_t *code;
	uint32_t code_bytes;
	/* Of what is written. */
	uint32_t frame_bytes, symbol_count, string_bytes;
};

/* Begins the file, whose parts are 0. */
void tw_debug_file_begin(struct tw_debug_file *file);
/*
 * Adds a symbol, whose name gets a mark, as the parts of a function that compilers clone: a breakpoint on the function is not one on this
 * code.  The code stays nameless if space is short.
 */
void tw_debug_file_add(struct tw_debug_file *file, const uint8_t *start, uint32_t bytes, const char *name);
/* Writes the head and shows the file to the debugger, again if symbols were added since. */
void tw_debug_file_show(struct tw_debug_file *file);
/* The debugger forgets the file: its parts are about to go. */
void tw_debug_file_hide(struct tw_debug_file *file);

#endif
