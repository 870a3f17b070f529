/* SPDX-License-Identifier: Apache-2.0 */
/* web.c - a server and its clients, over sockets on the loopback interface. */
#include "../loads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct function server_function;
/* server(): returns the data of a port to it. */
static struct value server(struct actor *self, const struct value *arguments)
{
	struct value message = receive(self);
	struct value event = element(message, 1);
	size_t bytes;
	if (is_tagged(event, ATOM(DATA), 2)) {
		const char *data = binary_bytes(element(event, 1), &bytes);
		port_command(self, element(message, 0), data, bytes);
	}
	return tail_call(self, &server_function);
}
static struct function server_function = FUNCTION("web", "server", 0, server);

/* start_server(Collector): opens the listening port, and reports its number. */
static struct value start_server(struct actor *self, const struct value *arguments)
{
	uint16_t number = 0;
	int socket = listen_on_loopback(&number);
	if (socket < 0)
		raise_exit(self, atom("no_socket"));
	port_open(self, socket);
	send_to(self, arguments[0], integer(number));
	return tail_call(self, &server_function);
}
static struct function start_function = FUNCTION("web", "start_server", 1, start_server);

/* Waits until as many bytes as were sent are back; a stream comes in pieces. */
static bool is_echoed(struct actor *self, const char *text, size_t bytes)
{
	size_t have = 0;
	while (have < bytes) {
		size_t count;
		struct value event = element(receive_match(self, NULL, NONE, 5000), 1);
		const char *data = binary_bytes(element(event, 1), &count);
		if (!data || have + count > bytes || memcmp(text + have, data, count) != 0)
			return false;
		have += count;
	}
	return true;
}

/* client(Collector, Number, Requests) */
static struct value client(struct actor *self, const struct value *arguments)
{
	int64_t requests = number_of(arguments[2]), made = 0;
	int socket = connect_to_loopback((uint16_t)number_of(arguments[1]));
	struct value port = socket < 0 ? NONE : port_open(self, socket);
	for (; !is_none(port) && made < requests && !is_time_over(); made++) {
		char text[40];
		snprintf(text, sizeof text, "GET /%" PRId64 "\r\n", made);
		port_command(self, port, text, strlen(text));
		if (!is_echoed(self, text, strlen(text)))
			break;
	}
	port_close(self, port);
	send_to(self, arguments[0], TUPLE(heap_of(self), ATOM(OK), integer(made)));
	return ATOM(OK);
}
static struct function client_function = FUNCTION("web", "client", 3, client);

static void declare(void)
{
	module_load((struct function *const[]){&server_function, &start_function, &client_function}, 3);
}

static struct load_result run(struct actor *outside, const struct load_options *options)
{
	struct load_result result = {0};
	uint64_t requests = options->messages / 2 / options->actors, made = 0;
	struct value number;
	spawn(outside, &start_function, self_pid(outside));
	if (!outside_receive(outside, 5000, &number))
		return result;
	for (uint64_t i = 0; i < options->actors; i++)
		spawn(outside, &client_function, self_pid(outside), number, integer((int64_t)requests));
	result.is_right = wait_for_done(outside, options, options->actors, &made);
	result.is_right &= made && (options->seconds > 0 || made == requests * options->actors);
	result.messages = made * 2;
	snprintf(result.text, sizeof result.text, "%" PRIu64 " clients got their own words back %" PRIu64 " times",
		 options->actors, made);
	return result;
}

const struct load web_load = {"web", "a server and clients on sockets", 8, 20000, run, declare};
