/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cacheline.h - the distance between words of different writers.
 *
 * 128 and not 64 bytes: the adjacent-line prefetcher of x86 processors moves lines in pairs, so two
 * writers on neighbouring 64-byte lines still disturb each other.
 */
#ifndef TW_BASE_CACHELINE_H
#define TW_BASE_CACHELINE_H

#define TW_CACHELINE_BYTES   128
#define TW_CACHELINE_ALIGNED _Alignas(TW_CACHELINE_BYTES)

/* One line: for what is read together, and written rarely. */
#define TW_LINE_ALIGNED _Alignas(64)

#define TW_PAGE_BYTES 4096

#endif
