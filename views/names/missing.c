/* SPDX-License-Identifier: Apache-2.0 */
/* missing.c - the account of missing data, in words and as JSON. */
#include "views/names/missing.h"

#include "views/names/counted.h"

#include <stdio.h>

bool tw_missing_any(const struct tw_capture_account *account, unsigned cause)
{
	const struct tw_capture_missing *missing = &account->missing[cause];
	return missing->events || missing->places || missing->has_more;
}

/* "1,000 events", "an unknown number of events", "1,000 events and an unknown number more". */
static const char *events_of(const struct tw_capture_missing *missing, char *text, size_t capacity)
{
	char figure[TW_FIGURE_BYTES];
	if (!missing->events)
		snprintf(text, capacity, "%s events", missing->has_more ? "an unknown number of" : "no");
	else
		snprintf(text, capacity, "%s event%s%s", tw_figure_count(figure, missing->events),
			 missing->events == 1 ? "" : "s", missing->has_more ? " and an unknown number more" : "");
	return text;
}

/* "1 segment is", "2 segments are". */
static const char *places_of(uint64_t places, const char *what, const char *is, const char *are, char *text,
			     size_t capacity)
{
	char figure[TW_FIGURE_BYTES];
	snprintf(text, capacity, "%s %s%s %s", tw_figure_count(figure, places), what,
		 places == 1			 ? ""
		 : what[strlen(what) - 1] == 's' ? "es"
						 : "s",
		 places == 1 ? is : are);
	return text;
}

static void removed_clause(const struct tw_capture_account *account, char *text)
{
	const struct tw_capture_missing *missing = &account->missing[TW_MISSING_REMOVED];
	char events[100], a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	events_of(missing, events, sizeof events);
	if (!missing->places) {
		snprintf(text, TW_MISSING_TEXT_BYTES, "%s before these are missing", events);
		return;
	}
	int used = snprintf(text, TW_MISSING_TEXT_BYTES, "%s before these were removed with %s segment%s (--keep %u)",
			    events, tw_figure_count(a, missing->places), missing->places == 1 ? "" : "s",
			    account->segments_kept);
	if (account->removed_lost)
		snprintf(text + used, TW_MISSING_TEXT_BYTES - (size_t)used, "; %s more were lost in that time",
			 tw_figure_count(b, account->removed_lost));
}

static void processes_clause(const struct tw_capture_account *account, char *text)
{
	static const char *const words[TW_UNTRACED_CAUSES] = {"more at once than the table holds",
							      "without rights or memory for rings", "statically linked",
							      "of another C library", "set-uid or with capabilities"};
	char places[100], figure[TW_FIGURE_BYTES];
	uint64_t all = account->missing[TW_MISSING_PROCESSES].places;
	int used = snprintf(text, TW_MISSING_TEXT_BYTES, "%s not traced",
			    places_of(all, "process", "was", "were", places, sizeof places));
	const char *between = ": ";
	for (unsigned cause = 0; cause < TW_UNTRACED_CAUSES; cause++) {
		if (!account->untraced[cause] || used >= TW_MISSING_TEXT_BYTES)
			continue;
		used += snprintf(text + used, TW_MISSING_TEXT_BYTES - (size_t)used, "%s%s %s", between,
				 tw_figure_count(figure, account->untraced[cause]), words[cause]);
		between = ", ";
	}
}

const char *tw_missing_children(uint64_t count, char *text)
{
	char figure[TW_FIGURE_BYTES];
	if (count == 1)
		snprintf(text, TW_MISSING_TEXT_BYTES,
			 "1 process that it started was not traced; --follow-fork traces it");
	else
		snprintf(text, TW_MISSING_TEXT_BYTES,
			 "%s processes that it started were not traced; --follow-fork traces them",
			 tw_figure_count(figure, count));
	return text;
}

const char *tw_missing_clause(const struct tw_capture_account *account, unsigned cause, char *text)
{
	const struct tw_capture_missing *missing = &account->missing[cause];
	char events[100], places[100];
	*text = 0;
	if (!tw_missing_any(account, cause))
		return text;
	events_of(missing, events, sizeof events);
	switch (cause) {
	case TW_MISSING_OVERWRITTEN:
		snprintf(text, TW_MISSING_TEXT_BYTES, "%s replaced by newer ones (--on-full overwrite)", events);
		break;
	case TW_MISSING_REMOVED: removed_clause(account, text); break;
	case TW_MISSING_SEGMENTS:
		if (missing->places)
			snprintf(text, TW_MISSING_TEXT_BYTES, "%s missing, with %s",
				 places_of(missing->places, "segment", "is", "are", places, sizeof places), events);
		else
			snprintf(text, TW_MISSING_TEXT_BYTES, "segments are missing, with %s", events);
		break;
	case TW_MISSING_DAMAGED:
		snprintf(text, TW_MISSING_TEXT_BYTES, "parts are damaged: %s cannot be read", events);
		break;
	case TW_MISSING_RINGS:
		snprintf(text, TW_MISSING_TEXT_BYTES, "the program overwrote %s%s that it was recorded in, with %s",
			 tw_figure_count(places, missing->places), missing->places == 1 ? " ring" : " rings", events);
		break;
	case TW_MISSING_CUT:
		snprintf(text, TW_MISSING_TEXT_BYTES, "it was cut off: %s after its end are missing", events);
		break;
	case TW_MISSING_UNSTORED: snprintf(text, TW_MISSING_TEXT_BYTES, "%s did not fit on the disk", events); break;
	case TW_MISSING_PROCESSES: processes_clause(account, text); break;
	case TW_MISSING_NAMES:
		snprintf(text, TW_MISSING_TEXT_BYTES, "%s not fit and are shown as numbers",
			 places_of(missing->places, "name", "did", "did", places, sizeof places));
		break;
	case TW_MISSING_WENT_ON:
		snprintf(text, TW_MISSING_TEXT_BYTES, "%s when the recording ended",
			 places_of(missing->places, "process", "still ran", "still ran", places, sizeof places));
		break;
	case TW_MISSING_PLANS:
		snprintf(text, TW_MISSING_TEXT_BYTES,
			 "%s not traced at %s entries: no plan was ready in time when a program opened or executed %s",
			 places_of(missing->places, "object", "was", "were", places, sizeof places),
			 missing->places == 1 ? "its" : "their", missing->places == 1 ? "it" : "them");
		break;
	case TW_MISSING_FUNCTIONS:
		snprintf(text, TW_MISSING_TEXT_BYTES,
			 "%s traced only where other objects call %s, or not at all: notes say why",
			 places_of(missing->places, "function", "is", "are", places, sizeof places),
			 missing->places == 1 ? "it" : "them");
		break;
	case TW_MISSING_CHILDREN: tw_missing_children(missing->places, text); break;
	default: break;
	}
	return text;
}

struct tw_missing_apart tw_missing_apart_of(const struct tw_capture_account *account)
{
	return (struct tw_missing_apart){.ended = account->missing[TW_MISSING_ENDED].events,
					 .vforked = account->missing[TW_MISSING_VFORK].events,
					 .left_out = account->missing[TW_MISSING_LEFT_OUT].events};
}

void tw_missing_split(const uint64_t lost[TW_LOST_CAUSES], struct tw_missing_apart apart,
		      uint64_t out[TW_MISSING_LOST_CAUSES])
{
	uint64_t no_ring = lost[TW_LOST_NO_RING], nested = lost[TW_LOST_NESTED], ended, vforked;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		out[cause] = lost[cause];
	/* Segments that were removed had some of them. */
	ended = apart.ended < no_ring ? apart.ended : no_ring;
	vforked = apart.vforked < no_ring - ended ? apart.vforked : no_ring - ended;
	out[TW_LOST_NO_RING] = no_ring - ended - vforked;
	out[TW_LOST_CAUSES] = ended;
	out[TW_LOST_CAUSES + 1] = vforked;
	out[TW_LOST_CAUSES + 2] = apart.left_out < nested ? apart.left_out : nested;
	out[TW_LOST_NESTED] = nested - out[TW_LOST_CAUSES + 2];
}

uint64_t tw_missing_overwritten(const struct tw_capture *capture, uint32_t stream, uint64_t lost[TW_LOST_CAUSES])
{
	const struct tw_capture_stream *of = tw_capture_stream(capture, stream);
	const struct tw_capture_image *image = of ? tw_capture_image(capture, of->image) : NULL;
	uint64_t overwritten = image && image->is_overwriting ? lost[TW_LOST_FULL] : 0;
	lost[TW_LOST_FULL] -= overwritten;
	return overwritten;
}

void tw_missing_loss_of(const struct tw_capture *capture, uint32_t stream, const struct tw_capture_loss *loss,
			struct tw_missing_loss *out)
{
	memcpy(out->lost, loss->lost, sizeof out->lost);
	out->overwritten = tw_missing_overwritten(capture, stream, out->lost);
	out->sum = 0;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		out->sum += out->lost[cause];
}

void tw_missing_loss(const struct tw_capture *capture, const struct tw_capture_event *event,
		     struct tw_missing_loss *out)
{
	tw_missing_loss_of(capture, event->stream, tw_capture_event_loss(event), out);
}

const char *tw_missing_replaced(uint64_t overwritten, char *text)
{
	char figure[TW_FIGURE_BYTES];
	*text = 0;
	if (overwritten)
		snprintf(text, TW_MISSING_TEXT_BYTES, "%s replaced by newer ones",
			 tw_figure_of(figure, overwritten, "older event was", "older events were"));
	return text;
}

const char *tw_missing_gone(uint64_t lost, uint64_t overwritten, char *text)
{
	char figure[TW_FIGURE_BYTES], replaced[TW_MISSING_TEXT_BYTES];
	snprintf(text, TW_MISSING_TEXT_BYTES, "%s%s%s%s",
		 lost || !overwritten ? tw_figure_of(figure, lost, "event was", "events were") : "",
		 lost || !overwritten ? " lost" : "", lost && overwritten ? " and " : "",
		 tw_missing_replaced(overwritten, replaced));
	return text;
}

const char *tw_missing_places(uint64_t losses, uint64_t replaced, char *text)
{
	char figure[TW_FIGURE_BYTES], more[TW_FIGURE_BYTES];
	uint64_t others = losses - replaced;
	if (!replaced)
		snprintf(text, TW_MISSING_TEXT_BYTES, "Events were lost at %s",
			 tw_figure_of(figure, others, "place", "places"));
	else
		snprintf(text, TW_MISSING_TEXT_BYTES, "Older events were replaced by newer ones at %s%s%s",
			 tw_figure_of(figure, replaced, "place", "places"), others ? ", and events lost at " : "",
			 others ? tw_figure_of(more, others, "place", "places") : "");
	return text;
}

void tw_missing_lost_json(struct tw_json *json, const uint64_t lost[TW_LOST_CAUSES], uint64_t overwritten)
{
	tw_json_open(json, "lost", '{');
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		tw_json_u64(json, tw_lost_cause_name(cause), lost[cause]);
	tw_json_u64(json, "overwritten", overwritten);
	tw_json_close(json, '}');
}

void tw_missing_say_events(const struct tw_capture *capture)
{
	struct tw_capture_account account;
	struct tw_capture_info info;
	char figure[TW_FIGURE_BYTES], text[TW_MISSING_TEXT_BYTES];
	uint64_t lost = 0;
	tw_capture_account(capture, &account);
	tw_capture_info(capture, &info);
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += info.lost[cause];
	if (lost)
		tw_say("LOST %s of the capture: %s.", tw_figure_of(figure, lost, "event", "events"),
		       tw_missing_lost(info.lost, tw_missing_apart_of(&account), text));
	for (unsigned cause = TW_MISSING_OVERWRITTEN; cause < TW_MISSING_CAUSES; cause++)
		if (*tw_missing_clause(&account, cause, text))
			tw_say("%s.", text);
}

void tw_missing_say(const struct tw_capture *capture)
{
	tw_missing_say_events(capture);
	tw_counted_say(capture);
}

const char *tw_missing_lost_name(unsigned cause)
{
	return cause < TW_LOST_CAUSES ? tw_lost_cause_name(cause)
				      : tw_missing_cause_name(cause - TW_LOST_CAUSES + TW_MISSING_ENDED);
}

const char *tw_missing_lost(const uint64_t lost[TW_LOST_CAUSES], struct tw_missing_apart apart, char *text)
{
	uint64_t counts[TW_MISSING_LOST_CAUSES];
	char figure[TW_FIGURE_BYTES];
	int used = 0;
	*text = 0;
	tw_missing_split(lost, apart, counts);
	for (unsigned cause = 0; cause < TW_MISSING_LOST_CAUSES; cause++) {
		if (counts[cause])
			used += snprintf(text + used, TW_MISSING_TEXT_BYTES - (size_t)used, "%s%s %s", used ? ", " : "",
					 tw_missing_lost_name(cause), tw_figure_count(figure, counts[cause]));
	}
	return text;
}

bool tw_missing_is_untraced(const struct tw_capture_account *account)
{
	static const unsigned causes[] = {TW_MISSING_PROCESSES, TW_MISSING_WENT_ON, TW_MISSING_PLANS,
					  TW_MISSING_FUNCTIONS, TW_MISSING_CHILDREN};
	bool is_any = false;
	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
		is_any |= tw_missing_any(account, causes[i]);
	return is_any;
}

bool tw_missing_is_part(const struct tw_capture_account *account, const struct tw_capture_info *info)
{
	return tw_missing_is_failure(account, info) || tw_missing_any(account, TW_MISSING_REMOVED);
}

bool tw_missing_is_failure(const struct tw_capture_account *account, const struct tw_capture_info *info)
{
	bool is_failure = info->damages != 0;
	for (unsigned cause = TW_MISSING_SEGMENTS; cause <= TW_MISSING_UNSTORED; cause++)
		is_failure |= tw_missing_any(account, cause);
	return is_failure && !info->is_live;
}

static const char *own_clause(const struct tw_capture_own *own, const char *format, char *text)
{
	char count[TW_FIGURE_BYTES], time[TW_FIGURE_BYTES];
	*text = 0;
	if (own->count)
		snprintf(text, TW_MISSING_TEXT_BYTES, format, tw_figure_count(count, own->count),
			 own->count == 1 ? "" : "s", tw_figure_seconds(time, (double)own->ns / 1e9));
	return text;
}

const char *tw_missing_waits(const struct tw_capture_account *account, char *text)
{
	return own_clause(&account->waits, "waited %s time%s, %s in all, for space in the rings", text);
}

const char *tw_missing_setups(const struct tw_capture_account *account, char *text)
{
	return own_clause(&account->setups, "the tracer prepared threads %s time%s, %s in all", text);
}

static void put_own(struct tw_json *json, const char *name, const struct tw_capture_own *own)
{
	tw_json_open(json, name, '{');
	tw_json_u64(json, "count", own->count);
	tw_json_seconds(json, "seconds", own->ns);
	tw_json_close(json, '}');
}

/* Why processes were not traced. */
static void put_reasons(struct tw_json *json, const struct tw_capture_account *account)
{
	static const char *const names[TW_UNTRACED_CAUSES] = {"full", "other", "static", "library", "rights"};
	tw_json_open(json, "reasons", '{');
	for (unsigned cause = 0; cause < TW_UNTRACED_CAUSES; cause++)
		tw_json_u64(json, names[cause], account->untraced[cause]);
	tw_json_close(json, '}');
}

void tw_missing_json(struct tw_json *json, const struct tw_capture_account *account)
{
	tw_json_open(json, "account", '{');
	tw_json_u64(json, "events", account->events);
	tw_json_bool(json, "complete", account->is_complete);
	tw_json_bool(json, "whole", account->is_whole);
	tw_json_open(json, "missing", '{');
	for (unsigned cause = 0; cause < TW_MISSING_CAUSES; cause++) {
		const struct tw_capture_missing *missing = &account->missing[cause];
		tw_json_open(json, tw_missing_cause_name(cause), '{');
		tw_json_u64(json, "events", missing->events);
		if (cause >= TW_MISSING_REMOVED)
			tw_json_u64(json, "places", missing->places);
		tw_json_bool(json, "more", missing->has_more);
		if (cause == TW_MISSING_PROCESSES)
			put_reasons(json, account);
		if (cause == TW_MISSING_REMOVED)
			tw_json_u64(json, "lost", account->removed_lost);
		tw_json_close(json, '}');
	}
	tw_json_close(json, '}');
	tw_json_u64(json, "keep", account->segments_kept);
	put_own(json, "waits", &account->waits);
	put_own(json, "setups", &account->setups);
	if (account->switches_lost)
		tw_json_u64(json, "switches_lost", account->switches_lost);
	tw_json_close(json, '}');
}
