/* SPDX-License-Identifier: Apache-2.0 */
/* continuation.h - one continuation: the stack from here to a base is kept, and control comes back to it. */
#ifndef CONTINUATION_H
#define CONTINUATION_H

/* 0 where it was taken, 1 each time that somebody goes back to it. */
__attribute__((visibility("default"))) int continuation_take(char *base);
__attribute__((visibility("default"), noreturn)) void continuation_call(void);

#endif
