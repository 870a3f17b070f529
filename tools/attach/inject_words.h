/* SPDX-License-Identifier: Apache-2.0 */
/* inject_words.h - words between inject.c and the code that it puts into a program (inject_x86_64.S). */
#ifndef TW_TOOLS_INJECT_WORDS_H
#define TW_TOOLS_INJECT_WORDS_H

/* The image: code, then words that it reads and writes. */
#define TW_INJECT_CODE_BYTES  4096
#define TW_INJECT_WORDS_BYTES 1024
#define TW_INJECT_IMAGE_BYTES (TW_INJECT_CODE_BYTES + TW_INJECT_WORDS_BYTES)
#define TW_INJECT_AREA_BYTES  8192
/* Of the thread's stack: vector registers, and all of it. */
#define TW_INJECT_VECTOR_BYTES 16384
#define TW_INJECT_STACK_BYTES  65536

/* Offsets of the words. */
#define TW_INJECT_STATE		      0	 /* u32, one of those below */
#define TW_INJECT_RESTART	      4	 /* u32, what becomes of the system call that was interrupted */
#define TW_INJECT_CREATED	      8	 /* u32, the result of pthread_create() */
#define TW_INJECT_FILE		      12 /* u32, the memfd, or a negative errno */
#define TW_INJECT_BACK		      16 /* where the program goes on */
#define TW_INJECT_MASK		      24 /* its blocked signals */
#define TW_INJECT_PENDING	      32
#define TW_INJECT_ACTION	      40 /* the kernel's struct sigaction, 32 bytes */
#define TW_INJECT_HANDLE	      72 /* of the library; 0: `text` says why not */
#define TW_INJECT_THREAD	      80
#define TW_INJECT_ATTRIBUTES	      88  /* pthread_attr_t, 56 bytes */
#define TW_INJECT_ATTRIBUTES_INIT     144 /* functions of the program's libc */
#define TW_INJECT_ATTRIBUTES_DETACHED 152
#define TW_INJECT_CREATE	      160
#define TW_INJECT_OPEN		      168
#define TW_INJECT_ERROR		      176
#define TW_INJECT_PATH		      192
#define TW_INJECT_PATH_BYTES	      64
#define TW_INJECT_TEXT		      256
#define TW_INJECT_TEXT_BYTES	      512

/* States, in their order. */
#define TW_INJECT_ENTERED 1 /* the thread that was interrupted is in the area */
#define TW_INJECT_WAITING 2 /* the new thread waits for the file to be filled */
#define TW_INJECT_FILLED  3 /* written by the command */
#define TW_INJECT_DONE	  4 /* the new thread has opened the library, or not, and ends */

/* Of a system call that is begun again: always; or EINTR after a handler without SA_RESTART; or after any handler. */
#define TW_INJECT_RESTART_NEVER		 0 /* none was interrupted, or it is begun again whatever happened */
#define TW_INJECT_RESTART_AS_HANDLED	 1
#define TW_INJECT_RESTART_UNLESS_HANDLED 2

/* How often, a millisecond each, the new thread waits for the command. */
#define TW_INJECT_WAITS 10000

/* Offset of %rax in the registers as the code pops them. */
#define TW_INJECT_REGISTER_RAX 80

#define TW_INJECT_NR_CLOSE	 3
#define TW_INJECT_NR_MMAP	 9
#define TW_INJECT_NR_MPROTECT	 10
#define TW_INJECT_NR_MUNMAP	 11
#define TW_INJECT_NR_SIGACTION	 13
#define TW_INJECT_NR_SIGPROCMASK 14
#define TW_INJECT_NR_NANOSLEEP	 35
#define TW_INJECT_NR_SIGPENDING	 127
#define TW_INJECT_NR_MEMFD	 319
#define TW_INJECT_EINTR		 4
#define TW_INJECT_EINVAL	 22
#define TW_INJECT_SA_RESTART	 0x10000000

#endif
