/* SPDX-License-Identifier: Apache-2.0 */
/* strip.c - what of a record and of a definition may be sent to others. */
#include "pipeline/combine/strip.h"
#include "pipeline/codec/codec.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "term/etf.h"

/* The substitute for a term: the atom '...'. */
static const uint8_t dots[] = {TW_ETF_VERSION, TW_ETF_SMALL_ATOM_UTF8, 3, '.', '.', '.'};

/* ---- records ---- */

/* A record that is made. */
struct made {
	uint8_t *to;
	uint64_t words[8];
	uint32_t count;
	uint32_t term_bytes; /* behind the words, at to + TW_CODEC_HEAD_BYTES + 8 * count */
};

static void finish(struct made *made, const uint8_t *record, unsigned flags)
{
	uint64_t head = tw_record_head(record);
	uint32_t words = made->count + (made->term_bytes + 7) / 8, bytes = TW_CODEC_HEAD_BYTES + (words + 1) / 2 * 16;

	memcpy(made->to + TW_CODEC_HEAD_BYTES, made->words, made->count * sizeof *made->words);
	memset(made->to + TW_CODEC_HEAD_BYTES + made->count * sizeof *made->words + made->term_bytes, 0,
	       bytes - TW_CODEC_HEAD_BYTES - made->count * sizeof *made->words - made->term_bytes);
	flags = (flags & ~(unsigned)TW_EVENT_FLAG_HALF) | (words % 2 ? TW_EVENT_FLAG_HALF : 0);
	head = TW_RB_HEAD(TW_RB_HEAD_KIND(head), flags, bytes, TW_RB_HEAD_ID(head));
	memcpy(made->to, record, 8);
	memcpy(made->to + 8, &head, sizeof head);
}

static bool is_name(uint8_t tag)
{
	return tag == TW_ETF_PID || tag == TW_ETF_NEW_PID || tag == TW_ETF_PORT || tag == TW_ETF_NEW_PORT ||
	       tag == TW_ETF_V4_PORT || tag == TW_ETF_ATOM || tag == TW_ETF_SMALL_ATOM || tag == TW_ETF_ATOM_UTF8 ||
	       tag == TW_ETF_SMALL_ATOM_UTF8;
}

/* Terms that never stay, whatever they are: messages, reasons, values. */
static bool is_content(unsigned kind, uint32_t number)
{
	switch (kind) {
	case TW_EVENT_SEND:
	case TW_EVENT_SEND_TO_NON_EXISTING_PROCESS:
	case TW_EVENT_RECEIVE:
	case TW_EVENT_EXIT:
	case TW_EVENT_CLOSED:
	case TW_EVENT_RETURN_FROM:
	case TW_EVENT_EXCEPTION_FROM: return number == 0;
	case TW_EVENT_SEQ_SEND:
	case TW_EVENT_SEQ_RECEIVE:
	case TW_EVENT_SEQ_PRINT: return number == 4;
	default: return false;
	}
}

/* The token of sequential tracing is needed to follow it. */
static bool stays(unsigned kind, uint32_t number, const uint8_t *term, size_t bytes)
{
	bool is_token = kind >= TW_EVENT_SEQ_SEND && kind <= TW_EVENT_SEQ_PRINT && number < 2;

	return !is_content(kind, number) && (is_token || (bytes > 1 && is_name(term[1])));
}

/* @at: the word with their number and size, and the terms. */
static void put_terms(struct made *made, struct tw_arena *arena, unsigned kind, const uint8_t *at, size_t bytes)
{
	uint32_t count = tw_get32(at), space = TW_STRIP_RECORD_BYTES - 512;
	size_t left = tw_get32(at + 4) < bytes - 8 ? tw_get32(at + 4) : bytes - 8, used;
	uint8_t *to = made->to + TW_CODEC_HEAD_BYTES + (made->count + 1) * 8;
	uint32_t written = 0;
	struct tw_term term;

	at += 8;
	count = count > 8 ? 8 : count;
	for (uint32_t i = 0; i < count; i++) {
		tw_arena_reset(arena);
		/* A part that cannot be read is left out with all behind it. */
		if (tw_etf_decode(arena, at, left, NULL, &used, &term))
			used = left;
		bool is_kept = used <= left && stays(kind, i, at, used) && used < space - written;

		memcpy(to + written, is_kept ? at : dots, is_kept ? used : sizeof dots);
		written += is_kept ? (uint32_t)used : (uint32_t)sizeof dots;
		at += used;
		left -= used;
	}
	made->words[made->count++] = count | (uint64_t)written << 32;
	made->term_bytes = written;
}

void tw_strip_record(struct tw_arena *arena, const uint8_t *record, uint8_t *to)
{
	uint64_t head = tw_record_head(record);
	unsigned flags = TW_RB_HEAD_FLAGS(head), kind = TW_RB_HEAD_KIND(head) & (TW_EVENT_CPU_TIME - 1);
	uint32_t words = tw_event_payload_words(head), before;
	const uint8_t *payload = record + TW_CODEC_HEAD_BYTES;
	bool has_terms = flags & TW_EVENT_FLAG_TERMS, has_extra = flags & TW_EVENT_FLAG_EXTRA;
	struct made made = {.to = to};

	if (kind < TW_EVENT_CALL || kind == TW_EVENT_RETURN_TO || kind == TW_EVENT_STACK || kind == TW_EVENT_OWN_TIME ||
	    kind == TW_EVENT_THREAD_STATE || (kind >= TW_EVENT_TERM_FIRST && !has_terms && !has_extra)) {
		memcpy(to, record, TW_RB_HEAD_BYTES(head));
		return;
	}
	/* The processor time and the unique integer stay. */
	before = tw_event_has_cpu_time(head);
	before += (flags & TW_EVENT_FLAG_STAMP_MASK) == TW_STAMP_STRICT_MONOTONIC;
	before = before < words ? before : words;
	memcpy(made.words, payload, before * 8);
	made.count = before;
	if (kind == TW_EVENT_CALL) {
		flags |= has_terms ? TW_EVENT_FLAG_ARITY : 0;
	} else if (has_terms && words > before) {
		put_terms(&made, arena, kind, payload + 8 * (size_t)before, 8 * (size_t)(words - before));
	} else if (!has_extra && words > before) {
		made.words[made.count++] = tw_get64(payload + 8 * (size_t)before);
	}
	flags &= ~(unsigned)TW_EVENT_FLAG_ARGS;
	if (!made.term_bytes)
		flags &= ~(unsigned)(TW_EVENT_FLAG_TERMS | TW_EVENT_FLAG_EXTRA);
	finish(&made, record, flags);
}

/* ---- definitions ---- */

const char *tw_strip_folders(const char *path, size_t *bytes)
{
	const char *slash = memrchr(path, '/', *bytes);

	if (!slash)
		return path;
	*bytes -= (size_t)(slash + 1 - path);
	return slash + 1;
}

/* The program's name, twice: as its file and as its command line. */
static void strip_image(struct tw_definition_head *head, uint8_t *payload)
{
	struct tw_def_image def;
	size_t bytes;

	memcpy(&def, payload, sizeof def);
	bytes = def.program_bytes;
	if (bytes > head->payload_bytes - sizeof def)
		bytes = 0;
	const char *name = tw_strip_folders((const char *)payload + sizeof def, &bytes);

	/* The command line is as long at least. */
	memmove(payload + sizeof def, name, bytes);
	def.program_bytes = (uint16_t)bytes;
	def.command_bytes = 2 * bytes <= head->payload_bytes - sizeof def ? (uint16_t)bytes : 0;
	def.host_bytes = 0;
	memcpy(payload + sizeof def + bytes, payload + sizeof def, def.command_bytes);
	memcpy(payload, &def, sizeof def);
	head->payload_bytes = (uint32_t)(sizeof def + bytes + def.command_bytes);
}

static void strip_module(struct tw_definition_head *head, uint8_t *payload)
{
	struct tw_def_module def;
	size_t path, bytes, rest;

	memcpy(&def, payload, sizeof def);
	path = sizeof def + def.name_bytes;
	bytes = def.path_bytes;
	rest = (size_t)def.soname_bytes + def.build_id_bytes;
	if (path + bytes + rest > head->payload_bytes)
		return;
	const char *name = tw_strip_folders((const char *)payload + path, &bytes);

	memmove(payload + path, name, bytes);
	memmove(payload + path + bytes, payload + path + def.path_bytes, rest);
	def.path_bytes = (uint16_t)bytes;
	memcpy(payload, &def, sizeof def);
	head->payload_bytes = (uint32_t)(path + bytes + rest);
}

/* The label is a term of the program's. */
static void strip_tracee(struct tw_definition_head *head, uint8_t *payload)
{
	struct tw_def_tracee def;
	size_t bytes;

	tw_def_label(payload, head->payload_bytes, &bytes);
	memcpy(&def, payload, sizeof def);
	def.origin_bytes = (uint16_t)(def.origin_bytes - bytes);
	memcpy(payload, &def, sizeof def);
	head->payload_bytes -= (uint32_t)bytes;
}

bool tw_strip_definition(struct tw_definition_head *head, uint8_t *payload)
{
	if (head->type == TW_DEF_IMAGE && head->payload_bytes >= sizeof(struct tw_def_image))
		strip_image(head, payload);
	else if (head->type == TW_DEF_MODULE && head->payload_bytes >= sizeof(struct tw_def_module))
		strip_module(head, payload);
	else if (head->type == TW_DEF_TRACEE && head->payload_bytes >= sizeof(struct tw_def_tracee))
		strip_tracee(head, payload);
	return head->type != TW_DEF_LAYOUT && head->type != TW_DEF_NOTE && head->type != TW_DEF_DESCRIPTOR;
}
