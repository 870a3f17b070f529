/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - an ELF file laid out in memory as ld.so would, without running or mapping it.
 *
 * Threads  one file belongs to one thread.  Errors are those of tracewheel/error.h.
 */
#ifndef TW_SYMBOLS_FILE_H
#define TW_SYMBOLS_FILE_H

#include "symbols/elf.h"
#include "symbols/symbols.h"
#include "tracewheel/symbols.h"

#include <sys/types.h>
#include <time.h>

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
	dev_t device;
	ino_t inode;
	mode_t mode;
	uid_t owner;
	gid_t group;
	struct timespec changed; /* st_ctim */
	bool has_capabilities;
	struct tw_sym_sleds sleds;
};

/* TW_ENOENT, TW_EPERM, TW_EIO, TW_EFORMAT, TW_ENOTSUP (not for this machine), TW_ENOMEM. */
int tw_elf_file_open(const char *path, struct tw_elf_file **out);
void tw_elf_file_close(struct tw_elf_file *file);

/* Reads all bytes or fails: TW_EIO, TW_EFORMAT when the file ends before. */
int tw_elf_read_at(int fd, void *out, uint64_t bytes, uint64_t offset);

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
