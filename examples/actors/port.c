/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port.c - sockets that exchange messages with actors.
 *
 * The poller's thread reads and accepts; the commanding actor writes as much as the socket takes at once, and leaves
 * the rest to the poller.  Everything happens under the poller's lock, except messages to owners.
 *
 * For tracing, a port has events of its own: what trace.h calls trace_port_...
 */
#include "poller.h"
#include "trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 4096

struct port {
	struct port *next;
	uint64_t number;
	int socket;
	bool is_listening;
	struct value owner;
	uint64_t traced; /* the library's number of it */
	char *unsent;
	size_t unsent_bytes;
};

static ssize_t send_bytes(int socket, const char *bytes, size_t count)
{
	return send(socket, bytes, count, MSG_NOSIGNAL);
}

static struct value port_value(uint64_t number)
{
	return immediate(number, TAG_PORT);
}

static struct port **find(struct poller *poller, uint64_t number)
{
	struct port **at = &poller->ports;
	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

/* To the owner, {Port, Value} or {Port,{Tag,Value}}, from the poller's thread. */
static void tell(struct poller *poller, uint64_t traced, struct value owner, struct value port, struct value tag,
		 struct value value)
{
	struct heap heap;
	heap_init(&heap);
	if (!is_none(value))
		tag = TUPLE(&heap, tag, value);
	struct value message = TUPLE(&heap, port, tag);
	trace_port_send(traced, owner, message);
	signal_push(poller->runtime, NULL, owner, signal_make(NULL, SIGNAL_MESSAGE, port, message));
	heap_fini(&heap);
}

/* ---- opening and closing ---- */

static struct value open_port(struct poller *poller, struct actor *self, int socket, struct value owner)
{
	int is_listening = 0;
	socklen_t bytes = sizeof is_listening;
	struct port *port = calloc(1, sizeof *port);
	if (!port)
		return NONE;
	fcntl(socket, F_SETFL, O_NONBLOCK);
	setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &bytes);
	port->number = trace_port_open(poller->runtime, self, is_listening, &port->traced);
	port->socket = socket;
	port->is_listening = is_listening;
	port->owner = owner;
	struct value value = port_value(port->number);
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = port->number};
	pthread_mutex_lock(&poller->lock);
	port->next = poller->ports;
	poller->ports = port;
	epoll_ctl(poller->epoll, EPOLL_CTL_ADD, socket, &event);
	pthread_mutex_unlock(&poller->lock);
	return value;
}

uint64_t port_traced(struct actor *self, struct value value)
{
	struct poller *poller = self->runtime->poller;
	pthread_mutex_lock(&poller->lock);
	struct port *port = tag_of(value) == TAG_PORT ? *find(poller, (uint64_t)number_of(value)) : NULL;
	uint64_t traced = port ? port->traced : 0;
	pthread_mutex_unlock(&poller->lock);
	return traced;
}

struct value port_open(struct actor *self, int socket)
{
	return open_port(self->runtime->poller, self, socket, pid_of(self));
}

/* Under the lock. */
static void remove_port(struct port **at)
{
	struct port *port = *at;
	*at = port->next;
	trace_port_close(port->traced, "normal");
	close(port->socket);
	free(port->unsent);
	free(port);
}

void port_close(struct actor *self, struct value port)
{
	struct poller *poller = self->runtime->poller;
	pthread_mutex_lock(&poller->lock);
	struct port **at = find(poller, (uint64_t)number_of(port));
	if (*at && tag_of(port) == TAG_PORT) {
		uint64_t traced = (*at)->traced;
		trace_port_in(traced, TW_PORT_CLOSE);
		trace_port_close_asked(traced, pid_of(self));
		trace_port_out(traced, TW_PORT_CLOSE);
		remove_port(at);
	}
	pthread_mutex_unlock(&poller->lock);
}

void ports_forget(struct actor *self)
{
	struct poller *poller = self->runtime->poller;
	pthread_mutex_lock(&poller->lock);
	for (struct port **at = &poller->ports; *at;) {
		if (is_same((*at)->owner, pid_of(self)))
			remove_port(at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&poller->lock);
}

void ports_fini(struct poller *poller)
{
	while (poller->ports)
		remove_port(&poller->ports);
}

/* ---- writing ---- */

static void watch(struct poller *poller, struct port *port, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u64 = port->number};
	epoll_ctl(poller->epoll, EPOLL_CTL_MOD, port->socket, &event);
}

/* Under the lock; data that the socket does not take now is kept. */
static bool write_bytes(struct poller *poller, struct port *port, const char *bytes, size_t count)
{
	ssize_t sent = 0;
	if (port->unsent_bytes == 0)
		sent = send_bytes(port->socket, bytes, count);
	if (sent < 0)
		sent = errno == EAGAIN ? 0 : (ssize_t)count; /* the other side has closed: reading will report it */
	size_t rest = count - (size_t)sent;
	if (rest == 0)
		return true;
	char *unsent = realloc(port->unsent, port->unsent_bytes + rest);
	if (!unsent)
		return false;
	memcpy(unsent + port->unsent_bytes, bytes + sent, rest);
	port->unsent = unsent;
	port->unsent_bytes += rest;
	watch(poller, port, EPOLLIN | EPOLLOUT);
	return true;
}

bool port_command(struct actor *self, struct value value, const void *bytes, size_t count)
{
	struct poller *poller = self->runtime->poller;
	pthread_mutex_lock(&poller->lock);
	struct port *port = tag_of(value) == TAG_PORT ? *find(poller, (uint64_t)number_of(value)) : NULL;
	bool is_taken = false;
	if (port) {
		trace_port_in(port->traced, TW_PORT_COMMAND);
		trace_port_command(port->traced, pid_of(self), bytes, count);
		is_taken = write_bytes(poller, port, bytes, count);
		trace_port_out(port->traced, TW_PORT_COMMAND);
	}
	pthread_mutex_unlock(&poller->lock);
	return is_taken;
}

static void write_rest(struct poller *poller, uint64_t number)
{
	pthread_mutex_lock(&poller->lock);
	struct port *port = *find(poller, number);
	ssize_t sent = port ? send_bytes(port->socket, port->unsent, port->unsent_bytes) : -1;
	if (sent > 0) {
		port->unsent_bytes -= (size_t)sent;
		memmove(port->unsent, port->unsent + sent, port->unsent_bytes);
		if (port->unsent_bytes == 0)
			watch(poller, port, EPOLLIN);
	}
	pthread_mutex_unlock(&poller->lock);
}

/* ---- reading, on the poller's thread ---- */

static void accept_one(struct poller *poller, uint64_t number, uint64_t traced, int listening, struct value owner)
{
	int socket = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (socket < 0)
		return;
	struct value accepted = open_port(poller, NULL, socket, owner);
	if (is_none(accepted))
		close(socket);
	else
		tell(poller, traced, owner, port_value(number), ATOM(ACCEPTED), accepted);
}

static void read_some(struct poller *poller, uint64_t number, uint64_t traced, int socket, struct value owner)
{
	char bytes[READ_BYTES];
	ssize_t count = read(socket, bytes, sizeof bytes);
	if (count > 0) {
		struct heap heap;
		heap_init(&heap);
		tell(poller, traced, owner, port_value(number), ATOM(DATA), binary(&heap, bytes, (size_t)count));
		heap_fini(&heap);
	} else if (count == 0 || errno != EAGAIN) {
		pthread_mutex_lock(&poller->lock);
		struct port **at = find(poller, number);
		bool is_open = *at != NULL;
		if (is_open) {
			/* The last that the port says, before it is closed. */
			struct heap heap;
			heap_init(&heap);
			trace_port_send(traced, owner, TUPLE(&heap, port_value(number), ATOM(CLOSED)));
			heap_fini(&heap);
			remove_port(at);
		}
		pthread_mutex_unlock(&poller->lock);
		if (is_open)
			tell(poller, 0, owner, port_value(number), ATOM(CLOSED), NONE);
	}
}

void port_ready(struct poller *poller, uint64_t number, uint32_t events)
{
	pthread_mutex_lock(&poller->lock);
	struct port *port = *find(poller, number);
	/* A descriptor of its own: the port may be closed by its owner meanwhile. */
	int socket = port ? fcntl(port->socket, F_DUPFD_CLOEXEC, 0) : -1;
	struct value owner = port ? port->owner : NONE;
	uint64_t traced = port ? port->traced : 0;
	bool is_listening = port && port->is_listening;
	pthread_mutex_unlock(&poller->lock);
	if (socket < 0)
		return;
	if (events & EPOLLOUT)
		write_rest(poller, number);
	if (is_listening)
		accept_one(poller, number, traced, socket, owner);
	else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		read_some(poller, number, traced, socket, owner);
	close(socket);
}

/* ---- sockets ---- */

static struct sockaddr_in loopback(uint16_t number)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(number),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int listen_on_loopback(uint16_t *number)
{
	struct sockaddr_in address = loopback(0);
	socklen_t bytes = sizeof address;
	int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (socket_ >= 0 && bind(socket_, (struct sockaddr *)&address, sizeof address) == 0 &&
	    listen(socket_, 128) == 0 && getsockname(socket_, (struct sockaddr *)&address, &bytes) == 0) {
		*number = ntohs(address.sin_port);
		return socket_;
	}
	if (socket_ >= 0)
		close(socket_);
	return -1;
}

int connect_to_loopback(uint16_t number)
{
	struct sockaddr_in address = loopback(number);
	int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (socket_ >= 0 && connect(socket_, (struct sockaddr *)&address, sizeof address) == 0)
		return socket_;
	if (socket_ >= 0)
		close(socket_);
	return -1;
}
