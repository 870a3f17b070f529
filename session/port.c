/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port.c - the run-time's interface: ports and the events that the run-time reports about them.
 *
 * A port is a tracee that no thread runs. Open, close and names take the registry's lock briefly; the events are
 * runtime events (pipeline/thread/runtime_event.c), made without the lock while the port is held.
 */
#include "session/port_table.h"
#include "session/session.h"
#include "session/tracee.h"
#include "pipeline/thread/monitor.h"
#include "tracewheel/port.h"

#include <string.h>

/* Space for a message of a port with two identifiers; its data is borrowed. */
#define MESSAGE_BYTES 512

static const char *const commands[] =
	{[TW_PORT_NOT_KNOWN] = NULL,	[TW_PORT_CALL] = "call",       [TW_PORT_CLOSE] = "close",
	 [TW_PORT_COMMAND] = "command", [TW_PORT_CONNECT] = "connect", [TW_PORT_CONTROL] = "control",
	 [TW_PORT_FLUSH] = "flush",	[TW_PORT_INFO] = "info",       [TW_PORT_LINK] = "link",
	 [TW_PORT_OPEN] = "open",	[TW_PORT_UNLINK] = "unlink"};

/* ---- holding ---- */

static void drop(struct tw_tracee *port)
{
	if (!tw_port_table_drop(port))
		return;
	tw_registry_lock();
	tw_tracee_forget(port);
	tw_registry_unlock();
}

/* The open port with that number, held until drop(); NULL: none. */
static struct tw_tracee *hold(tw_port id)
{
	struct tw_tracee *port = tw_port_table_hold(id);

	if (!port || tw_port_is_open(id))
		return port;
	drop(port);
	return NULL;
}

static struct tw_term term_of(struct tw_arena *arena, const struct tw_tracee *port)
{
	return tw_term_port(arena, port->pid_number);
}

static struct tw_term pid_term(struct tw_arena *arena, tw_pid pid)
{
	return pid ? tw_term_pid(arena, (uint32_t)pid, 0) : tw_atom(TW_ATOM_UNDEFINED);
}

/* ---- life ---- */

static void tell_open(struct tw_tracee *port, struct tw_tracee *opener, struct tw_term driver, bool is_linked)
{
	char capacity[MESSAGE_BYTES];
	struct tw_arena arena;
	tw_pid pid = opener ? opener->pid_number : 0;

	tw_arena_init_fixed(&arena, capacity, sizeof capacity);
	tw_process_tell(port, TW_EVENT_OPEN, TW_WANT_PORTS, pid_term(&arena, pid), driver);
	if (!opener || !is_linked)
		return;
	tw_process_tell(port, TW_EVENT_GETTING_LINKED, TW_WANT_PORTS, pid_term(&arena, pid), (struct tw_term){0});
	tw_process_tell(opener, TW_EVENT_LINK, TW_WANT_PROCS, term_of(&arena, port), (struct tw_term){0});
}

/*
 * Under the lock.  TW_ELIMIT, TW_ENOMEM.  The caller drops the port after its events: another thread may get the number without any
 * order between both, and close the port; the count of users orders these events before the reuse of its memory.
 */
static int make(const struct tw_port_options *options, struct tw_tracee **out)
{
	bool is_full;
	uint32_t entry = tw_port_table_take(&is_full);

	if (!entry)
		return is_full ? TW_ELIMIT : TW_ENOMEM;
	*out = tw_tracee_make_port(entry, options->name ? options->name : options->driver);
	if (!*out) {
		tw_port_table_free(entry);
		return TW_ENOMEM;
	}
	tw_port_table_open(*out);
	return 0;
}

TW_API int tw_port_open(const struct tw_port_options *options, tw_port *out)
{
	struct tw_tracee *port;
	struct tw_term driver;
	int error;

	tw_session_init();
	if (!options || !out || !options->driver || !*options->driver)
		return TW_EBADARG;
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	driver = tw_term_atom_z(options->driver);
	if (tw_term_is_none(driver))
		return TW_EBADARG;
	tw_registry_lock();
	error = make(options, &port);
	tw_registry_unlock();
	if (error)
		return error;
	*out = tw_port_id(port);
	tell_open(port, tw_tracee_of(options->opener), driver, options->is_linked);
	drop(port);
	return 0;
}

/* Under the lock. */
static struct tw_term take_name(struct tw_tracee *port)
{
	struct tw_term name = port->registered_name;

	port->registered_name = (struct tw_term){0};
	return name;
}

TW_API int tw_port_close(tw_port id, struct tw_term reason)
{
	struct tw_term name = {0};
	struct tw_tracee *port;

	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tw_registry_lock();
	port = tw_port_of(id);
	if (port) {
		tw_port_table_close(port);
		name = take_name(port);
	}
	tw_registry_unlock();
	if (!port)
		return TW_EBADARG;
	tw_process_tell(port, TW_EVENT_CLOSED, TW_WANT_PORTS,
			tw_term_is_none(reason) ? tw_atom(TW_ATOM_NORMAL) : reason, (struct tw_term){0});
	if (!tw_term_is_none(name))
		tw_process_tell(port, TW_EVENT_UNREGISTER, TW_WANT_PORTS, name, (struct tw_term){0});
	drop(port);
	return 0;
}

/* ---- names ---- */

TW_API int tw_port_register(tw_port id, struct tw_term name)
{
	struct tw_tracee *port;
	int error = TW_EBADARG;

	if (!tw_is_atom(name) || name.word == tw_atom(TW_ATOM_UNDEFINED).word)
		return TW_EBADARG;
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	port = hold(id);
	if (!port)
		return TW_EBADARG;
	tw_registry_lock();
	if (tw_port_is_open(id) && !tw_tracee_named(name) && tw_term_is_none(port->registered_name)) {
		port->registered_name = name;
		error = 0;
	}
	tw_registry_unlock();
	if (!error)
		tw_process_tell(port, TW_EVENT_REGISTER, TW_WANT_PORTS, name, (struct tw_term){0});
	drop(port);
	return error;
}

TW_API int tw_port_unregister(tw_port id)
{
	struct tw_tracee *port;
	struct tw_term name;

	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	port = hold(id);
	if (!port)
		return TW_EBADARG;
	tw_registry_lock();
	name = take_name(port);
	tw_registry_unlock();
	if (!tw_term_is_none(name))
		tw_process_tell(port, TW_EVENT_UNREGISTER, TW_WANT_PORTS, name, (struct tw_term){0});
	drop(port);
	return tw_term_is_none(name) ? TW_EBADARG : 0;
}

TW_API struct tw_term tw_port_term(struct tw_arena *arena, tw_port port)
{
	return tw_port_number(port) ? tw_term_port(arena, tw_port_number(port)) : (struct tw_term){0};
}

TW_API uint32_t tw_port_number(tw_port port)
{
	return port < TW_PORT_NEW ? (uint32_t)port : 0;
}

TW_API bool tw_port_wants_any(tw_port id, uint32_t kinds)
{
	static const struct {
		uint32_t kind;
		enum tw_want want;
	} of[] = {{TW_WANTS_SEND, TW_WANT_SEND},
		  {TW_WANTS_RECEIVE, TW_WANT_RECEIVE},
		  {TW_WANTS_PORTS, TW_WANT_PORTS},
		  {TW_WANTS_RUNNING_PORTS, TW_WANT_RUNNING_PORTS}};
	struct tw_tracee *port = hold(id);
	bool is_wanted = false;

	if (!port)
		return false;
	for (unsigned i = 0; i < TW_COUNT_OF(of); i++) {
		/* RELAXED hit.wants: a first check; the runtime event makes the final one. */
		is_wanted |= (kinds & of[i].kind) && tw_load_relaxed(&port->wants[of[i].want]);
	}
	drop(port);
	return is_wanted;
}

/* ---- links ---- */

TW_API int tw_runtime_port_linked(tw_port id, tw_pid other, unsigned what)
{
	struct tw_tracee *port;
	char capacity[TW_PID_BYTES];
	struct tw_arena arena;

	if (what != TW_GETTING_LINKED && what != TW_GETTING_UNLINKED)
		return TW_EBADARG;
	port = hold(id);
	if (!port)
		return TW_EBADARG;
	tw_arena_init_fixed(&arena, capacity, sizeof capacity);
	tw_process_tell(port, (enum tw_event_kind)what, TW_WANT_PORTS, pid_term(&arena, other), (struct tw_term){0});
	drop(port);
	return 0;
}

TW_API int tw_runtime_process_port_linked(struct tw_process *process, tw_port port, unsigned what)
{
	char capacity[TW_PID_BYTES];
	struct tw_arena arena;

	if (!process || what < TW_LINK || what > TW_GETTING_UNLINKED || !tw_port_number(port))
		return TW_EBADARG;
	tw_arena_init_fixed(&arena, capacity, sizeof capacity);
	tw_process_tell(tw_tracee_of(process), (enum tw_event_kind)what, TW_WANT_PROCS, tw_port_term(&arena, port),
			(struct tw_term){0});
	return 0;
}

/* ---- messages ---- */

static void tell_send(struct tw_tracee *port, struct tw_term message, struct tw_term to, bool is_to_nobody)
{
	struct tw_runtime_event event = {.kind = is_to_nobody ? TW_EVENT_SEND_TO_NON_EXISTING_PROCESS : TW_EVENT_SEND,
					 .want = TW_WANT_SEND,
					 .term_count = 2,
					 .terms = {message, to},
					 .peer = to};

	tw_runtime_event(port, &event);
}

static void tell_receive(struct tw_tracee *port, struct tw_term message, struct tw_term sender)
{
	struct tw_runtime_event event = {.kind = TW_EVENT_RECEIVE,
					 .want = TW_WANT_RECEIVE,
					 .term_count = 1,
					 .terms = {message},
					 .peer = sender};

	tw_runtime_event(port, &event);
}

TW_API int tw_runtime_port_send(tw_port id, struct tw_term message, struct tw_term to, bool is_to_nobody)
{
	struct tw_tracee *port = hold(id);

	if (!port)
		return TW_EBADARG;
	tell_send(port, message, to, is_to_nobody);
	drop(port);
	return 0;
}

TW_API int tw_runtime_port_receive(tw_port id, struct tw_term message, struct tw_term sender)
{
	struct tw_tracee *port = hold(id);

	if (!port)
		return TW_EBADARG;
	tell_receive(port, message, sender);
	drop(port);
	return 0;
}

/* {Tag,Data}, or Tag without data. */
static struct tw_term tagged(struct tw_arena *arena, const char *tag, struct tw_term data)
{
	struct tw_term parts[2] = {tw_term_atom_z(tag), data};

	return tw_term_is_none(data) ? parts[0] : tw_term_tuple(arena, parts, 2);
}

static bool has_data(unsigned command)
{
	return command == TW_PORT_COMMAND || command == TW_PORT_CONTROL || command == TW_PORT_CALL;
}

TW_API int tw_runtime_port_request(tw_port id, tw_pid from, unsigned command, struct tw_term data)
{
	bool needs_data = has_data(command) || command == TW_PORT_CONNECT;
	char capacity[MESSAGE_BYTES];
	struct tw_arena arena;
	struct tw_term parts[2];
	struct tw_tracee *port;

	if ((!needs_data && command != TW_PORT_CLOSE) || tw_term_is_none(data) == needs_data)
		return TW_EBADARG;
	port = hold(id);
	if (!port)
		return TW_EBADARG;
	tw_arena_init_fixed(&arena, capacity, sizeof capacity);
	parts[0] = pid_term(&arena, from);
	parts[1] = tagged(&arena, commands[command], data);
	tell_receive(port, tw_term_tuple(&arena, parts, 2), from ? parts[0] : (struct tw_term){0});
	drop(port);
	return 0;
}

TW_API int tw_runtime_port_reply(tw_port id, tw_pid to, unsigned command, struct tw_term data)
{
	bool needs_data = has_data(command), is_close = command == TW_PORT_CLOSE;
	char capacity[MESSAGE_BYTES];
	struct tw_arena arena;
	struct tw_term parts[2];
	struct tw_tracee *port;

	if ((!needs_data && !is_close && command != TW_PORT_CONNECT) || tw_term_is_none(data) == needs_data)
		return TW_EBADARG;
	port = hold(id);
	if (!port)
		return TW_EBADARG;
	tw_arena_init_fixed(&arena, capacity, sizeof capacity);
	parts[0] = term_of(&arena, port);
	if (command == TW_PORT_CONNECT)
		parts[1] = tw_term_atom_z("connected");
	else
		parts[1] = tagged(&arena, command == TW_PORT_COMMAND ? "data" : commands[command], data);
	tell_send(port, is_close ? tw_atom(TW_ATOM_CLOSED) : tw_term_tuple(&arena, parts, 2), pid_term(&arena, to),
		  false);
	drop(port);
	return 0;
}

/* ---- scheduling ---- */

TW_API int tw_runtime_port_schedule(tw_port id, unsigned command, bool is_in)
{
	struct tw_tracee *port;
	struct tw_term word;
	bool was_in;

	if (command >= TW_COUNT_OF(commands))
		return TW_EBADARG;
	port = hold(id);
	if (!port)
		return TW_EBADARG;
	word = commands[command] ? tw_term_atom_z(commands[command]) : tw_small(0);
	/* RELAXED tracee.reported: the program orders reports of one port; of several at once, each is made before or after. */
	was_in = tw_load_relaxed(&port->is_in);
	/* RELAXED tracee.reported: as above. */
	tw_store_relaxed(&port->is_in, is_in);
	if (is_in)
		tw_process_inside_port(true);
	if (is_in)
		tw_monitor_in(port, NULL);
	else if (was_in)
		tw_monitor_port_out(port, commands[command] ? word : (struct tw_term){0});
	if (is_in || was_in)
		tw_process_tell(port, is_in ? TW_EVENT_IN : TW_EVENT_OUT, TW_WANT_RUNNING_PORTS, word,
				(struct tw_term){0});
	if (!is_in && was_in)
		tw_process_inside_port(false);
	drop(port);
	return 0;
}
