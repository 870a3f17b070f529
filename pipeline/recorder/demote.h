/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demote.h - which functions make the events, and which of them are counted from now on because there are too many events.
 *
 * Of one image at a time: places of another are other functions.  Threads  the recorder's.
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

/* These records of the image with this lease are about to be stored; of another one than before, all begins anew.  @raw	valid or not. */
void tw_demote_see(struct tw_demote *demote, uint64_t lease, const uint8_t *raw, uint32_t bytes);

/*
 * tw_demote_loudest - the place with most events since the last call, or since tw_demote_look() began to count anew, and its part of them.
 *
 * @lease	of the image that is asked about.
 *
 * False: there were none of that image.
 */
bool tw_demote_loudest(struct tw_demote *demote, uint64_t lease, uint32_t *place, uint32_t *percent);

/* ---- what is done about them ---- */

/*
 * tw_demote_look - tw_recorder_demote(), with the time, and the number of events so far, taken (as those that were seen) or lost.
 *
 * @rs	whose member is asked.
 */
enum tw_recorder_demotion tw_demote_look(struct tw_demote *demote, struct tw_rs *rs, uint64_t rate, uint64_t events,
					 uint64_t now_ns);

#endif
