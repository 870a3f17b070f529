/* SPDX-License-Identifier: Apache-2.0 */
/* missing.h - data that was recorded and is not in a capture, in words and as JSON: the same in every view. */
#ifndef TW_TOOLS_MISSING_H
#define TW_TOOLS_MISSING_H

#include "tools/tool.h"

#include "tracewheel/capture.h"

#define TW_MISSING_TEXT_BYTES 256

/* Is anything missing for this cause? */
bool tw_missing_any(const struct tw_capture_account *account, unsigned cause);

/*
 * tw_missing_clause - one cause as a clause without a period.
 *
 * @text	holds TW_MISSING_TEXT_BYTES.
 *
 * Returns text; "" if nothing is missing for this cause, and for counted losses, which every view shows itself.
 */
const char *tw_missing_clause(const struct tw_capture_account *account, unsigned cause, char *text);

/* " (3 of threads after their last destructor)": of events lost without a ring; "" for 0. */
const char *tw_missing_ended(uint64_t events, char *text);

/*
 * Is data missing that was neither counted as a loss nor given up on request, in a recording that is not still
 * running?
 */
bool tw_missing_is_failure(const struct tw_capture_account *account, const struct tw_capture_info *info);

/* "waited 12 times, 1.2 s in all, for space in the rings"; "" if no thread waited. */
const char *tw_missing_waits(const struct tw_capture_account *account, char *text);
const char *tw_missing_setups(const struct tw_capture_account *account, char *text);

/* The member "account". */
void tw_missing_json(struct tw_json *json, const struct tw_capture_account *account);

#endif
