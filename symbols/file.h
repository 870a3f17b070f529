/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - an ELF file laid out in memory as ld.so would, without running or mapping it.
 *
 * Threads  one file belongs to one thread.  Errors are those of tracewheel/error.h.
 */
#ifndef TW_SYMBOLS_FILE_H
#define TW_SYMBOLS_FILE_H

#include "base/file.h"
#include "symbols/elf.h"
#include "symbols/symbols.h"
#include "tracewheel/symbols.h"

#include <sys/types.h>

/* A file that needs more address space than this is refused as damaged. */
#define TW_ELF_IMAGE_BYTES_MAX (UINT64_C(2) << 30)
/* The same limit for a table of sections or symbols. */
#define TW_ELF_TABLE_BYTES_MAX (UINT64_C(512) << 20)

struct tw_elf_file {
	struct tw_elf elf;
	void *image;
	size_t image_bytes;
	ElfW(Ehdr) header;
	char *path;
	struct tw_file_identity identity;
	int fd; /* of tw_elf_file_take(); else -1 */
	mode_t mode;
	uid_t owner;
	gid_t group;
	/* May what is made of it be kept for later?  Its owner is root or this user, nobody else may write it, and each change will show. */
	bool may_be_kept;
	bool has_capabilities;
	struct tw_elf_mapped *mapped; /* parts of the image are pages of the file; NULL: it was read */
	struct tw_sym_sleds sleds;
};

/* As tw_file_open(), and TW_EFORMAT, TW_ENOTSUP (not for this machine), TW_ENOMEM. */
int tw_elf_file_open(const char *path, struct tw_elf_file **out);
/* The same of a file that is open already. @fd  takes, also on errors. @path  is only shown. */
int tw_elf_file_take(int fd, const struct stat *status, const char *path, struct tw_elf_file **out);
void tw_elf_file_close(struct tw_elf_file *file);
/* Opens the same file again: a descriptor; TW_EIO: it has changed, or another has its name. */
int tw_elf_file_reopen(const struct tw_elf_file *file);

/*
 * tw_elf_search - find a needed library as ld.so would; search.c.
 *
 * @requester	the object that needs it.
 * @program	its RPATH is searched as well.
 *
 * Returns 0 and the opened file, or TW_ENOENT, TW_ENOMEM.
 */
int tw_elf_search(const char *name, const struct tw_elf_file *requester, const struct tw_elf_file *program,
		  struct tw_elf_file **out);

/* The file of an object, as of tw_symbols_object(): lends, until tw_symbols_close().  program.c. */
const struct tw_elf_file *tw_symbols_file(const struct tw_symbols *symbols, size_t index);

#endif
