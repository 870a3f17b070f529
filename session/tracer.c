/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracer.c - the tracer of a session: a thread that writes a capture or a stream.
 *
 * The writer lives in libtracewheel-capture, which is loaded when a session first asks for a capture:
 * a program that is traced from outside, or only counts, maps no compressor.  In a program linked with it, the weak
 * names below are already resolved to it.
 */
#include "base/worker.h"
#include "session/queue.h"
#include "session/tracer_gone.h"
#include "session/writer.h"
#include "tracewheel/consumer.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

extern __typeof__(tw_recorder_create) tw_recorder_create __attribute__((weak));
extern __typeof__(tw_recorder_ring_set_path) tw_recorder_ring_set_path __attribute__((weak));
/* Not in a public header: only this process can use anonymous memory. */
struct tw_rs *tw_recorder_ring_set(struct tw_recorder *recorder) __attribute__((weak));
extern __typeof__(tw_recorder_poll) tw_recorder_poll __attribute__((weak));
extern __typeof__(tw_recorder_wake) tw_recorder_wake __attribute__((weak));
extern __typeof__(tw_recorder_hurry) tw_recorder_hurry __attribute__((weak));
extern __typeof__(tw_recorder_stats) tw_recorder_stats __attribute__((weak));
extern __typeof__(tw_recorder_finish) tw_recorder_finish __attribute__((weak));
extern __typeof__(tw_recorder_abort) tw_recorder_abort __attribute__((weak));

struct recorder_calls {
	__typeof__(tw_recorder_create) *create;
	__typeof__(tw_recorder_ring_set_path) *ring_set_path;
	__typeof__(tw_recorder_ring_set) *ring_set; /* NULL: an older library */
	__typeof__(tw_recorder_poll) *poll;
	__typeof__(tw_recorder_wake) *wake;
	__typeof__(tw_recorder_hurry) *hurry; /* these two are NULL in an older library without streams */
	__typeof__(tw_recorder_stats) *stats;
	__typeof__(tw_recorder_finish) *finish;
	__typeof__(tw_recorder_abort) *abort;
};

/* The recorder certainly exists when it is woken: the writer finishes it after WOKEN only. */
enum writer_stop { WRITER_RUNS, WRITER_STOPS, WRITER_WOKEN };

struct tw_session_writer {
	struct tw_recorder *recorder;
	struct tw_session *session; /* kept until this thread has ended, or has cleared it itself */
	struct tw_rs rs;	    /* the ring set as a member sees it */
	bool is_anonymous;
	bool is_stream;
	pthread_t thread;
	_Atomic uint32_t stop;	/* enum writer_stop */
	_Atomic bool is_orphan; /* the thread is not joined, and frees this itself */
};

static struct recorder_calls calls;
static pthread_once_t calls_once = PTHREAD_ONCE_INIT;
static __thread struct tw_session_writer *own_writer;

/* Searches the folder of this library first: the loader's search path may not contain it. */
static void *open_capture_library(void)
{
	static const char name[] = "libtracewheel-capture.so.0";
	char path[4096];
	Dl_info own;
	const char *slash = NULL;
	void *library = NULL;

	if (dladdr((void *)open_capture_library, &own) && own.dli_fname)
		slash = strrchr(own.dli_fname, '/');
	if (slash && (size_t)(slash + 1 - own.dli_fname) + sizeof name <= sizeof path) {
		size_t bytes = (size_t)(slash + 1 - own.dli_fname);

		memcpy(path, own.dli_fname, bytes);
		memcpy(path + bytes, name, sizeof name);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static void find_calls(void)
{
	void *library;

	if (tw_recorder_create && tw_recorder_finish && tw_recorder_abort) {
		calls = (struct recorder_calls){tw_recorder_create, tw_recorder_ring_set_path, tw_recorder_ring_set,
						tw_recorder_poll,   tw_recorder_wake,	       tw_recorder_hurry,
						tw_recorder_stats,  tw_recorder_finish,	       tw_recorder_abort};
		return;
	}
	library = open_capture_library();
	if (!library)
		return;
	calls.ring_set_path = (__typeof__(calls.ring_set_path))dlsym(library, "tw_recorder_ring_set_path");
	calls.ring_set = (__typeof__(calls.ring_set))dlsym(library, "tw_recorder_ring_set");
	calls.poll = (__typeof__(calls.poll))dlsym(library, "tw_recorder_poll");
	calls.wake = (__typeof__(calls.wake))dlsym(library, "tw_recorder_wake");
	calls.hurry = (__typeof__(calls.hurry))dlsym(library, "tw_recorder_hurry");
	calls.stats = (__typeof__(calls.stats))dlsym(library, "tw_recorder_stats");
	calls.finish = (__typeof__(calls.finish))dlsym(library, "tw_recorder_finish");
	calls.abort = (__typeof__(calls.abort))dlsym(library, "tw_recorder_abort");
	if (calls.ring_set_path && calls.poll && calls.wake && calls.finish && calls.abort)
		calls.create = (__typeof__(calls.create))dlsym(library, "tw_recorder_create");
}

static void detach(struct tw_session_writer *writer)
{
	/* Anonymous memory belongs to the recorder, which unmaps it when it has finished. */
	if (!writer->is_anonymous)
		tw_rs_detach(&writer->rs);
}

static void free_writer(struct tw_session_writer *writer)
{
	detach(writer);
	free(writer);
}

/* A stream ends with the first write that fails: its reader is gone, and so is the tracer. */
static void check_reader(struct tw_session_writer *writer)
{
	struct tw_recorder_stats stats;

	/* RELAXED session.tracer_is_gone: set by this thread only. */
	if (tw_load_relaxed(&writer->session->is_tracer_gone))
		return;
	calls.stats(writer->recorder, &stats);
	if (!stats.last_error)
		return;
	tw_registry_lock();
	tw_tracer_lost_locked(writer->session);
	tw_registry_unlock();
}

/* Signals stay blocked: the program's handlers must not run on a thread that it did not create. */
static void *run_writer(void *arg)
{
	struct tw_session_writer *writer = arg;

	own_writer = writer;
	/* PAIR writer.stopping: acquire; release in tw_session_writer_stop(). */
	while (tw_load_acquire(&writer->stop) == WRITER_RUNS) {
		calls.poll(writer->recorder, UINT64_C(10000000));
		if (writer->is_stream)
			check_reader(writer);
		/* Clears its own session only: two writers that cleared each other's would deadlock. */
		tw_session_clear_if_dropped(writer->session);
	}
	/* PAIR writer.stopping: acquire; as above. */
	while (tw_load_acquire(&writer->stop) == WRITER_STOPS)
		tw_sys_futex_wait(&writer->stop, WRITER_STOPS, UINT64_MAX);
	calls.finish(writer->recorder, NULL);
	/* PAIR writer.orphan: acquire; release in tw_session_writer_stop(), by this thread or before it stops. */
	if (tw_load_acquire(&writer->is_orphan)) {
		pthread_detach(pthread_self());
		free_writer(writer);
	}
	return NULL;
}

static int start_thread(struct tw_session_writer *writer)
{
	return tw_worker_start(&writer->thread, 0, run_writer, writer) ? TW_ENOMEM : 0;
}

/* Attaches the recorder's memory: files, mapped a second time as by any member, or its anonymous memory. */
static int attach(struct tw_session_writer *writer)
{
	const char *path = calls.ring_set_path(writer->recorder);
	uint32_t image;
	int error = 0;

	writer->is_anonymous = !path[0];
	if (!writer->is_anonymous)
		error = tw_rs_attach(&writer->rs, path);
	else if (calls.ring_set)
		writer->rs = *calls.ring_set(writer->recorder);
	else
		error = TW_ENOTSUP;
	if (error)
		return error;
	error = tw_rs_image_claim(&writer->rs, &image);
	if (error)
		detach(writer);
	return error;
}

int tw_session_writer_start(const struct tw_tracer *tracer, struct tw_session *session)
{
	struct tw_recorder_options options = {.path = tracer->capture_path,
					      .force = tracer->force,
					      .ring_bytes = tracer->ring_bytes,
					      .cap_bytes = tracer->cap_bytes,
					      .allow_anonymous = true,
					      .is_stream = tracer->kind == TW_TRACER_STREAM,
					      .stream_fd = tracer->stream_fd,
					      .policy = (enum tw_recorder_policy)tracer->on_full};
	struct tw_session_writer *writer;
	int error;

	if ((unsigned)tracer->on_full > TW_ON_FULL_OVERWRITE)
		return TW_EBADARG;
	pthread_once(&calls_once, find_calls);
	if (!calls.create || (options.is_stream && !calls.stats))
		return TW_ENOTSUP;
	writer = calloc(1, sizeof *writer);
	if (!writer)
		return TW_ENOMEM;
	writer->session = session;
	writer->is_stream = options.is_stream;
	error = calls.create(&options, &writer->recorder);
	if (error)
		goto free_writer;
	error = attach(writer);
	if (error)
		goto abort_recorder;
	/* The thread uses them: a stream may find at once that its reader is gone. */
	session->rs = &writer->rs;
	session->writer = writer;
	error = start_thread(writer);
	if (error)
		goto detach;
	return 0;
detach:
	session->rs = NULL;
	session->writer = NULL;
	detach(writer);
abort_recorder:
	calls.abort(writer->recorder);
free_writer:
	free(writer);
	return error;
}

void tw_session_writer_stop(struct tw_session_writer *writer)
{
	bool is_own = writer == own_writer;

	/* A reader that stopped must not delay the destroying thread. */
	if (calls.hurry)
		calls.hurry(writer->recorder);
	if (is_own) {
		/* PAIR writer.orphan: release; acquire in run_writer(), by this thread. */
		tw_store_release(&writer->is_orphan, true);
	}
	/* PAIR writer.stopping: release; acquire in run_writer(). */
	tw_store_release(&writer->stop, is_own ? WRITER_WOKEN : WRITER_STOPS);
	if (is_own)
		return;
	calls.wake(writer->recorder);
	/* PAIR writer.stopping: release; as above. */
	tw_store_release(&writer->stop, WRITER_WOKEN);
	tw_sys_futex_wake(&writer->stop, 1);
	pthread_join(writer->thread, NULL);
	free_writer(writer);
}
