/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - statements to a ClickHouse server by HTTP. */
#include "fleet/engine.h"
#include "base/grow.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECT_MS 5000L
/* An answer that takes longer is given up. */
#define ANSWER_S 600L
/* More is not read: an engine answers with sums. */
#define ANSWER_BYTES_MAX (UINT64_C(2) << 30)
#define URL_BYTES	 2048

/* The server's numbers of errors. */
enum { UNKNOWN_TABLE = 60, UNKNOWN_DATABASE = 81, AUTHENTICATION_FAILED = 516 };

struct tw_fleet_engine {
	CURL *curl;
	struct curl_slist *headers;
	char url[URL_BYTES]; /* as it was given */
	char database[128];
	char curl_says[CURL_ERROR_SIZE];
};

struct answer {
	struct tw_fleet_bytes body;
	size_t capacity;
	bool is_too_large;
};

static bool is_name(const char *text)
{
	size_t bytes = strlen(text);
	return bytes && bytes < 64 && !strchr("0123456789", *text) &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == bytes;
}

static bool add_header(struct tw_fleet_engine *engine, const char *name, const char *variable)
{
	char line[1024];
	const char *value = variable ? getenv(variable) : "text/plain; charset=utf-8";
	if (!value || !*value)
		return true;
	snprintf(line, sizeof line, "%s: %s", name, value);
	struct curl_slist *more = strpbrk(value, "\r\n") ? NULL : curl_slist_append(engine->headers, line);
	engine->headers = more ? more : engine->headers;
	explicit_bzero(line, sizeof line);
	return more != NULL;
}

struct tw_fleet_engine *tw_fleet_engine_open(const char *url, const char *database)
{
	struct tw_fleet_engine *engine = NULL;
	size_t bytes = strlen(url);
	while (bytes && url[bytes - 1] == '/')
		bytes--;
	if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) || strpbrk(url, "?# ") ||
	    bytes > URL_BYTES - 256)
		tw_say("--clickhouse is the address of a server, such as http://localhost:8123, not '%s'.", url);
	else if (!is_name(database))
		tw_say("--database is a name of letters, digits and _, not '%s'.", database);
	else if (!(engine = calloc(1, sizeof *engine)))
		tw_say("there is no memory.");
	if (!engine)
		return NULL;
	snprintf(engine->url, sizeof engine->url, "%.*s", (int)bytes, url);
	snprintf(engine->database, sizeof engine->database, "%s", database);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == 0)
		engine->curl = curl_easy_init();
	if (engine->curl && add_header(engine, "Content-Type", NULL) &&
	    add_header(engine, "X-ClickHouse-User", "CLICKHOUSE_USER") &&
	    add_header(engine, "X-ClickHouse-Key", "CLICKHOUSE_PASSWORD"))
		return engine;
	tw_say("libcurl could not be used.");
	tw_fleet_engine_close(engine);
	return NULL;
}

void tw_fleet_engine_close(struct tw_fleet_engine *engine)
{
	if (!engine)
		return;
	curl_slist_free_all(engine->headers);
	curl_easy_cleanup(engine->curl);
	curl_global_cleanup();
	free(engine);
}

void tw_fleet_engine_say(const struct tw_fleet_engine *engine, const char *clause)
{
	/* Without a password that stands in it. */
	const char *at = strrchr(engine->url, '@'), *scheme = strstr(engine->url, "://");
	tw_say("the engine at %.*s%s %s.", at ? (int)(scheme + 3 - engine->url) : 0, engine->url,
	       at ? at + 1 : engine->url, clause);
}

/* ---- a request ---- */

static size_t take_bytes(char *text, size_t size, size_t count, void *context)
{
	struct answer *answer = context;
	size_t bytes = size * count;
	answer->is_too_large = bytes > ANSWER_BYTES_MAX - answer->body.bytes;
	if (answer->is_too_large || !tw_grow_by(answer->body.data, answer->body.bytes, answer->capacity, bytes + 1))
		return 0;
	memcpy(answer->body.data + answer->body.bytes, text, bytes);
	answer->body.bytes += bytes;
	answer->body.data[answer->body.bytes] = 0;
	return bytes;
}

/* The number in "Code: 60. DB::Exception: ...". */
static unsigned code_of(const char *said)
{
	const char *code = strstr(said, "Code: ");
	return code ? (unsigned)strtoul(code + 6, NULL, 10) : 0;
}

/* Says why there is no answer. */
static void say_failure(const struct tw_fleet_engine *engine, CURLcode result, long status, const char *said)
{
	char clause[600], line[400];
	unsigned code = code_of(said);
	/* It came over the network. */
	snprintf(line, sizeof line, "%.*s", (int)strcspn(said, "\n"), said);
	for (char *at = line; *at; at++)
		*at = *at < ' ' || *at > '~' ? '?' : *at;
	if (result == CURLE_PARTIAL_FILE || result == CURLE_RECV_ERROR || result == CURLE_GOT_NOTHING)
		snprintf(clause, sizeof clause, "gave an answer that was cut off");
	else if (result != CURLE_OK)
		snprintf(clause, sizeof clause, "is not to be reached: %s",
			 *engine->curl_says ? engine->curl_says : curl_easy_strerror(result));
	else if (status == 401 || status == 403 || code == AUTHENTICATION_FAILED)
		snprintf(clause, sizeof clause,
			 "refuses user or password, with %ld; CLICKHOUSE_USER and CLICKHOUSE_PASSWORD say them",
			 status);
	else if (code == UNKNOWN_TABLE || code == UNKNOWN_DATABASE)
		snprintf(
			clause, sizeof clause,
			"has no tables of summaries in its database '%s'; `tracewheel fleet setup --clickhouse URL --from STORE` makes them",
			engine->database);
	else
		snprintf(clause, sizeof clause, "answers %ld: %s", status, *line ? line : "nothing else");
	tw_fleet_engine_say(engine, clause);
}

bool tw_fleet_engine_run(struct tw_fleet_engine *engine, const char *statement, bool in_database,
			 struct tw_fleet_bytes *out)
{
	struct answer answer = {.is_too_large = false};
	char url[URL_BYTES + 256];
	long status = 0;
	/* The whole answer is made first, so that its status is right. */
	snprintf(url, sizeof url, "%s/?wait_end_of_query=1&max_query_size=67108864%s%s", engine->url,
		 in_database ? "&database=" : "", in_database ? engine->database : "");
	*engine->curl_says = 0;
	curl_easy_reset(engine->curl);
	curl_easy_setopt(engine->curl, CURLOPT_URL, url);
	curl_easy_setopt(engine->curl, CURLOPT_HTTPHEADER, engine->headers);
	curl_easy_setopt(engine->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(statement));
	curl_easy_setopt(engine->curl, CURLOPT_POSTFIELDS, statement);
	curl_easy_setopt(engine->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(engine->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(engine->curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(engine->curl, CURLOPT_TIMEOUT, ANSWER_S);
	curl_easy_setopt(engine->curl, CURLOPT_ERRORBUFFER, engine->curl_says);
	curl_easy_setopt(engine->curl, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(engine->curl, CURLOPT_WRITEDATA, &answer);
	CURLcode result = curl_easy_perform(engine->curl);
	curl_easy_getinfo(engine->curl, CURLINFO_RESPONSE_CODE, &status);
	if (result == CURLE_OK && status == 200) {
		*out = answer.body;
		return true;
	}
	if (answer.is_too_large)
		tw_fleet_engine_say(engine, "gave an answer that is too large");
	else
		say_failure(engine, result, status, answer.body.data ? (const char *)answer.body.data : "");
	free(answer.body.data);
	return false;
}

/* ---- statements ---- */

char *tw_fleet_quoted(const char *text)
{
	char *quoted = malloc(2 * strlen(text) + 3), *at = quoted;
	if (!quoted)
		return NULL;
	*at++ = '\'';
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			*at++ = '\\';
		*at++ = *text;
	}
	*at++ = '\'';
	*at = 0;
	return quoted;
}

static const struct tw_fleet_word *word_at(const struct tw_fleet_word *words, const char *text, size_t bytes)
{
	for (; words->name; words++) {
		if (strlen(words->name) == bytes && strncmp(words->name, text, bytes) == 0)
			return words;
	}
	return NULL;
}

char *tw_fleet_statement(const char *text, size_t bytes, const struct tw_fleet_word *words)
{
	char *statement = NULL;
	size_t size;
	FILE *out = open_memstream(&statement, &size);
	if (!out)
		return NULL;
	for (const char *at = text, *end = text + bytes; at < end;) {
		size_t name = *at == '$' ? strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") : 0;
		const struct tw_fleet_word *word = name ? word_at(words, at + 1, name) : NULL;
		if (word)
			fputs(word->text, out);
		else
			fwrite(at, 1, name + 1, out);
		at += name + 1;
	}
	if (fclose(out) == 0)
		return statement;
	free(statement);
	return NULL;
}
