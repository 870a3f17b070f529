/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - what lives inside somebody else's program: preloaded, it traces calls through slots and sleds.
 *
 *	preload/	what is exported to the program: the constructor, dlopen, dlclose
 *	start.c		may we, where do events go; a forked child that is followed
 *	state.c		what all files below may ask: is the process traced, in which session
 *	config.c	what the command asks for, as text in the ring set's control page
 *	layouts.c	how arguments lie in registers, as the command has found out
 *	plan.c		what to arm: objects, slots and sleds, found while no lock of ours is held
 *	arm.c		the plan becomes places, under the permit; what was unloaded is forgotten
 *	known.c		which objects were looked at, and whether they are still the same
 *	returns.c	can the ends of calls be seen, and which were not
 *	loader.c	which file a program's dlopen means
 *
 * Locks  The loader's are taken before the permit, never while it is held: a constructor runs under
 *	  the loader's lock and may call dlopen, which ends in the permit.
 */
#ifndef TW_AGENT_AGENT_H
#define TW_AGENT_AGENT_H

#include "base/vectors.h"
#include "ringbuf/ringset.h"
#include "symbols/symbols.h"
#include "tracewheel/pattern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- config.c ---- */

struct tw_agent_config {
	struct tw_pattern **patterns;
	size_t pattern_count;
	struct tw_pattern **excluded; /* what these match is not asked for */
	size_t excluded_count;
	bool has_arities;		  /* one of them asks for a number of arguments, which layouts tell */
	char *alias;			  /* what the program is called beside its file's name; NULL: nothing */
	char *alias_path;		  /* the file that is */
	bool has_all_callers;		  /* else only calls that the program's own file makes */
	bool is_local;			  /* entry sleds only */
	bool is_global;			  /* only calls from one object into another: no sleds */
	bool has_no_functions;		  /* only what run-times tell of their processes */
	uint32_t process_flags;		  /* TW_FLAG_*, of all processes, beside call */
	bool has_returns;		  /* return_from of each call that is recorded */
	bool has_exceptions;		  /* and exception_from */
	bool has_return_to;		  /* and return_to */
	uint32_t argument_words;	  /* to record with each call: 0 .. 6 */
	uint32_t stack_depth;		  /* return addresses to record with each call: 0 .. TW_STACK_DEPTH_MAX */
	uint32_t string_bytes;		  /* typed arguments, and so much of each string; 0: only words */
	struct tw_agent_layouts *layouts; /* of typed arguments; NULL: none */
	uint64_t layouts_at;		  /* so much of the text beside the rings is in them */
	uint64_t ask_ns;		  /* for layouts of objects that came later, so long; 0: do not ask */
	int filters;		   /* seccomp filters of the command: what it may do is not forbidden; -1: not known */
	struct tw_vectors vectors; /* as the command has measured them; zeros: it has not */
	struct tw_match_program *program; /* which calls; NULL: all */
	bool has_guards; /* each function has its own in layouts, and those that have none are not traced */
};

/* What is wanted of the ends of calls: TW_ACTION_RETURN, TW_ACTION_EXCEPTION. */
uint32_t tw_agent_end_actions(const struct tw_agent_config *config);

/*
 * tw_agent_config_parse - read the lines `KEY VALUE` of the control page.
 *
 *	pattern MODULE:FUNCTION/ARITY	may be repeated; none: everything
 *	exclude MODULE:FUNCTION/ARITY	may be repeated; not what this matches
 *	alias NAME PATH			the program in that file is module NAME as well
 *	callers main|all		whose calls; main where there is no pattern, else all
 *	local 0|1			entry sleds only; 0
 *	global 0|1			only calls from one object into another, no sleds; 0
 *	returns 0|1			return_from of each call that is recorded; 0
 *	exceptions 0|1			the same with exception_from; 0
 *	return_to 0|1			where control comes back to after a call that is recorded; 0
 *	arguments N			words recorded with each call, 0 .. 6; 0
 *	filters N			seccomp filters of the command; a process that begins with more is left alone
 *	stack N				return addresses recorded with each call, 0 .. 64; 0
 *	typed BYTES			where layouts.c knows how: arguments as they are, BYTES of each string
 *	ask MS				the command looks at objects that are opened later: wait so long for it; 0
 *	processes FLAG[,FLAG]...	flags of all processes; none
 *	functions 0|1			0: no functions, whatever the patterns; 1
 *	match SPEC			a match specification over the argument registers, on one line
 *	when EXPR			the same, written as one guard
 *	guards 0|1			layouts.c has a guard for each function, others are not traced; 0
 *
 * Lines with other keys are of newer commands and are passed over; so is a pattern that does not parse,
 * which the command has refused already.
 * @config	init; tw_agent_config_fini() ends it.  TW_ENOMEM.
 */
int tw_agent_config_parse(const char *text, size_t bytes, struct tw_agent_config *config);
void tw_agent_config_fini(struct tw_agent_config *config);

/* ---- layouts.c ---- */

struct tw_agent_layouts;
struct tw_plan;

/*
 * tw_agent_layouts_make - read the text beside the rings.
 *
 * @text	takes, on error too; terminated.  @out gives.  TW_ENOMEM.
 */
int tw_agent_layouts_make(char *text, size_t bytes, struct tw_agent_layouts **out);
void tw_agent_layouts_destroy(struct tw_agent_layouts *layouts);

/*
 * tw_agent_layouts_update - what has been added to the text since config->layouts_at.
 *
 * Under the permit, but for the first time.  What cannot be read is not there: arguments are words then.
 */
void tw_agent_layouts_update(struct tw_agent_config *config, const struct tw_rs *rs);

/*
 * tw_agent_layouts_missing - an object that a plan arms something of, and that the command has not looked at.
 *
 * Lends; NULL: none, or the command is not to be asked.  Under the permit.
 */
const struct tw_sym_object *tw_agent_layouts_missing(const struct tw_agent_config *config, const struct tw_plan *plan);

/*
 * tw_agent_layouts_ask - have the command look at what this process has opened, @object among it.
 *
 * Waits for it, config->ask_ns at most, and not at all where it owes an answer already.  Says in the capture whose
 * arguments will be words because none came in time.  Without permit.
 */
void tw_agent_layouts_ask(const struct tw_agent_config *config, struct tw_rs *rs, const struct tw_sym_object *object);
/* The layout of the function that begins at a value of an object; borrowed; NULL: none.  @layouts may be NULL. */
const char *tw_agent_layouts_find(const struct tw_agent_layouts *layouts, const struct tw_sym_object *object,
				  uint64_t value);

/*
 * The guard of such a function, compiled; borrowed; NULL: it has none.  Under a permit.
 */
const struct tw_match_program *tw_agent_layouts_guard(struct tw_agent_layouts *layouts,
						      const struct tw_sym_object *object, uint64_t value);

/* ---- plan.c ---- */

/* A slot to arm. */
struct tw_plan_slot {
	size_t caller, definer; /* indexes of objects */
	void **where;
	void *target;
	const char *function; /* borrowed by the object, which is pinned */
	bool is_watched; /* its calls come to our own function, which knows that their return address may be ours */
};

/* An entry sled to arm. */
struct tw_plan_sled {
	size_t object;
	struct tw_sym_sled sled;
};

struct tw_plan {
	struct tw_sym_set *set;
	struct tw_sym_sleds *sleds_of; /* by object */
	struct tw_plan_sled *sleds;
	size_t sled_count, sled_room;
	struct tw_plan_slot *slots;
	size_t count, room;
	void **pins;	  /* by object; NULL: not pinned */
	bool *is_new;	  /* by object: it was looked at for the first time */
	bool *was_known;  /* by object: it was not looked at */
	bool has_definer; /* there is an object whose functions may be meant */
	/* Functions that a pattern names and that must be left alone: sentences. */
	char **notes;
	size_t note_count;
};

/*
 * tw_plan_wants - is a function asked for?
 *
 * @arity	TW_PATTERN_ARITY_ANY: it is not looked up yet; patterns that ask for one may then match.
 */
bool tw_plan_wants(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function,
		   uint32_t arity);

/* Which objects need no other look: those that were there before.  Called without locks. */
typedef bool (*tw_plan_is_known_fn)(const struct tw_sym_object *object, void *arg);

/*
 * tw_plan_make - find the sleds and slots that a configuration asks for.
 *
 * @is_known	NULL: look at all objects.  Those that are not known are pinned, so that nothing in the
 *		plan is unloaded before tw_plan_destroy().
 * @out		gives.
 *
 * Calls the loader: never with the permit.  Errors: TW_ENOMEM.
 */
int tw_plan_make(const struct tw_agent_config *config, tw_plan_is_known_fn is_known, void *arg, struct tw_plan **out);
/* May run destructors of objects that the program closed meanwhile: never with the permit. */
void tw_plan_destroy(struct tw_plan *plan);

/* ---- known.c ---- */

struct tw_permit;

/* Has ld.so loaded or unloaded anything since the last look that left nothing to do? */
bool tw_known_is_change(void);
/* Was this object looked at?  A tw_plan_is_known_fn. */
bool tw_known_has(const struct tw_sym_object *object, void *unused);

/* Was a newer look applied already?  Then this one must not be.  Under the permit. */
bool tw_known_is_outdated(const struct tw_sym_set *set);
/*
 * tw_known_update - a look is about to be applied: objects that are gone, or others now, are forgotten with their places.
 *
 * Returns false when something that the look passed over as known was forgotten: another look must follow.
 */
bool tw_known_update(struct tw_permit *permit, const struct tw_plan *plan);
/* Under the permit, with its places staged.  Without memory it is looked at again: slower, not wrong. */
void tw_known_add(const struct tw_sym_object *object);
/* The look was committed. */
void tw_known_saw(const struct tw_sym_set *set);

/* Around fork(). */
void tw_known_before_fork(void);
void tw_known_after_fork(void);

/* ---- arm.c ---- */

/*
 * tw_agent_arm_init - say what to trace, once tw_agent_session is there.
 *
 * @config	takes.
 * Threads: the constructor's.
 */
void tw_agent_arm_init(struct tw_agent_config *config);

/*
 * tw_agent_look - arm the objects that came since the last look, forget those that went.
 *
 * Changes neither errno nor what the thread's dlerror() says of a dlopen() that succeeded; its own calls
 * of traced functions are not recorded.  Without permit and outside of hits; nested calls do nothing.
 */
void tw_agent_look(void);

/* The program closes a handle: by the real dlclose, which is given; what it unloads is forgotten. */
int tw_agent_close(int (*close)(void *), void *handle);

/* In a forked child that is traced again, once it has its own rings. */
void tw_agent_arm_after_fork(void);

/* The program ends: were slots overwritten since they were armed?  Says so. */
void tw_agent_bind_again(void);

/* Is the calling thread inside tw_agent_look()?  Its calls of the loader are ours then. */
bool tw_agent_is_looking(void);

/* ---- returns.c ---- */

/* Takes from the configuration what cannot be had in this process, and says so in the capture. */
void tw_agent_returns_init(struct tw_agent_config *config);
/* Objects were loaded: perhaps an unwinder that we do not understand. */
void tw_agent_returns_look(void);
/* The same, with the objects: perhaps one that copies stacks. */
void tw_agent_returns_see(const struct tw_sym_set *set);
/* Are exceptions recorded, and with them longjmp? */
bool tw_agent_has_exceptions(void);
/* The program ends: tells how many calls were not seen to return. */
void tw_agent_returns_end(void);

/* ---- program.c, environment.c: what is executed.  System calls and the stack only: vfork(), signal handlers. ---- */

enum tw_agent_program {
	TW_PROGRAM_TRACED, /* dynamically linked, loaded by glibc's ld.so, with no other rights; text, which a shell takes */
	TW_PROGRAM_UNKNOWN, /* not there, or not to be read */
	TW_PROGRAM_STATIC,
	TW_PROGRAM_OTHER, /* another C library, or another machine */
	TW_PROGRAM_RIGHTS /* set-uid, set-gid, file capabilities */
};

/* What would be executed under this name, in a folder (a descriptor, AT_FDCWD); behind a descriptor; as a shell searches. */
enum tw_agent_program tw_agent_program_at(int folder, const char *name);
enum tw_agent_program tw_agent_program_of(int fd);
enum tw_agent_program tw_agent_program_in(const char *path_list, const char *name);

/*
 * tw_agent_environment_init - remember our variables; where children are not followed, take them out of the environment.
 *
 * Threads: the constructor's, of a process that is traced.
 */
void tw_agent_environment_init(bool is_followed);
/* Is it for us to say what the calling process hands to what it executes?  To its children? */
bool tw_agent_environment_is_ours(void);
bool tw_agent_environment_is_followed(void);
/*
 * tw_agent_environment_for - the variables for a program: with ours, or without.
 *
 * @variables	borrows; may be NULL.  @memory	tw_agent_environment_bytes() of them: holds the answer.
 */
char **tw_agent_environment_for(enum tw_agent_program program, char *const *variables, void *memory);
size_t tw_agent_environment_bytes(char *const *variables);

/* ---- state.c: what every file may ask.  Any thread, but for what the constructor's writes. ---- */

struct tw_session;

/* Attached by start.c before anything is traced, and never detached from then on. */
extern struct tw_rs tw_agent_ring_set;
/* The agent's own session: made by start.c, never destroyed. */
extern struct tw_session *tw_agent_session;

/* The constructor's thread: all is set up. */
void tw_agent_set_active(void);
/* Does this process trace? */
bool tw_agent_is_active(void);
/* The directory of the rings while it is active; NULL: it is not. */
const char *tw_agent_ring_set_path(void);
/* Writes a sentence into the capture. */
void tw_agent_tell(const char *text);
/* Counts a program that is executed and not traced, by the reason. */
void tw_agent_count_untraced(enum tw_agent_program program);

/* ---- start.c ---- */

/*
 * tw_agent_start - begin to trace this process, if the environment asks for it.
 *
 * Inert without TRACEWHEEL_AGENT, in set-uid programs, in children that are not followed, and where
 * the ring set cannot be used: the program runs on as if nothing were there.  Threads: the constructor's.
 */
void tw_agent_start(void);

/* ---- loader.c ---- */

/* The real dlopen, and a dlclose that knows of slots. */
struct tw_loader_calls {
	void *(*open)(const char *, int);
	int (*close)(void *);
};

/*
 * tw_loader_open - open what the caller's dlopen(name) means.
 *
 * ld.so finds a plain name by the run path of the object that calls, which it knows by the return address;
 * behind our wrapper that would be us.  So what depends on the caller is searched here: $ORIGIN in the name,
 * and the directories of its RPATH and RUNPATH (with LD_LIBRARY_PATH between them, as ld.so orders them).
 *
 * @caller	an address inside the calling object.
 *
 * Returns what dlopen would, and leaves dlerror() as it would.
 */
void *tw_loader_open(const struct tw_loader_calls *calls, const char *name, int flags, const void *caller);

/* Does this system call make a child with a copy of the memory, that comes back where its parent does?  preload/fork.c. */
bool tw_preload_makes_child(long number, long a, long b);

#endif
