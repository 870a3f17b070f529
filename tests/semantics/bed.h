/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bed.h - the bed on which scenarios are played: actors, tracers, sessions, and OTP's calls in OTP's terms.
 *
 * A scenario is a function that returns a term; oracle/ has the term that a real Erlang system returned.  Calls of
 * OTP's trace module have their names here in a shorter form: results and errors are terms as there: an integer, true,
 * {error,badarg}.
 *
 * Each scenario is played twice: alone, and with a twin of every session, which has the same name, a tracer of its own
 * and the same settings, and must have received exactly the same messages whenever the first is queried.
 *
 * Threads  the main thread, which is the process `me`.
 */
#ifndef TW_TESTS_SEMANTICS_BED_H
#define TW_TESTS_SEMANTICS_BED_H

#include "lit.h"
#include "actors.h"
#include "listener.h"
#include "term.h"
#include "trace.h"

#include <tracewheel/match.h>
#include <tracewheel/tracewheel.h>

#define NAMES_MAX    64
#define SESSIONS_MAX 128
#define PROGRAMS_MAX 256

struct sess {
	struct tw_session *session;
	struct sess *twin;	   /* NULL: alone */
	struct listener *listener; /* its tracer module; NULL: a queue */
	struct value tracer;
};

struct bed {
	struct runtime *runtime;
	struct actor *me;
	struct tw_arena arena;
	bool has_twins;
	bool has_modules; /* tracer modules in place of queues */
	bool makes_twins; /* set to false by scenarios that test sessions themselves */
	struct {
		uint64_t pid;
		const char *name;
	} names[NAMES_MAX];
	size_t name_count;
	struct sess sessions[SESSIONS_MAX];
	size_t session_count;
	/* Sessions borrow them until they are destroyed. */
	struct tw_match_program *programs[PROGRAMS_MAX];
	size_t program_count;
};

typedef struct tw_term scenario_fn(struct bed *b);
struct scenario {
	const char *name;
	scenario_fn *play;
};
#define SCENARIO(name)      \
	{                   \
#name, name \
	}

/* Each ends with an entry without name. */
extern const struct scenario session_scenarios[], race_scenarios[], port_scenarios[];

/* A run-time of two schedulers, the process `me`, and no session; its end. */
struct bed *bed_create(bool has_twins, bool has_modules);
void bed_destroy(struct bed *b);

/* Ends the program with what went wrong, unless it is right. */
void want(bool is_right, const char *what, int64_t result);

/* ---- processes ---- */

/* A collecting process: the owner of a queue. */
struct value tracer_as(struct bed *b, const char *name);
/* A process that runs the code sent to it. */
struct value tracee(struct bed *b, const char *name);
/* One that has ended; its pid has a name only if one is given. */
struct value dead(struct bed *b, const char *name);
void name_it(struct bed *b, struct value pid, const char *name);
/* The same of a port, by its number in tracewheel/port.h. */
void name_port(struct bed *b, uint64_t port, const char *name);
void kill_it(struct bed *b, struct value pid);

/* code(self, environment), called by an actor that runs code; the same as a term. */
struct value run_with(struct bed *b, struct value pid, fun_code *code, struct value environment);
#define run(b, pid, code) run_with((b), (pid), (code), NONE)
#define CODE(name)	  static struct value name(struct actor *self, struct value env)

/* A value of an actor as a term; pids get their names, as in answers. */
struct tw_term shown(struct bed *b, struct value value);
/* The pid itself. */
struct tw_term pid_term(struct bed *b, struct value pid);
/* Waits, and then until every other thread of this process sleeps, so that its work is done. */
void pause_ms(unsigned ms);

/* ---- terms ---- */

#define lit(b, ...) lit_in(&(b)->arena, __VA_ARGS__)
/* Names for pids and kinds for times, as in oracle/. */
struct tw_term named(struct bed *b, struct tw_term term);
struct tw_term list_of(struct bed *b, const struct tw_term *terms, size_t count);
#define LIST(b, ...) \
	list_of((b), (struct tw_term[]){__VA_ARGS__}, sizeof(struct tw_term[]){__VA_ARGS__} / sizeof(struct tw_term))
struct tw_term sorted(struct bed *b, struct tw_term list);
/* Element n of each tuple, from 1. */
struct tw_term elements(struct bed *b, size_t n, struct tw_term list);
/* A result of the interface: a count, or {error,badarg}. */
struct tw_term answer(struct bed *b, int64_t result);
struct tw_term boolean(bool is_true);

/* ---- trace: ---- */

struct sess *s_as(struct bed *b, struct value tracer, const char *name);
#define s(b, tracer) s_as((b), (tracer), "sess")
/* As text: "call,send"; NULL for an argument that cannot be written in C. */
int64_t trace_process(struct sess *s, tw_pid who, bool how, const char *flags);
int64_t trace_port(struct sess *s, uint64_t port, bool how, const char *flags);
int64_t process(struct bed *b, struct sess *s, struct value pid, bool how, const char *flags);
/* spec: true, false, restart, pause, or a list; options "local,meta". */
int64_t function(struct bed *b, struct sess *s, const char *mfa, const char *spec, const char *options);
int64_t send_pattern(struct bed *b, struct sess *s, const char *spec);
int64_t recv_pattern(struct bed *b, struct sess *s, const char *spec);
/* The last: with a spec that holds terms. */
int64_t send_pattern_term(struct sess *s, struct tw_term spec);
int64_t recv_pattern_term(struct sess *s, struct tw_term spec);
int64_t function_term(struct bed *b, struct sess *s, const char *mfa, struct tw_term spec, const char *options);
struct tw_term info(struct bed *b, struct sess *s, struct tw_term what, const char *item);
/* Is the session among those that affect it? undefined and {error,badarg} unchanged. */
struct tw_term session_info(struct bed *b, struct sess *s, struct tw_term what);
struct tw_term destroy(struct bed *b, struct sess *s);

/* The tracer's messages since the last query. */
struct tw_term ev(struct bed *b, struct sess *s);
/* The same, without a pause for messages under way. */
struct tw_term ev_now(struct bed *b, struct sess *s);

/* A tracer t, a session, and a tracee p with these flags. */
struct st {
	struct sess *s;
	struct value t, p;
};
struct st st(struct bed *b, const char *flags);

/* ---- the module tro ---- */

extern struct function tro_f1, tro_top, tro_mid, tro_bot, tro_ttop, tro_t1, tro_t2, tro_t3, tro_down, tro_rt;
void tro_load(void);

#endif
