/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demote.h - which functions make the events, and which of them are counted from now on because there are too many events.
 *
 * Of one process: that of the first image.  Threads  the recorder's.
 */
#ifndef TW_PIPELINE_DEMOTE_H
#define TW_PIPELINE_DEMOTE_H

#include "tracewheel/consumer.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_rs;

/* ---- the events of each place ---- */

struct tw_demote;

/* NULL: no memory. */
struct tw_demote *tw_demote_create(void);
void tw_demote_destroy(struct tw_demote *demote);

/* These records of an image are about to be stored.  @raw	valid or not. */
void tw_demote_see(struct tw_demote *demote, uint32_t image, const uint8_t *raw, uint32_t bytes);

/*
 * tw_demote_loudest - the place with most events since the last call, or since tw_demote_look() began to count anew, and its part of them.
 *
 * False: there were none.
 */
bool tw_demote_loudest(struct tw_demote *demote, uint32_t *place, uint32_t *percent);

/* ---- what is done about them ---- */

/*
 * tw_demote_look - tw_recorder_demote(), with the time, and the number of events so far, stored or lost.
 *
 * @rs	whose member is asked.
 */
enum tw_recorder_demotion tw_demote_look(struct tw_demote *demote, struct tw_rs *rs, uint64_t rate, uint64_t events,
					 uint64_t now_ns);

#endif
