/* SPDX-License-Identifier: Apache-2.0 */
/* retime.c - straight lines between knots, and the words of records that hold times. */
#include "pipeline/combine/retime.h"
#include "base/error.h"
#include "pipeline/format/event.h"
#include "pipeline/reader/scan.h"

#include <stdlib.h>

#define DRIFT_BITS 60
/* A line whose times advance more than this much too fast or too slow is refused: products must not overflow. */
#define DRIFT_MAX ((int64_t)1 << (DRIFT_BITS - 2))

int tw_retime_init(struct tw_retime *retime, const struct tw_merge_input *input, const struct tw_merge_input *reference)
{
	*retime = (struct tw_retime){.capture = input->capture, .reference = reference->capture};
	if (input->knot_count < 2 || reference->knot_count < 2)
		return TW_EBADARG;
	retime->shift_ns = reference->knots[0].to_ns - reference->knots[0].from_ns;
	retime->line_count = input->knot_count - 1;
	retime->lines = calloc(retime->line_count, sizeof *retime->lines);
	if (!retime->lines)
		return TW_ENOMEM;
	for (uint32_t i = 0; i < retime->line_count; i++) {
		const struct tw_merge_knot *knot = &input->knots[i], *next = knot + 1;
		__int128 length = (__int128)next->from_ns - knot->from_ns;
		__int128 more = (__int128)next->to_ns - knot->to_ns - length;

		if (length <= 0 || next->to_ns < knot->to_ns || more > length / 4 || more < -length / 4)
			return TW_EBADARG;
		/* Rounded down: a line does not reach beyond the next knot. */
		more = more * ((__int128)1 << DRIFT_BITS);
		retime->lines[i] = (struct tw_retime_line){knot->from_ns, knot->to_ns,
							   (int64_t)(more / length - (more < 0 && more % length != 0))};
		if (retime->lines[i].drift > DRIFT_MAX || retime->lines[i].drift < -DRIFT_MAX)
			return TW_EBADARG;
	}
	return 0;
}

void tw_retime_fini(struct tw_retime *retime)
{
	free(retime->lines);
	*retime = (struct tw_retime){0};
}

uint64_t tw_retime_ns(struct tw_retime *retime, uint64_t ns)
{
	const struct tw_retime_line *line;
	__int128 at, to;

	while (retime->line && ns < retime->lines[retime->line].from_ns)
		retime->line--;
	while (retime->line + 1 < retime->line_count && ns >= retime->lines[retime->line + 1].from_ns)
		retime->line++;
	line = &retime->lines[retime->line];
	at = (__int128)ns - line->from_ns;
	to = line->to_ns + at + (at * line->drift >> DRIFT_BITS);
	if (retime->line + 1 < retime->line_count && to > (__int128)line[1].to_ns)
		return line[1].to_ns;
	return to < 0 ? 0 : (uint64_t)to;
}

uint64_t tw_retime_ticks(struct tw_retime *retime, uint64_t ticks)
{
	return tw_retime_ns(retime, tw_clockmap_ns(&retime->capture->clocks, ticks, &retime->hint));
}

struct tw_format_clock tw_retime_clock(struct tw_retime *retime, const struct tw_format_clock *clock)
{
	uint64_t ns = tw_retime_ticks(retime, clock->ticks);
	uint64_t own_ns = ns > retime->shift_ns ? ns - retime->shift_ns : 0;

	return (struct tw_format_clock){ns, ns, tw_clockmap_wall_ns(&retime->reference->clocks, own_ns),
					tw_clockmap_boot_ns(&retime->reference->clocks, own_ns)};
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void tw_retime_records(struct tw_retime *retime, struct tw_block_header *header, uint8_t *raw)
{
	struct tw_format_own_time own[TW_FORMAT_OWN_KINDS] = {{0}};

	for (uint32_t at = 0; at < header->raw_bytes; at += TW_RB_HEAD_BYTES(tw_record_head(raw + at))) {
		uint64_t *words = (uint64_t *)(void *)(raw + at), head = words[1], ticks = words[0];
		unsigned kind = TW_RB_HEAD_KIND(head);

		words[0] = tw_retime_ticks(retime, ticks);
		if (kind == TW_EVENT_LOSS) {
			words[2] = tw_retime_ticks(retime, words[2]);
			for (unsigned cause = 0; cause < TW_FORMAT_CAUSES; cause++)
				header->lost[cause] = less(header->lost[cause], words[3 + cause]);
		} else if (kind == TW_EVENT_OWN_TIME && tw_event_payload_words(head)) {
			uint32_t why = TW_RB_HEAD_ID(head) - TW_OWN_TIME_WAIT;

			words[2] = tw_retime_ticks(retime, ticks + words[2]) - words[0];
			if (why < TW_FORMAT_OWN_KINDS) {
				own[why].count++;
				own[why].ticks += words[2];
			}
		}
	}
	/* The header has the totals after the block; the encoder wants those before it. */
	for (unsigned why = 0; why < TW_FORMAT_OWN_KINDS; why++) {
		header->own[why].count = less(header->own[why].count, own[why].count);
		header->own[why].ticks =
			less(tw_clockmap_length_ns(&retime->capture->clocks, header->own[why].ticks), own[why].ticks);
	}
}
