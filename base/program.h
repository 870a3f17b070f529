/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - can a program be traced by preloading?  The one decision, for the command before it starts a program and for the agent
 * before the traced program executes another.
 *
 * Threads  any.  System calls and less than 2 KiB of the stack only: for children of vfork() and signal handlers.
 */
#ifndef TW_BASE_PROGRAM_H
#define TW_BASE_PROGRAM_H

/* The most of a script's first line that the kernel reads, and of the loader's name that is looked at. */
#define TW_PROGRAM_TEXT_BYTES 256
/* Nested interpreters that are scripts: the kernel's limit. */
#define TW_PROGRAM_SCRIPTS_MAX 5

enum tw_program_kind {
	TW_PROGRAM_TRACED,  /* dynamically linked, loaded by glibc's ld.so, without other rights than its caller's */
	TW_PROGRAM_UNKNOWN, /* not readable, or a damaged ELF file */
	TW_PROGRAM_SCRIPT,  /* text: what its interpreter is, decides */
	TW_PROGRAM_STATIC,
	TW_PROGRAM_MACHINE, /* not for 64-bit x86 */
	TW_PROGRAM_OBJECT,  /* an ELF file, but not a program */
	TW_PROGRAM_LOADER,  /* loaded by another than glibc's loader */
	/* ld.so ignores LD_PRELOAD in programs with other rights than their caller's. */
	TW_PROGRAM_SET_UID,
	TW_PROGRAM_SET_GID,
	TW_PROGRAM_CAPABILITIES
};

/*
 * tw_program_classify - which kind is an open file?
 *
 * @text	the interpreter of a script, "" if it names none (a shell runs such text); the loader's path with TW_PROGRAM_LOADER;
 *		else "".
 */
enum tw_program_kind tw_program_classify(int fd, char text[TW_PROGRAM_TEXT_BYTES]);

#endif
