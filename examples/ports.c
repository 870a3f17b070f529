/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports.c - a program that declares a descriptor as a port, and the recorded events of it.
 *
 *	$ tracewheel record -o ports.tw -p send,receive,ports,running_ports -- build/release/examples/example-ports
 *	$ tracewheel print --format erlang --bare-pids ports.tw
 *	{trace,#Port<0.2>,open,<0.1.0>,pipe}.
 *	...
 */
#include "tracewheel/tracewheel.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A descriptor of the program, and its port. */
struct channel {
	int fd;
	tw_port port;
};

static int channel_open(struct channel *channel, int fd)
{
	channel->fd = fd;
	return tw_port_declare_fd(fd, tw_process_current(), &channel->port);
}

static void channel_write(struct channel *channel, const void *bytes, size_t count)
{
	tw_port_in(channel->port, TW_PORT_COMMAND);
	if (tw_port_wants(channel->port, TW_WANTS_RECEIVE)) {
		char buffer[512];
		struct tw_arena arena;

		tw_arena_init_buffer(&arena, buffer, sizeof buffer, 1 << 16);
		tw_port_request(channel->port, tw_process_self(), TW_PORT_COMMAND,
				tw_term_binary(&arena, bytes, count));
		tw_arena_fini(&arena);
	}
	if (write(channel->fd, bytes, count) < 0)
		perror("write");
	tw_port_out(channel->port, TW_PORT_COMMAND);
}

static void channel_close(struct channel *channel)
{
	/* Before other threads can reuse the descriptor. */
	tw_port_close(channel->port, tw_term_atom_z("normal"));
	close(channel->fd);
}

int main(void)
{
	struct channel out;
	char bytes[16];
	int ends[2], error;

	if (pipe(ends)) {
		perror("pipe");
		return 1;
	}
	error = channel_open(&out, ends[1]);
	if (error) {
		fprintf(stderr, "no port: %s\n", tw_strerror(error));
		return 1;
	}
	channel_write(&out, "hello", 5);
	channel_close(&out);
	printf("%zd bytes went through the pipe\n", read(ends[0], bytes, sizeof bytes));
	return 0;
}
