/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_label.h - labels of sequential tracing: terms that tokens name by a word.
 *
 * A small integer, an atom or [] is its own word. Any other term is kept here in the external term format, once for equal
 * encodings. Tokens lie anywhere in the program's memory and cannot be counted; the table therefore holds the labels used
 * last, and others are removed: a token that still carries a removed label is dropped and counted when it is next used.
 *
 * Memory	TW_SEQ_LABEL_BLOCKS blocks of 128 bytes, 16 MiB, of which only those that were ever used take memory. A
 *		label of up to 104 bytes takes one: 131,072 such labels are known at a time, however many there are in all.
 * Threads	any; making one takes a short lock, reading takes none.
 */
#ifndef TW_PIPELINE_SEQ_LABEL_H
#define TW_PIPELINE_SEQ_LABEL_H

#include "base/limits.h"
#include "pipeline/hit/seq.h"
#include "term/term.h"

#include <stddef.h>

#define TW_SEQ_LABEL_BLOCKS 131072

/*
 * tw_seq_label_of - the word of a term.
 *
 * Returns 0, TW_EBADARG (none, or nested deeper than 64 levels), TW_ELIMIT (longer than TW_SEQ_LABEL_BYTES_MAX), TW_ENOMEM.
 * Threads: any, also in a hit; takes a quiet lock unless the term is one word.
 */
int tw_seq_label_of(struct tw_term label, uint64_t *word);
/* The label in the external term format, with its version byte; 0: forgotten, no label, or longer than @capacity. */
size_t tw_seq_label_encode(uint64_t word, uint8_t *at, size_t capacity);
/* The label; none: forgotten, or no memory. Signal handlers and hits: yes, in a fixed arena. */
struct tw_term tw_seq_label_term(struct tw_arena *arena, uint64_t word);
/* Is it a word that stands for a label, not forgotten? */
int tw_seq_label_is_known(uint64_t word);
/* The number of labels that were forgotten. */
uint64_t tw_seq_labels_forgotten(void);

void tw_seq_labels_before_fork(void);
void tw_seq_labels_after_fork(void);

#endif
