/* SPDX-License-Identifier: Apache-2.0 */
/* questions.c - consumer.h: what agents ask while they run, and the answers. */
#include "base/export.h"
#include "pipeline/recorder/recorder.h"
#include "ringbuf/answers.h"

static enum tw_rs_question question_of(enum tw_recorder_question_kind what)
{
	return what == TW_RECORDER_QUESTION_PLANS ? TW_RS_QUESTION_PLANS : TW_RS_QUESTION_LAYOUTS;
}

TW_API bool tw_recorder_question(struct tw_recorder *recorder, enum tw_recorder_question_kind what,
				 struct tw_recorder_question *out)
{
	struct tw_rs *rs = &recorder->writer.rs;

	out->process_count = 0;
	if (!tw_rs_answers_poll(rs, question_of(what), &out->number))
		return false;
	/* The process that asks may have appeared after the last round. */
	tw_rs_scan(rs);
	for (uint32_t i = 0; i < tw_rs_image_count(rs); i++)
		if (tw_rs_image_state(rs, i) == TW_RS_IMAGE_LIVE && tw_rs_answers_take(rs, question_of(what), i))
			out->process_ids[out->process_count++] = tw_rs_image(rs, i)->process_id;
	return true;
}

TW_API int tw_recorder_answer(struct tw_recorder *recorder, enum tw_recorder_question_kind what, uint32_t number,
			      const char *text)
{
	int error = text ? tw_rs_answers_append(&recorder->writer.rs, text) : 0;

	tw_rs_answers_done(&recorder->writer.rs, question_of(what), number);
	return error;
}
