/* SPDX-License-Identifier: Apache-2.0 */
/* port_scenarios.c - docs/semantics.md H: flags of ports, and their events. */
#include "bed.h"

#include <unistd.h>

/* A port of the test's own process: one end of a connection through the loopback interface. */
struct pair {
	struct value port;
	uint64_t id;
	int other; /* the other end */
};

static struct pair pair_of(struct bed *b, struct value *listening)
{
	struct pair pair = {.other = -1};
	struct value message = NONE;
	uint16_t number = 0;
	int socket = listen_on_loopback(&number);

	*listening = port_open(b->me, socket);
	pair.other = connect_to_loopback(number);
	/* The poller accepts: {Listening,{accepted,Port}}. */
	outside_receive(b->me, 10000, &message);
	pair.port = element(element(message, 1), 1);
	pair.id = port_traced(b->me, pair.port);
	return pair;
}

static struct tw_term s_port_counts(struct bed *b)
{
	struct value t = tracer_as(b, "t"), p = tracee(b, "p"), listening;
	struct sess *s = s(b, t), *counting = s(b, t);
	struct pair pair = pair_of(b, &listening);
	struct tw_term what, results[8];
	int64_t there = trace_port(counting, TW_PORT_EXISTING, false, "ports");

	what = tw_port_term(&b->arena, pair.id);
	results[0] = answer(b, trace_port(s, pair.id, true, "send"));
	results[1] = info(b, s, what, "flags");
	results[2] = answer(b, trace_port(s, pair.id, false, "all"));
	results[3] = lit(b, "{all,%t}", boolean(there == 2 && trace_port(s, TW_PORT_ALL, true, "ports") == there));
	results[4] = lit(b, "{existing,%t}", boolean(trace_port(s, TW_PORT_EXISTING, true, "ports") == there));
	results[5] = answer(b, trace_port(s, TW_PORT_NEW, true, "ports"));
	results[6] = answer(b, trace_port(s, trace_pid(p), true, ""));
	results[7] = answer(b, trace_port(s, pair.id, true, "call"));
	close(pair.other);
	port_close(b->me, pair.port);
	port_close(b->me, listening);
	return list_of(b, results, 8);
}

/* Opened, linked, written to, closed by port_close/1: no closed is sent. */
static struct tw_term s_line_82_83_84_85_a_port_of_actors(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct value port;
	uint16_t number = 0;
	int socket = listen_on_loopback(&number), other = connect_to_loopback(number);

	trace_port(s, TW_PORT_NEW, true, "ports,running_ports,receive,send");
	port = port_open(b->me, other);
	name_port(b, port_traced(b->me, port), "port");
	port_command(b->me, port, "ab", 2);
	port_close(b->me, port);
	close(socket);
	return ev(b, s);
}

const struct scenario port_scenarios[] = {
	SCENARIO(s_port_counts),
	SCENARIO(s_line_82_83_84_85_a_port_of_actors),
	{0},
};
