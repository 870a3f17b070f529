/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact.c - redact.h.
 *
 * Terms are not decoded: their parts follow one another in the external format, each behind a tag, so that one pass finds all
 * texts whatever contains them.
 */
#include "pipeline/block/redact.h"
#include "base/error.h"
#include "base/export.h"
#include "pipeline/codec/codec.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "term/etf.h"
#include "tracewheel/consumer.h"

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* The whole match, and the groups that are replaced in its place. */
#define MATCHES_MAX 10

/* A record, or a definition, is not longer. */
#define TEXT_BYTES_MAX ((size_t)1 << 16)

struct tw_redact {
	uint64_t changed;
	char text[TEXT_BYTES_MAX + 1]; /* that is looked at */
	size_t count;
	regex_t expressions[];
};

/* ---- expressions ---- */

/* Of an empty match nothing is left to replace: such an expression is a mistake, as x* for x+. */
static int compile(regex_t *expression, const char *pattern)
{
	int error = regcomp(expression, pattern, REG_EXTENDED | REG_ICASE);

	if (error)
		return error == REG_ESPACE ? TW_ENOMEM : TW_EBADARG;
	if (regexec(expression, "", 0, NULL, 0) != 0)
		return 0;
	regfree(expression);
	return TW_EBADARG;
}

TW_API int tw_redact_check(const char *pattern, char *problem, size_t bytes)
{
	regex_t expression;
	int error = regcomp(&expression, pattern, REG_EXTENDED | REG_ICASE);

	if (error) {
		regerror(error, &expression, problem, bytes);
		return error == REG_ESPACE ? TW_ENOMEM : TW_EBADARG;
	}
	regfree(&expression);
	error = strchr(pattern, '\n') ? TW_EBADARG : compile(&expression, pattern);
	if (!error)
		regfree(&expression);
	else
		snprintf(problem, bytes, strchr(pattern, '\n') ? "It has a line break" : "It matches the empty text");
	return error;
}

static struct tw_redact *make(size_t capacity)
{
	return calloc(1, sizeof(struct tw_redact) + capacity * sizeof(regex_t));
}

static int add(struct tw_redact *redact, const char *pattern)
{
	int error = compile(&redact->expressions[redact->count], pattern);

	redact->count += !error;
	return error;
}

int tw_redact_create(const char *const *patterns, size_t count, struct tw_redact **out)
{
	struct tw_redact *redact = make(count);
	int error = redact ? 0 : TW_ENOMEM;

	for (size_t i = 0; i < count && !error; i++)
		error = add(redact, patterns[i]);
	if (error)
		tw_redact_destroy(redact);
	else
		*out = redact;
	return error;
}

/* The expression of a line, without "redact "; NULL: it is another line. */
static const char *expression_of(const char *line)
{
	static const char key[] = "redact ";

	return strncmp(line, key, sizeof key - 1) == 0 ? line + sizeof key - 1 : NULL;
}

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

int tw_redact_create_lines(const char *config, struct tw_redact **out)
{
	struct tw_redact *redact;
	size_t count = 0;
	int error = 0;

	*out = NULL;
	for (const char *line = config; *line; line = next_line(line))
		count += expression_of(line) != NULL;
	if (!count)
		return 0;
	redact = make(count);
	if (!redact)
		return TW_ENOMEM;
	for (const char *line = config; *line && !error; line = next_line(line)) {
		const char *from = expression_of(line);
		char *pattern = from ? strndup(from, strcspn(from, "\n")) : NULL;

		if (from)
			error = pattern ? add(redact, pattern) : TW_ENOMEM;
		free(pattern);
	}
	if (error)
		tw_redact_destroy(redact);
	else
		*out = redact;
	return error;
}

void tw_redact_destroy(struct tw_redact *redact)
{
	if (!redact)
		return;
	for (size_t i = 0; i < redact->count; i++)
		regfree(&redact->expressions[i]);
	free(redact);
}

uint64_t tw_redact_count(const struct tw_redact *redact)
{
	return redact->changed;
}

/* ---- text ---- */

/* Returns false if there is nothing in the range. */
static bool blank(char *text, const regmatch_t *range)
{
	if (range->rm_so < 0 || range->rm_eo <= range->rm_so)
		return false;
	memset(text + range->rm_so, '*', (size_t)(range->rm_eo - range->rm_so));
	return true;
}

/* Replaces all matches of one expression. */
static bool redact_by(const regex_t *expression, char *text, size_t bytes)
{
	bool is_changed = false;

	for (regoff_t at = 0; (size_t)at < bytes;) {
		regmatch_t found[MATCHES_MAX] = {{.rm_so = at, .rm_eo = (regoff_t)bytes}};
		const regmatch_t all = {0, (regoff_t)bytes};
		int error = regexec(expression, text, MATCHES_MAX, found, REG_STARTEND);
		bool has_group = false;

		if (error == REG_NOMATCH)
			return is_changed;
		/* Without memory for the search nothing is known of the text. */
		if (error)
			return blank(text, &all);
		at = found[0].rm_eo > at ? found[0].rm_eo : at + 1;
		for (size_t i = 1; i < MATCHES_MAX && i <= expression->re_nsub; i++)
			has_group |= blank(text, &found[i]);
		is_changed |= has_group || (!expression->re_nsub && blank(text, &found[0]));
	}
	return is_changed;
}

/* On a copy with a zero behind it: sanitizers take what regexec() is given for a string. */
static bool redact_text(struct tw_redact *redact, char *text, size_t bytes)
{
	const regmatch_t all = {0, (regoff_t)bytes};
	bool is_changed = false;

	if (bytes > TEXT_BYTES_MAX)
		return blank(text, &all);
	memcpy(redact->text, text, bytes);
	redact->text[bytes] = 0;
	for (size_t i = 0; i < redact->count; i++)
		is_changed |= redact_by(&redact->expressions[i], redact->text, bytes);
	if (is_changed)
		memcpy(text, redact->text, bytes);
	return is_changed;
}

/* ---- terms ---- */

/* The parts behind a tag, before the next one: parts that are inside follow as parts of their own. */
struct part {
	uint8_t length_bytes; /* of a length, which stands first */
	char unit;	      /* of the length: t text, a another text, n bytes of a number, r words of a reference */
	uint8_t fixed_bytes;  /* behind the text, or without one */
	uint8_t after_bytes;  /* behind the name of the node, the part that follows */
	bool is_known;
};

/* Atoms are names: they stay. */
static const struct part parts[256] = {
	[TW_ETF_VERSION] = {.is_known = true},
	[TW_ETF_NEW_FLOAT] = {.fixed_bytes = 8, .is_known = true},
	[TW_ETF_BIT_BINARY] = {.length_bytes = 4, .unit = 't', .fixed_bytes = 1, .is_known = true},
	[TW_ETF_NEW_PID] = {.after_bytes = 12, .is_known = true},
	[TW_ETF_NEW_PORT] = {.after_bytes = 8, .is_known = true},
	[TW_ETF_NEWER_REFERENCE] = {.length_bytes = 2, .unit = 'r', .after_bytes = 4, .is_known = true},
	[TW_ETF_SMALL_INTEGER] = {.fixed_bytes = 1, .is_known = true},
	[TW_ETF_INTEGER] = {.fixed_bytes = 4, .is_known = true},
	[TW_ETF_FLOAT] = {.fixed_bytes = 31, .is_known = true},
	[TW_ETF_ATOM] = {.length_bytes = 2, .unit = 'a', .is_known = true},
	[TW_ETF_REFERENCE] = {.after_bytes = 5, .is_known = true},
	[TW_ETF_PORT] = {.after_bytes = 5, .is_known = true},
	[TW_ETF_PID] = {.after_bytes = 9, .is_known = true},
	[TW_ETF_SMALL_TUPLE] = {.fixed_bytes = 1, .is_known = true},
	[TW_ETF_LARGE_TUPLE] = {.fixed_bytes = 4, .is_known = true},
	[TW_ETF_NIL] = {.is_known = true},
	[TW_ETF_STRING] = {.length_bytes = 2, .unit = 't', .is_known = true},
	[TW_ETF_LIST] = {.fixed_bytes = 4, .is_known = true},
	[TW_ETF_BINARY] = {.length_bytes = 4, .unit = 't', .is_known = true},
	[TW_ETF_SMALL_BIG] = {.length_bytes = 1, .unit = 'n', .fixed_bytes = 1, .is_known = true},
	[TW_ETF_LARGE_BIG] = {.length_bytes = 4, .unit = 'n', .fixed_bytes = 1, .is_known = true},
	/* Its size, arity, hash, index and number of variables; the module and the others are parts. */
	[TW_ETF_NEW_FUN] = {.fixed_bytes = 29, .is_known = true},
	[TW_ETF_EXPORT] = {.is_known = true},
	[TW_ETF_NEW_REFERENCE] = {.length_bytes = 2, .unit = 'r', .after_bytes = 1, .is_known = true},
	[TW_ETF_SMALL_ATOM] = {.length_bytes = 1, .unit = 'a', .is_known = true},
	[TW_ETF_MAP] = {.fixed_bytes = 4, .is_known = true},
	[TW_ETF_V4_PORT] = {.after_bytes = 12, .is_known = true},
	[TW_ETF_ATOM_UTF8] = {.length_bytes = 2, .unit = 'a', .is_known = true},
	[TW_ETF_SMALL_ATOM_UTF8] = {.length_bytes = 1, .unit = 'a', .is_known = true},
};

/* One part at *at, which moves behind it.  Returns false where the term cannot be read any more. */
static bool redact_part(struct tw_redact *redact, uint8_t *bytes, size_t count, size_t *at, size_t *after,
			bool *is_changed)
{
	const struct part *part = &parts[bytes[(*at)++]];
	size_t length = 0, left = count - *at, behind = *after;

	if (!part->is_known || part->length_bytes > left)
		return false;
	for (unsigned i = 0; i < part->length_bytes; i++)
		length = length << 8 | bytes[(*at)++];
	left -= part->length_bytes;
	*after = part->after_bytes + (part->unit == 'r' ? 4 * length : 0);
	length = part->unit == 'r' ? 0 : length;
	if (length > left)
		return false;
	if (part->unit == 't')
		*is_changed |= redact_text(redact, (char *)bytes + *at, length);
	*at += length + part->fixed_bytes + behind;
	return true;
}

/* Bytes that cannot be read as terms are read as text. */
static bool redact_terms(struct tw_redact *redact, uint8_t *bytes, size_t count)
{
	bool is_changed = false;

	for (size_t at = 0, after = 0; at < count;) {
		size_t start = at;

		if (!redact_part(redact, bytes, count, &at, &after, &is_changed))
			return is_changed | redact_text(redact, (char *)bytes + start, count - start);
	}
	return is_changed;
}

/* ---- records ---- */

static bool redact_item(struct tw_redact *redact, const struct tw_layout_item *item)
{
	/* It lends from the record. Numbers are no text. */
	return item->text && item->value->type != 'V' &&
	       redact_text(redact, (char *)(uintptr_t)item->text, item->text_bytes);
}

static bool redact_call(struct tw_redact *redact, const struct tw_layout *layout, uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	struct tw_layout_item item;
	bool is_changed = false;

	while (tw_layout_next(&reader, &item))
		is_changed |= redact_item(redact, &item);
	return is_changed;
}

static bool redact_descriptions(struct tw_redact *redact, uint64_t *words, uint32_t count, uint32_t at)
{
	struct tw_layout_description description;
	bool is_changed = false;

	while (tw_layout_next_description(words, count, &at, &description))
		is_changed |= redact_text(redact, (char *)(uintptr_t)description.path, description.path_bytes);
	return is_changed;
}

static bool redact_return(struct tw_redact *redact, const struct tw_layout *layout, uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	struct tw_layout_item item;
	bool is_changed = false;

	if (layout->result.type == 'd')
		return redact_descriptions(redact, words, count, 1);
	while (tw_layout_next_filled(&reader, &item))
		is_changed |= redact_item(redact, &item);
	return is_changed;
}

/* The terms behind @at words, of which the first word says how many bytes they have. */
static bool redact_terms_at(struct tw_redact *redact, uint64_t *words, uint32_t count, uint32_t at)
{
	size_t bytes = words[0] >> 32, most = 8 * (size_t)(count - at);

	return redact_terms(redact, (uint8_t *)(words + at), bytes < most ? bytes : most);
}

/* The payload of an event without what comes first for its time. */
static bool redact_payload(struct tw_redact *redact, const struct tw_layout *layout, uint64_t head, uint64_t *words,
			   uint32_t count)
{
	unsigned flags = TW_RB_HEAD_FLAGS(head), kind = TW_RB_HEAD_KIND(head) & (TW_EVENT_CPU_TIME - 1);
	bool is_call = kind == TW_EVENT_CALL, is_changed = false;

	if (flags & TW_EVENT_FLAG_TERMS)
		return redact_terms_at(redact, words, count, 1);
	if (flags & TW_EVENT_FLAG_EXTRA) {
		uint32_t own = (uint32_t)words[0] < count - 1 ? (uint32_t)words[0] : count - 1;

		is_changed = redact_terms_at(redact, words, count, 1 + own);
		words++;
		count = own;
	}
	if (layout && is_call && flags & TW_EVENT_FLAG_ARGS)
		is_changed |= redact_call(redact, layout, words, count);
	else if (layout && kind == TW_EVENT_RETURN_FROM)
		is_changed |= redact_return(redact, layout, words, count);
	return is_changed;
}

void tw_redact_record(struct tw_redact *redact, const struct tw_layout *layout, uint8_t *record)
{
	uint64_t head = tw_record_head(record);
	uint32_t count = tw_event_payload_words(head), before = tw_event_has_cpu_time(head);
	unsigned kind = TW_RB_HEAD_KIND(head) & (TW_EVENT_CPU_TIME - 1);

	before += (TW_RB_HEAD_FLAGS(head) & TW_EVENT_FLAG_STAMP_MASK) == TW_STAMP_STRICT_MONOTONIC;
	if (kind >= TW_EVENT_CALL && before < count)
		redact->changed +=
			redact_payload(redact, layout, head,
				       (uint64_t *)(void *)(record + TW_CODEC_HEAD_BYTES) + before, count - before);
}

/* ---- definitions ---- */

/* Arguments are separated by zeros, and are one text: an option and its value stand in two of them. */
static void redact_image(struct tw_redact *redact, uint8_t *payload, size_t bytes)
{
	struct tw_def_image def;

	memcpy(&def, payload, sizeof def);
	if (sizeof def + def.program_bytes + def.command_bytes <= bytes)
		redact_text(redact, (char *)payload + sizeof def + def.program_bytes, def.command_bytes);
}

/* The program gives it, as any term. */
static void redact_label(struct tw_redact *redact, uint8_t *payload, size_t bytes)
{
	size_t label_bytes, at = (size_t)(tw_def_label(payload, bytes, &label_bytes) - payload);

	redact_text(redact, (char *)payload + at, label_bytes);
}

void tw_redact_definition(struct tw_redact *redact, uint32_t type, uint8_t *payload, size_t bytes)
{
	struct tw_def_descriptor def;

	if (type == TW_DEF_IMAGE && bytes >= sizeof(struct tw_def_image))
		redact_image(redact, payload, bytes);
	if (type == TW_DEF_TRACEE && bytes >= sizeof(struct tw_def_tracee))
		redact_label(redact, payload, bytes);
	if (type == TW_DEF_DESCRIPTOR && bytes >= sizeof def) {
		memcpy(&def, payload, sizeof def);
		if (sizeof def + (size_t)def.word_bytes <= bytes)
			redact_descriptions(redact, (uint64_t *)(void *)(payload + sizeof def), def.word_bytes / 8, 0);
	}
}
