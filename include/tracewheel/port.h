/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port.h - ports: the endpoints of input and output of a run-time system (sockets, pipes, files, drivers), and tracing them.
 *
 * A run-time opens a port, reports what happens to it, and closes it:
 *
 *	struct tw_port_options options = { .driver = "tcp_inet", .opener = process, .is_linked = true };
 *	tw_port port;
 *
 *	tw_port_open(&options, &port);			open (and getting_linked) of the port, link of its opener
 *	tw_port_request(port, pid, TW_PORT_COMMAND, data);	'receive' of {Pid,{command,Data}}
 *	tw_port_reply(port, pid, TW_PORT_COMMAND, data);	send of {Port,{data,Data}}
 *	tw_port_close(port, reason);			closed
 *
 * A program without a run-time of its own declares a descriptor: tw_port_declare_fd().  docs/embedding.md is the guide.
 *
 * Port A number that is never reused in a program.  A call with the number of a closed port, or of none, returns TW_EBADARG
 *	 and has no other effect.  A forked child has none of its parent's ports.
 * Events  While no session wants a kind of event of any port or process, a call that reports such an event costs one load
 *	 and one branch, and returns 0 for any number.  Build terms only if tw_port_wants() returns true.
 * Threads any, also several at once for one port.  The events of a port have the order of the calls, as far as the program
 *	 orders those.  A call concurrent with tw_port_close() makes its event or returns TW_EBADARG.  Keeps errno.  In a signal
 *	 handler inside of a hit the event is counted as lost.  open, close, register, unregister and declare_fd take a short
 *	 lock.
 * Terms  borrow until the call returns, and are cut as in runtime.h.
 * Source  OTP: trace:port/4 and the trace messages of its flags; open_port/2.
 */
#ifndef TRACEWHEEL_PORT_H
#define TRACEWHEEL_PORT_H

#include "tracewheel/runtime.h"
#include "tracewheel/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A port.  0 is none. */
typedef uint64_t tw_port;

/* Special values for a port.  OTP: all, existing, new. */
#define TW_PORT_ALL	 (UINT64_MAX)
#define TW_PORT_EXISTING (UINT64_MAX - 1)
#define TW_PORT_NEW	 (UINT64_MAX - 2)

/* ---- tracing ---- */

/*
 * tw_trace_port - set or clear flags.
 *
 * @port	a port, or TW_PORT_ALL (existing and new ones), TW_PORT_EXISTING, TW_PORT_NEW.
 * @how		true: add the flags; false: remove them.
 * @flags	TW_FLAG_*.  Ports make events for TW_FLAG_SEND, TW_FLAG_RECEIVE, TW_FLAG_PORTS and TW_FLAG_RUNNING_PORTS,
 *		with the stamps; TW_FLAG_SCHEDULER_ID and TW_FLAG_SILENT act as for processes.  Flags of processes are
 *		accepted and kept, but have no effect.  TW_FLAG_CPU_TIMESTAMP as in tw_trace_process(), with TW_PORT_ALL.
 *
 * Patterns of tw_trace_send() and tw_trace_recv() select messages of ports as well.
 * Returns the number of ports: 1 for a port, 0 for TW_PORT_NEW and where @flags has no flag of ports; TW_EBADARG for a port
 * that is not open, or an unknown flag (then nothing is changed); TW_EDEAD, TW_EDEADLK, TW_ELIMIT.  A session whose tracer
 * is gone counts the ports and sets no flags.
 * Source: trace:port/4.
 */
int tw_trace_port(struct tw_session *session, tw_port port, bool how, uint32_t flags);

/* The flags of a port in this session, or of new ones (TW_PORT_NEW).  TW_EBADARG, TW_EDEAD. */
int tw_trace_port_flags(struct tw_session *session, tw_port port, uint32_t *flags);

/* ---- life ---- */

/* Zeroed fields mean none. */
struct tw_port_options {
	const char *driver;	   /* borrows: an atom, 1 .. 255 bytes of UTF-8: the Driver of event open */
	const char *name;	   /* borrows: shown beside the port, cut at 31 bytes; NULL: the driver */
	struct tw_process *opener; /* NULL: unknown, the event has undefined */
	bool is_linked;		   /* to its opener, as by open_port/2 */
};

/*
 * tw_port_open - open a port.
 *
 * Events: open (and getting_linked) of the port, then link of the opener.  It has the flags of new ports of every session.
 *
 * @options	borrows.
 * @out		the port.
 * Errors: TW_EBADARG (no driver, or a text that cannot be an atom), TW_ENOMEM, TW_ELIMIT (1,048,576 ports are open),
 * TW_EDEADLK in a hit.
 */
int tw_port_open(const struct tw_port_options *options, tw_port *out);

/*
 * tw_port_close - close the port.  Events: closed, then unregister if it is registered.
 *
 * Processes linked to it report with tw_process_port_linked(..., TW_GETTING_UNLINKED).
 *
 * @reason	none: normal.
 * Errors: TW_EBADARG (closed before, or never open), TW_EDEADLK in a hit.
 */
int tw_port_close(tw_port port, struct tw_term reason);

/* The port gets a name, an atom that no process and no port has.  TW_EBADARG, TW_EDEADLK in a hit. */
int tw_port_register(tw_port port, struct tw_term name);
/* Removes the name.  TW_EBADARG (it has none), TW_EDEADLK in a hit. */
int tw_port_unregister(tw_port port);

/* The port as a term, #Port<0.N>; none for a number that was never a port, or if the arena is full. */
struct tw_term tw_port_term(struct tw_arena *arena, tw_port port);
/* The N of #Port<0.N>; 0: none.  Not reused before the program has made 2^32 processes and ports. */
uint32_t tw_port_number(tw_port port);

/* ---- descriptors ---- */

/*
 * tw_port_declare_fd - open a port for a file descriptor.
 *
 * The driver is the kind of the descriptor: tcp_inet, udp_inet, unix, socket, file, directory, pipe, tty, device,
 * timerfd, eventfd, eventpoll, inotify, signalfd, pidfd, fd.  The name is its path or the address of its peer.  If that
 * descriptor was declared before and its port is still open (the program has closed it and reused the number), that
 * port is closed first, with reason reused.
 *
 * @fd		is not used after the call.
 * @opener	as in struct tw_port_options; the port is linked to it.
 * @out		the port, to be closed with tw_port_close() when the program closes the descriptor.
 * Errors: TW_EBADARG (not an open descriptor, or 1,048,576 and above), and those of tw_port_open().
 */
int tw_port_declare_fd(int fd, struct tw_process *opener, tw_port *out);
/* The open port of a declared descriptor; 0: none.  Wait-free. */
tw_port tw_port_of_fd(int fd);

/* ---- events ---- */

bool tw_port_wants_any(tw_port port, uint32_t kinds);

/* Does any session want one of these kinds (TW_WANTS_*) of this port? */
static inline bool tw_port_wants(tw_port port, uint32_t kinds)
{
	return tw_runtime_wants(kinds) && tw_port_wants_any(port, kinds);
}

/* The out-of-line paths; call the functions below. */
int tw_runtime_port_linked(tw_port port, tw_pid other, unsigned what);
int tw_runtime_port_send(tw_port port, struct tw_term message, struct tw_term to, bool is_to_nobody);
int tw_runtime_port_receive(tw_port port, struct tw_term message, struct tw_term sender);
int tw_runtime_port_request(tw_port port, tw_pid from, unsigned command, struct tw_term data);
int tw_runtime_port_reply(tw_port port, tw_pid to, unsigned command, struct tw_term data);
int tw_runtime_port_schedule(tw_port port, unsigned command, bool is_in);
int tw_runtime_process_port_linked(struct tw_process *process, tw_port port, unsigned what);

/* A process links to the port (TW_GETTING_LINKED), or removes the link (TW_GETTING_UNLINKED).  Others: TW_EBADARG. */
static inline int tw_port_linked(tw_port port, tw_pid other, unsigned what)
{
	return tw_runtime_wants(TW_WANTS_PORTS) ? tw_runtime_port_linked(port, other, what) : 0;
}

/*
 * The process' end of the link: it links to the port (TW_LINK), removes the link (TW_UNLINK), or is unlinked because the port
 * has closed (TW_GETTING_UNLINKED); @port may be closed already.  Ports inherit no flags.
 */
static inline int tw_process_port_linked(struct tw_process *process, tw_port port, unsigned what)
{
	return tw_runtime_wants(TW_WANTS_PROCS) ? tw_runtime_process_port_linked(process, port, what) : 0;
}

/* The port sends a message.  @to: as in tw_process_send(). */
static inline int tw_port_send(tw_port port, struct tw_term message, struct tw_term to)
{
	return tw_runtime_wants(TW_WANTS_SEND) ? tw_runtime_port_send(port, message, to, false) : 0;
}

/* A send to a pid that names no process (any more): send_to_non_existing_process. */
static inline int tw_port_send_to_nobody(tw_port port, struct tw_term message, struct tw_term to)
{
	return tw_runtime_wants(TW_WANTS_SEND) ? tw_runtime_port_send(port, message, to, true) : 0;
}

/* The port receives a message.  @sender: as in tw_process_receive(). */
static inline int tw_port_receive(tw_port port, struct tw_term message, struct tw_term sender)
{
	return tw_runtime_wants(TW_WANTS_RECEIVE) ? tw_runtime_port_receive(port, message, sender) : 0;
}

/* Commands of a port.  Terms show OTP's words, in lower case; 0: unknown. */
enum tw_port_command {
	TW_PORT_NOT_KNOWN = 0,
	TW_PORT_CALL,
	TW_PORT_CLOSE,
	TW_PORT_COMMAND,
	TW_PORT_CONNECT,
	TW_PORT_CONTROL,
	TW_PORT_FLUSH,
	TW_PORT_INFO,
	TW_PORT_LINK,
	TW_PORT_OPEN,
	TW_PORT_UNLINK
};

/*
 * tw_port_request - the port receives a request, in OTP's form.
 *
 *	TW_PORT_COMMAND	{From,{command,Data}}		TW_PORT_CLOSE	{From,close}; no data
 *	TW_PORT_CONTROL	{From,{control,Data}}		TW_PORT_CONNECT	{From,{connect,Data}}
 *	TW_PORT_CALL	{From,{call,Data}}
 *
 * @from	0: not known (undefined).
 * @data	command: iodata; control and call: {Operation,Data}; connect: the new owner.
 * Errors: TW_EBADARG also for another command.
 */
static inline int tw_port_request(tw_port port, tw_pid from, enum tw_port_command command, struct tw_term data)
{
	return tw_runtime_wants(TW_WANTS_RECEIVE) ? tw_runtime_port_request(port, from, command, data) : 0;
}

/*
 * tw_port_reply - the port sends an answer, or the data it has read, in OTP's form.
 *
 *	TW_PORT_COMMAND	{Port,{data,Data}}		TW_PORT_CLOSE	closed; no data
 *	TW_PORT_CONTROL	{Port,{control,Data}}		TW_PORT_CONNECT	{Port,connected}; no data
 *	TW_PORT_CALL	{Port,{call,Data}}
 *
 * A close that was requested by a message (Port ! {From,close}) is answered; port_close/1 is not.
 * Errors: TW_EBADARG also for another command.
 */
static inline int tw_port_reply(tw_port port, tw_pid to, enum tw_port_command command, struct tw_term data)
{
	return tw_runtime_wants(TW_WANTS_SEND) ? tw_runtime_port_reply(port, to, command, data) : 0;
}

/*
 * tw_port_in, tw_port_out - the calling thread runs the port, and stops.  Events: in, out with the command.
 *
 * A port runs on one thread at a time; an out without an in before makes no event.  The process that the thread runs, if any,
 * is not scheduled out, but makes out and in for sessions with TW_FLAG_RUNNING_PROCS.
 *
 * @command	in: the first command that it will execute; out: the last that it has executed, which a long_schedule
 *		monitor shows as port_op (tw_trace_system()).
 */
static inline int tw_port_in(tw_port port, enum tw_port_command command)
{
	return tw_runtime_wants(TW_WANTS_RUNNING_PORTS | TW_WANTS_RUNNING | TW_WANTS_PORT_SCHEDULES)
		       ? tw_runtime_port_schedule(port, command, true)
		       : 0;
}
static inline int tw_port_out(tw_port port, enum tw_port_command command)
{
	return tw_runtime_wants(TW_WANTS_RUNNING_PORTS | TW_WANTS_RUNNING | TW_WANTS_PORT_SCHEDULES)
		       ? tw_runtime_port_schedule(port, command, false)
		       : 0;
}

#ifdef __cplusplus
}
#endif

#endif
