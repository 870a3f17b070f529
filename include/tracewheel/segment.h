/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - what one closed segment says of itself, and which segments of a capture are absent.
 *
 * Segments leave the machine that recorded them one by one, under any names, and come together again in any number.  A segment is named by its key,
 * BOOT-CAPTURE-NUMBER-CONTENT: 32 hexadecimal digits of the boot id, 16 of the capture id, the number in at least 6 decimal digits,
 * 16 hexadecimal digits of a checksum of everything that it holds.  Two segments with the same first three parts and different contents
 * cannot be of one recorder.
 *
 * Threads  tw_segment_*: any.  tw_capture_*: as capture.h.
 * Errors   those of tracewheel/error.h.  Link with libtracewheel-capture.
 */
#ifndef TRACEWHEEL_SEGMENT_H
#define TRACEWHEEL_SEGMENT_H

#include "tracewheel/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a key with its zero byte. */
#define TW_SEGMENT_KEY_BYTES 80

struct tw_segment_identity {
	uint8_t boot_id[16];	/* of the kernel */
	uint64_t capture_id;	/* random, the same in all segments of a recording */
	uint32_t number;	/* in the capture */
	uint32_t version;	/* of the format */
	uint64_t content;	/* checksum of the header, index and trailer, which hold the checksums of all else */
	uint64_t bytes;		/* of the file */
	uint64_t events;	/* in it */
	uint64_t start_wall_ns; /* CLOCK_REALTIME of its first event; without events: when it began */
	uint64_t end_wall_ns;	/* of its last one */
	/* The process image that it belongs to. */
	int32_t process_id;
	int32_t parent_process_id;
	uint64_t process_start; /* ticks of /proc/PID/stat */
	uint64_t lease;
	uint32_t image_segment; /* number among the segments of its image, from 1; 0: not recorded (version 1) */
	uint32_t segments_kept; /* the recorder keeps so many, and removes older ones; 0: all */
	uint64_t events_before; /* events in the earlier segments of its image */
	bool is_last;		/* the recording of its image ended with it */
};

/*
 * tw_segment_identify - read header, index and trailer of a closed segment; no events.
 *
 * @fd		borrows: a regular file, read from its beginning; its offset is not moved.
 * @out		is written if the call succeeds.
 *
 * Errors: TW_EFORMAT (no segment, or one that is not closed or was cut off), TW_EVERSION, TW_ENOTSUP (not a regular file), TW_EIO,
 * TW_ENOMEM.
 */
int tw_segment_identify(int fd, struct tw_segment_identity *out);

/* Writes the segment's key, of A-Z a-z 0-9 and - only. */
void tw_segment_key(const struct tw_segment_identity *identity, char key[TW_SEGMENT_KEY_BYTES]);

/*
 * tw_segment_parse_key - the boot id, capture id, number and content of a key; the rest of *out is zero.
 *
 * @bytes	of the key, without a zero byte.
 * Returns false, and leaves *out as it is, if these bytes are no key.
 */
bool tw_segment_parse_key(const char *key, size_t bytes, struct tw_segment_identity *out);

/* Neighbouring segments of one image that are absent: the place of TW_MISSING_SEGMENTS. */
struct tw_capture_hole {
	uint32_t image;
	uint32_t first, last; /* among the segments of the image, from 1; last 0: it is not known how many follow */
	uint64_t events;      /* in them; 0 where last is 0 */
	uint64_t from_ns;     /* the last event before them; 0: there is none here */
	uint64_t to_ns;	      /* the first one after them, likewise */
};
/* False past the last; @number counts from 0. */
bool tw_capture_hole(const struct tw_capture *capture, uint32_t number, struct tw_capture_hole *out);

/* The name of a file in a capture's folder: a key in each line. The folder is to hold these segments, and others are not missing. */
#define TW_CAPTURE_ASKED_FILE "asked"
/* The folder says which segments were asked for.  Those of them that are absent count as TW_MISSING_SEGMENTS. */
bool tw_capture_is_asked(const struct tw_capture *capture);

#ifdef __cplusplus
}
#endif

#endif
