/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - pace.h: two counts, of the lines of this second and of those that wait for a request. */
#include "tools/print/pace.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
/* How late the end of a second is noticed, if nothing else happens. */
#define TICK_MS 100

struct tw_pace {
	pthread_mutex_t mutex; /* over all below, and the output */
	pthread_cond_t is_written;
	struct tw_out *out;
	bool is_on_request;
	bool is_held;		  /* by the caller, who alone changes it */
	bool is_asked;		  /* and there was nothing to write */
	bool is_over;		  /* the thread ends */
	uint64_t lines;		  /* the most in a second */
	uint64_t second_ns;	  /* its beginning */
	uint64_t in_second;	  /* lines of it */
	uint64_t waiting;	  /* lines that were not asked for yet */
	uint64_t shown, left_out; /* events so far */
	/* Since the last line about it. */
	uint64_t left_events, left_notes;
	bool is_reader_late;
};

static bool has_room(const struct tw_pace *pace)
{
	return !pace->is_on_request ||
	       (pace->waiting < pace->lines && pace->out->used + 2 * TW_OUT_SLACK <= TW_OUT_BYTES);
}

/* Is there something to say of lines that were left out? */
static void tell_left(struct tw_pace *pace)
{
	char events[TW_FIGURE_BYTES], notes[TW_FIGURE_BYTES], lines[TW_FIGURE_BYTES];
	if (!pace->left_events && !pace->left_notes)
		return;
	tw_out_text(pace->out, "... ");
	if (pace->left_events)
		tw_out_text(pace->out, tw_figure_of(events, pace->left_events, "event", "events"));
	if (pace->left_notes)
		tw_out_format(pace->out, "%s%s", pace->left_events ? " and " : "",
			      tw_figure_of(notes, pace->left_notes, "note", "notes"));
	if (pace->is_reader_late)
		tw_out_text(pace->out, " not shown (their reader was late)\n");
	else
		tw_out_format(pace->out, " not shown (at most %s a second)\n",
			      tw_figure_of(lines, pace->lines, "line", "lines"));
	pace->left_events = pace->left_notes = 0;
	pace->is_reader_late = false;
}

static void write_packet(struct tw_pace *pace)
{
	char head[64];
	int bytes = snprintf(head + 4, sizeof head - 4, "%llu %llu\n", (unsigned long long)pace->shown,
			     (unsigned long long)pace->left_out);
	uint32_t size = (uint32_t)bytes + (uint32_t)pace->out->used;
	for (int i = 0; i < 4; i++)
		head[i] = (char)(size >> (24 - 8 * i));
	const struct {
		const char *data;
		size_t bytes;
	} parts[] = {{head, (size_t)bytes + 4}, {pace->out->data, pace->out->used}};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		for (size_t done = 0; done < parts[i].bytes;) {
			ssize_t n = write(STDOUT_FILENO, parts[i].data + done, parts[i].bytes - done);
			/* The reader has gone. */
			if (n < 0 && errno != EINTR)
				_exit(TW_EXIT_OK);
			done += n > 0 ? (size_t)n : 0;
		}
	}
	pace->out->used = 0;
	pace->waiting = 0;
	pace->is_asked = false;
	pthread_cond_signal(&pace->is_written);
}

static void write_now(struct tw_pace *pace)
{
	bool is_second_over = tw_now_ns() - pace->second_ns >= SECOND_NS;
	if (is_second_over && has_room(pace))
		tell_left(pace);
	if (!pace->is_on_request)
		tw_out_flush(pace->out);
	else if (pace->is_asked && pace->out->used)
		write_packet(pace);
}

/* The thread. */
static void *attend(void *self)
{
	struct tw_pace *pace = self;
	struct pollfd input = {.fd = pace->is_on_request ? STDIN_FILENO : -1, .events = POLLIN};
	char requests[64];
	bool is_over = false;
	while (!is_over) {
		ssize_t got = 0;
		if (poll(&input, 1, TICK_MS) > 0) {
			got = read(STDIN_FILENO, requests, sizeof requests);
			if (got == 0 || (got < 0 && errno != EINTR))
				_exit(TW_EXIT_OK);
		}
		pthread_mutex_lock(&pace->mutex);
		is_over = pace->is_over;
		if (!is_over) {
			/* A port of packets writes a length before each line. */
			pace->is_asked |= got > 0 && memchr(requests, '\n', (size_t)got);
			write_now(pace);
		}
		pthread_mutex_unlock(&pace->mutex);
	}
	return NULL;
}

struct tw_pace *tw_pace_begin(struct tw_out *out, uint64_t lines, bool is_on_request)
{
	struct tw_pace *pace = calloc(1, sizeof *pace);
	pthread_t thread;
	if (!pace)
		return NULL;
	*pace = (struct tw_pace){.mutex = PTHREAD_MUTEX_INITIALIZER,
				 .is_written = PTHREAD_COND_INITIALIZER,
				 .out = out,
				 .is_on_request = is_on_request,
				 .lines = lines};
	/* It reads for a program, which has work of its own: the processor is that program's first. */
	if (is_on_request)
		setpriority(PRIO_PROCESS, 0, 10);
	if (pthread_create(&thread, NULL, attend, pace)) {
		free(pace);
		return NULL;
	}
	/* It may be reading: it lives as long as the process, and so does the memory. */
	pthread_detach(thread);
	return pace;
}

void tw_pace_hold(struct tw_pace *pace)
{
	pthread_mutex_lock(&pace->mutex);
	pace->is_held = true;
}

void tw_pace_release(struct tw_pace *pace)
{
	write_now(pace);
	pace->is_held = false;
	pthread_mutex_unlock(&pace->mutex);
}

bool tw_pace_admits(struct tw_pace *pace, bool is_event)
{
	uint64_t now_ns = tw_now_ns();
	bool is_late = !has_room(pace);
	if (now_ns - pace->second_ns >= SECOND_NS) {
		pace->second_ns = now_ns;
		pace->in_second = 0;
	}
	if (is_late || pace->in_second >= pace->lines) {
		pace->left_events += is_event;
		pace->left_out += is_event;
		pace->left_notes += !is_event;
		/* If both are the cause, the limit is what its user has set. */
		pace->is_reader_late |= pace->in_second < pace->lines;
		return false;
	}
	tell_left(pace);
	pace->in_second++;
	pace->waiting += pace->is_on_request;
	pace->shown += is_event;
	return true;
}

void tw_pace_end(struct tw_pace *pace)
{
	if (!pace->is_held)
		tw_pace_hold(pace);
	tell_left(pace);
	write_now(pace);
	while (pace->is_on_request && pace->out->used)
		pthread_cond_wait(&pace->is_written, &pace->mutex);
	pace->is_over = true;
	pthread_mutex_unlock(&pace->mutex);
}
