/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3_read.c - lists and gets objects of a bucket.
 *
 * Lists come by pages (ListObjectsV2): each page begins behind the last key of the page before it, so that no token of the store is trusted.
 */
#include "fleet/s3.h"
#include "views/output/output.h"
#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* An object or a page is asked for so often, after 50 ms and twice as long each time. */
#define ATTEMPTS    6
#define BACK_OFF_MS 50
/* Requests at a time. */
#define PARALLEL 16
/* Of a page: 1,000 keys of 1,024 bytes, and what the store writes of each. */
#define PAGE_BYTES_MAX (8 << 20)
#define NAME_BYTES     1100

/* One GET. */
struct get {
	struct tw_fleet_bytes body; /* with a zero byte behind it */
	size_t capacity, most;
	bool is_too_large, is_final; /* the next attempt would not be better */
	struct curl_slist *headers;
	char curl_says[CURL_ERROR_SIZE];
};

static size_t take_bytes(char *text, size_t size, size_t count, void *context)
{
	struct get *get = context;
	size_t bytes = size * count;
	get->is_too_large = bytes > get->most - get->body.bytes;
	if (get->is_too_large || !tw_grow_by(get->body.data, get->body.bytes, get->capacity, bytes + 1))
		return 0;
	memcpy(get->body.data + get->body.bytes, text, bytes);
	get->body.bytes += bytes;
	get->body.data[get->body.bytes] = 0;
	return bytes;
}

static bool begin_get(const struct tw_fleet_s3 *s3, CURL *curl, const char *url, size_t most, struct get *get)
{
	const struct tw_fleet_bytes nothing = {(uint8_t *)"", 0};
	*get = (struct get){.most = most, .headers = tw_fleet_s3_headers(s3, &nothing)};
	if (!get->headers)
		return false;
	tw_fleet_s3_prepare(s3, curl, url, get->headers, get->curl_says);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, get);
	return true;
}

static enum tw_fleet_answer end_get(CURL *curl, CURLcode result, struct get *get, char *reason, size_t capacity)
{
	long status = 0;
	enum tw_fleet_answer answer = TW_FLEET_REFUSED;
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(get->headers);
	if (get->is_too_large)
		snprintf(reason, capacity, "it is too large");
	else
		answer = tw_fleet_s3_judge(get->curl_says, result, status,
					   get->body.data ? (const char *)get->body.data : "", reason, capacity);
	if (status == 404 && get->body.data && strstr((const char *)get->body.data, "NoSuchKey")) {
		snprintf(reason, capacity, "it is not there");
		answer = TW_FLEET_REFUSED;
	}
	/* A signature or a bucket that is wrong does not become right meanwhile. */
	get->is_final = result == CURLE_OK && status < 408;
	if (answer == TW_FLEET_STORED)
		return answer;
	free(get->body.data);
	get->body = (struct tw_fleet_bytes){NULL, 0};
	return answer;
}

/* Again, while the store does not answer. */
static enum tw_fleet_answer get_url(struct tw_fleet_s3 *s3, const char *url, size_t most, struct tw_fleet_bytes *out,
				    char *reason, size_t capacity)
{
	enum tw_fleet_answer answer = TW_FLEET_LATER;
	struct get get = {.is_final = false};
	snprintf(reason, capacity, "there is no memory");
	for (unsigned attempt = 0; answer == TW_FLEET_LATER && !get.is_final && attempt < ATTEMPTS; attempt++) {
		if (attempt)
			usleep(1000 * (BACK_OFF_MS << attempt >> 1));
		if (!begin_get(s3, s3->curl, url, most, &get))
			break;
		answer = end_get(s3->curl, curl_easy_perform(s3->curl), &get, reason, capacity);
	}
	*out = get.body;
	return answer;
}

/* ---- lists ---- */

/* In the canonical form of a signature. */
static void put_encoded(char *url, size_t capacity, const char *text)
{
	size_t used = strlen(url);
	char one[2] = "";
	for (; *text; text++) {
		*one = *text;
		bool is_kept = *text != '/' && tw_fleet_s3_is_plain(one);
		used += used < capacity ? (size_t)snprintf(url + used, capacity - used, is_kept ? "%c" : "%%%02X",
							   (unsigned char)*text)
					: 0;
	}
}

/* The text of an element, without entities. Returns where it ends; NULL: there is none, or it is too long. */
static const char *element(const char *at, const char *name, char *text, size_t capacity)
{
	static const struct {
		const char *name;
		char is;
	} entities[] = {{"&amp;", '&'},	 {"&lt;", '<'},	   {"&gt;", '>'},
			{"&quot;", '"'}, {"&apos;", '\''}, {"&#39;", '\''}};
	char tag[32];
	snprintf(tag, sizeof tag, "<%s>", name);
	at = at ? strstr(at, tag) : NULL;
	size_t used = 0;
	for (at = at ? at + strlen(tag) : NULL; at && *at && *at != '<'; at++) {
		if (used == capacity - 1)
			return NULL;
		text[used] = *at;
		for (size_t i = 0; *at == '&' && i < sizeof entities / sizeof *entities; i++) {
			size_t bytes = strlen(entities[i].name);
			if (strncmp(at, entities[i].name, bytes) != 0)
				continue;
			text[used] = entities[i].is;
			at += bytes - 1;
		}
		used++;
	}
	text[used] = 0;
	return at && *at ? at : NULL;
}

/* One page. *more: it is not the last; last is its last key. Returns why not, or NULL. */
static const char *take_page(const char *page, const char *prefix, struct tw_fleet_names *names, char last[NAME_BYTES],
			     bool *more)
{
	char key[NAME_BYTES], truncated[8];
	const char *at = page;
	size_t prefix_bytes = strlen(prefix);
	bool is_first = true;
	if (!strstr(page, "<ListBucketResult"))
		return "its answer is no list of objects";
	while ((at = element(at, "Key", key, sizeof key))) {
		if (strcmp(key, last) <= 0 && (*last || !is_first))
			return "its list is not in order";
		if (strncmp(key, prefix, prefix_bytes) != 0)
			return "its list has objects that were not asked for";
		is_first = false;
		snprintf(last, NAME_BYTES, "%s", key);
		/* Another's object: nothing that was shipped has such a name. */
		if (!tw_fleet_s3_is_plain(key) || strstr(key, ".."))
			continue;
		char *name = tw_grow(names->names, names->count, names->capacity) ? strdup(key + prefix_bytes) : NULL;
		if (!name)
			return "there is no memory";
		names->names[names->count++] = name;
	}
	*more = element(page, "IsTruncated", truncated, sizeof truncated) && strcmp(truncated, "true") == 0;
	return *more && is_first ? "its list does not go on" : NULL;
}

bool tw_fleet_s3_list(struct tw_fleet_s3 *s3, const char *below, const char *after, struct tw_fleet_names *names,
		      char *reason, size_t capacity)
{
	char url[8 * TW_FLEET_URL_BYTES], last[NAME_BYTES];
	/* The prefix in the bucket, which ends in a slash. */
	const char *prefix = s3->base + s3->bucket_bytes + 1;
	struct tw_fleet_bytes page;
	const char *wrong = NULL;
	bool more = true;
	snprintf(last, sizeof last, "%s%s", prefix, after);
	while (more && !wrong) {
		snprintf(url, sizeof url, "%.*s?list-type=2&prefix=", (int)s3->bucket_bytes, s3->base);
		put_encoded(url, sizeof url, prefix);
		put_encoded(url, sizeof url, below);
		strcat(url, "&start-after=");
		put_encoded(url, sizeof url, last);
		if (get_url(s3, url, PAGE_BYTES_MAX, &page, reason, capacity) != TW_FLEET_STORED)
			return false;
		wrong = page.data ? take_page((const char *)page.data, prefix, names, last, &more)
				  : "its answer is empty";
		free(page.data);
	}
	if (wrong)
		snprintf(reason, capacity, "the store cannot be listed: %s", wrong);
	return !wrong;
}

/* ---- objects ---- */

enum tw_fleet_answer tw_fleet_s3_get(struct tw_fleet_s3 *s3, const char *path, size_t most, struct tw_fleet_bytes *out,
				     char *reason, size_t capacity)
{
	char url[TW_FLEET_URL_BYTES + NAME_BYTES];
	snprintf(url, sizeof url, "%s%s", s3->base, path);
	return get_url(s3, url, most, out, reason, capacity);
}

/* Begins all, and waits for all. */
static void perform(CURLM *multi, CURLcode results[PARALLEL], CURL *const curls[PARALLEL])
{
	int running = 1, left;
	CURLMsg *message;
	while (running && curl_multi_perform(multi, &running) == CURLM_OK)
		if (running)
			curl_multi_poll(multi, NULL, 0, 1000, NULL);
	while ((message = curl_multi_info_read(multi, &left))) {
		for (unsigned i = 0; i < PARALLEL; i++) {
			if (curls[i] == message->easy_handle && message->msg == CURLMSG_DONE)
				results[i] = message->data.result;
		}
	}
}

/* Some objects at once; those that the store did not give are asked for again, one by one. */
static bool get_some(struct tw_fleet_s3 *s3, CURLM *multi, CURL *curls[PARALLEL], char *const *paths, size_t count,
		     const struct tw_fleet_reading *reading, char *reason, size_t capacity)
{
	static struct get gets[PARALLEL];
	CURLcode results[PARALLEL];
	char url[TW_FLEET_URL_BYTES + NAME_BYTES];
	bool is_begun[PARALLEL], is_read = true;
	for (size_t i = 0; i < count; i++) {
		results[i] = CURLE_ABORTED_BY_CALLBACK;
		snprintf(url, sizeof url, "%s%s", s3->base, paths[i]);
		is_begun[i] = begin_get(s3, curls[i], url, reading->most, &gets[i]) &&
			      curl_multi_add_handle(multi, curls[i]) == CURLM_OK;
	}
	perform(multi, results, curls);
	for (size_t i = 0; i < count; i++) {
		enum tw_fleet_answer answer = TW_FLEET_LATER;
		if (is_begun[i]) {
			curl_multi_remove_handle(multi, curls[i]);
			answer = end_get(curls[i], results[i], &gets[i], reason, capacity);
		}
		if (answer == TW_FLEET_LATER && is_read)
			answer = tw_fleet_s3_get(s3, paths[i], reading->most, &gets[i].body, reason, capacity);
		is_read &= answer != TW_FLEET_LATER;
		if (is_read)
			reading->take(reading->context, paths[i], &gets[i].body,
				      answer == TW_FLEET_STORED ? NULL : reason);
		free(gets[i].body.data);
	}
	return is_read;
}

bool tw_fleet_s3_get_all(struct tw_fleet_s3 *s3, const struct tw_fleet_names *names,
			 const struct tw_fleet_reading *reading, char *reason, size_t capacity)
{
	CURLM *multi = curl_multi_init();
	CURL *curls[PARALLEL] = {NULL};
	bool is_read = multi != NULL;
	for (unsigned i = 0; i < PARALLEL && is_read; i++)
		is_read = (curls[i] = curl_easy_init()) != NULL;
	if (!is_read)
		snprintf(reason, capacity, "libcurl could not be used");
	for (size_t at = 0; at < names->count && is_read; at += PARALLEL) {
		size_t left = names->count - at;
		is_read = get_some(s3, multi, curls, names->names + at, left < PARALLEL ? left : PARALLEL, reading,
				   reason, capacity);
	}
	for (unsigned i = 0; i < PARALLEL; i++)
		curl_easy_cleanup(curls[i]);
	curl_multi_cleanup(multi);
	return is_read;
}
