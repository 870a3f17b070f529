/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Whatever is set, and in whatever order, each session gets exactly the events that the semantics promise, and says
 *	of its settings what was set.
 * Method	Random programs of API calls, over sessions, processes, ports, functions and flags, beside a small model of the
 *	semantics: after each step the events in every ring, or heard by a tracer module, the counters and the flags are
 *	those of the model.  A program
 *	is a list of steps whose numbers choose among what exists, so each part of a program is one too: one that differs is
 *	shrunk, step by step, and shown.
 *
 *	session_model_test [STEPS [SEED]]	20,000 steps by default; ./run stress plays a million.
 *
 * Another kind of call is a function and a row of `verbs`; what it keeps is in session_model.h, and what it
 * makes is said with tell_*().
 */
#include "session_model.h"
#include "tests/common/random.h"

#define STEPS 200 /* of one program */

/* ---- sessions ---- */

static void create(const struct step *step)
{
	struct session *session = NULL;

	for (unsigned i = 0; i < SESSIONS && !session; i++)
		if (!sessions[i].is_there)
			session = &sessions[i];
	if (!session)
		return;
	memset(session, 0, sizeof *session);
	session->has_module = step->b % 3 == 0;
	if (session->has_module)
		open_module(session);
	else
		open_bed(&session->bed, "model");
	session->is_there = session->sends = session->receives = true;
}

static void destroy(const struct step *step)
{
	struct session *session = a_session(step->a);
	unsigned s = (unsigned)(session - sessions);

	if (!session || step->b % 4)
		return;
	CHECK(tw_session_destroy(session->bed.session), 1);
	CHECK(tw_session_destroy(session->bed.session), 0);
	CHECK(tw_trace_process(session->bed.session, TW_PID_ALL, true, TW_FLAG_CALL), TW_EDEAD);
	CHECK(tw_trace_port(session->bed.session, TW_PORT_ALL, true, TW_FLAG_SEND), TW_EDEAD);
	tw_session_put(session->bed.session);
	if (!session->has_module)
		tw_rs_destroy(&session->bed.rs);
	session->is_there = false;
	for (unsigned i = 0; i < PROCESSES; i++)
		processes[i].flags[s] = 0;
	for (unsigned i = 0; i < PORTS; i++)
		ports[i].flags[s] = 0;
}

static uint32_t changed(uint32_t old, bool how, uint32_t flags)
{
	return how ? old | flags : old & ~flags;
}

static void trace_processes(const struct step *step)
{
	struct session *session = a_session(step->a);
	struct process *process = a_process(step->a >> 8);
	uint32_t flags = some_flags(step->b);
	bool how = step->c % 3;
	unsigned s = (unsigned)(session - sessions), which = step->c / 3 % 8;
	tw_pid pid = which == 0 ? TW_PID_ALL : which == 1 ? TW_PID_EXISTING : TW_PID_NEW;

	if (!session)
		return;
	if (which > 2) {
		if (!process)
			return;
		CHECK(tw_trace_process(session->bed.session, tw_process_pid(process->process), how, flags), 1);
		process->flags[s] = changed(process->flags[s], how, flags);
		return;
	}
	CHECK(tw_trace_process(session->bed.session, pid, how, flags), which == 2 ? 0 : count_processes());
	if (which != 1)
		session->new_flags = changed(session->new_flags, how, flags);
	for (unsigned i = 0; i < PROCESSES && which != 2; i++)
		if (processes[i].process)
			processes[i].flags[s] = changed(processes[i].flags[s], how, flags);
}

static void trace_ports(const struct step *step)
{
	struct session *session = a_session(step->a);
	struct port *port = a_port(step->a >> 8);
	uint32_t flags = some_flags(step->b);
	bool how = step->c % 3;
	unsigned s = (unsigned)(session - sessions), which = step->c / 3 % 8;
	tw_port all = which == 0 ? TW_PORT_ALL : which == 1 ? TW_PORT_EXISTING : TW_PORT_NEW;

	if (!session)
		return;
	if (which > 2) {
		if (!port)
			return;
		CHECK(tw_trace_port(session->bed.session, port->port, how, flags), 1);
		port->flags[s] = changed(port->flags[s], how, flags);
		return;
	}
	CHECK(tw_trace_port(session->bed.session, all, how, flags), which == 2 ? 0 : count_ports());
	if (which != 1)
		session->new_port_flags = changed(session->new_port_flags, how, flags);
	for (unsigned i = 0; i < PORTS && which != 2; i++)
		if (ports[i].port)
			ports[i].flags[s] = changed(ports[i].flags[s], how, flags);
}

/* A refused call changes nothing. */
static void refused(const struct step *step)
{
	struct session *session = a_session(step->a);
	struct process *process = a_process(step->b);
	struct port *port = a_port(step->b);

	if (!session)
		return;
	CHECK(tw_trace_process(session->bed.session, 0, true, TW_FLAG_CALL), TW_EBADARG);
	CHECK(tw_trace_port(session->bed.session, closed_port, true, TW_FLAG_SEND), TW_EBADARG);
	if (process) {
		tw_pid pid = tw_process_pid(process->process);

		CHECK(tw_trace_process(session->bed.session, pid, true, TW_FLAG_CALL | 1u << 25), TW_EBADARG);
		CHECK(tw_trace_process(session->bed.session, pid, true, TW_FLAG_CPU_TIMESTAMP), TW_EBADARG);
		CHECK(tw_trace_port(session->bed.session, pid, true, TW_FLAG_SEND), TW_EBADARG);
	}
	if (port) {
		CHECK(tw_trace_process(session->bed.session, tw_port_number(port->port), true, TW_FLAG_SEND),
		      TW_EBADARG);
		CHECK(tw_trace_port(session->bed.session, port->port, false, 1u << 25), TW_EBADARG);
	}
	CHECK(tw_port_close(closed_port, (struct tw_term){0}), TW_EBADARG);
	CHECK(tw_trace_send(session->bed.session, TW_MATCH_RESTART), TW_EBADARG);
	CHECK(tw_trace_function(session->bed.session, "model", "f0", 1, TW_MATCH_TRUE,
				TW_FUNCTION_GLOBAL | TW_FUNCTION_LOCAL),
	      TW_EBADARG);
}

static void patterns(const struct step *step)
{
	struct session *session = a_session(step->a);
	bool is_on = step->b % 3;

	if (!session)
		return;
	if (step->c % 2) {
		CHECK(tw_trace_send(session->bed.session, is_on ? TW_MATCH_TRUE : TW_MATCH_FALSE), 1);
		session->sends = is_on;
	} else {
		CHECK(tw_trace_recv(session->bed.session, is_on ? TW_MATCH_TRUE : TW_MATCH_FALSE), 1);
		session->receives = is_on;
	}
}

/* ---- functions ---- */

static void set_function(struct setting *setting, enum tw_match match, uint32_t kinds)
{
	if (match == TW_MATCH_TRUE && kinds == TW_FUNCTION_GLOBAL) {
		*setting = (struct setting){.is_global = true};
	} else if (match == TW_MATCH_TRUE) {
		setting->is_global = false;
		setting->is_local |= kinds & TW_FUNCTION_LOCAL;
		if (kinds & TW_FUNCTION_CALL_COUNT) {
			setting->is_counted = true;
			setting->is_paused = false;
			setting->count = 0;
		}
	} else if (match == TW_MATCH_FALSE) {
		setting->is_global &= !(kinds & TW_FUNCTION_GLOBAL);
		setting->is_local &= !(kinds & TW_FUNCTION_LOCAL);
		if (kinds & TW_FUNCTION_CALL_COUNT)
			setting->is_counted = false;
	} else if (setting->is_counted && (kinds & TW_FUNCTION_CALL_COUNT)) {
		setting->is_paused = match == TW_MATCH_PAUSE;
		if (match == TW_MATCH_RESTART)
			setting->count = 0;
	}
}

static void trace_functions(const struct step *step)
{
	static const uint32_t kinds[] = {TW_FUNCTION_LOCAL, TW_FUNCTION_CALL_COUNT,
					 TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT, TW_FUNCTION_GLOBAL};
	static const enum tw_match matches[] = {TW_MATCH_TRUE,	TW_MATCH_TRUE,	  TW_MATCH_TRUE,
						TW_MATCH_FALSE, TW_MATCH_RESTART, TW_MATCH_PAUSE};
	struct session *session = a_session(step->a);
	enum tw_match match = matches[step->c % TW_COUNT_OF(matches)];
	uint32_t kind = kinds[step->c / 8 % TW_COUNT_OF(kinds)];
	unsigned which = step->b % (FUNCTIONS + 1);

	if (!session)
		return;
	if (which == FUNCTIONS) {
		CHECK(tw_trace_function(session->bed.session, "model", "_", TW_ARITY_ANY, match, kind), FUNCTIONS);
		for (unsigned i = 0; i < FUNCTIONS; i++)
			set_function(&session->functions[i], match, kind);
		return;
	}
	CHECK(tw_trace_function(session->bed.session, "model", f[which].name, 1, match, kind), 1);
	set_function(&session->functions[which], match, kind);
}

static bool knows_no_calls;

static void call(const struct step *step)
{
	unsigned which = step->a % FUNCTIONS;

	tw_call1(&f[which], step->b % 100);
	for (unsigned s = 0; s < SESSIONS; s++) {
		struct setting *setting = &sessions[s].functions[which];

		if (!sessions[s].is_there)
			continue;
		setting->count += setting->is_counted && !setting->is_paused;
		if (!knows_no_calls && running && (setting->is_local || setting->is_global) &&
		    hears(s, running, TW_FLAG_CALL) && !(running->flags[s] & TW_FLAG_SILENT))
			tell(s, "%s call", running->name);
	}
}

/* ---- processes ---- */

static void pass_on(struct process *from, struct process *to, uint32_t always, uint32_t first)
{
	for (unsigned s = 0; s < SESSIONS; s++) {
		uint32_t flags = from->flags[s], united = flags | to->flags[s];

		if (!(flags & (always | first)))
			continue;
		if (flags & first) {
			united &= ~(always | first);
			from->flags[s] &= ~(always | first);
		}
		to->flags[s] = united;
	}
}

static void spawn_one(const struct step *step)
{
	struct process *parent = step->c % 4 ? a_process(step->a) : NULL, *child = NULL;
	struct tw_spawn options = {.entry = parse("{m,f,[x]}"), .is_linked = step->b % 2};
	int error;

	for (unsigned i = 0; i < PROCESSES && !child; i++)
		if (!processes[i].process)
			child = &processes[i];
	if (!child)
		return;
	*child = (struct process){0};
	snprintf(child->name, sizeof child->name, "p%u", names++ % 1000);
	options.parent = parent ? parent->process : NULL;
	error = tw_process_spawn(&options, &child->process);
	CHECK(error, 0);
	for (unsigned s = 0; s < SESSIONS; s++)
		child->flags[s] = sessions[s].is_there ? sessions[s].new_flags : 0;
	if (!parent)
		return;
	pass_on(parent, child, TW_FLAG_SET_ON_SPAWN, TW_FLAG_SET_ON_FIRST_SPAWN);
	if (options.is_linked)
		pass_on(parent, child, TW_FLAG_SET_ON_LINK, TW_FLAG_SET_ON_FIRST_LINK);
	tell_process(parent, TW_FLAG_PROCS, text("spawn %s, {m,f,[x]}", child->name));
	if (options.is_linked)
		tell_process(parent, TW_FLAG_PROCS, text("link %s", child->name));
	tell_process(child, TW_FLAG_PROCS, text("spawned %s, {m,f,[x]}", parent->name));
	if (options.is_linked)
		tell_process(child, TW_FLAG_PROCS, text("getting_linked %s", parent->name));
}

static void end_process(struct process *process)
{
	tw_process_exit(process->process);
	tell_process(process, TW_FLAG_PROCS, "exit normal");
	if (process->registered)
		tell_process(process, TW_FLAG_PROCS, text("unregister n%d", process->registered));
	tell_process(process, TW_FLAG_EXITING, "out_exited 0");
	if (running == process)
		running = NULL;
	process->process = NULL;
}

static void exit_one(const struct step *step)
{
	struct process *process = a_process(step->a);

	if (process && step->b % 3 == 0)
		end_process(process);
}

static void schedule(const struct process *process, bool is_in)
{
	for (unsigned s = 0; s < SESSIONS; s++) {
		uint32_t flags = TW_FLAG_RUNNING | TW_FLAG_RUNNING_PROCS;

		if (hears(s, process, flags) &&
		    !(process->is_inside_port && (process->flags[s] & TW_FLAG_RUNNING_PROCS)))
			tell(s, "%s %s 0", process->name, is_in ? "in" : "out");
	}
}

static void run_one(const struct step *step)
{
	struct process *process = step->b % 4 ? a_process(step->a) : NULL;

	if (process)
		tw_process_in(process->process);
	else
		tw_process_out();
	if (running && running != process) {
		schedule(running, false);
		running->is_inside_port = false;
	}
	if (process && running != process) {
		process->is_inside_port = false;
		schedule(process, true);
	}
	running = process;
}

static void link_two(const struct step *step)
{
	struct process *from = a_process(step->a), *to = a_process(step->b);

	if (!from || from == to)
		return;
	if (step->c % 4 == 0) {
		tw_process_unlink(from->process, tw_process_pid(to->process));
		tell_process(from, TW_FLAG_PROCS, text("unlink %s", to->name));
		tw_process_getting_unlinked(to->process, tw_process_pid(from->process));
		tell_process(to, TW_FLAG_PROCS, text("getting_unlinked %s", from->name));
		return;
	}
	tw_process_link(from->process, to->process);
	pass_on(from, to, TW_FLAG_SET_ON_LINK, TW_FLAG_SET_ON_FIRST_LINK);
	tell_process(from, TW_FLAG_PROCS, text("link %s", to->name));
	tw_process_getting_linked(to->process, tw_process_pid(from->process));
	tell_process(to, TW_FLAG_PROCS, text("getting_linked %s", from->name));
}

static void message(const struct step *step)
{
	struct process *from = a_process(step->a), *to = a_process(step->b);
	struct tw_term term = parse("m");

	if (!from)
		return;
	tw_process_send(from->process, term, pid_of(to->process));
	tw_process_receive(to->process, term, pid_of(from->process));
	for (unsigned s = 0; s < SESSIONS; s++) {
		if (sessions[s].sends && hears(s, from, TW_FLAG_SEND))
			tell(s, "%s send m, %s", from->name, to->name);
		if (sessions[s].receives && hears(s, to, TW_FLAG_RECEIVE))
			tell(s, "%s receive m", to->name);
	}
}

static bool has_name(int name)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		if (processes[i].process && processes[i].registered == name)
			return true;
	for (unsigned i = 0; i < PORTS; i++)
		if (ports[i].port && ports[i].registered == name)
			return true;
	return false;
}

/* The name is that of a process or of a port: the other one is NULL. */
static void change_name(const struct step *step, struct process *process, struct port *port)
{
	int *registered = process ? &process->registered : &port->registered;
	int name = 1 + (int)(step->b % 3), answer;
	bool is_end = step->c % 2, is_refused = is_end ? !*registered : *registered || has_name(name);
	const char *line = is_end ? text("unregister n%d", *registered) : text("register n%d", name);
	struct tw_term atom = parse(text("n%d", name));

	if (process)
		answer = is_end ? tw_process_unregister(process->process) : tw_process_register(process->process, atom);
	else
		answer = is_end ? tw_port_unregister(port->port) : tw_port_register(port->port, atom);
	check(answer, is_refused ? TW_EBADARG : 0, line);
	if (is_refused)
		return;
	*registered = is_end ? 0 : name;
	if (process)
		tell_process(process, TW_FLAG_PROCS, line);
	else
		tell_port(port, TW_FLAG_PORTS, line);
}

static void register_one(const struct step *step)
{
	if (a_process(step->a))
		change_name(step, a_process(step->a), NULL);
}

static void collect(const struct step *step)
{
	struct process *process = a_process(step->a);
	struct tw_gc_sizes sizes = {.heap_size = 7};

	if (!process)
		return;
	tw_process_gc(process->process, TW_GC_MAJOR_START, &sizes);
	tell_process(process, TW_FLAG_GARBAGE_COLLECTION, "gc_major_start");
}

static void hide(const struct step *step)
{
	struct process *process = a_process(step->a);

	if (!process || step->b % 3)
		return;
	process->is_sensitive = !process->is_sensitive;
	CHECK(tw_process_sensitive(process->process, process->is_sensitive), 0);
}

/* ---- ports ---- */

static void open_one(const struct step *step)
{
	struct process *opener = step->c % 4 ? a_process(step->a) : NULL;
	struct tw_port_options options = {.driver = "drv",
					  .opener = opener ? opener->process : NULL,
					  .is_linked = step->b % 2};
	struct port *port = NULL;

	for (unsigned i = 0; i < PORTS && !port; i++)
		if (!ports[i].port)
			port = &ports[i];
	if (!port)
		return;
	*port = (struct port){0};
	snprintf(port->name, sizeof port->name, "q%u", names++ % 1000);
	CHECK(tw_port_open(&options, &port->port), 0);
	for (unsigned s = 0; s < SESSIONS; s++)
		port->flags[s] = sessions[s].is_there ? sessions[s].new_port_flags : 0;
	tell_port(port, TW_FLAG_PORTS, text("open %s, drv", opener ? opener->name : "undefined"));
	if (!opener || !options.is_linked)
		return;
	tell_port(port, TW_FLAG_PORTS, text("getting_linked %s", opener->name));
	tell_process(opener, TW_FLAG_PROCS, text("link %s", port->name));
}

static void end_port(struct port *port)
{
	CHECK(tw_port_close(port->port, (struct tw_term){0}), 0);
	tell_port(port, TW_FLAG_PORTS, "closed normal");
	if (port->registered)
		tell_port(port, TW_FLAG_PORTS, text("unregister n%d", port->registered));
	closed_port = port->port;
	port->port = 0;
}

static void close_one(const struct step *step)
{
	struct port *port = a_port(step->a);

	if (port && step->b % 3 == 0)
		end_port(port);
}

static void port_message(const struct step *step)
{
	struct port *port = a_port(step->a);
	struct process *process = a_process(step->b);
	tw_pid pid;

	if (!port || !process)
		return;
	pid = tw_process_pid(process->process);
	CHECK(tw_port_request(port->port, pid, TW_PORT_COMMAND, parse("d")), 0);
	CHECK(tw_port_reply(port->port, pid, TW_PORT_CLOSE, (struct tw_term){0}), 0);
	for (unsigned s = 0; s < SESSIONS; s++) {
		if (!sessions[s].is_there)
			continue;
		if (sessions[s].receives && (port->flags[s] & TW_FLAG_RECEIVE))
			tell(s, "%s receive {<0.%u.0>,{command,d}}", port->name, (unsigned)pid);
		if (sessions[s].sends && (port->flags[s] & TW_FLAG_SEND))
			tell(s, "%s send closed, %s", port->name, process->name);
	}
}

static void port_link(const struct step *step)
{
	struct port *port = a_port(step->a);
	struct process *process = a_process(step->b);

	if (!port || !process)
		return;
	CHECK(tw_port_linked(port->port, tw_process_pid(process->process), TW_GETTING_UNLINKED), 0);
	CHECK(tw_process_port_linked(process->process, port->port, TW_UNLINK), 0);
	tell_port(port, TW_FLAG_PORTS, text("getting_unlinked %s", process->name));
	tell_process(process, TW_FLAG_PROCS, text("unlink %s", port->name));
}

static void port_register(const struct step *step)
{
	if (a_port(step->a))
		change_name(step, NULL, a_port(step->a));
}

/* While no session wants schedules they are not reported to the library. */
static bool are_schedules_wanted(void)
{
	for (unsigned s = 0; s < SESSIONS; s++) {
		for (unsigned i = 0; i < PROCESSES; i++)
			if (processes[i].process && hears(s, &processes[i], TW_FLAG_RUNNING | TW_FLAG_RUNNING_PROCS))
				return true;
		for (unsigned i = 0; i < PORTS; i++)
			if (ports[i].port && sessions[s].is_there && (ports[i].flags[s] & TW_FLAG_RUNNING_PORTS))
				return true;
	}
	return false;
}

static void port_run(const struct step *step)
{
	struct port *port = a_port(step->a);
	bool is_in = step->b % 2;

	if (!port)
		return;
	CHECK(is_in ? tw_port_in(port->port, TW_PORT_CALL) : tw_port_out(port->port, TW_PORT_CALL), 0);
	if (!are_schedules_wanted())
		return;
	if (is_in && running) {
		tell_process(running, TW_FLAG_RUNNING_PROCS, "out 0");
		running->is_inside_port = true;
	}
	if (is_in || port->is_in)
		tell_port(port, TW_FLAG_RUNNING_PORTS, is_in ? "in call" : "out call");
	if (!is_in && port->is_in && running && running->is_inside_port) {
		running->is_inside_port = false;
		tell_process(running, TW_FLAG_RUNNING_PROCS, "in 0");
	}
	port->is_in = is_in;
}

/* ---- steps ---- */

static const struct verb {
	const char *name;
	void (*play)(const struct step *step);
	unsigned weight;
} verbs[] = {
	{"create", create, 3},
	{"destroy", destroy, 3},
	{"trace processes", trace_processes, 12},
	{"trace ports", trace_ports, 8},
	{"refused", refused, 2},
	{"patterns", patterns, 3},
	{"trace functions", trace_functions, 8},
	{"call", call, 10},
	{"spawn", spawn_one, 6},
	{"exit", exit_one, 4},
	{"run", run_one, 10},
	{"link", link_two, 5},
	{"message", message, 8},
	{"register", register_one, 4},
	{"collect", collect, 3},
	{"sensitive", hide, 3},
	{"open", open_one, 5},
	{"close", close_one, 4},
	{"port message", port_message, 8},
	{"port link", port_link, 3},
	{"port register", port_register, 3},
	{"port run", port_run, 8},
};

static void name_all(void)
{
	forget_names();
	for (unsigned i = 0; i < PROCESSES; i++)
		if (processes[i].process)
			name_process(processes[i].process, processes[i].name);
	for (unsigned i = 0; i < PORTS; i++)
		if (ports[i].port)
			name_port(ports[i].port, ports[i].name);
}

static void compare_lines(unsigned s)
{
	struct session *session = &sessions[s];
	struct lines *lines = session->has_module ? heard_lines(session) : read_lines(&session->bed);

	for (unsigned i = 0; i < lines->count || i < session->line_count; i++) {
		const char *is = i < lines->count ? lines->text[i] : "nothing";
		const char *should_be = i < session->line_count ? session->lines[i] : "nothing";

		if (strcmp(is, should_be))
			complain("session %u: %s, not %s", s, is, should_be);
	}
	session->line_count = 0;
	for (uint32_t i = 0; !session->has_module && i < tw_rs_scan(&session->bed.rs); i++)
		tw_rb_consume(tw_rs_ring(&session->bed.rs, i), session->bed.pos[i]);
}

static void compare_settings(unsigned s)
{
	struct tw_session *session = sessions[s].bed.session;
	uint32_t flags = 0;
	uint64_t count = 0;

	for (unsigned i = 0; i < PROCESSES; i++) {
		if (!processes[i].process)
			continue;
		CHECK(tw_trace_process_flags(session, tw_process_pid(processes[i].process), &flags), 0);
		check(flags, processes[i].flags[s], text("flags of %s in session %u", processes[i].name, s));
	}
	for (unsigned i = 0; i < PORTS; i++) {
		if (!ports[i].port)
			continue;
		CHECK(tw_trace_port_flags(session, ports[i].port, &flags), 0);
		check(flags, ports[i].flags[s], text("flags of %s in session %u", ports[i].name, s));
	}
	CHECK(tw_trace_process_flags(session, TW_PID_NEW, &flags), 0);
	check(flags, sessions[s].new_flags, "flags of new processes");
	CHECK(tw_trace_port_flags(session, TW_PORT_NEW, &flags), 0);
	check(flags, sessions[s].new_port_flags, "flags of new ports");
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		const struct setting *setting = &sessions[s].functions[i];

		CHECK(tw_trace_call_count(session, "model", f[i].name, 1, &count), setting->is_counted);
		if (setting->is_counted)
			check((int64_t)count, (int64_t)setting->count, text("count of %s in session %u", f[i].name, s));
	}
}

/* A step's last events name processes and ports that end in it: names are taken before and after the step. */
static void play_step(const struct step *step)
{
	name_all();
	verbs[step->verb].play(step);
	for (unsigned i = 0; i < PROCESSES; i++)
		if (processes[i].process)
			name_process(processes[i].process, processes[i].name);
	for (unsigned i = 0; i < PORTS; i++)
		if (ports[i].port)
			name_port(ports[i].port, ports[i].name);
	for (unsigned s = 0; s < SESSIONS; s++) {
		if (sessions[s].is_there)
			compare_lines(s);
		sessions[s].line_count = 0;
		if (sessions[s].is_there)
			compare_settings(s);
	}
	terms = (struct tw_arena){0};
	forget_heard();
}

static void clear(void)
{
	struct step all = {0};

	while (a_process(0))
		end_process(a_process(0));
	while (a_port(0))
		end_port(a_port(0));
	while (a_session(0))
		destroy(&all);
	names = 0;
}

/* Plays a program; returns the number of steps until it differs, or 0. */
static size_t play(const struct step *steps, size_t count)
{
	size_t differs = 0;

	*complaint = 0;
	for (size_t i = 0; i < count && !differs; i++) {
		play_step(&steps[i]);
		if (*complaint)
			differs = i + 1;
	}
	clear();
	return differs;
}

static size_t shrink(struct step *steps, size_t count)
{
	static struct step fewer[STEPS];

	for (size_t part = count / 2; part; part /= 2) {
		for (size_t at = 0; at + part <= count;) {
			size_t rest = count - part, differs;

			memcpy(fewer, steps, at * sizeof *steps);
			memcpy(fewer + at, steps + at + part, (rest - at) * sizeof *steps);
			differs = play(fewer, rest);
			if (differs) {
				memcpy(steps, fewer, differs * sizeof *steps);
				count = differs;
			} else {
				at += part;
			}
		}
	}
	return count;
}

static struct step draw_step(uint64_t *random)
{
	unsigned sum = 0, at = 0, left;

	for (unsigned i = 0; i < TW_COUNT_OF(verbs); i++)
		sum += verbs[i].weight;
	for (left = random_word(random) % sum; left >= verbs[at].weight; at++)
		left -= verbs[at].weight;
	return (struct step){(uint8_t)at, (uint32_t)random_word(random), (uint32_t)random_word(random),
			     (uint32_t)random_word(random)};
}

static uint64_t steps_wanted = 20000, seed = 1;

/* Plays programs until one differs; returns its length once it is shrunk, or 0. */
static size_t find_difference(struct step *steps)
{
	uint64_t random = seed;

	for (uint64_t played = 0; played < steps_wanted; played += STEPS) {
		size_t count;

		for (unsigned i = 0; i < STEPS; i++)
			steps[i] = draw_step(&random);
		/* Something to begin with. */
		steps[0].verb = 0;
		count = play(steps, STEPS);
		if (count)
			return shrink(steps, count);
	}
	return 0;
}

static void random_programs(void **state)
{
	static struct step steps[STEPS];
	size_t count = find_difference(steps);

	if (count) {
		play(steps, count);
		print_error("seed %llu: %s, after\n", (unsigned long long)seed, complaint);
		for (size_t i = 0; i < count; i++)
			print_error("\t%s %u %u %u\n", verbs[steps[i].verb].name, steps[i].a, steps[i].b, steps[i].c);
		fail();
	}
}

/* Negative control: a model that knows no calls differs at the first one that is heard, after the few steps it needs. */
static void a_difference_is_found_and_shrunk(void **state)
{
	static struct step steps[STEPS];
	size_t count;

	knows_no_calls = true;
	count = find_difference(steps);
	knows_no_calls = false;
	assert_in_range(count, 5, 15);
	assert_ptr_equal(verbs[steps[count - 1].verb].play, call);
	assert_int_equal(play(steps, count), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs),
		cmocka_unit_test(a_difference_is_found_and_shrunk),
	};

	steps_wanted = argc > 1 ? strtoull(argv[1], NULL, 0) : steps_wanted;
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : seed;
	tw_scheduler_declare();
	forget_heard();
	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_function_declare(&f[i]), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
