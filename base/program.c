/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - can a program be traced?  See program.h. */
#include "base/program.h"
#include "base/sys.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most of program headers that the kernel reads. */
#define SEGMENTS_BYTES_MAX 65536

static enum tw_program_kind kind_by_rights(int fd)
{
	struct stat status;

	if (tw_sys_stat(fd, &status))
		return TW_PROGRAM_TRACED;
	if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
		return TW_PROGRAM_SET_UID;
	if ((status.st_mode & S_ISGID) && status.st_gid != getgid())
		return TW_PROGRAM_SET_GID;
	return getuid() != 0 && tw_sys_has_capabilities(fd) ? TW_PROGRAM_CAPABILITIES : TW_PROGRAM_TRACED;
}

static enum tw_program_kind kind_of_elf(int fd, const Elf64_Ehdr *head, char *loader)
{
	if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != EM_X86_64)
		return TW_PROGRAM_MACHINE;
	if ((head->e_type != ET_EXEC && head->e_type != ET_DYN) || head->e_phentsize != sizeof(Elf64_Phdr))
		return TW_PROGRAM_OBJECT;
	if (head->e_phnum > SEGMENTS_BYTES_MAX / sizeof(Elf64_Phdr))
		return TW_PROGRAM_OBJECT;
	for (unsigned i = 0; i < head->e_phnum; i++) {
		Elf64_Phdr segment;
		size_t bytes;

		if (tw_sys_read_at(fd, &segment, sizeof segment, head->e_phoff + i * sizeof segment) != sizeof segment)
			return TW_PROGRAM_UNKNOWN;
		if (segment.p_type != PT_INTERP)
			continue;
		bytes = segment.p_filesz < TW_PROGRAM_TEXT_BYTES ? segment.p_filesz : TW_PROGRAM_TEXT_BYTES - 1;
		if (tw_sys_read_at(fd, loader, bytes, segment.p_offset) != (long)bytes ||
		    !strstr(loader, "/ld-linux-x86-64"))
			return TW_PROGRAM_LOADER;
		*loader = '\0';
		return kind_by_rights(fd);
	}
	return TW_PROGRAM_STATIC;
}

/* Leaves the interpreter of a script's first line, or "". */
static void keep_interpreter(char *text)
{
	size_t blanks, bytes;

	if (memcmp(text, "#!", 2) != 0) {
		*text = '\0';
		return;
	}
	blanks = 2 + strspn(text + 2, " \t");
	bytes = strcspn(text + blanks, " \t\n");
	memmove(text, text + blanks, bytes);
	text[bytes] = '\0';
}

enum tw_program_kind tw_program_classify(int fd, char text[TW_PROGRAM_TEXT_BYTES])
{
	Elf64_Ehdr elf;
	long bytes;

	memset(text, 0, TW_PROGRAM_TEXT_BYTES);
	bytes = tw_sys_read_at(fd, text, TW_PROGRAM_TEXT_BYTES - 1, 0);
	if (bytes < (long)sizeof elf || memcmp(text, ELFMAG, SELFMAG) != 0) {
		keep_interpreter(text);
		return TW_PROGRAM_SCRIPT;
	}
	memcpy(&elf, text, sizeof elf);
	memset(text, 0, TW_PROGRAM_TEXT_BYTES);
	return kind_of_elf(fd, &elf, text);
}
