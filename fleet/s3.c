/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3.c - requests to a bucket, signed by libcurl (CURLOPT_AWS_SIGV4), and PUT.
 *
 * libcurl 7.88 and stores are strict in four ways, each of which answers 403 otherwise: every request has x-amz-content-sha256, here
 * the true hash, which the store checks; no header `Expect:` is given to switch it off, because curl would sign a header that it
 * does not send; keys have A-Z a-z 0-9 - _ . / only; a query is signed as it is written, so it is written in canonical form.
 */
#include "fleet/fleet.h"
#include "fleet/s3.h"
#include "views/output/output.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A connection that takes this long is given up; so is a transfer that moves nothing for so long. */
#define CONNECT_MS 5000L
#define STALLED_S  20L

/* ---- what the environment says ---- */

static const char *variable(const char *name, const char *other, const char *without)
{
	const char *value = getenv(name);
	if (value && *value)
		return value;
	value = other ? getenv(other) : NULL;
	return value && *value ? value : without;
}

/* Of the profile in a file of INI form: the value of a key, or "". */
static void read_profile(const char *path, const char *profile, const char *key, char *value, size_t capacity)
{
	FILE *file = fopen(path, "re");
	char line[TW_FLEET_TOKEN_BYTES], wanted[128];
	bool is_in = false;
	snprintf(wanted, sizeof wanted, "[%s]", profile);
	*value = 0;
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\r\n")] = 0;
		if (*line == '[') {
			is_in = strcmp(line, wanted) == 0;
			continue;
		}
		char *equals = strchr(line, '=');
		size_t bytes = equals ? (size_t)(equals - line) : 0;
		while (bytes && line[bytes - 1] == ' ')
			bytes--;
		if (!is_in || bytes != strlen(key) || strncmp(line, key, bytes) != 0)
			continue;
		snprintf(value, capacity, "%s", equals + 1 + strspn(equals + 1, " "));
	}
	if (file)
		fclose(file);
}

static bool take_credentials(struct tw_fleet_s3 *s3)
{
	char id[TW_FLEET_SECRET_BYTES / 2], secret[TW_FLEET_SECRET_BYTES / 2], path[TW_FLEET_URL_BYTES];
	snprintf(id, sizeof id, "%s", variable("AWS_ACCESS_KEY_ID", NULL, ""));
	snprintf(secret, sizeof secret, "%s", variable("AWS_SECRET_ACCESS_KEY", NULL, ""));
	snprintf(s3->token, sizeof s3->token, "%s", variable("AWS_SESSION_TOKEN", NULL, ""));
	if (!*id || !*secret) {
		const char *profile = variable("AWS_PROFILE", NULL, "default");
		snprintf(path, sizeof path, "%s/.aws/credentials", variable("HOME", NULL, ""));
		const char *file = variable("AWS_SHARED_CREDENTIALS_FILE", NULL, path);
		read_profile(file, profile, "aws_access_key_id", id, sizeof id);
		read_profile(file, profile, "aws_secret_access_key", secret, sizeof secret);
		read_profile(file, profile, "aws_session_token", s3->token, sizeof s3->token);
	}
	snprintf(s3->user, sizeof s3->user, "%s:%s", id, secret);
	return *id && *secret;
}

/* Letters, digits and a few signs: anything else is encoded in signatures, and differently by different stores. */
bool tw_fleet_s3_is_plain(const char *text)
{
	return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./")] == 0;
}

static bool take_place(struct tw_fleet_s3 *s3, const char *bucket_and_prefix)
{
	const char *region = variable("AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1");
	char aws[128];
	snprintf(aws, sizeof aws, "https://s3.%.64s.amazonaws.com", region);
	const char *endpoint = variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", aws);
	size_t bytes = strlen(endpoint), rest = strlen(bucket_and_prefix);
	while (bytes && endpoint[bytes - 1] == '/')
		bytes--;
	while (rest && bucket_and_prefix[rest - 1] == '/')
		rest--;
	if (!rest || *bucket_and_prefix == '/' || !tw_fleet_s3_is_plain(bucket_and_prefix))
		return tw_complain("'s3://%s' names no bucket and prefix of letters, digits and - _ . / only.",
				   bucket_and_prefix);
	if (strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0)
		return tw_complain("AWS_ENDPOINT_URL is '%s', which is no http:// or https:// address.", endpoint);
	s3->name_bytes = strcspn(bucket_and_prefix, "/");
	s3->bucket_bytes = bytes + 1 + s3->name_bytes;
	if ((size_t)snprintf(s3->base, sizeof s3->base, "%.*s/%.*s/", (int)bytes, endpoint, (int)rest,
			     bucket_and_prefix) >= sizeof s3->base - TW_FLEET_PATH_BYTES)
		return tw_complain("the address of the bucket is too long.");
	snprintf(s3->signature, sizeof s3->signature, "aws:amz:%.64s:s3", region);
	return true;
}

bool tw_fleet_s3_place(const char *bucket_and_prefix, char *url, char *id, char *secret)
{
	struct tw_fleet_s3 s3 = {.presign = NULL};
	*id = *secret = 0;
	if (!take_place(&s3, bucket_and_prefix))
		return false;
	snprintf(url, TW_FLEET_PLACE_BYTES, "%s", s3.base);
	if (take_credentials(&s3)) {
		char *colon = strchr(s3.user, ':');
		snprintf(id, TW_FLEET_PLACE_BYTES, "%.*s", (int)(colon - s3.user), s3.user);
		snprintf(secret, TW_FLEET_PLACE_BYTES, "%s", colon + 1);
	}
	explicit_bzero(s3.user, sizeof s3.user);
	return true;
}

struct tw_fleet_s3 *tw_fleet_s3_open(const char *bucket_and_prefix, const char *presign)
{
	struct tw_fleet_s3 *s3 = calloc(1, sizeof *s3);
	if (!s3 || !take_place(s3, bucket_and_prefix)) {
		free(s3);
		return NULL;
	}
	s3->presign = presign;
	if (!presign && !take_credentials(s3)) {
		tw_say("there are no credentials for 's3://%s': set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write "
		       "~/.aws/credentials.",
		       bucket_and_prefix);
		free(s3);
		return NULL;
	}
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == 0)
		s3->curl = curl_easy_init();
	if (!s3->curl) {
		tw_say("libcurl could not be used.");
		free(s3);
		return NULL;
	}
	return s3;
}

void tw_fleet_s3_close(struct tw_fleet_s3 *s3)
{
	if (!s3)
		return;
	curl_easy_cleanup(s3->curl);
	curl_global_cleanup();
	explicit_bzero(s3->user, sizeof s3->user);
	free(s3);
}

/* ---- a request ---- */

struct reading {
	const struct tw_fleet_bytes *from;
	size_t at;
};

static size_t give(char *to, size_t size, size_t count, void *context)
{
	struct reading *reading = context;
	size_t left = reading->from->bytes - reading->at, bytes = size * count < left ? size * count : left;
	memcpy(to, reading->from->data + reading->at, bytes);
	reading->at += bytes;
	return bytes;
}

static int seek_to(void *context, curl_off_t offset, int origin)
{
	struct reading *reading = context;
	if (origin != SEEK_SET || offset < 0 || (size_t)offset > reading->from->bytes)
		return CURL_SEEKFUNC_FAIL;
	reading->at = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* The beginning of what the store says, for people. */
static size_t hear(char *text, size_t size, size_t count, void *context)
{
	char *said = context;
	size_t used = strlen(said), bytes = size * count, space = 1023 - used;
	memcpy(said + used, text, bytes < space ? bytes : space);
	said[used + (bytes < space ? bytes : space)] = 0;
	return bytes;
}

static bool add_header(struct curl_slist **headers, const char *name, const char *value)
{
	char line[TW_FLEET_TOKEN_BYTES + 64];
	snprintf(line, sizeof line, "%s: %s", name, value);
	struct curl_slist *more = curl_slist_append(*headers, line);
	*headers = more ? more : *headers;
	return more != NULL;
}

struct curl_slist *tw_fleet_s3_headers(const struct tw_fleet_s3 *s3, const struct tw_fleet_bytes *from)
{
	struct curl_slist *headers = NULL;
	uint8_t hash[EVP_MAX_MD_SIZE];
	char text[2 * EVP_MAX_MD_SIZE + 1];
	unsigned bytes = 0;
	if (!EVP_Digest(from->data, from->bytes, hash, &bytes, EVP_sha256(), NULL))
		return NULL;
	for (unsigned i = 0; i < bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
	if ((!s3->presign && !add_header(&headers, "x-amz-content-sha256", text)) ||
	    (*s3->token && !add_header(&headers, "x-amz-security-token", s3->token)) ||
	    (from->bytes && !add_header(&headers, "Content-Type", "application/zstd"))) {
		curl_slist_free_all(headers);
		return NULL;
	}
	return headers;
}

/* The word of the store's error: "<Code>NoSuchBucket</Code>". */
static void put_code(const char *said, char *text, size_t capacity)
{
	const char *code = strstr(said, "<Code>"), *end = code ? strstr(code, "</Code>") : NULL;
	*text = 0;
	if (end && end - code < 70)
		snprintf(text, capacity, " (%.*s)", (int)(end - code - 6), code + 6);
	/* It came over the network. */
	for (char *at = text; *at; at++)
		*at = *at < ' ' || *at > '~' ? '?' : *at;
}

enum tw_fleet_answer tw_fleet_s3_judge(const char *curl_says, CURLcode result, long status, const char *said,
				       char *reason, size_t capacity)
{
	char code[80];
	if (result != CURLE_OK) {
		snprintf(reason, capacity, "the store is not to be reached: %s",
			 *curl_says ? curl_says : curl_easy_strerror(result));
		return TW_FLEET_LATER;
	}
	if (status == 200)
		return TW_FLEET_STORED;
	put_code(said, code, sizeof code);
	if (status == 403 && strcmp(code, " (AccessDenied)") == 0)
		snprintf(reason, capacity,
			 "the store forbids it, with 403%s; the bucket's policy must allow it to this key", code);
	else if (status == 403)
		snprintf(
			reason, capacity,
			"the store refuses the signature, with 403%s; check key, secret, region and this machine's clock",
			code);
	else if (status == 404 || (status >= 300 && status < 400))
		snprintf(reason, capacity, "the store has no such bucket there, with %ld%s", status, code);
	else
		snprintf(reason, capacity, "the store answers %ld%s", status, code);
	/* A wrong bucket, clock or secret is mended on the spot; what the store says of an object stays so. */
	bool is_refused = status >= 400 && status < 500 && status != 403 && status != 404 && status != 408 &&
			  status != 409 && status != 429;
	return is_refused ? TW_FLEET_REFUSED : TW_FLEET_LATER;
}

void tw_fleet_s3_prepare(const struct tw_fleet_s3 *s3, CURL *curl, const char *url, struct curl_slist *headers,
			 char *curl_says)
{
	*curl_says = 0;
	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	if (!s3->presign) {
		curl_easy_setopt(curl, CURLOPT_USERPWD, s3->user);
		curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, s3->signature);
	}
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, STALLED_S);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, curl_says);
}

static void set_upload(struct tw_fleet_s3 *s3, struct reading *reading, char *said)
{
	CURL *curl = s3->curl;
	curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, give);
	curl_easy_setopt(curl, CURLOPT_READDATA, reading);
	curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, seek_to);
	curl_easy_setopt(curl, CURLOPT_SEEKDATA, reading);
	curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)reading->from->bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, hear);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, said);
}

/* The address that the user's command signed for this object: its first line. */
static bool presign(const struct tw_fleet_s3 *s3, const char *path, char *url, size_t capacity)
{
	char command[4 * TW_FLEET_URL_BYTES];
	/* The object's name has letters, digits and - _ . / only. */
	if ((size_t)snprintf(command, sizeof command, "%s 's3://%s%s'", s3->presign,
			     s3->base + s3->bucket_bytes - s3->name_bytes, path) >= sizeof command)
		return false;
	FILE *answer = popen(command, "re");
	bool is_read = answer && fgets(url, (int)capacity, answer);
	bool is_done = answer && pclose(answer) == 0;
	if (!is_read || !is_done)
		return false;
	bool is_whole = strchr(url, '\n') != NULL;
	url[strcspn(url, "\r\n")] = 0;
	return is_whole && (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0);
}

enum tw_fleet_answer tw_fleet_s3_put(struct tw_fleet_s3 *s3, const char *path, const struct tw_fleet_bytes *from,
				     char *reason, size_t capacity)
{
	struct reading reading = {from, 0};
	struct curl_slist *headers = tw_fleet_s3_headers(s3, from);
	char url[TW_FLEET_TOKEN_BYTES], said[1024] = "";
	long status = 0;
	if (!headers) {
		snprintf(reason, capacity, "there is no memory");
		return TW_FLEET_LATER;
	}
	snprintf(url, sizeof url, "%s%s", s3->base, path);
	if (s3->presign && !presign(s3, path, url, sizeof url)) {
		curl_slist_free_all(headers);
		snprintf(reason, capacity, "the command of --presign gave no address: '%.200s'", s3->presign);
		return TW_FLEET_LATER;
	}
	tw_fleet_s3_prepare(s3, s3->curl, url, headers, s3->curl_says);
	set_upload(s3, &reading, said);
	CURLcode result = curl_easy_perform(s3->curl);
	curl_easy_getinfo(s3->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	return tw_fleet_s3_judge(s3->curl_says, result, status, said, reason, capacity);
}
