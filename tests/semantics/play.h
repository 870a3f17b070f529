/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.h - a scenario that is data while it is played: its processes, its sessions, its answers.
 *
 * play_ops.c holds the operations of processes, play_steps.c the steps of the tester, play_answers.c the form of answers, play.c the
 * program.  A new verb is a row in the table of play_ops.c or play_steps.c, and a clause in oracle/player.erl.
 *
 * Threads  the main thread; operations run in actors while it waits.
 */
#ifndef TW_TESTS_SEMANTICS_PLAY_H
#define TW_TESTS_SEMANTICS_PLAY_H

#include "bed.h"

#define ANSWERS_MAX 256

struct play {
	struct bed *b;
	struct sess *s; /* the session that steps are about */
	struct {
		const char *name;
		struct sess *s;
	} sessions[SESSIONS_MAX];
	size_t session_count;
	bool tells_all; /* results that are 1 as well */
	struct tw_term told[ANSWERS_MAX];
	size_t count;
};

_Noreturn void wrong(const char *what, struct tw_term term);

/* ---- play_ops.c: processes ---- */

/* The functions of the module pl, and those that are there for patterns. */
void ops_load(void);
/* A scenario begins: no process has a name. */
void ops_begin(struct bed *b);
struct value known(const char *name, struct value pid);
struct value pid_named(const char *name);
bool is_known(const char *name);
/* An operation of the tester, or of each process that is idle and no tracer. */
void ops_do(struct tw_term op);
void ops_sync(void);
/* Makes a process run operations: waits for the answer, or takes it later. */
struct tw_term ops_run(const char *name, struct tw_term ops);
void ops_start(const char *name, struct tw_term ops);
struct tw_term ops_await(const char *name);
/* A term as a value of the tester's heap; with pids in place of '@p'. */
struct value value_in(struct tw_term term);
struct tw_term with_pids(struct bed *b, struct tw_term term);
const char *name_of(struct tw_term atom);
int64_t number_in(struct tw_term term);

/* ---- play_steps.c ---- */

struct tw_term play_steps(struct bed *b, struct tw_term steps);

/* ---- play_answers.c ---- */

/* Bodies, source lines and sizes are left out; the process that runs operations is outside. */
struct tw_term made_plain(struct bed *b, struct tw_term term);
/* By process, without the events that running operations makes. */
struct tw_term events_of(struct bed *b, struct sess *s);
struct tw_term info_of(struct bed *b, struct sess *s, struct tw_term what, const char *item);
struct tw_term all_info(struct bed *b, struct sess *s);

#endif
