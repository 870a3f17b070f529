/* SPDX-License-Identifier: Apache-2.0 */
/* continuation.h - one continuation: saves the stack from here to a base, and returns to it. */
#ifndef CONTINUATION_H
#define CONTINUATION_H

/* 0 when it is taken, 1 each time that control returns to it. */
__attribute__((visibility("default"))) int continuation_take(char *base);
__attribute__((visibility("default"), noreturn)) void continuation_call(void);

#endif
