/* SPDX-License-Identifier: Apache-2.0 */
/* trap.h - the processor's trap flag: between the two, SIGTRAP comes before each instruction of the calling thread. */
#ifndef TW_TESTS_PROOF_TRAP_H
#define TW_TESTS_PROOF_TRAP_H

#define STEP_ON()  __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "cc", "memory")
#define STEP_OFF() __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "cc", "memory")

#endif
