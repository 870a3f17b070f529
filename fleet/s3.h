/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3.h - what s3.c and s3_read.c share: libcurl, its one place.
 *
 * Threads  one.
 */
#ifndef TW_FLEET_S3_H
#define TW_FLEET_S3_H

#include "fleet/fleet.h"

#include <curl/curl.h>

#define TW_FLEET_URL_BYTES    1024
#define TW_FLEET_SECRET_BYTES 512
#define TW_FLEET_TOKEN_BYTES  4096

struct tw_fleet_s3 {
	CURL *curl;
	char base[TW_FLEET_URL_BYTES]; /* ENDPOINT/BUCKET/PREFIX/ */
	size_t bucket_bytes;	       /* of ENDPOINT/BUCKET in it */
	size_t name_bytes;	       /* of BUCKET */
	const char *presign;	       /* a command that signs addresses instead; NULL: none */
	char user[TW_FLEET_SECRET_BYTES], token[TW_FLEET_TOKEN_BYTES], signature[128];
	char curl_says[CURL_ERROR_SIZE];
};

/* The headers of a request with this body, to be freed; NULL: no memory. */
struct curl_slist *tw_fleet_s3_headers(const struct tw_fleet_s3 *s3, const struct tw_fleet_bytes *from);
/* A signed GET, unless more is set. @headers, @curl_says: borrowed until it is done. */
void tw_fleet_s3_prepare(const struct tw_fleet_s3 *s3, CURL *curl, const char *url, struct curl_slist *headers,
			 char *curl_says);
/* Judges an answer. @said: the beginning of its text. @reason: a clause, unless it is TW_FLEET_STORED. */
enum tw_fleet_answer tw_fleet_s3_judge(const char *curl_says, CURLcode result, long status, const char *said,
				       char *reason, size_t capacity);
/* Letters, digits and - _ . / only? */
bool tw_fleet_s3_is_plain(const char *text);

#endif
