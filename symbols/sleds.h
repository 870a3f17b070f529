/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleds.h - the entry sleds of an object: location and number of the NOPs after a function's entry.
 *
 * -fpatchable-function-entry=N,M leaves N NOPs at a function, M of them before its entry:
 *
 *	value of the table  -->  M NOPs, never run
 *	entry (the symbol)  -->  endbr64, with -fcf-protection
 *	sled                -->  N - M NOPs: gcc's of one byte each, clang's as long as they can be
 *	                         the body, which may begin with NOPs of its own (alignment of a loop)
 *
 * The table gives neither N nor M.  M is the distance from the table's value to the symbol.  N - M is taken from the
 * shortest sled of the same M in the object: only some functions begin with NOPs of their own, and a jump may lead to
 * the first of them.
 *
 * Threads  one belongs to one thread.
 */
#ifndef TW_SYMBOLS_SLEDS_H
#define TW_SYMBOLS_SLEDS_H

#include "symbols/elf.h"
#include "symbols/symbols.h"

/*
 * tw_elf_sleds_read - the sleds of an object, one entry per function symbol.
 *
 * @elf		in memory: loaded by ld.so, or laid out from a file (its table is relocated then).
 * @header	of the file, which is open as fd.
 * @out		init: tw_sym_sleds_fini() ends it, in any case.
 *
 * A file without section headers, symbols or sleds has none.  TW_ENOMEM, TW_EIO, TW_EFORMAT.
 */
int tw_elf_sleds_read(struct tw_sym_sleds *out, const struct tw_elf *elf, const ElfW(Ehdr) *header, int fd,
		      bool is_loaded);

#endif
