/* SPDX-License-Identifier: Apache-2.0 */
/* missing.h - data that was recorded and is not in a capture, in words and as JSON: the same in every view. */
#ifndef TW_VIEWS_MISSING_H
#define TW_VIEWS_MISSING_H

#include "views/output/output.h"

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

/*
 * Losses that are counted, by cause: those of enum tw_lost_cause, and three that the account of the whole recording tells apart: from
 * TW_LOST_NO_RING `ended`, calls of threads after their last destructor, and `vfork`, calls of children of vfork(); from TW_LOST_NESTED
 * `left_out`, calls in recorded calls that found no space until these were decided.
 */
#define TW_MISSING_LOST_CAUSES (TW_LOST_CAUSES + 3)
struct tw_missing_apart {
	uint64_t ended, vforked, left_out;
};
struct tw_missing_apart tw_missing_apart_of(const struct tw_capture_account *account);
void tw_missing_split(const uint64_t lost[TW_LOST_CAUSES], struct tw_missing_apart apart,
		      uint64_t out[TW_MISSING_LOST_CAUSES]);
const char *tw_missing_lost_name(unsigned cause);
/* "full 3, ended 12"; "" for none. */
const char *tw_missing_lost(const uint64_t lost[TW_LOST_CAUSES], struct tw_missing_apart apart, char *text);

/*
 * tw_missing_overwritten - tells events that newer ones replaced, as `--on-full overwrite` requests, from lost ones.
 *
 * @stream	number of a stream of the capture
 * @lost	losses of that stream; TW_LOST_FULL becomes 0 where they are events replaced by newer ones.
 *
 * Returns the number of replaced events.
 */
uint64_t tw_missing_overwritten(const struct tw_capture *capture, uint32_t stream, uint64_t lost[TW_LOST_CAUSES]);
/* The losses of a loss record; sum is without the replaced ones. */
struct tw_missing_loss {
	uint64_t lost[TW_LOST_CAUSES];
	uint64_t sum;
	uint64_t overwritten;
};
void tw_missing_loss(const struct tw_capture *capture, const struct tw_capture_event *event,
		     struct tw_missing_loss *out);
/* The same of a record that was read by blocks. */
void tw_missing_loss_of(const struct tw_capture *capture, uint32_t stream, const struct tw_capture_loss *loss,
			struct tw_missing_loss *out);
/* "12 events were lost", "3 older events were replaced by newer ones", or both. */
const char *tw_missing_gone(uint64_t lost, uint64_t overwritten, char *text);
/* "Events were lost at 2 places"; @replaced of the places have only older events that newer ones replaced. */
const char *tw_missing_places(uint64_t losses, uint64_t replaced, char *text);
/* "12 older events replaced by newer ones"; "" if there are none. */
const char *tw_missing_replaced(uint64_t overwritten, char *text);
/* The member "lost": an object of losses. */
void tw_missing_lost_json(struct tw_json *json, const uint64_t lost[TW_LOST_CAUSES], uint64_t overwritten);

/* Says on standard error which events of the whole capture are missing, and which calls were counted only: for output without a place for it. */
void tw_missing_say(const struct tw_capture *capture);
/* The same without the calls that were counted: where they are shown. */
void tw_missing_say_events(const struct tw_capture *capture);

/* Were there processes or functions that should have been traced and were not, or not fully? Nothing was lost of these. */
bool tw_missing_is_untraced(const struct tw_capture_account *account);

/* Is a part of the data missing that was recorded, on request or not? */
bool tw_missing_is_part(const struct tw_capture_account *account, const struct tw_capture_info *info);

/*
 * Is data missing that was neither counted as a loss nor given up on request, in a recording that is not still
 * running?
 */
bool tw_missing_is_failure(const struct tw_capture_account *account, const struct tw_capture_info *info);

/* "waited 12 times, 1.2 s in all, for space in the rings"; "" if no thread waited. */
const char *tw_missing_waits(const struct tw_capture_account *account, char *text);
/* "the tracer prepared threads 5 times, 2 ms in all"; "" if it never did. */
const char *tw_missing_setups(const struct tw_capture_account *account, char *text);

/* "3 processes that it started were not traced; --follow-fork traces them". */
const char *tw_missing_children(uint64_t count, char *text);

/* The member "account". */
void tw_missing_json(struct tw_json *json, const struct tw_capture_account *account);

#endif
