/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actors.h - a small actor run-time: the interface for its users.
 *
 *	static struct value pong(struct actor *self, const struct value *arguments)
 *	{
 *		for (;;) {
 *			struct value from = receive(self);
 *			send_to(self, from, atom("pong"));
 *		}
 *	}
 *	static struct function pong_function = FUNCTION("game", "pong", 0, pong);
 *
 *	struct runtime *runtime = runtime_start(&(struct runtime_options){.schedulers = 2});
 *	struct actor *me = outside_create(runtime);
 *	struct value pid = spawn(me, &pong_function);
 *	send_to(me, pid, self_pid(me));
 *	outside_receive(me, 1000, &answer);
 *	outside_destroy(me);
 *	runtime_stop(runtime);
 *
 * An actor is a process in Erlang's sense: a function on a stack of its own, with a heap and a mailbox that no other
 * actor touches; everything else reaches it by messages and signals, in order from each sender.
 *
 * Threads  A function that takes `self` is called by that actor, or by the thread of that outside.
 * Safe points  receive in all its forms and garbage_collect(): a value on the heap that a C variable holds over one must be
 *	kept, see KEEP; the arguments of calls are kept.
 * Source   Erlang Reference Manual,
 * "Processes"; module erlang for every function named as there.
 */
#ifndef ACTORS_H
#define ACTORS_H

#include "function.h"
#include "value.h"

struct runtime;

/* Zero selects the default. */
struct runtime_options {
	unsigned schedulers; /* threads, 1 .. 64; default: one for each processor */
	unsigned reductions; /* calls and messages until another actor's turn; default: 2,000 */
	size_t stack_bytes;  /* of each actor; default: 128 KiB */
	bool is_restless;    /* actors move to another scheduler after each wait: for tests */
};

/* NULL: no memory or no threads. */
struct runtime *runtime_start(const struct runtime_options *options);
/* Kills every actor, waits for their ends, and frees everything. */
void runtime_stop(struct runtime *runtime);

struct runtime_figures {
	uint64_t switches; /* an actor got its turn */
	uint64_t stolen;   /* one that was queued on another scheduler */
	uint64_t sleeps;
	uint64_t collections; /* of actors that have ended */
	uint64_t spawned, ended;
};
struct runtime_figures runtime_figures(struct runtime *runtime);

/* ---- from outside: a thread that is not an actor, with a pid and a mailbox ---- */

struct actor *outside_create(struct runtime *runtime);
void outside_destroy(struct actor *self);
/* The next message; false after that many milliseconds (-1: never) without one. */
bool outside_receive(struct actor *self, int64_t timeout_ms, struct value *message);
/*
 * Makes the runner (an actor of run_loop below) call code(its self, environment), and waits for the answer; NONE after
 * that many milliseconds.  The messages are {run,Self,Fun} and {ran,Pid,Value}; an exception gives {'EXIT',Reason} or
 * the value thrown.
 */
struct value outside_run(struct actor *self, struct value pid, fun_code *code, struct value environment,
			 int64_t timeout_ms);
/* runner:loop/0: runs the funs it receives, until the atom stop; other messages stay in its mailbox. */
extern struct function run_loop;

/* ---- life ---- */

/* {function, arguments} from its arity; NONE: no memory. */
struct value spawn_with(struct actor *self, struct function *function, const struct value *arguments, bool is_linked);
#define spawn(self, function, ...) \
	spawn_with((self), (function), (const struct value[]){NONE, ##__VA_ARGS__} + 1, false)
#define spawn_link(self, function, ...) \
	spawn_with((self), (function), (const struct value[]){NONE, ##__VA_ARGS__} + 1, true)

struct value self_pid(const struct actor *self);
struct heap *heap_of(struct actor *self);
struct runtime *runtime_of(struct actor *self);
/* Its scheduler's number, from 0. */
unsigned scheduler_of(struct actor *self);
bool is_alive(struct actor *self, struct value pid);

/* exit/2: an exit signal; the reason kill cannot be trapped. */
void exit_signal(struct actor *self, struct value pid, struct value reason);
void link_to(struct actor *self, struct value pid);
void unlink_from(struct actor *self, struct value pid);
/* Returns a reference; {'DOWN',Ref,process,Pid,Reason} comes when it ends. */
struct value monitor(struct actor *self, struct value pid);
void demonitor(struct actor *self, struct value reference);

enum process_flag { FLAG_TRAP_EXIT, FLAG_SENSITIVE, FLAG_MAX_HEAP_WORDS };
/* Returns the old value. */
size_t process_flag(struct actor *self, enum process_flag flag, size_t value);

/* error badarg: the name is taken, or the actor is not alive. */
void register_name(struct actor *self, struct value name, struct value pid);
void unregister_name(struct actor *self, struct value name);
/* The pid, or NONE. */
struct value whereis(struct actor *self, struct value name);

/* ---- messages ---- */

/*
 * @to	a pid; or a registered name, with error badarg if it is not registered.
 */
void send_to(struct actor *self, struct value to, struct value message);

/* True for messages to take; the others stay. */
typedef bool wanted(struct value message, struct value context);

#define FOREVER (-1)
/* The first message. */
struct value receive(struct actor *self);
/* The first matching message (NULL: any), or NONE after that many milliseconds. */
struct value receive_match(struct actor *self, wanted *wanted, struct value context, int64_t timeout_ms);
/* The first message equal to this value. */
struct value receive_value(struct actor *self, struct value value, int64_t timeout_ms);
/* Gives others a turn. */
void yield(struct actor *self);

/* ---- timers ---- */

/* Sends a message without a sender after a time; returns a reference. */
struct value send_after(struct actor *self, int64_t ms, struct value to, struct value message);
/* False: it was sent already, or cancelled. */
bool cancel_timer(struct actor *self, struct value reference);

/* ---- ports on sockets ---- */

/*
 * Takes a connected or listening socket; its owner gets {Port,{data,Binary}}, {Port,{accepted,NewPort}} and at its end
 * {Port,closed}. The port closes with its owner.  NONE: no memory.
 */
struct value port_open(struct actor *self, int socket);
/* Writes, now or as soon as the socket accepts it; false: no such port. */
bool port_command(struct actor *self, struct value port, const void *bytes, size_t count);
void port_close(struct actor *self, struct value port);
/* The number by which tracewheel/port.h knows an open port; 0: none. */
uint64_t port_traced(struct actor *self, struct value port);
/* A listening socket on the loopback interface; sets the number.  -1: none. */
int listen_on_loopback(uint16_t *number);
int connect_to_loopback(uint16_t number);

/* ---- memory ---- */

/* A variable that holds a value across safe points, until its block is left. */
struct kept {
	struct actor *self;
	struct kept *next;
	struct value *variable;
};
struct kept keep(struct actor *self, struct value *variable, struct kept *kept);
void unkeep(struct kept *kept);
#define KEEP(self, name) __attribute__((cleanup(unkeep))) struct kept kept_##name = keep((self), &(name), &kept_##name)

/* Runs a major collection. */
void garbage_collect(struct actor *self);
uint64_t collections_of(struct actor *self);

#endif
