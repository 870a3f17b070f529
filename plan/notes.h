/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes.h - probes that a program brings itself: the notes that the macros of <sys/sdt.h> leave (USDT, SystemTap's SDT).
 *
 * A note says where a probe's NOP lies, what the probe is called, where its arguments are while the NOP runs, and which 16-bit
 * semaphore the program tests to find out whether anyone looks at the probe.  The section .note.stapsdt is not loaded, so notes are read
 * from the file.  Nothing in it is trusted.
 *
 *	argument = ["-"] bytes ["f"] "@" operand
 *	operand  = "%" register | "$" number | [number] ["+" symbol | symbol ["+" number]] ["(" base ["," index ["," scale]] ")"]
 *
 * Threads  one list belongs to one thread.
 * Units    values are those of the file.
 * Source   systemtap's wiki, UserSpaceProbeImplementation; <sys/sdt.h>.
 */
#ifndef TW_PLAN_NOTES_H
#define TW_PLAN_NOTES_H

#include "symbols/elf.h"
#include "symbols/entry_plan.h"
#include "symbols/file.h"
#include "symbols/sections.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most arguments that <sys/sdt.h> has macros for. */
#define TW_NOTE_ARGUMENTS_MAX 12u

/* One note.  Strings are the list's. */
struct tw_note {
	uint64_t value;	    /* of the NOP */
	uint64_t semaphore; /* 0: none */
	const char *provider, *name, *arguments;
};

struct tw_notes {
	struct tw_note *entries; /* by value; notes that are the same occur once */
	size_t count, capacity;
	size_t damaged_count; /* notes that were left out */
	char *bytes;
	/* The full symbol table, which a stripped file has not. */
	ElfW(Sym) *symbols;
	size_t symbol_count;
	char *strings;
	uint64_t string_bytes;
};

/*
 * tw_notes_read - the probes of a file.
 *
 * @sections	of the file, which is open as fd.
 * @out		gives; tw_notes_fini() takes, in any case.
 *
 * A file without such a section has none.  Errors: TW_EIO, TW_EFORMAT, TW_ENOMEM.
 */
int tw_notes_read(const struct tw_elf_sections *sections, int fd, struct tw_notes *out);
void tw_notes_fini(struct tw_notes *notes);

/* Has the file a section of such notes?  Its section headers are read; false also if they cannot be. */
bool tw_notes_are_in(const struct tw_elf_file *file);

/*
 * tw_notes_operands - where a note's arguments are.
 *
 * @elf		of the file.  A name that neither its dynamic symbols nor the full table has, or that several objects have, is
 *		TW_ENTRY_OPERAND_UNKNOWN.
 *
 * Returns how many arguments there are, at most TW_NOTE_ARGUMENTS_MAX.
 */
unsigned tw_notes_operands(const struct tw_notes *notes, const struct tw_elf *elf, const char *arguments,
			   struct tw_entry_plan_operand out[TW_NOTE_ARGUMENTS_MAX]);

#endif
