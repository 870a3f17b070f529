/* SPDX-License-Identifier: Apache-2.0 */
/* stream_write.c - writes a stream; a reader that stops reading cannot block the writer forever. */
#include "pipeline/block/stream_write.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/stall_timer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS	    50
#define POLL_NS	    UINT64_C(50000000)
#define PATIENCE_NS UINT64_C(1000000000)

int tw_stream_out_open(struct tw_stream_out *out, int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
		return TW_EBADARG;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return tw_error_from_errno(errno);
	*out = (struct tw_stream_out){.fd = fd, .is_socket = S_ISSOCK(st.st_mode), .is_pipe = S_ISFIFO(st.st_mode)};
	return 0;
}

void tw_stream_out_close(struct tw_stream_out *out)
{
	if (out->fd >= 0)
		close(out->fd);
	out->fd = -1;
}

void tw_stream_out_hurry(struct tw_stream_out *out)
{
	/* RELAXED stream.hurry: read again and again. */
	tw_store_relaxed(&out->is_in_a_hurry, true);
}

/* Waits until a piece can be written without blocking. */
static int wait_for_space(struct tw_stream_out *out)
{
	struct tw_stall_timer stall_timer = {0};

	for (;;) {
		struct pollfd wanted = {out->fd, POLLOUT, 0};
		int found = poll(&wanted, 1, POLL_MS);

		if (found > 0 && (wanted.revents & (POLLERR | POLLNVAL)))
			return TW_EPIPE;
		if (found > 0)
			return 0;
		if (found < 0 && errno != EINTR && errno != EAGAIN)
			return tw_error_from_errno(errno);
		/* RELAXED stream.hurry: as above. */
		if (!tw_load_relaxed(&out->is_in_a_hurry))
			continue;
		if (tw_stall_timer_check(&stall_timer, 0, tw_clock_monotonic_ns(), POLL_NS) >= PATIENCE_NS)
			return TW_EPIPE;
	}
}

/* write() to a pipe without a reader raises SIGPIPE, which is cleared here. */
static ssize_t write_quietly(int fd, const void *data, size_t bytes)
{
	const struct timespec now = {0, 0};
	sigset_t pipe_only, before, pending;
	bool was_pending;
	ssize_t written;
	int error;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	written = write(fd, data, bytes);
	error = errno;
	if (written < 0 && error == EPIPE && !was_pending)
		while (sigtimedwait(&pipe_only, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return written;
}

static ssize_t write_some(struct tw_stream_out *out, const void *data, size_t bytes)
{
	int error;

	if (!out->is_pipe && !out->is_socket)
		return write_quietly(out->fd, data, bytes);
	error = wait_for_space(out);
	if (error) {
		errno = -error;
		return -1;
	}
	if (out->is_socket)
		return send(out->fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	/* A writable pipe has space for this much. */
	return write_quietly(out->fd, data, bytes < PIPE_BUF ? bytes : PIPE_BUF);
}

static int write_piece(struct tw_stream_out *out, const char *data, size_t bytes)
{
	while (bytes) {
		ssize_t written = write_some(out, data, bytes);

		if (written < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (written < 0 && (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN))
			return TW_EPIPE;
		if (written <= 0)
			return written < 0 ? tw_error_from_errno(errno) : TW_ENOSPC;
		data += written;
		bytes -= (size_t)written;
	}
	return 0;
}

int tw_stream_out_write(struct tw_stream_out *out, struct iovec *pieces, int count)
{
	for (int i = 0; i < count && !out->error; i++)
		out->error = write_piece(out, pieces[i].iov_base, pieces[i].iov_len);
	return out->error;
}
