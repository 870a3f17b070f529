/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_cnode.c - a C node and an Erlang node continue each other's sequential trace.
 *
 *	erl -sname one -setcookie abc          then, there: seq_trace:set_system_tracer(...), set_token(...), and
 *	                                       {server, 'native@HOST'} ! {self(), Message}
 *	cc seq_cnode.c -ltracewheel -lei -lpthread -o seq_cnode && ./seq_cnode one@HOST native@HOST abc cnode.tw
 *
 * The node connects, records its own side in cnode.tw, and obeys messages to `server` and to its pid:
 *
 *	{From,Message}		From ! {reply,Message}
 *	reset			tw_seq_reset_trace()
 *	{begin,Name,Label}	a trace of its own: it sends {hello,Label,Pid} to the process registered there
 *	an exit signal		Name ! {exited,Reason}
 *	stop			ends
 *
 * ei connects and encodes.  It does not carry the tokens: its one token belongs to the whole program, and its labels are C's
 * long.  Here the token of a control message goes to tw_seq_from_erlang() and comes from tw_seq_to_erlang(), so that each
 * thread has its own, and labels are any term.
 */
#include <tracewheel/seq.h>
#include <tracewheel/tracewheel.h>

#include <ei.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Kinds of control messages: ERTS User's Guide, "Distribution Protocol". */
enum { SEND = 2, REG_SEND = 6, SEND_TT = 12, EXIT_TT = 13, REG_SEND_TT = 16 };

#define PASS_THROUGH 112

static ei_cnode node;

/* ---- the connection ---- */

/* As ei's own, in libei but not in ei.h. */
extern ei_socket_callbacks ei_default_socket_callbacks;

/*
 * Erlang sends a token with a label other than a small integer only to nodes that say in the handshake that they can hold
 * it, and ei does not say so.  The flag is added to the message with our name: 'N' with 8 bytes of flags from its second
 * byte, or the older 'n' with 4 bytes from its fourth; two bytes of length are before both.
 */
static int write_with_label_flag(void *ctx, const char *buffer, ssize_t *bytes, unsigned timeout_ms)
{
	char copy[1024];

	if (*bytes > 11 && (size_t)*bytes <= sizeof copy && (buffer[2] == 'N' || buffer[2] == 'n')) {
		memcpy(copy, buffer, (size_t)*bytes);
		copy[copy[2] == 'N' ? 8 : 6] |= 0x10; /* DFLAG_SEQTRACE_LABELS, 0x100000 */
		buffer = copy;
	}
	return ei_default_socket_callbacks.write(ctx, buffer, bytes, timeout_ms);
}

/* @own		name@host of this node. */
static int connect_to(char *peer, const char *own, const char *cookie)
{
	static ei_socket_callbacks callbacks;
	struct in_addr any = {0};
	char name[EI_MAXALIVELEN + 1];
	const char *host = strchr(own, '@');

	if (!host || (size_t)(host - own) >= sizeof name)
		return -1;
	snprintf(name, sizeof name, "%.*s", (int)(host - own), own);
	ei_init();
	callbacks = ei_default_socket_callbacks;
	callbacks.write = write_with_label_flag;
	if (ei_connect_xinit_ussi(&node, host + 1, name, own, &any, cookie, (unsigned)getpid(), &callbacks,
				  sizeof callbacks, NULL) < 0)
		return -1;
	return ei_connect(&node, peer);
}

static int transfer(int fd, char *buffer, size_t bytes, int is_write)
{
	while (bytes) {
		ssize_t done = is_write ? write(fd, buffer, bytes) : read(fd, buffer, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return -1;
		buffer += done;
		bytes -= (size_t)done;
	}
	return 0;
}

/* ---- messages ---- */

static struct tw_term decode(struct tw_arena *arena, const char *etf, size_t bytes)
{
	struct tw_term term = {0};

	tw_etf_decode(arena, etf, bytes, NULL, NULL, &term);
	return term;
}

static int append_term(ei_x_buff *x, struct tw_term term)
{
	char etf[4096];
	struct tw_sink sink = {.start = etf, .at = etf, .end = etf + sizeof etf};

	if (tw_etf_encode(term, tw_term_atom_z(ei_thisnodename(&node)), &sink) < 0)
		return -1;
	return ei_x_append_buf(x, etf, (int)(sink.at - etf));
}

/* {SEND_TT,'',To,Token} or {REG_SEND_TT,From,'',Name,Token}, and the message: each a term in external format. */
static int send_message(int fd, struct tw_term to, struct tw_term message)
{
	char token_etf[TW_SEQ_ENCODED_BYTES_MAX], to_etf[512];
	struct tw_sink sink = {.start = to_etf, .at = to_etf, .end = to_etf + sizeof to_etf};
	struct tw_seq_token token;
	size_t token_bytes = 0;
	int is_name = tw_term_type(to) == TW_TYPE_ATOM, failed;
	ei_x_buff x;

	tw_seq_pass(&token, to, message);
	/* Without a token the kinds are SEND and REG_SEND; this program sends with a token only. */
	if (tw_seq_to_erlang(&token, token_etf, sizeof token_etf, &token_bytes) < 0 ||
	    tw_etf_encode(to, (struct tw_term){0}, &sink))
		return -1;
	ei_x_new(&x);
	failed = ei_x_append_buf(&x, "\0\0\0\0\x70", 5) || ei_x_encode_version(&x);
	failed = failed || ei_x_encode_tuple_header(&x, is_name ? 5 : 4) ||
		 ei_x_encode_long(&x, is_name ? REG_SEND_TT : SEND_TT);
	failed = failed || (is_name && ei_x_encode_pid(&x, ei_self(&node))) || ei_x_encode_atom(&x, "");
	/* Inside of a tuple a term has no version byte. */
	failed = failed || ei_x_append_buf(&x, to_etf + 1, (int)(sink.at - to_etf - 1));
	failed = failed || ei_x_append_buf(&x, token_etf + 1, (int)token_bytes - 1) || append_term(&x, message);
	if (!failed) {
		for (int i = 0; i < 4; i++)
			x.buff[i] = (char)((x.index - 4) >> (24 - 8 * i));
		failed = transfer(fd, x.buff, (size_t)x.index, 1);
	}
	ei_x_free(&x);
	return failed ? -1 : 0;
}

/* A message to a pid or a name, or {EXIT_TT,From,To,Token,Reason} of a process that is linked to this node. */
struct control {
	long kind;
	int before_token; /* elements between the kind and the token */
	int has_token;
};

static const struct control *control_of(long kind)
{
	static const struct control controls[] = {{SEND, 2, 0},
						  {SEND_TT, 2, 1},
						  {REG_SEND, 3, 0},
						  {REG_SEND_TT, 3, 1},
						  {EXIT_TT, 2, 1}};

	for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++)
		if (controls[i].kind == kind)
			return &controls[i];
	return NULL;
}

/* A term inside of a tuple, which has no version byte; none if it cannot be read. */
static struct tw_term decode_inner(struct tw_arena *arena, const char *etf, size_t bytes)
{
	char *whole = tw_arena_alloc(arena, bytes + 1);

	if (!whole)
		return (struct tw_term){0};
	whole[0] = (char)131;
	memcpy(whole + 1, etf, bytes);
	return decode(arena, whole, bytes + 1);
}

/* {'EXIT',From,Reason}, as OTP shows an exit signal in sequential traces. */
static struct tw_term exit_message(struct tw_arena *arena, const char *from, size_t from_bytes, const char *reason,
				   size_t reason_bytes)
{
	struct tw_term parts[3] = {tw_term_atom_z("EXIT"), decode_inner(arena, from, from_bytes),
				   decode_inner(arena, reason, reason_bytes)};

	return tw_term_tuple(arena, parts, 3);
}

/* Returns 0; 1 for another kind; -1 if it is no control message. */
static int take_message(struct tw_arena *arena, char *frame, int bytes, struct tw_seq_token *token,
			struct tw_term *message)
{
	int index = 1, version, arity, first, from_end, start, error;
	const struct control *control;
	long kind;

	*token = (struct tw_seq_token){{0}};
	if (bytes < 2 || frame[0] != PASS_THROUGH || ei_decode_version(frame, &index, &version) ||
	    ei_decode_tuple_header(frame, &index, &arity) || ei_decode_long(frame, &index, &kind))
		return -1;
	control = control_of(kind);
	if (!control)
		return 1;
	first = index;
	for (int i = 0; i < control->before_token; i++)
		if (ei_skip_term(frame, &index))
			return -1;
	start = index;
	if (control->has_token) {
		if (ei_skip_term(frame, &index) || index > bytes)
			return -1;
		/* A token that cannot be held is dropped and counted: the message comes without. */
		error = tw_seq_from_erlang(frame + start, (size_t)(index - start), token);
		if (error < 0)
			fprintf(stderr, "seq_cnode: %s\n", tw_strerror(error));
	}
	if (kind != EXIT_TT) {
		*message = decode(arena, frame + index, (size_t)(bytes - index));
		return 0;
	}
	from_end = first;
	if (ei_skip_term(frame, &from_end))
		return -1;
	*message =
		exit_message(arena, frame + first, (size_t)(from_end - first), frame + index, (size_t)(bytes - index));
	return 0;
}

static int receive_message(int fd, struct tw_arena *arena, struct tw_seq_token *token, struct tw_term *message)
{
	unsigned char head[4];
	char *frame;
	int result = 1;

	while (result == 1) {
		size_t bytes;

		if (transfer(fd, (char *)head, 4, 0))
			return -1;
		bytes = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
		if (bytes == 0) { /* a tick, which is answered */
			transfer(fd, (char *)head, 4, 1);
			continue;
		}
		frame = bytes < 1 << 20 ? malloc(bytes) : NULL;
		if (!frame)
			return -1;
		result = transfer(fd, frame, bytes, 0) ? -1 : take_message(arena, frame, (int)bytes, token, message);
		free(frame);
	}
	return result;
}

/* ---- the server ---- */

static int begin_trace(int fd, struct tw_arena *arena, struct tw_term name, struct tw_term label)
{
	struct tw_seq_token none = {{0}};
	const erlang_pid *self = ei_self(&node);
	struct tw_identifier pid = {.node = tw_term_atom_z(self->node),
				    .creation = self->creation,
				    .word_count = 2,
				    .words = {self->num, self->serial}};
	struct tw_term hello[] = {tw_term_atom_z("hello"), label, tw_term_identifier(arena, TW_TYPE_PID, &pid)};
	int result = tw_seq_set_label(label);

	if (result >= 0)
		result = tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE | TW_SEQ_PRINT, true);
	if (result >= 0)
		result = send_message(fd, name, tw_term_tuple(arena, hello, 3));
	tw_seq_set_token(&none, NULL);
	return result;
}

static int serve(int fd)
{
	struct tw_term name = {0}, exited = tw_term_atom_z("exited"), exiting = tw_term_atom_z("EXIT");
	struct tw_term stop = tw_term_atom_z("stop"), reset = tw_term_atom_z("reset"), begin = tw_term_atom_z("begin"),
		       reply = tw_term_atom_z("reply");
	struct tw_arena arena;
	int result = 0;

	tw_arena_init(&arena, 1 << 24);
	while (result == 0) {
		struct tw_seq_token token;
		struct tw_term message, first, parts[2] = {reply};

		tw_arena_reset(&arena);
		result = receive_message(fd, &arena, &token, &message);
		if (result < 0)
			break;
		tw_seq_accept(&token, message);
		if (tw_term_is_none(message) || tw_term_is_same(message, stop))
			break;
		first = tw_term_element(message, 0);
		parts[1] = tw_term_element(message, 1);
		if (tw_term_is_same(message, reset)) {
			result = tw_seq_reset_trace();
		} else if (tw_term_is_same(first, begin)) {
			name = parts[1];
			result = begin_trace(fd, &arena, name, tw_term_element(message, 2));
		} else if (tw_term_is_same(first, exiting) && !tw_term_is_none(name)) {
			parts[0] = exited;
			parts[1] = tw_term_element(message, 2);
			result = send_message(fd, name, tw_term_tuple(&arena, parts, 2));
		} else if (tw_term_type(first) == TW_TYPE_PID && !tw_seq_token_is_empty(&token)) {
			tw_seq_print(tw_term_atom_z("serving"));
			result = send_message(fd, first, tw_term_tuple(&arena, parts, 2));
		}
	}
	tw_arena_fini(&arena);
	return result;
}

int main(int argc, char **argv)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE,
				   .capture_path = argc > 4 ? argv[4] : "cnode.tw",
				   .force = true};
	struct tw_session *session;
	int fd, result;

	if (argc < 4) {
		fprintf(stderr, "usage: seq_cnode NODE OWN_NAME COOKIE [CAPTURE]\n");
		return 2;
	}
	result = tw_session_create("cnode", &tracer, &session);
	if (result < 0 || (result = tw_seq_set_system_tracer(session, NULL)) < 0) {
		fprintf(stderr, "seq_cnode: %s\n", tw_strerror(result));
		return 1;
	}
	fd = connect_to(argv[1], argv[2], argv[3]);
	if (fd < 0)
		fprintf(stderr, "seq_cnode: cannot connect to %s: is it running, with this cookie?\n", argv[1]);
	result = fd < 0 ? -1 : serve(fd);
	tw_session_destroy(session);
	tw_session_put(session);
	return result < 0;
}
