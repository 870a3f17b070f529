/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers.h - members of a ring set ask the owner about the objects that they have loaded (enum tw_rs_question).
 *
 *	member: what it asks about is there -> asks -> wanted + 1 -> wakes the owner -> waits, for a limited time
 *	owner:  polls -> takes the questions of images -> text or files -> done: given = the number
 *
 * A number answers all questions of its kind up to it, of any member.  Text is append-only, in the file `answers`.
 */
#ifndef TW_RINGBUF_ANSWERS_H
#define TW_RINGBUF_ANSWERS_H

#include "ringbuf/ringset.h"

#define TW_RS_ANSWERS_FILE "answers"

/*
 * tw_rs_answers_append - append text, as the owner; members see it once it is complete.
 *
 * Errors: TW_ELIMIT, TW_ENOSPC, TW_EIO, TW_ENOTSUP (an anonymous set); the text is then unchanged.
 */
int tw_rs_answers_append(struct tw_rs *rs, const char *text);

/*
 * tw_rs_answers_read - read the text after @at_bytes, as a member of a set that tw_rs_attach() has accepted.
 *
 * @at_bytes	in and out: 0 at first.
 * @text	gives, null-terminated; may be empty.
 * Errors: TW_ENOENT (no text), TW_EPERM (not the owner's file), TW_ELIMIT, TW_ENOMEM, TW_EIO.
 */
int tw_rs_answers_read(const struct tw_rs *rs, uint64_t *at_bytes, char **text, size_t *bytes);

/*
 * tw_rs_answers_want - ask the owner to examine the objects that this process has loaded.
 *
 * Returns the request's number. tw_rs_answers_wait() sleeps until the request is answered and then returns true.  It
 * returns false after the timeout (counted as in tw_rs_is_stalled()), or if the owner has closed the set or made no
 * progress for a second.
 */
uint32_t tw_rs_answers_want(struct tw_rs *rs, enum tw_rs_question what);
bool tw_rs_answers_wait(struct tw_rs *rs, enum tw_rs_question what, uint32_t number, uint64_t timeout_ns);
/* True while an earlier request is unanswered; another would not be served sooner. */
bool tw_rs_answers_are_awaited(const struct tw_rs *rs, enum tw_rs_question what);
/* Is this request, or a later one, answered? */
bool tw_rs_answers_have(const struct tw_rs *rs, enum tw_rs_question what, uint32_t number);

/* ---- the owner ---- */

/* Gives the newest request for answers if it is unanswered, else returns false. */
bool tw_rs_answers_poll(const struct tw_rs *rs, enum tw_rs_question what, uint32_t *number);
/*
 * Takes the question of one image, after tw_rs_answers_poll(); false: it has not asked.  If it asks again meanwhile, what it
 * asks about is there already.
 */
bool tw_rs_answers_take(struct tw_rs *rs, enum tw_rs_question what, uint32_t slot);
/* Answers a request: text has been appended, files are complete. */
void tw_rs_answers_done(struct tw_rs *rs, enum tw_rs_question what, uint32_t number);

#endif
