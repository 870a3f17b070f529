/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_account.c - capture.h: counts the events that were recorded and are not here, by cause.
 *
 *	segments of an image	1 2 3 | 4 5 . 7 8 .		(. is not here)
 *				  ^       ^     ^
 *				  |       |     8 does not say that the recording ended with it: cut, or missing
 *				  |       7 has the number of events of 1 to 6, 5 that of 1 to 4
 *				  the first one here has the number before it: removed, if segments were limited
 *
 * The same difference shows the damage in a segment whose successor is here. Captures of version 1 have no such
 * numbers: there the sequence numbers of each stream are used, which count records.
 */
#include "base/export.h"
#include "base/search.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "pipeline/reader/scan.h"
#include "tracewheel/flight.h"

#include <stdlib.h>
#include <sys/wait.h>

_Static_assert((int)TW_MISSING_FULL == TW_LOST_FULL && (int)TW_MISSING_NO_RING == TW_LOST_NO_RING,
	       "the counted losses come first");

TW_API const char *tw_missing_cause_name(unsigned cause)
{
	static const char *const names[TW_MISSING_CAUSES] = {"full",	    "too_big", "nested",   "no_ring",
							     "overwritten", "removed", "segments", "damaged",
							     "rings",	    "cut",     "unstored", "processes",
							     "names",	    "went_on", "plans",	   "functions",
							     "children",    "ended",   "vfork",	   "left_out"};

	return cause < TW_MISSING_CAUSES ? names[cause] : "unknown";
}

static const enum tw_account_cause untraced_causes[TW_UNTRACED_CAUSES] = {
	[TW_UNTRACED_FULL] = TW_ACCOUNT_PROCESSES_FULL,	    [TW_UNTRACED_OTHER] = TW_ACCOUNT_PROCESSES_OTHER,
	[TW_UNTRACED_STATIC] = TW_ACCOUNT_PROCESSES_STATIC, [TW_UNTRACED_LIBRARY] = TW_ACCOUNT_PROCESSES_LIBRARY,
	[TW_UNTRACED_RIGHTS] = TW_ACCOUNT_PROCESSES_RIGHTS,
};

static void add(struct tw_capture *capture, enum tw_missing_cause cause, uint64_t events, uint64_t places,
		bool has_more)
{
	struct tw_capture_missing *missing = &capture->account.missing[cause];

	missing->events += events;
	missing->places += places;
	missing->has_more |= has_more;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ---- the first block of a stream ---- */

void tw_source_take_inside(struct tw_capture *capture, struct tw_source_stream *stream,
			   const struct tw_source_block *block)
{
	struct tw_block_decoder *decoder = tw_block_decoder_create();
	uint8_t *raw = malloc(TW_BLOCK_RAW_BYTES_MAX + TW_COLUMN_SLACK_BYTES);

	/* Damage is reported when the block is read for its events. */
	if (!decoder || !raw || tw_source_load(capture, block, decoder, raw))
		goto free_raw;
	for (uint32_t at = 0; at < block->header.raw_bytes; at += TW_RB_HEAD_BYTES(tw_record_head(raw + at))) {
		uint64_t head = tw_record_head(raw + at);
		uint32_t own = TW_RB_HEAD_ID(head) - TW_OWN_TIME_WAIT;

		for (unsigned cause = 0; cause < TW_LOST_CAUSES && TW_RB_HEAD_KIND(head) == TW_EVENT_LOSS; cause++) {
			uint64_t lost = tw_get64(raw + at + TW_CODEC_HEAD_BYTES + 8 + 8 * cause);

			stream->lost_before[cause] = difference(stream->lost_before[cause], lost);
		}
		if (TW_RB_HEAD_KIND(head) == TW_EVENT_OWN_TIME && own < TW_FORMAT_OWN_KINDS &&
		    tw_event_payload_words(head)) {
			stream->own[own].count -= stream->own[own].count != 0;
			stream->own[own].ticks =
				difference(stream->own[own].ticks, tw_get64(raw + at + TW_CODEC_HEAD_BYTES));
		}
	}
free_raw:
	free(raw);
	tw_block_decoder_destroy(decoder);
}

/* ---- segments ---- */

static uint32_t index_of(const struct tw_capture *capture, const struct tw_source_file *file)
{
	return (uint32_t)(file - capture->files);
}

static int by_image(const void *a, const void *b)
{
	const struct tw_source_file *left = *(const struct tw_source_file *const *)a;
	const struct tw_source_file *right = *(const struct tw_source_file *const *)b;

	return TW_ORDER(left->image, right->image)
		       ?: TW_ORDER(left->image_segment, right->image_segment)
		       ?: TW_ORDER(left->number, right->number);
}

/* Is there an unreadable file with a number between these? */
static bool has_unread(const struct tw_capture *capture, uint32_t above, uint32_t below)
{
	for (uint32_t i = 0; i < capture->file_count; i++) {
		const struct tw_source_file *file = &capture->files[i];

		if (!file->is_listed && !file->is_gone && file->number > above && file->number < below)
			return true;
	}
	return false;
}

/* Takes over what the image's oldest segment here says of those before it. Returns their number. */
static uint32_t begin_image(struct tw_capture *capture, const struct tw_source_file *first)
{
	bool is_removed = first->segments_kept != 0;
	uint32_t before = first->image_segment ? first->image_segment - 1 : 0;

	if (!before || capture->is_asked)
		return before;
	if (!is_removed)
		tw_source_add_hole(capture, &(struct tw_source_hole){{.image = first->image,
								      .first = 1,
								      .last = before,
								      .events = first->events_before},
								     TW_CAPTURE_NONE,
								     index_of(capture, first)});
	add(capture, is_removed ? TW_MISSING_REMOVED : TW_MISSING_SEGMENTS, first->events_before, before, false);
	for (unsigned cause = 0; is_removed && cause < TW_LOST_CAUSES; cause++)
		capture->account.removed_lost += first->lost_before[cause];
	return before;
}

/* Counts what is missing of this segment, and between it and the next. Returns the number of missing segments. */
static uint32_t between(struct tw_capture *capture, const struct tw_source_file *file,
			const struct tw_source_file *next)
{
	uint64_t given = file->is_closed ? file->total_events : file->events;
	uint32_t gap = next->image_segment > file->image_segment ? next->image_segment - file->image_segment - 1 : 0;
	enum tw_missing_cause cause = TW_MISSING_SEGMENTS;
	uint64_t absent;

	if (!file->image_segment || !next->image_segment) {
		add(capture, TW_MISSING_DAMAGED, difference(given, file->events), 0, false);
		capture->is_damage_unnumbered |= file->is_damaged && !file->is_closed;
		return 0;
	}
	if (!gap) {
		add(capture, TW_MISSING_DAMAGED,
		    difference(difference(next->events_before, file->events_before), file->events), 0, false);
		return 0;
	}
	absent = difference(difference(next->events_before, file->events_before), given);
	if (has_unread(capture, file->number, next->number)) {
		cause = TW_MISSING_DAMAGED;
		capture->is_gap_damaged = true;
	} else if (!capture->is_asked) {
		tw_source_add_hole(capture, &(struct tw_source_hole){{.image = file->image,
								      .first = file->image_segment + 1,
								      .last = next->image_segment - 1,
								      .events = absent},
								     index_of(capture, file),
								     index_of(capture, next)});
	}
	if (cause == TW_MISSING_DAMAGED || !capture->is_asked)
		add(capture, cause, absent, gap, false);
	add(capture, TW_MISSING_DAMAGED, difference(given, file->events), 0, false);
	capture->is_damage_unnumbered |= file->is_damaged && !file->is_closed;
	return gap;
}

static void end_in_hole(struct tw_capture *capture, const struct tw_source_file *last)
{
	add(capture, TW_MISSING_SEGMENTS, 0, 0, true);
	tw_source_add_hole(capture, &(struct tw_source_hole){{.image = last->image, .first = last->image_segment + 1},
							     index_of(capture, last),
							     TW_CAPTURE_NONE});
}

static void end_image(struct tw_capture *capture, const struct tw_source_file *last)
{
	bool is_live = capture->info.is_live;

	if (last->is_closed)
		add(capture, TW_MISSING_DAMAGED, difference(last->total_events, last->events), 0, false);
	else if (!is_live)
		add(capture, TW_MISSING_CUT, 0, 1, true);
	capture->is_damage_unnumbered |= last->is_damaged && !last->is_closed;
	if (is_live || !last->image_segment || !last->is_closed || last->is_last)
		return;
	if (has_unread(capture, last->number, UINT32_MAX))
		add(capture, TW_MISSING_DAMAGED, 0, 0, true);
	else if (capture->reported[TW_ACCOUNT_CUT])
		add(capture, TW_MISSING_CUT, 0, 1, true);
	else if (!capture->is_asked)
		end_in_hole(capture, last);
}

/* Counts missing segments of the capture that no segment of their image reports: all segments of an image are gone. */
static void other_holes(struct tw_capture *capture, uint32_t explained)
{
	uint32_t absent = 0, before = 0;

	for (uint32_t i = 0; i < capture->file_count; i++) {
		if (!capture->files[i].image_segment && capture->files[i].is_listed)
			return; /* version 1 does not say what --keep has removed */
		/* Numbers are those of one recording. */
		if (capture->files[i].is_listed &&
		    capture->images[capture->files[i].image]->info.capture_id != capture->images[0]->info.capture_id)
			return;
		absent += capture->files[i].number > before ? capture->files[i].number - before - 1 : 0;
		before = capture->files[i].number;
	}
	if (absent > explained)
		add(capture, TW_MISSING_SEGMENTS, 0, absent - explained, true);
}

static void account_segments(struct tw_capture *capture)
{
	const struct tw_source_file **files = malloc((capture->file_count + (size_t)1) * sizeof *files);
	uint32_t count = 0, explained = 0;

	for (uint32_t i = 0; files && i < capture->file_count; i++) {
		if (capture->files[i].is_listed)
			files[count++] = &capture->files[i];
		capture->account.segments_kept = capture->files[i].segments_kept > capture->account.segments_kept
							 ? capture->files[i].segments_kept
							 : capture->account.segments_kept;
	}
	if (count)
		qsort(files, count, sizeof *files, by_image);
	for (uint32_t i = 0; i < count; i++) {
		bool is_first = !i || files[i - 1]->image != files[i]->image;
		bool is_end = i + 1 == count || files[i + 1]->image != files[i]->image;

		if (is_first)
			explained += begin_image(capture, files[i]);
		if (is_end)
			end_image(capture, files[i]);
		else
			explained += between(capture, files[i], files[i + 1]);
		if (files[i]->is_short)
			add(capture, TW_MISSING_UNSTORED, 0, 0, !capture->reported[TW_ACCOUNT_UNSTORED]);
	}
	if (!capture->is_gap_damaged)
		capture->is_damage_unnumbered |= has_unread(capture, 0, UINT32_MAX);
	if (files && !capture->is_piece && !capture->is_asked)
		other_holes(capture, explained);
	if (capture->is_asked && tw_source_asked_absent(capture))
		add(capture, TW_MISSING_SEGMENTS, 0, tw_source_asked_absent(capture), true);
	free(files);
}

/* ---- streams ---- */

/* Version 1: segments have no totals of the segments before them. */
static bool is_uncounted(const struct tw_capture *capture)
{
	for (uint32_t i = 0; i < capture->file_count; i++) {
		if (capture->files[i].is_listed && !capture->files[i].image_segment)
			return true;
	}
	return false;
}

static void account_streams(struct tw_capture *capture)
{
	struct tw_capture_account *account = &capture->account;
	uint64_t before = 0, holes = 0;

	for (uint32_t i = 0; i < capture->stream_count; i++) {
		const struct tw_source_stream *stream = &capture->streams[i];
		const struct tw_source_block *last = &capture->blocks[stream->first_block + stream->block_count - 1];
		struct tw_source_image *image = capture->images[stream->info.image];
		bool is_overwritten = image->info.is_overwriting;

		before += stream->records_before;
		holes += stream->hole_records;
		for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
			unsigned as = is_overwritten && cause == TW_LOST_FULL ? TW_MISSING_OVERWRITTEN : cause;

			account->missing[as].events += stream->info.lost[cause];
			image->lost_through[cause] += stream->lost_before[cause] + stream->info.lost[cause];
		}
		for (unsigned kind = 0; kind < TW_FORMAT_OWN_KINDS; kind++) {
			struct tw_capture_own *own = kind ? &account->setups : &account->waits;
			uint64_t ticks = difference(last->header.own[kind].ticks, stream->own[kind].ticks);

			own->count += difference(last->header.own[kind].count, stream->own[kind].count);
			own->ns += tw_clockmap_length_ns(&capture->clocks, ticks);
		}
	}
	/* Version 1 counts records, and does not say whether the user or the recorder removed them. */
	if (is_uncounted(capture)) {
		add(capture, TW_MISSING_REMOVED, before, 0, false);
		add(capture, TW_MISSING_SEGMENTS, holes, 0, false);
	}
}

/* Tells apart what segments count as lost without a ring, and inside others. Segments that were removed had some of it. */
static void split(struct tw_capture *capture)
{
	struct tw_capture_missing *missing = capture->account.missing;
	uint64_t ended = capture->reported[TW_ACCOUNT_THREADS_ENDED], vforked = capture->reported[TW_ACCOUNT_VFORK];
	uint64_t left_out = capture->reported[TW_ACCOUNT_LEFT_OUT];

	missing[TW_MISSING_NO_RING].events = difference(missing[TW_MISSING_NO_RING].events, ended + vforked);
	add(capture, TW_MISSING_ENDED, ended, 0, false);
	add(capture, TW_MISSING_VFORK, vforked, 0, false);
	missing[TW_MISSING_NESTED].events = difference(missing[TW_MISSING_NESTED].events, left_out);
	add(capture, TW_MISSING_LEFT_OUT, left_out, 0, false);
	capture->account.ended_lost = ended;
}

void tw_source_account(struct tw_capture *capture)
{
	struct tw_capture_account *account = &capture->account;
	bool is_stream = capture->directory_fd < 0;

	*account = (struct tw_capture_account){0};
	if (!is_stream)
		account_segments(capture);
	account_streams(capture);
	for (uint32_t i = 0; i < capture->image_count; i++) {
		account->missing[TW_MISSING_NO_RING].events += capture->images[i]->info.no_ring_lost;
		capture->images[i]->lost_through[TW_LOST_NO_RING] += capture->images[i]->no_ring_reported;
	}
	/* A part of the capture may lack the segments that were cut. */
	if (capture->reported[TW_ACCOUNT_CUT] && !account->missing[TW_MISSING_CUT].has_more)
		add(capture, TW_MISSING_CUT, 0, capture->reported[TW_ACCOUNT_CUT], true);
	split(capture);
	if (capture->reported[TW_ACCOUNT_DAMAGED_RINGS])
		add(capture, TW_MISSING_RINGS, 0, capture->reported[TW_ACCOUNT_DAMAGED_RINGS], true);
	add(capture, TW_MISSING_UNSTORED, capture->reported[TW_ACCOUNT_UNSTORED], 0, false);
	capture->account.switches_lost = capture->reported[TW_ACCOUNT_SWITCHES];
	add(capture, TW_MISSING_NAMES, 0, capture->reported[TW_ACCOUNT_DEFINITIONS], false);
	for (unsigned cause = 0; cause < TW_UNTRACED_CAUSES; cause++) {
		uint64_t reported = capture->reported[untraced_causes[cause]];

		account->untraced[cause] = reported;
		add(capture, TW_MISSING_PROCESSES, 0, reported, reported != 0);
	}
	if (capture->reported[TW_ACCOUNT_PROCESSES_WENT_ON])
		add(capture, TW_MISSING_WENT_ON, 0, capture->reported[TW_ACCOUNT_PROCESSES_WENT_ON], true);
	if (capture->reported[TW_ACCOUNT_PLANS])
		add(capture, TW_MISSING_PLANS, 0, capture->reported[TW_ACCOUNT_PLANS], true);
	if (capture->reported[TW_ACCOUNT_FUNCTIONS])
		add(capture, TW_MISSING_FUNCTIONS, 0, capture->reported[TW_ACCOUNT_FUNCTIONS], true);
	if (capture->reported[TW_ACCOUNT_CHILDREN])
		add(capture, TW_MISSING_CHILDREN, 0, capture->reported[TW_ACCOUNT_CHILDREN], true);
	/*
	 * Sequence numbers cover the gap between two blocks of a stream, even if the totals of segments are not
	 * known.
	 */
	if (account->missing[TW_MISSING_DAMAGED].events < capture->info.damaged_records)
		account->missing[TW_MISSING_DAMAGED].events = capture->info.damaged_records;
	account->is_complete = true;
	for (unsigned cause = TW_MISSING_REMOVED; cause <= TW_MISSING_UNSTORED; cause++) {
		const struct tw_capture_missing *missing = &account->missing[cause];

		account->is_complete &= !missing->events && !missing->places && !missing->has_more;
	}
	account->is_complete &= !capture->reported[TW_ACCOUNT_PLANS] && !capture->reported[TW_ACCOUNT_FUNCTIONS];
}

TW_API void tw_capture_account(const struct tw_capture *capture, struct tw_capture_account *out)
{
	struct tw_capture_missing *damaged = &out->missing[TW_MISSING_DAMAGED], *cut = &out->missing[TW_MISSING_CUT];
	bool is_stream = capture->directory_fd < 0 && !capture->is_piece;

	*out = capture->account;
	out->events = capture->info.events;
	/* A stream is damaged where it ends. */
	if (is_stream && capture->info.damages) {
		cut->places++;
		cut->has_more = true;
	} else {
		damaged->events += capture->damaged_events;
		damaged->places += capture->info.damages;
		damaged->has_more |= capture->info.damages && capture->is_damage_unnumbered;
	}
	out->missing[TW_MISSING_REMOVED].events += capture->removed_events;
	out->is_complete &= !capture->info.damages && capture->info.is_complete && !capture->info.is_live;
	out->is_whole = out->is_complete;
	for (unsigned cause = 0; cause < TW_MISSING_CAUSES; cause++)
		out->is_whole &=
			!out->missing[cause].events && !out->missing[cause].places && !out->missing[cause].has_more;
}

TW_API bool tw_capture_ending(const struct tw_capture *capture, int *exit_code, int *signal)
{
	uint64_t reported = capture->reported[TW_ACCOUNT_ENDING];
	int status = (int)(uint32_t)reported;

	if (!(reported >> 32))
		return false;
	*exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	*signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return true;
}

TW_API bool tw_capture_stopped(const struct tw_capture *capture, enum tw_stop *why, uint64_t *limit)
{
	uint64_t reported = capture->reported[TW_ACCOUNT_STOPPED];

	*why = (enum tw_stop)(reported >> 56);
	*limit = reported & (TW_ACCOUNT_STOP(1, 0) - 1);
	return *why >= TW_STOP_TIME && *why <= TW_STOP_ASKED;
}

TW_API bool tw_capture_trigger(const struct tw_capture *capture, struct tw_capture_trigger *out)
{
	for (uint32_t i = 0; i < capture->image_count; i++) {
		const struct tw_capture_trigger *trigger = &capture->images[i]->catalog.trigger;

		if (!trigger->reason)
			continue;
		*out = *trigger;
		out->ns = tw_capture_ns(capture, trigger->ns);
		out->call_ns = trigger->call_ns ? out->ns - tw_capture_ns(capture, trigger->ns - trigger->call_ns) : 0;
		return true;
	}
	return false;
}

TW_API bool tw_capture_crash(const struct tw_capture *capture, struct tw_capture_crash *out)
{
	for (uint32_t i = 0; i < capture->image_count; i++) {
		const struct tw_def_crash *def = capture->images[i]->catalog.crash;

		if (!def)
			continue;
		*out = (struct tw_capture_crash){.image = i,
						 .thread_id = def->thread_id,
						 .signal = def->signal,
						 .code = def->code,
						 .sender = (int32_t)def->sender,
						 .address = def->address,
						 .stack_pointer = def->stack_pointer,
						 .end = def->end < TW_CRASH_UNWALKED ? (enum tw_crash_end)def->end
										     : TW_CRASH_UNWALKED,
						 .count = def->frame_count,
						 .addresses = (const uint64_t *)(const void *)(def + 1)};
		return true;
	}
	return false;
}
