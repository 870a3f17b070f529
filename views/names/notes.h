/* SPDX-License-Identifier: Apache-2.0 */
/* notes.h - the notes of a capture's processes, for a summary: each once, and those about refused functions added up. */
#ifndef TW_VIEWS_NOTES_H
#define TW_VIEWS_NOTES_H

#include "tracewheel/capture.h"

#include <stdbool.h>

typedef void tw_notes_fn(void *context, const char *note);

/*
 * Calls the function with at most `most` notes, and with one sentence about all functions that match and could not be traced. Left out are
 * objects without a plan: the capture's account counts these. Returns the number of further notes, which `tracewheel info` shows.
 */
size_t tw_notes_each(const struct tw_capture *capture, size_t most, tw_notes_fn *fn, void *context);

/*
 * Were there calls that should have been traced and were not? By the account (tw_missing_is_untraced()), or by a note: functions that could
 * not be traced, or what another tracer had.
 */
bool tw_notes_is_untraced(const struct tw_capture *capture, const struct tw_capture_account *account);

/* Was text replaced, when it was recorded or cut?  Its note says so; NULL: no. */
const char *tw_notes_of_redaction(const struct tw_capture *capture);

/* The member "notes": all of them. */
struct tw_json;
void tw_notes_json(struct tw_json *json, const struct tw_capture *capture);

#endif
