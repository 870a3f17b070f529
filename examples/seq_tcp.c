/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_tcp.c - one request through two programs: its trace token travels in the messages.
 *
 *	cc seq_tcp.c -ltracewheel -lpthread -o seq_tcp
 *	./seq_tcp serve server.tw              prints its port, on which it answers one client
 *	./seq_tcp call PORT client.tw          three requests
 *	tracewheel merge server.tw client.tw -o all.tw && tracewheel seq all.tw
 *
 * A message is two lengths of 4 bytes, the token as bytes, and a text.
 */
#include <tracewheel/seq.h>
#include <tracewheel/tracewheel.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT_MAX 100

static int transfer(int fd, void *data, size_t bytes, int is_write)
{
	char *at = data;

	while (bytes) {
		ssize_t done = is_write ? write(fd, at, bytes) : read(fd, at, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return -1;
		at += done;
		bytes -= (size_t)done;
	}
	return 0;
}

static struct tw_term text_term(struct tw_arena *arena, const char *text)
{
	return tw_term_binary(arena, text, strlen(text));
}

static int send_text(int fd, const char *text)
{
	char buffer[256], message[8 + TW_SEQ_ENCODED_BYTES_MAX + TEXT_MAX];
	struct tw_seq_token token;
	struct tw_arena arena;
	uint32_t lengths[2];
	size_t token_bytes;
	int error;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	/* The event of the send; the receiver is another program, named as the program likes. */
	tw_seq_pass(&token, tw_term_atom_z("peer"), text_term(&arena, text));
	error = tw_seq_encode(&token, message + 8, TW_SEQ_ENCODED_BYTES_MAX, &token_bytes);
	if (error < 0)
		return error;
	lengths[0] = htonl((uint32_t)token_bytes);
	lengths[1] = htonl((uint32_t)strlen(text));
	memcpy(message, lengths, 8);
	memcpy(message + 8 + token_bytes, text, strlen(text));
	return transfer(fd, message, 8 + token_bytes + strlen(text), 1);
}

/* @text	TEXT_MAX + 1 bytes. */
static int receive_text(int fd, char *text)
{
	char buffer[256], token_bytes[TW_SEQ_ENCODED_BYTES_MAX];
	struct tw_seq_token token = {{0}};
	struct tw_arena arena;
	uint32_t lengths[2];
	int error;

	if (transfer(fd, lengths, 8, 0))
		return -1;
	lengths[0] = ntohl(lengths[0]);
	lengths[1] = ntohl(lengths[1]);
	if (lengths[0] > sizeof token_bytes || lengths[1] > TEXT_MAX || transfer(fd, token_bytes, lengths[0], 0) ||
	    transfer(fd, text, lengths[1], 0))
		return -1;
	text[lengths[1]] = '\0';
	/* A token that is refused is counted, and the message comes without one. */
	error = tw_seq_decode(token_bytes, lengths[0], NULL, &token);
	if (error < 0)
		fprintf(stderr, "seq_tcp: a token was refused: %s\n", tw_strerror(error));
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	tw_seq_accept(&token, text_term(&arena, text));
	return 0;
}

static int serve(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	socklen_t bytes = sizeof address;
	char text[TEXT_MAX + 1];

	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes))
		return -1;
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	while (receive_text(fd, text) == 0) {
		tw_seq_print(tw_term_atom_z("working"));
		if (send_text(fd, "done"))
			break;
	}
	close(fd);
	close(listener);
	return 0;
}

/* Each request is a trace, whose label says which. */
static int request(int fd, int number)
{
	char buffer[256], text[TEXT_MAX + 1];
	struct tw_arena arena;
	struct tw_term label[2];
	int error;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	label[0] = tw_term_atom_z("request");
	label[1] = tw_term_integer(&arena, number);
	error = tw_seq_set_label(tw_term_tuple(&arena, label, 2));
	if (error >= 0)
		error = tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE | TW_SEQ_PRINT, true);
	snprintf(text, sizeof text, "work %d", number);
	if (error >= 0)
		error = send_text(fd, text);
	if (error >= 0)
		error = receive_text(fd, text);
	tw_seq_set_token(NULL, NULL);
	return error;
}

static int call(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), error = 0;

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		return -1;
	for (int i = 1; i <= 3 && error >= 0; i++)
		error = request(fd, i);
	close(fd);
	return error;
}

int main(int argc, char **argv)
{
	int is_server = argc == 3 && !strcmp(argv[1], "serve"), result;
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE, .capture_path = argv[argc - 1], .force = true};
	struct tw_session *session;

	if (!is_server && (argc != 4 || strcmp(argv[1], "call"))) {
		fprintf(stderr, "usage: seq_tcp serve CAPTURE | seq_tcp call PORT CAPTURE\n");
		return 2;
	}
	result = tw_session_create("requests", &tracer, &session);
	if (result < 0 || (result = tw_seq_set_system_tracer(session, NULL)) < 0) {
		fprintf(stderr, "seq_tcp: %s\n", tw_strerror(result));
		return 1;
	}
	result = is_server ? serve() : call(atoi(argv[2]));
	tw_session_destroy(session);
	tw_session_put(session);
	return result < 0;
}
