/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - events as OTP's trace messages: tuples.
 *
 *	{trace,Pid,call,{M,F,Args}}			{trace,Pid,send,Msg,To}
 *	{trace_ts,Pid,return_from,{M,F,Arity},Value,Ts}	{trace,Pid,gc_minor_start,[{heap_size,N},...]}
 *	{trace,Pid,call,{M,F,Args},Extra}		{trace,Pid,in,{M,F,Arity},SchedulerId}
 *	{monitor,Pid,long_message_queue,true}		{monitor,Pid,long_schedule,[{timeout,Ms},{in,_},{out,_}]}
 *
 * From a capture by tw_capture_event_message(); a queue (queue.h) gives finished messages.  Elements are in OTP's
 * order: the tag's own, X of {message,X}, the scheduler's number, the time.
 *
 * Values	Modules and functions are atoms, pids are <0.N.S>, ports #Port<0.N>.  Arguments recorded as words are integers; where
 *		none were recorded, or arity was requested, the arity takes their place, '_' where it is not known.
 * Time		monotonic: an integer in ns; strict: {ns, UniqueInteger}; timestamp: {MegaSecs,Secs,MicroSecs},
 *		the time of day, or CPU time where the session has cpu_timestamp.
 * Not OTP's	{trace_ts,Pid,lost,[{full,N},...],Ns}: N events of this thread are missing here.  A name that is not
 *		an atom is '?', and an undefined function {'?',Id,_}.
 * Threads	any; arenas as in term.h.
 * Link		with libtracewheel; tw_capture_event_message() with libtracewheel-capture as well.
 * Source	trace:process/4, "trace messages".
 */
#ifndef TRACEWHEEL_MESSAGE_H
#define TRACEWHEEL_MESSAGE_H

#include "tracewheel/capture.h"
#include "tracewheel/term.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The parts of a message, all names looked up. */
struct tw_message_event {
	const struct tw_capture_event *event; /* borrows; kind, flags, id, payload, payload_words, the times are used */
	uint32_t pid_number;
	uint32_t pid_serial;
	bool is_port;				/* the event is a port's: #Port<0.N> */
	const struct tw_capture_place *place;	/* place of a call, return or exception; NULL: not known */
	const struct tw_capture_module *module; /* module of a native return_to; NULL: not known */
	uint32_t scheduler_id;
	uint64_t wall_ns; /* CLOCK_REALTIME of the event; used for timestamp only */
};

/* A part of a message that a form may show in its own way. */
enum tw_message_what {
	TW_MESSAGE_TRACEE, /* the pid or port */
	TW_MESSAGE_OWN,	   /* the elements after the tag, of seq_trace all, and X; none set: each is a part, as below */
	TW_MESSAGE_FUNCTION,  /* two elements: module and name of the place */
	TW_MESSAGE_ARGUMENTS, /* of a call, from its words; none with is_view: the words were not recorded */
	TW_MESSAGE_VALUE,     /* of a return or exception, from its words */
	TW_MESSAGE_ADDRESS,   /* a native return_to: words[0] is the code address */
	TW_MESSAGE_STACK, /* words are return addresses, the innermost first; without a form that shows them there is no message */
	TW_MESSAGE_EXTRA /* elements[0] is X of {message,X} */
};

struct tw_message_part {
	enum tw_message_what what;
	const struct tw_message_event *from;
	const uint64_t *words; /* borrows */
	uint32_t word_count;
	struct tw_arena *arena;
	struct tw_term elements[3]; /* for the answer */
};

/* A form of messages: which parts are shown otherwise, and where the elements go.  Zeroed, with stamp -1: as tw_message_build(). */
struct tw_message_form {
	/* Sets the elements, or writes them and sets none.  False, or NULL: they are as in every message. */
	bool (*part)(struct tw_message_form *form, struct tw_message_part *part);
	/* Take the elements in order, those of inner tuples between open and close.  All three, or NULL: a term is built. */
	void (*open)(struct tw_message_form *form);
	void (*element)(struct tw_message_form *form, struct tw_term term);
	void (*close)(struct tw_message_form *form);
	int stamp; /* the kind of stamp; -1: the event's own */
	/*
	 * Shows every event, as far as it is known: '?' stands for data that cannot be decoded, and for terms that are
	 * missing; kinds of later versions are `event` and their number.
	 */
	bool is_view;
};

/*
 * tw_message_build - the message of one event.
 *
 * Nothing in the payload is trusted.  @out is untouched on errors: TW_EFORMAT for a payload that contradicts its
 * flags, or an event that has no message (a switch); TW_ENOMEM; TW_ELIMIT as tw_etf_decode().
 */
int tw_message_build(const struct tw_message_event *from, struct tw_arena *arena, struct tw_term *out);
/*
 * tw_message_build_as - the same in another form.
 *
 * @form	borrows; NULL: tw_message_build().
 * @out		untouched if the form takes the elements.
 */
int tw_message_build_as(const struct tw_message_event *from, struct tw_message_form *form, struct tw_arena *arena,
			struct tw_term *out);

/*
 * The payload of an event, taken apart.  Nothing in it is trusted: if a count or a length does not fit, it is damaged, and has no
 * terms.
 */
struct tw_message_payload {
	const uint64_t *words; /* behind the integer of a strict stamp */
	uint32_t count;	       /* of the words */
	uint32_t term_count;   /* without X */
	const uint8_t *terms;  /* not yet decoded */
	size_t term_bytes;
	struct tw_arena *arena; /* of the terms */
	uint64_t unique_integer;
	bool has_terms; /* the elements are terms, not words */
	bool has_extra; /* one more term follows: X of {message,X} */
	bool is_damaged;
};
/* Borrows the event and the arena until the last term is taken.  @out: gives. */
void tw_message_payload(const struct tw_capture_event *event, struct tw_arena *arena, struct tw_message_payload *out);
/*
 * The next of term_count terms, and then X.  On an error, TW_EFORMAT or as tw_etf_decode(), the payload is damaged, and @out is
 * untouched.
 */
int tw_message_next_term(struct tw_message_payload *payload, struct tw_term *out);

/* The code address of a native return_to; 0: none. */
static inline uint64_t tw_message_address(const struct tw_capture_event *event)
{
	/* After the integer of a strict stamp and the head of {message,X}. */
	uint32_t at = ((event->flags & TW_CAPTURE_STAMP_MASK) == 2) + ((event->flags & TW_CAPTURE_FLAG_EXTRA) != 0);

	return !(event->flags & TW_CAPTURE_FLAG_TERMS) && at < event->payload_words ? event->payload[at] : 0;
}

/* The kind of stamp that the message has, 0 to 3: none, monotonic, strict, the time of day. */
static inline unsigned tw_message_stamp(const struct tw_capture_event *event, const struct tw_message_form *form)
{
	return form && form->stamp >= 0 ? (unsigned)form->stamp : event->flags & TW_CAPTURE_STAMP_MASK;
}

/* tw_message_build_as() for an event that tw_capture_events_next() returned.  Threads: the capture's. */
static inline int tw_capture_event_message_as(const struct tw_capture *capture, const struct tw_capture_event *event,
					      struct tw_message_form *form, struct tw_arena *arena, struct tw_term *out)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(capture, event->image, event->tracee_id);
	const struct tw_capture_stream *stream =
		event->flags & TW_CAPTURE_FLAG_SCHEDULER_ID ? tw_capture_stream(capture, event->stream) : NULL;
	const struct tw_capture_module *module;
	struct tw_message_event from = {0};
	uint32_t at = 0;

	from.event = event;
	from.pid_number = tracee ? tracee->pid_number : event->tracee_id;
	from.pid_serial = tracee ? tracee->pid_serial : 0;
	from.is_port = tracee && tracee->is_port;
	if (event->kind >= TW_CAPTURE_CALL && event->kind <= TW_CAPTURE_STACK)
		from.place = tw_capture_place(capture, event->image, event->id);
	from.scheduler_id = stream ? stream->scheduler_id : 0;
	if (tw_message_stamp(event, form) == 3)
		from.wall_ns = tw_capture_wall_ns(capture, event->time_ns);
	if (event->kind == TW_CAPTURE_RETURN_TO) {
		uint64_t address = tw_message_address(event);

		while ((module = tw_capture_module_next(capture, event->image, &at)) != NULL)
			if (address >= module->base_address && address < module->end_address)
				from.module = module;
	}
	return tw_message_build_as(&from, form, arena, out);
}

/*
 * tw_capture_event_message - the message of an event that tw_capture_events_next() returned.
 *
 * Threads: the capture's.
 */
static inline int tw_capture_event_message(const struct tw_capture *capture, const struct tw_capture_event *event,
					   struct tw_arena *arena, struct tw_term *out)
{
	return tw_capture_event_message_as(capture, event, NULL, arena, out);
}

#ifdef __cplusplus
}
#endif

#endif
