/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - JSON written in order. */
#include "views/output/output.h"

#include <math.h>

void tw_json_quote(struct tw_out *out, const char *text, size_t bytes)
{
	tw_out_bytes(out, "\"", 1);
	for (size_t i = 0; i < bytes;) {
		uint32_t code;
		size_t n = tw_utf8_next(text + i, bytes - i, &code);
		if (n && (code == '"' || code == '\\'))
			tw_out_format(out, "\\%c", (int)code);
		else if (n && tw_is_unsafe(code))
			tw_out_format(out, "\\u%04x", code);
		else if (n)
			tw_out_bytes(out, text + i, n);
		else
			tw_out_text(out, "\\ufffd");
		i += n ? n : 1;
	}
	tw_out_bytes(out, "\"", 1);
}

static void member(struct tw_json *json, const char *name)
{
	bool *has = &json->has_members[json->depth];
	if (*has)
		tw_out_text(json->out, ",");
	*has = true;
	if (json->is_spread && json->depth) {
		tw_out_text(json->out, "\n");
		for (unsigned i = 0; i < json->depth; i++)
			tw_out_text(json->out, "  ");
	}
	if (name) {
		tw_json_quote(json->out, name, strlen(name));
		tw_out_text(json->out, json->is_spread ? ": " : ":");
	}
}

void tw_json_open(struct tw_json *json, const char *name, char bracket)
{
	member(json, name);
	tw_out_bytes(json->out, &bracket, 1);
	if (json->depth + 1 < sizeof json->has_members)
		json->depth++;
	json->has_members[json->depth] = false;
}

void tw_json_close(struct tw_json *json, char bracket)
{
	bool had = json->has_members[json->depth];
	json->depth--;
	if (json->is_spread && had) {
		tw_out_text(json->out, "\n");
		for (unsigned i = 0; i < json->depth; i++)
			tw_out_text(json->out, "  ");
	}
	tw_out_bytes(json->out, &bracket, 1);
	if (json->depth == 0)
		tw_out_text(json->out, "\n");
}

void tw_json_u64(struct tw_json *json, const char *name, uint64_t value)
{
	member(json, name);
	tw_out_format(json->out, "%llu", (unsigned long long)value);
}

void tw_json_i64(struct tw_json *json, const char *name, int64_t value)
{
	if (value >= 0) {
		tw_json_u64(json, name, (uint64_t)value);
		return;
	}
	member(json, name);
	tw_out_format(json->out, "%lld", (long long)value);
}

void tw_json_double(struct tw_json *json, const char *name, double value)
{
	member(json, name);
	tw_out_format(json->out, "%.9g", isfinite(value) ? value : 0.0);
}

void tw_json_seconds(struct tw_json *json, const char *name, uint64_t ns)
{
	tw_json_double(json, name, (double)ns / 1e9);
}

void tw_json_bool(struct tw_json *json, const char *name, bool value)
{
	member(json, name);
	tw_out_text(json->out, value ? "true" : "false");
}

void tw_json_text(struct tw_json *json, const char *name, const char *value, size_t bytes)
{
	member(json, name);
	tw_json_quote(json->out, value, bytes);
}

void tw_json_string(struct tw_json *json, const char *name, const char *value)
{
	tw_json_text(json, name, value, strlen(value));
}
