/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_trace.h - the events of one request: which receive belongs to which send, and what caused what.
 *
 * A hop is a message, from its send to its receive, or a print. A message's receive is known by the sender, the serial
 * and the label. Serials also tell causes: a process that has received {P,C} sends {C,D} afterwards, so the cause of a
 * hop is the last message that its process had received with the hop's Previous as its Current. Time decides
 * between equal serials (after reset_trace/0, or in branches).
 *
 * Threads  one.
 */
#ifndef TW_VIEWS_SEQ_TRACE_H
#define TW_VIEWS_SEQ_TRACE_H

#include "views/folds/seq_events.h"
#include "base/map.h"

#include "tracewheel/seq.h"

#define TW_SEQ_TRACE_NONE UINT32_MAX
/* The most events kept, and bytes of their messages; further ones are counted. */
#define TW_SEQ_TRACE_EVENTS_MAX (UINT32_C(1) << 22)
#define TW_SEQ_TRACE_BYTES_MAX	(UINT64_C(256) << 20)
/* Times of different threads agree at least so well. */
#define TW_SEQ_TRACE_SLACK_NS 200

struct tw_seq_trace_process {
	struct tw_seq_process is; /* without its term */
	char *term;		  /* of a target that is no pid; NULL: a pid */
	uint32_t image;		  /* TW_CAPTURE_NONE: not in this capture */
	uint32_t tracee_id;	  /* 0: not known */
	bool takes_part;	  /* in a hop: a name to which a message was sent gives way to its receiver */
};

struct tw_seq_trace_event {
	uint64_t time_ns;
	uint64_t unique;
	int64_t previous, current;
	uint64_t message; /* the offset of its bytes */
	uint32_t message_bytes;
	uint32_t from, to; /* processes */
	uint32_t image, stream;
	uint32_t hop;
	uint8_t kind;
	uint8_t flags;
};

/* Why one end of a message is missing. */
enum tw_seq_trace_gap {
	TW_SEQ_TRACE_WHOLE = 0,
	TW_SEQ_TRACE_UNSEEN, /* such events were not recorded at all: the token's flags */
	TW_SEQ_TRACE_ABSENT, /* its node is not in this capture */
	TW_SEQ_TRACE_LOST,   /* events of its node are missing when it could have been */
	TW_SEQ_TRACE_OPEN    /* a message without a receive; a receive without a send */
};

struct tw_hop {
	uint32_t send, receive;			/* events; TW_SEQ_TRACE_NONE. A print is a send. */
	uint32_t from, to;			/* processes */
	uint32_t parent;			/* TW_SEQ_TRACE_NONE: a beginning */
	uint32_t first_child, last_child, next; /* in order of time */
	uint32_t depth;
	bool is_print;
	uint8_t gap; /* of the missing end */
};

struct tw_seq_trace {
	struct tw_capture *capture;
	struct tw_seq_nodes nodes;
	const char *label; /* as TW_PRINT_WRITE; borrows */
	char *shown;	   /* the same for people: tw_seq_label_shown() */
	unsigned char trace_id[TW_SEQ_TRACE_ID_BYTES];
	struct tw_seq_trace_event *events; /* in order of time */
	uint32_t event_count, event_capacity;
	struct tw_seq_trace_process *processes;
	uint32_t process_count, process_capacity;
	struct tw_map by_process;
	struct tw_hop *hops; /* in order of their first event: causes before effects */
	uint32_t hop_count;
	uint32_t first_root;
	uint32_t root_count;
	char *bytes;
	uint64_t byte_count, byte_capacity;
	uint64_t start_ns, end_ns;
	uint32_t taking_part; /* processes */
	uint64_t messages, prints, sends_alone, receives_alone;
	uint64_t depth;
	/* Limits of what is known. */
	uint64_t left_out, damaged, went_back;
	struct tw_seq_loss *losses;
	uint32_t loss_count, loss_capacity;
	/* Events while the request went on: overwritten ones were replaced by newer ones, and are not among the lost. */
	uint64_t lost, overwritten;
	bool has_sends, has_receives;
};

/*
 * tw_seq_trace_make - read the events of one label.
 *
 * @label	borrows: as TW_PRINT_WRITE prints it.
 * @to_ns	0: no end.
 *
 * Returns 0 or an error; tw_seq_trace_free() in both cases.
 */
int tw_seq_trace_make(struct tw_seq_trace *trace, struct tw_capture *capture, const char *label, uint64_t from_ns,
		      uint64_t to_ns);
void tw_seq_trace_free(struct tw_seq_trace *trace);

static inline uint64_t tw_hop_start(const struct tw_seq_trace *trace, const struct tw_hop *hop)
{
	return trace->events[hop->send != TW_SEQ_TRACE_NONE ? hop->send : hop->receive].time_ns;
}

/* "<0.45.0> clerk", and with several nodes "@NODE"; for people. */
#define TW_SEQ_TRACE_TEXT_BYTES 320
const char *tw_seq_trace_process(const struct tw_seq_trace *trace, uint32_t process,
				 char text[TW_SEQ_TRACE_TEXT_BYTES]);
/* The kernel's number of the thread on which an event happened; 0: not known. */
uint32_t tw_seq_trace_thread(const struct tw_seq_trace *trace, uint32_t event);
/* The message of a hop as text, cut after `capacity` bytes. */
size_t tw_seq_trace_message(const struct tw_seq_trace *trace, const struct tw_hop *hop, char *text, size_t capacity);
/* "", or why an end is missing, as a clause. */
const char *tw_seq_trace_gap(const struct tw_seq_trace *trace, const struct tw_hop *hop);
/* Sentences about the limits of what is known, one by one; false after the last. */
#define TW_SEQ_TRACE_NOTE 400
bool tw_seq_trace_note(const struct tw_seq_trace *trace, unsigned number, char text[TW_SEQ_TRACE_NOTE]);

/* ---- seq_requests.c: the labels of a capture ---- */

/* The most bytes of a label that are compared. */
#define TW_LABEL_BYTES 1024

/* The hexadecimal digits of a trace-id, as W3C's trace context and tracers write it. */
#define TW_SEQ_TRACE_ID_TEXT (2 * TW_SEQ_TRACE_ID_BYTES + 1)
const char *tw_seq_trace_id_text(const unsigned char id[TW_SEQ_TRACE_ID_BYTES], char text[TW_SEQ_TRACE_ID_TEXT]);
/* False: it is none. */
bool tw_seq_trace_id_read(const char *text, unsigned char id[TW_SEQ_TRACE_ID_BYTES]);
/* A label that people give, as those of events are compared; what is no term is taken as it is. */
void tw_seq_label_read(const char *given, char text[TW_LABEL_BYTES]);
/* A label for people, to be freed: a binary that is a trace-id and no text is its digits.  NULL: no memory. */
char *tw_seq_label_shown(struct tw_term label);

struct tw_request {
	char *label, *shown; /* perhaps cut */
	unsigned char trace_id[TW_SEQ_TRACE_ID_BYTES];
	uint64_t events, sends, receives, prints;
	uint64_t first_ns, last_ns;
	int64_t first_serial, last_serial; /* the smallest and the largest */
	uint32_t processes, nodes;
};

struct tw_requests {
	struct tw_request *rows; /* in order of their first event */
	uint32_t count, capacity;
	struct tw_map by_label;
	struct tw_map seen; /* hashes of label and process, label and node */
	uint64_t left_out;  /* events of labels beyond the limit */
	uint64_t damaged;
	bool is_unsure; /* there were too many processes to count */
};

int tw_requests_make(struct tw_requests *requests, struct tw_capture *capture, uint64_t from_ns, uint64_t to_ns);
void tw_requests_free(struct tw_requests *requests);
/* The messages of a request: each send, or each receive if those were not recorded. */
static inline uint64_t tw_request_messages(const struct tw_request *request)
{
	return request->sends > request->receives ? request->sends : request->receives;
}

#endif
