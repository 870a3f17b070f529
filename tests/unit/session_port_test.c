/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Ports have flags of their own in each session, and events reported by a run-time are given as in OTP.
 * Method	Ports and processes that the test itself plays, with one session and with two; the rings hold what is expected.
 */
#include "session_events.h"
#include "session/tracee.h"
#include "tracewheel/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALL_KINDS (TW_FLAG_PORTS | TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_RUNNING_PORTS)

static struct bed one, two;
static struct tw_process *p;
static tw_port a;
static tw_port opened[32];
static unsigned opened_count;

static tw_port open_port(const char *name, struct tw_process *opener, bool is_linked)
{
	struct tw_port_options options = {.driver = "echo", .name = name, .opener = opener, .is_linked = is_linked};
	tw_port port = 0;

	assert_int_equal(tw_port_open(&options, &port), 0);
	name_port(port, name);
	opened[opened_count++] = port;
	return port;
}

static int begin(void **state)
{
	open_bed(&one, "one");
	open_bed(&two, "two");
	tw_scheduler_declare();
	p = new_process("p");
	a = open_port("a", NULL, false);
	return 0;
}

static int end(void **state)
{
	while (opened_count)
		tw_port_close(opened[--opened_count], (struct tw_term){0});
	if (p)
		tw_process_exit(p);
	close_bed(&two);
	close_bed(&one);
	forget_names();
	return 0;
}

static uint32_t port_flags(struct bed *bed, tw_port port)
{
	uint32_t flags = 0;

	assert_int_equal(tw_trace_port_flags(bed->session, port, &flags), 0);
	return flags;
}

static void trace_port_in(struct bed *bed, tw_port port, uint32_t flags)
{
	assert_int_equal(tw_trace_port(bed->session, port, true, flags), 1);
}

static const char *info(struct bed *bed, struct tw_term what, const char *item)
{
	static char text[512];
	struct tw_term answer = {0};
	int error = tw_trace_info(bed->session, what, tw_term_atom_z(item), &terms, &answer);

	if (error)
		return tw_strerror(error);
	tw_term_format(answer, TW_PRINT_WRITE, text, sizeof text);
	return text;
}

static struct tw_term port_term(tw_port port)
{
	parse("[]");
	return tw_port_term(&terms, port);
}

/* A line in which %p is replaced by the process' pid and %a by the port. */
static const char *numbered(const char *line)
{
	static char lines[16][128];
	static unsigned next;
	char *out = lines[next++ % 16], *at = out;

	for (; *line; line++) {
		if (line[0] == '%' && (line[1] == 'p' || line[1] == 'a')) {
			line++;
			at += *line == 'p' ? sprintf(at, "<0.%u.0>", (unsigned)tw_process_pid(p))
					   : sprintf(at, "#Port<0.%u>", tw_port_number(a));
		} else {
			*at++ = *line;
		}
	}
	*at = 0;
	return out;
}
#define N(line) numbered(line)

/* Is the session among those that affect it?  -1: undefined. */
static int affects(struct bed *bed, struct tw_term what)
{
	struct tw_term list = {0};
	uint64_t id;

	assert_int_equal(tw_session_info(what, &terms, &list), 0);
	if (tw_is_atom(list))
		return -1;
	for (; tw_is_cons(list); list = tw_term_tail(list)) {
		assert_int_equal(tw_term_get_uint64(tw_term_element(tw_term_head(list), 1), &id), 0);
		if (id == bed->session->id)
			return 1;
	}
	return 0;
}

/* 80: a port, all, existing, new; invalid arguments. */
static void line_80_counts(void **state)
{
	tw_port b = open_port("b", p, false), never = (UINT64_C(1) << 60) | 7;
	uint64_t reference;

	assert_int_equal(tw_trace_port(one.session, a, true, TW_FLAG_SEND), 1);
	assert_int_equal(tw_trace_port(one.session, a, true, TW_FLAG_SEND), 1);
	assert_int_equal(port_flags(&one, a), TW_FLAG_SEND);
	assert_int_equal(tw_trace_port(one.session, a, true, 0), 1);
	assert_int_equal(tw_trace_port(one.session, TW_PORT_ALL, true, TW_FLAG_PORTS), 2);
	assert_int_equal(tw_trace_port(one.session, TW_PORT_EXISTING, true, TW_FLAG_PORTS), 2);
	assert_int_equal(tw_trace_port(one.session, TW_PORT_NEW, true, TW_FLAG_PORTS), 0);
	assert_int_equal(tw_trace_port(one.session, TW_PORT_ALL, true, 0), 0);
	assert_int_equal(tw_trace_port(one.session, a, false, TW_FLAG_ALL), 1);
	assert_int_equal(port_flags(&one, a), 0);
	assert_int_equal(port_flags(&one, b), TW_FLAG_PORTS);
	/* The other session has set nothing, and processes are no ports. */
	assert_int_equal(port_flags(&two, b), 0);
	assert_int_equal(flags_of(&one, p), 0);
	assert_int_equal(tw_trace_port(one.session, tw_process_pid(p), true, TW_FLAG_SEND), TW_EBADARG);
	assert_int_equal(tw_trace_process(one.session, tw_port_number(a), true, TW_FLAG_SEND), TW_EBADARG);
	assert_int_equal(tw_trace_port(one.session, 0, true, TW_FLAG_SEND), TW_EBADARG);
	assert_int_equal(tw_trace_port(one.session, never, true, TW_FLAG_SEND), TW_EBADARG);
	assert_int_equal(tw_trace_port(one.session, a, true, 1u << 30), TW_EBADARG);
	assert_int_equal(tw_trace_port(one.session, a, true, TW_FLAG_CPU_TIMESTAMP), TW_EBADARG);
	assert_int_equal(tw_trace_port(NULL, a, true, TW_FLAG_SEND), TW_EBADARG);
	assert_int_equal(tw_delivered(one.session, tw_port_number(a), &reference), TW_EBADARG);
	/* A closed one is invalid, and not counted. */
	assert_int_equal(tw_port_close(b, (struct tw_term){0}), 0);
	assert_int_equal(tw_trace_port(one.session, b, true, TW_FLAG_SEND), TW_EBADARG);
	assert_int_equal(tw_trace_port(one.session, TW_PORT_ALL, true, TW_FLAG_SEND), 1);
}

/* 81: flags of processes are kept without effect. */
static void line_81_flags_of_processes(void **state)
{
	const uint32_t flags = TW_FLAG_CALL | TW_FLAG_PROCS | TW_FLAG_RUNNING | TW_FLAG_EXITING |
			       TW_FLAG_GARBAGE_COLLECTION | TW_FLAG_SET_ON_SPAWN | TW_FLAG_SET_ON_LINK |
			       TW_FLAG_RETURN_TO | TW_FLAG_ARITY;

	trace_port_in(&one, a, flags);
	trace_port_in(&two, a, TW_FLAG_ALL & ~TW_FLAG_SILENT);
	assert_int_equal(port_flags(&one, a), flags);
	tw_port_in(a, TW_PORT_OPEN);
	tw_port_linked(a, tw_process_pid(p), TW_GETTING_LINKED);
	tw_port_out(a, TW_PORT_OPEN);
	EXPECT_NOTHING(&one);
	EXPECT(&two, "a in open", "a getting_linked p", "a out open");
}

/* 82: open, closed, names, links; new ports have the flags of new ones. */
static void line_82_life(void **state)
{
	struct tw_port_options nobody = {.driver = "tcp_inet"};
	tw_port b, c;

	assert_int_equal(tw_trace_port(one.session, TW_PORT_NEW, true, TW_FLAG_PORTS), 0);
	assert_int_equal(port_flags(&one, TW_PORT_NEW), TW_FLAG_PORTS);
	assert_int_equal(port_flags(&two, TW_PORT_NEW), 0);
	trace_in(&two, p, TW_FLAG_PROCS);
	b = open_port("b", p, true);
	EXPECT(&one, "b open p, echo", "b getting_linked p");
	EXPECT(&two, "p link b");
	assert_int_equal(port_flags(&one, a), 0);
	assert_int_equal(tw_port_register(b, parse("name")), 0);
	assert_int_equal(tw_port_register(b, parse("other")), TW_EBADARG);
	assert_int_equal(tw_port_register(a, parse("name")), TW_EBADARG);
	assert_int_equal(tw_process_register(p, parse("name")), TW_EBADARG);
	assert_int_equal(tw_port_register(a, parse("17")), TW_EBADARG);
	assert_int_equal(tw_port_unregister(b), 0);
	assert_int_equal(tw_port_unregister(b), TW_EBADARG);
	assert_int_equal(tw_port_register(b, parse("name")), 0);
	tw_port_linked(b, tw_process_pid(p), TW_GETTING_UNLINKED);
	tw_process_port_linked(p, b, TW_UNLINK);
	EXPECT(&one, "b register name", "b unregister name", "b register name", "b getting_unlinked p");
	EXPECT(&two, "p unlink b");
	assert_int_equal(tw_port_close(b, parse("{because,1}")), 0);
	EXPECT(&one, "b closed {because,1}", "b unregister name");
	tw_process_port_linked(p, b, TW_GETTING_UNLINKED);
	EXPECT(&two, "p getting_unlinked b");
	/* The name is free. */
	assert_int_equal(tw_process_register(p, parse("name")), 0);
	assert_int_equal(tw_process_unregister(p), 0);
	EXPECT(&two, "p register name", "p unregister name");
	/* Without an opener; closed for an unknown reason. */
	trace_port_in(&two, a, TW_FLAG_PORTS);
	assert_int_equal(tw_port_open(&nobody, &c), 0);
	name_port(c, "c");
	assert_int_equal(tw_port_close(c, (struct tw_term){0}), 0);
	EXPECT(&one, "c open undefined, tcp_inet", "c closed normal");
	EXPECT_NOTHING(&two);
	assert_int_equal(tw_trace_port(one.session, TW_PORT_NEW, false, TW_FLAG_PORTS), 0);
	open_port("d", p, false);
	EXPECT_NOTHING(&one);
}

/* 83: messages that ports receive and send. */
static void line_83_messages(void **state)
{
	tw_pid pid = tw_process_pid(p);
	struct tw_term none = {0};

	trace_port_in(&one, a, TW_FLAG_SEND | TW_FLAG_RECEIVE);
	trace_port_in(&two, a, TW_FLAG_SEND);
	assert_int_equal(tw_port_request(a, pid, TW_PORT_COMMAND, parse("[<<\"ab\">>,10]")), 0);
	assert_int_equal(tw_port_request(a, pid, TW_PORT_CONTROL, parse("{1,<<\"x\">>}")), 0);
	assert_int_equal(tw_port_request(a, pid, TW_PORT_CONNECT, pid_of(p)), 0);
	assert_int_equal(tw_port_request(a, 0, TW_PORT_CALL, parse("{2,x}")), 0);
	assert_int_equal(tw_port_request(a, pid, TW_PORT_CLOSE, none), 0);
	assert_int_equal(tw_port_receive(a, parse("anything"), pid_of(p)), 0);
	EXPECT(&one, N("a receive {%p,{command,[<<97,98>>,10]}}"), N("a receive {%p,{control,{1,<<120>>}}}"),
	       N("a receive {%p,{connect,%p}}"), "a receive {undefined,{call,{2,x}}}", N("a receive {%p,close}"),
	       "a receive anything");
	EXPECT_NOTHING(&two);
	assert_int_equal(tw_port_reply(a, pid, TW_PORT_COMMAND, parse("<<\"ab\">>")), 0);
	assert_int_equal(tw_port_reply(a, pid, TW_PORT_CONTROL, parse("<<>>")), 0);
	assert_int_equal(tw_port_reply(a, pid, TW_PORT_CALL, parse("r")), 0);
	assert_int_equal(tw_port_reply(a, pid, TW_PORT_CONNECT, none), 0);
	assert_int_equal(tw_port_reply(a, pid, TW_PORT_CLOSE, none), 0);
	assert_int_equal(tw_port_send(a, parse("anything"), parse("name")), 0);
	assert_int_equal(tw_port_send_to_nobody(a, parse("late"), pid_of(p)), 0);
	for (unsigned i = 0; i < 2; i++)
		EXPECT(i ? &two : &one, N("a send {%a,{data,<<97,98>>}}, p"), N("a send {%a,{control,<<>>}}, p"),
		       N("a send {%a,{call,r}}, p"), N("a send {%a,connected}, p"), "a send closed, p",
		       "a send anything, name", "a send_to_non_existing_process late, p");
	/* Required or forbidden data; invalid messages. */
	assert_int_equal(tw_port_request(a, pid, TW_PORT_COMMAND, none), TW_EBADARG);
	assert_int_equal(tw_port_request(a, pid, TW_PORT_CLOSE, parse("x")), TW_EBADARG);
	assert_int_equal(tw_port_request(a, pid, TW_PORT_FLUSH, none), TW_EBADARG);
	assert_int_equal(tw_port_reply(a, pid, TW_PORT_OPEN, none), TW_EBADARG);
	assert_int_equal(tw_port_reply(a, pid, TW_PORT_CONNECT, parse("x")), TW_EBADARG);
	assert_int_equal(tw_port_reply(a, pid, 77, none), TW_EBADARG);
	EXPECT_NOTHING(&one);
}

/* 83, 159 to 170: patterns of messages select those of ports. */
static void patterns_select_messages_of_ports(void **state)
{
	const char *only_close = "[{['_','_',{'_',close}],[],[{message,{self}}]}]";
	tw_pid pid = tw_process_pid(p);

	trace_port_in(&one, a, TW_FLAG_SEND | TW_FLAG_RECEIVE);
	trace_port_in(&two, a, TW_FLAG_SEND | TW_FLAG_RECEIVE);
	assert_int_equal(tw_trace_recv_text(one.session, only_close, strlen(only_close), NULL), 1);
	assert_int_equal(tw_trace_send(one.session, TW_MATCH_FALSE), 1);
	tw_port_request(a, pid, TW_PORT_COMMAND, parse("[]"));
	tw_port_request(a, pid, TW_PORT_CLOSE, (struct tw_term){0});
	tw_port_reply(a, pid, TW_PORT_CLOSE, (struct tw_term){0});
	EXPECT(&one, N("a receive {%p,close}, a"));
	EXPECT(&two, N("a receive {%p,{command,[]}}"), N("a receive {%p,close}"), "a send closed, p");
}

/* 84: a port closed by a call, and by a message. */
static void line_84_two_ways_to_close(void **state)
{
	tw_pid pid = tw_process_pid(p);
	struct tw_term none = {0};
	tw_port b = open_port("b", p, false);

	trace_port_in(&one, a, TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_PORTS);
	trace_port_in(&two, b, TW_FLAG_SEND | TW_FLAG_RECEIVE);
	tw_port_request(a, pid, TW_PORT_CLOSE, none);
	tw_port_close(a, none);
	tw_port_request(b, pid, TW_PORT_CLOSE, none);
	tw_port_reply(b, pid, TW_PORT_CLOSE, none);
	tw_port_close(b, none);
	EXPECT(&one, N("a receive {%p,close}"), "a closed normal");
	EXPECT(&two, N("b receive {%p,close}"), "b send closed, p");
}

/* 85: in and out with each command, or 0. */
static void line_85_running_ports(void **state)
{
	static const char *const words[] = {"0",     "call", "close", "command", "connect", "control",
					    "flush", "info", "link",  "open",	 "unlink"};
	struct tw_port_options again = {.driver = "x"};
	char in[32], out[32];
	tw_port other;

	trace_port_in(&one, a, TW_FLAG_RUNNING_PORTS);
	trace_port_in(&two, a, TW_FLAG_RUNNING_PORTS);
	for (unsigned command = 0; command < TW_COUNT_OF(words); command++) {
		assert_int_equal(tw_port_in(a, (enum tw_port_command)command), 0);
		assert_int_equal(tw_port_out(a, (enum tw_port_command)command), 0);
		snprintf(in, sizeof in, "a in %s", words[command]);
		snprintf(out, sizeof out, "a out %s", words[command]);
		EXPECT(&one, in, out);
		EXPECT(&two, in, out);
	}
	assert_int_equal(tw_port_in(a, (enum tw_port_command)TW_COUNT_OF(words)), TW_EBADARG);
	/* No out without an in; a port that is not traced runs unseen. */
	assert_int_equal(tw_port_out(a, TW_PORT_CALL), 0);
	assert_int_equal(tw_port_open(&again, &other), 0);
	assert_int_equal(tw_port_in(other, TW_PORT_CALL), 0);
	assert_int_equal(tw_port_out(other, TW_PORT_CALL), 0);
	EXPECT_NOTHING(&one);
	tw_port_close(other, (struct tw_term){0});
}

/* 42: a process that runs a port goes out and comes in for running_procs, and not for running. */
static void line_42_a_process_inside_a_port(void **state)
{
	trace_in(&one, p, TW_FLAG_RUNNING_PROCS);
	trace_in(&two, p, TW_FLAG_RUNNING);
	trace_port_in(&two, a, TW_FLAG_RUNNING_PORTS);
	tw_process_in(p);
	tw_port_in(a, TW_PORT_COMMAND);
	tw_port_out(a, TW_PORT_COMMAND);
	EXPECT(&one, "p in 0", "p out 0", "p in 0");
	tw_port_in(a, TW_PORT_CALL);
	/* Scheduled out in the middle: it is out already, or goes out now. */
	tw_process_out();
	tw_port_out(a, TW_PORT_CALL);
	EXPECT(&one, "p out 0");
	EXPECT(&two, "p in 0", "a in command", "a out command", "a in call", "p out 0", "a out call");
	/* A thread that runs no process. */
	tw_port_in(a, TW_PORT_COMMAND);
	tw_port_out(a, TW_PORT_COMMAND);
	EXPECT_NOTHING(&one);
	EXPECT(&two, "a in command", "a out command");
}

/* 13, 18, 27, 28, 173, 176: destroyed sessions, sessions that affect a port, and info about a port. */
static void line_13_18_27_28_173_176_sessions(void **state)
{
	struct tw_term new_ports = tw_term_atom_z("new_ports"), flags = tw_term_atom_z("flags"), answer;
	tw_port b = open_port("b", p, false);

	assert_int_equal(affects(&one, port_term(a)), 0);
	assert_int_equal(affects(&one, new_ports), 0);
	assert_string_equal(info(&one, port_term(a), "flags"), "{flags,[]}");
	assert_string_equal(info(&one, port_term(a), "tracer"), "{tracer,[]}");
	trace_port_in(&one, a, TW_FLAG_SEND | TW_FLAG_PORTS | TW_FLAG_CALL);
	tw_trace_port(one.session, TW_PORT_NEW, true, TW_FLAG_RUNNING_PORTS);
	assert_int_equal(affects(&one, port_term(a)), 1);
	assert_int_equal(affects(&one, port_term(b)), 0);
	assert_int_equal(affects(&two, port_term(a)), 0);
	assert_int_equal(affects(&one, new_ports), 1);
	assert_int_equal(affects(&two, new_ports), 0);
	assert_int_equal(affects(&one, tw_term_atom_z("new")), 0);
	assert_int_equal(affects(&two, tw_term_atom_z("send")), 1);
	assert_string_equal(info(&one, port_term(a), "flags"), "{flags,[ports,call,send]}");
	assert_string_equal(info(&one, port_term(a), "tracer"), "{tracer,{capture,<<>>}}");
	assert_string_equal(info(&one, new_ports, "flags"), "{flags,[running_ports]}");
	assert_string_equal(info(&one, new_ports, "tracer"), "{tracer,{capture,<<>>}}");
	assert_string_equal(info(&two, new_ports, "flags"), "{flags,[]}");
	assert_string_equal(info(&one, port_term(a), "foo"), tw_strerror(TW_EBADARG));
	assert_string_equal(info(&one, new_ports, "match_spec"), tw_strerror(TW_EBADARG));
	/* Closed; never open; another node's. */
	tw_port_close(b, (struct tw_term){0});
	assert_int_equal(affects(&one, port_term(b)), -1);
	assert_string_equal(info(&one, port_term(b), "flags"), "undefined");
	assert_string_equal(info(&one, port_term(12345678), "flags"), "undefined");
	answer = tw_term_identifier(&terms, TW_TYPE_PORT,
				    &(struct tw_identifier){.words = {tw_port_number(a)},
							    .word_count = 2,
							    .node = tw_term_atom_z("other@host")});
	assert_string_equal(info(&one, answer, "flags"), tw_strerror(TW_EBADARG));
	/* Destroyed: nothing is left of it, and the other session continues. */
	trace_port_in(&two, a, TW_FLAG_PORTS);
	assert_int_equal(tw_session_destroy(one.session), 1);
	assert_int_equal(affects(&one, port_term(a)), 0);
	assert_int_equal(affects(&one, new_ports), 0);
	assert_int_equal(tw_trace_port(one.session, a, true, TW_FLAG_SEND), TW_EDEAD);
	assert_int_equal(tw_trace_port(one.session, TW_PORT_ALL, false, TW_FLAG_SEND), TW_EDEAD);
	assert_int_equal(tw_trace_port_flags(one.session, a, &(uint32_t){0}), TW_EDEAD);
	assert_int_equal(tw_trace_info(one.session, port_term(a), flags, &terms, &answer), TW_EDEAD);
	open_port("c", p, false);
	tw_port_close(a, (struct tw_term){0});
	EXPECT_NOTHING(&one);
	EXPECT(&two, "a closed normal");
}

/* 18: events wanted by a destroyed session are no longer requested of any port. */
static void nothing_is_wanted_without_a_session(void **state)
{
	assert_int_equal(tw_runtime_wanted, 0);
	trace_port_in(&one, a, ALL_KINDS);
	trace_port_in(&two, a, TW_FLAG_SEND);
	assert_int_equal(tw_runtime_wanted, TW_WANTS_PORTS | TW_WANTS_SEND | TW_WANTS_RECEIVE | TW_WANTS_RUNNING_PORTS);
	assert_true(tw_port_wants(a, TW_WANTS_PORTS));
	assert_false(tw_port_wants(a, TW_WANTS_PROCS | TW_WANTS_EXITING));
	assert_false(tw_port_wants(a + 1, TW_WANTS_PORTS));
	tw_session_destroy(one.session);
	assert_int_equal(tw_runtime_wanted, TW_WANTS_SEND);
	assert_false(tw_port_wants(a, TW_WANTS_PORTS));
	tw_port_close(a, (struct tw_term){0});
	assert_int_equal(tw_runtime_wanted, 0);
}

/* Bad input: each is an error, and no event. */
static void ports_that_are_none(void **state)
{
	struct tw_port_options bad = {.driver = NULL};
	struct tw_term none = {0};
	char long_name[300];
	tw_port b = open_port("b", p, false), c,
		nowhere[] = {0, b, 7, UINT64_MAX, UINT64_C(3) << 50, b ^ 1, (uint32_t)a};

	tw_trace_port(one.session, TW_PORT_ALL, true, ALL_KINDS);
	tw_trace_process(one.session, TW_PID_ALL, true, TW_FLAG_PROCS);
	assert_int_equal(tw_port_close(b, none), 0);
	EXPECT(&one, "b closed normal");
	for (unsigned i = 0; i < TW_COUNT_OF(nowhere); i++) {
		assert_int_equal(tw_port_close(nowhere[i], none), TW_EBADARG);
		assert_int_equal(tw_port_register(nowhere[i], parse("n")), TW_EBADARG);
		assert_int_equal(tw_port_unregister(nowhere[i]), TW_EBADARG);
		assert_int_equal(tw_port_send(nowhere[i], parse("m"), parse("n")), TW_EBADARG);
		assert_int_equal(tw_port_receive(nowhere[i], parse("m"), none), TW_EBADARG);
		assert_int_equal(tw_port_request(nowhere[i], 1, TW_PORT_CLOSE, none), TW_EBADARG);
		assert_int_equal(tw_port_reply(nowhere[i], 1, TW_PORT_CLOSE, none), TW_EBADARG);
		assert_int_equal(tw_port_linked(nowhere[i], 1, TW_GETTING_LINKED), TW_EBADARG);
		assert_int_equal(tw_port_in(nowhere[i], TW_PORT_CALL), TW_EBADARG);
		assert_int_equal(tw_port_out(nowhere[i], TW_PORT_CALL), TW_EBADARG);
		assert_int_equal(tw_trace_port(one.session, nowhere[i], true, 0),
				 nowhere[i] == TW_PORT_ALL ? 0 : TW_EBADARG);
		assert_false(tw_port_wants(nowhere[i], UINT32_MAX));
	}
	assert_int_equal(tw_port_linked(a, 1, TW_LINK), TW_EBADARG);
	assert_int_equal(tw_process_port_linked(p, 0, TW_LINK), TW_EBADARG);
	assert_int_equal(tw_process_port_linked(p, a, 1), TW_EBADARG);
	assert_int_equal(tw_port_open(NULL, &c), TW_EBADARG);
	assert_int_equal(tw_port_open(&bad, &c), TW_EBADARG);
	bad.driver = "";
	assert_int_equal(tw_port_open(&bad, &c), TW_EBADARG);
	memset(long_name, 'x', sizeof long_name);
	long_name[299] = 0;
	bad.driver = long_name;
	assert_int_equal(tw_port_open(&bad, &c), TW_EBADARG);
	bad.driver = "x";
	assert_int_equal(tw_port_open(&bad, NULL), TW_EBADARG);
	EXPECT_NOTHING(&one);
	/* A number is not reused, although its entry is. */
	c = open_port("c", p, false);
	assert_int_equal(c >> 32, b >> 32);
	assert_true(c != b);
	assert_int_equal(tw_port_close(b, none), TW_EBADARG);
	assert_int_equal(tw_port_close(c, none), 0);
}

/* The tracer is gone: ports are counted, and get no flags. */
static void a_session_without_its_tracer(void **state)
{
	struct tw_tracer queue = {.kind = TW_TRACER_QUEUE};
	struct tw_session *session;

	assert_int_equal(tw_session_create("queue", &queue, &session), 0);
	assert_int_equal(tw_trace_port(session, a, true, TW_FLAG_SEND), 1);
	assert_int_equal(tw_trace_port(session, TW_PORT_NEW, true, TW_FLAG_SEND), 0);
	assert_int_equal(tw_queue_close(session), 0);
	assert_int_equal(tw_trace_port(session, a, true, TW_FLAG_PORTS), 1);
	assert_int_equal(tw_trace_port(session, TW_PORT_ALL, true, TW_FLAG_PORTS), 1);
	struct bed bed = {.session = session};
	assert_int_equal(port_flags(&bed, a), 0);
	assert_int_equal(port_flags(&bed, TW_PORT_NEW), 0);
	tw_session_destroy(session);
	tw_session_put(session);
}

/* 80, 82, 83: a queue's messages are OTP's tuples, with stamps and the scheduler. */
static void messages_of_a_queue(void **state)
{
	struct tw_tracer queue = {.kind = TW_TRACER_QUEUE};
	struct tw_port_options options = {.driver = "tcp_inet", .opener = p};
	struct tw_session *session;
	struct tw_term messages[8], number;
	char expected[128], text[128];
	tw_port b;

	assert_int_equal(tw_session_create("queue", &queue, &session), 0);
	tw_trace_port(session, TW_PORT_ALL, true, TW_FLAG_PORTS | TW_FLAG_SEND);
	assert_int_equal(tw_port_open(&options, &b), 0);
	tw_trace_port(session, b, true, TW_FLAG_STRICT_MONOTONIC_TIMESTAMP | TW_FLAG_SCHEDULER_ID);
	tw_port_reply(b, tw_process_pid(p), TW_PORT_COMMAND, parse("<<1>>"));
	assert_int_equal(tw_queue_receive_batch(session, UINT64_C(10000000000), &terms, messages, 8), 2);
	snprintf(expected, sizeof expected, "{trace,#Port<0.%u>,open,<0.%u.0>,tcp_inet}", tw_port_number(b),
		 (unsigned)tw_process_pid(p));
	tw_term_format(messages[0], TW_PRINT_WRITE, text, sizeof text);
	assert_string_equal(text, expected);
	assert_int_equal(tw_term_tuple_count(messages[1]), 7);
	assert_true(tw_term_is_equal(tw_term_element(messages[1], 1), port_term(b)));
	number = tw_term_element(messages[1], 5);
	assert_int_equal(tw_term_type(number), TW_TYPE_INTEGER);
	assert_int_equal(tw_term_tuple_count(tw_term_element(messages[1], 6)), 2);
	tw_port_close(b, (struct tw_term){0});
	tw_session_destroy(session);
	tw_session_put(session);
}

/* ---- a tracer module ---- */

static char heard[16][128];
static unsigned heard_count;
static enum tw_tracer_answer module_answer;

static enum tw_tracer_answer enabled(enum tw_tracer_tag tag, struct tw_term module_state, struct tw_term tracee)
{
	return tw_term_type(tracee) == TW_TYPE_PORT && tag != TW_TRACER_TAG_STATUS ? module_answer : TW_TRACER_TRACE;
}

static void trace(enum tw_tracer_tag tag, struct tw_term module_state, struct tw_term tracee, struct tw_term term,
		  const struct tw_tracer_options *options)
{
	static char arena_memory[4096];
	struct tw_arena arena;

	tw_arena_init_fixed(&arena, arena_memory, sizeof arena_memory);
	tw_term_format(tw_tracer_message(&arena, tag, tracee, term, options), TW_PRINT_WRITE,
		       heard[heard_count++ % TW_COUNT_OF(heard)], sizeof heard[0]);
}

static const struct tw_tracer_module module = {.bytes = sizeof module,
					       .name = "ports",
					       .enabled = enabled,
					       .trace = trace};

/* 82, 83, 85: a module receives the same events of ports as a queue. */
static void what_a_tracer_module_hears(void **state)
{
	struct tw_tracer tracers[2] = {{.kind = TW_TRACER_MODULE, .module = &module}, {.kind = TW_TRACER_QUEUE}};
	struct tw_session *both[2];
	struct tw_term messages[16], none = {0};
	char line[128];
	tw_port b;

	heard_count = 0;
	module_answer = TW_TRACER_TRACE;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(tw_session_create("both", &tracers[i], &both[i]), 0);
		assert_int_equal(tw_trace_port(both[i], TW_PORT_NEW, true, ALL_KINDS), 0);
	}
	b = open_port("b", p, true);
	tw_port_in(b, TW_PORT_CONTROL);
	tw_port_request(b, tw_process_pid(p), TW_PORT_CONTROL, parse("{1,x}"));
	tw_port_reply(b, tw_process_pid(p), TW_PORT_CONTROL, parse("y"));
	tw_port_out(b, TW_PORT_CONTROL);
	assert_int_equal(tw_port_register(b, parse("name")), 0);
	tw_port_close(b, none);
	assert_int_equal(heard_count, 9);
	assert_int_equal(tw_queue_receive_batch(both[1], UINT64_C(10000000000), &terms, messages, 16), 9);
	for (unsigned i = 0; i < 9; i++) {
		tw_term_format(messages[i], TW_PRINT_WRITE, line, sizeof line);
		assert_string_equal(heard[i], line);
	}
	/* Discarded by the module, which does not concern the queue. */
	module_answer = TW_TRACER_DISCARD;
	b = open_port("c", NULL, false);
	assert_int_equal(heard_count, 9);
	assert_int_equal(tw_queue_receive_batch(both[1], UINT64_C(10000000000), &terms, messages, 16), 1);
	/* The module is gone: the port loses its flags in that session. */
	module_answer = TW_TRACER_REMOVE;
	tw_port_in(b, TW_PORT_CALL);
	module_answer = TW_TRACER_TRACE;
	tw_port_out(b, TW_PORT_CALL);
	assert_int_equal(heard_count, 9);
	assert_int_equal(tw_queue_receive_batch(both[1], UINT64_C(10000000000), &terms, messages, 16), 2);
	for (unsigned i = 0; i < 2; i++) {
		tw_session_destroy(both[i]);
		tw_session_put(both[i]);
	}
}

/* ---- descriptors ---- */

static void line_82_descriptors_are_ports(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof address;
	int ends[2], tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET6, SOCK_DGRAM, 0),
		     null = open("/dev/null", O_RDONLY);
	int event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0), file = open("/etc/passwd", O_RDONLY);
	tw_port port[8], again;
	char line[64];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(bind(tcp, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(tcp, 1), 0);
	tw_trace_port(one.session, TW_PORT_NEW, true, TW_FLAG_PORTS);
	const int fds[] = {tcp, udp, ends[0], event, timer, file, null};
	static const char *const drivers[] = {"tcp_inet", "udp_inet", "pipe", "eventfd", "timerfd", "file", "device"};

	for (unsigned i = 0; i < TW_COUNT_OF(fds); i++) {
		if (fds[i] < 0)
			continue;
		assert_int_equal(tw_port_of_fd(fds[i]), 0);
		errno = 77;
		assert_int_equal(tw_port_declare_fd(fds[i], NULL, &port[i]), 0);
		assert_int_equal(errno, 77);
		assert_int_equal(tw_port_of_fd(fds[i]), port[i]);
		name_port(port[i], "f");
		snprintf(line, sizeof line, "f open undefined, %s", drivers[i]);
		EXPECT(&one, line);
	}
	assert_string_equal(tw_tracee_find_port(tw_port_number(port[5]))->name, "/etc/passwd");
	assert_memory_equal(tw_tracee_find_port(tw_port_number(port[0]))->name, "127.0.0.1:", 10);
	/* The program closes it, and gets the same number for another. */
	close(file);
	assert_int_equal(dup2(ends[1], file), file);
	assert_int_equal(tw_port_declare_fd(file, p, &again), 0);
	name_port(again, "g");
	EXPECT(&one, "f closed reused", "g open p, pipe", "g getting_linked p");
	assert_int_equal(tw_port_of_fd(file), again);
	assert_int_equal(tw_port_close(again, parse("done")), 0);
	assert_int_equal(tw_port_close(port[5], parse("done")), TW_EBADARG);
	assert_int_equal(tw_port_of_fd(file), 0);
	/* An invalid descriptor. */
	assert_int_equal(tw_port_declare_fd(-1, NULL, &again), TW_EBADARG);
	assert_int_equal(tw_port_declare_fd(1 << 20, NULL, &again), TW_EBADARG);
	assert_int_equal(tw_port_declare_fd(1000000, NULL, &again), TW_EBADARG);
	assert_int_equal(tw_port_declare_fd(0, NULL, NULL), TW_EBADARG);
	assert_int_equal(tw_port_of_fd(-1), 0);
	assert_int_equal(tw_port_of_fd(1 << 20), 0);
	assert_int_equal(tw_trace_port(one.session, TW_PORT_NEW, false, TW_FLAG_PORTS), 0);
	for (unsigned i = 0; i < TW_COUNT_OF(fds); i++) {
		if (fds[i] >= 0 && i != 5)
			tw_port_close(port[i], (struct tw_term){0});
		close(fds[i]);
	}
	close(ends[1]);
}

/* A forked child has none of its parent's ports. */
static void ports_after_fork(void **state)
{
	int status = 0;
	pid_t child;

	trace_port_in(&one, a, ALL_KINDS);
	child = fork();
	if (!child) {
		bool is_gone = tw_port_close(a, (struct tw_term){0}) == TW_EBADARG && !tw_port_wants_any(a, UINT32_MAX);
		struct tw_port_options options = {.driver = "x"};
		tw_port b;

		_exit(is_gone && tw_port_open(&options, &b) == 0 && tw_port_close(b, (struct tw_term){0}) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	EXPECT_NOTHING(&one);
	assert_int_equal(port_flags(&one, a), ALL_KINDS);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(line_80_counts),
		CASE(line_81_flags_of_processes),
		CASE(line_82_life),
		CASE(line_83_messages),
		CASE(patterns_select_messages_of_ports),
		CASE(line_84_two_ways_to_close),
		CASE(line_85_running_ports),
		CASE(line_42_a_process_inside_a_port),
		CASE(line_13_18_27_28_173_176_sessions),
		CASE(nothing_is_wanted_without_a_session),
		CASE(ports_that_are_none),
		CASE(a_session_without_its_tracer),
		CASE(messages_of_a_queue),
		CASE(what_a_tracer_module_hears),
		CASE(line_82_descriptors_are_ports),
		CASE(ports_after_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
