/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - the preloaded library that traces calls through slots and sleds of an unmodified program.
 *
 *	preload/	what is exported to the program: the constructor, dlopen, dlclose
 *	start.c		may we, where do events go; a forked child that is followed
 *	dormant.c	a thread that waits for the command, in a program that was started without one
 *	leave.c		the end of a recording, from inside
 *	state.c		what all files below may ask: is the process traced, in which session
 *	config.c	what the command asks for, as text in the ring set's control page
 *	aggregate.c	which registers hold what counted calls are summed up by
 *	layouts.c	how arguments lie in registers, as the command has found out
 *	plan.c		what to arm: objects, sleds, entries and slots, found while no lock of ours is held
 *	plan_entries.c	which functions of an object are recorded at their entries, and under which name
 *	entries.c	plans of function entries, which the command has made (symbols/entry_plan.h)
 *	held.c		entries first wanted while threads run: the recorder stops all threads and writes
 *	places.c	the plan becomes places, under the permit
 *	plan_sites.c, sites.c	the same for probes that the program brings itself
 *	demote.c	functions that make too many events are counted from now on
 *	arm.c		objects are examined as they come and go; what was unloaded is forgotten
 *	known.c		which objects were examined, and whether they are unchanged
 *	crash.c		a signal that ends the program is written down
 *	returns.c	can the ends of calls be seen, and which were not
 *	python.c	frames of CPython 3.11 as functions
 *	python_late.c	the same of an interpreter that runs already
 *	python_code.c	which function a code object is
 *	loader.c	which file a program's dlopen means
 *
 * Locks  The loader's are taken before the permit, never while it is held: a constructor runs under the loader's lock
 *	  and may call dlopen, which takes the permit.
 */
#ifndef TW_AGENT_AGENT_H
#define TW_AGENT_AGENT_H

#include "agent/config.h"
#include "base/program.h"
#include "base/vectors.h"
#include "ringbuf/ringset.h"
#include "symbols/symbols.h"
#include "tracewheel/counts.h"
#include "tracewheel/pattern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- aggregate.c ---- */

struct tw_place;

/* A place is about to be counted: finds the registers of what is aggregated, by the layout of its function, or by number. */
void tw_agent_aggregate(const struct tw_agent_config *config, struct tw_place *place);
/* Are callers aggregated?  Then a reader needs all modules. */
bool tw_agent_aggregates_callers(const struct tw_agent_config *config);

/* ---- ports.c ---- */

#define TW_PORT_LAYOUT_BYTES 256

/* Before the others; any number of times, by one thread. */
void tw_agent_ports_init(void);
/* Does the configuration ask for a function of libc with this name, or for libc, because they use descriptors? */
bool tw_agent_is_port_function(const struct tw_agent_config *config, const char *name);
bool tw_agent_is_port_module(const struct tw_agent_config *config, const char *soname);
/* Does such a function transfer bytes?  @is_stream: of a stream, not of a descriptor. */
bool tw_agent_is_port_transfer(const char *name, bool *is_stream);
/* Defines the descriptors that the program was started with. */
void tw_agent_ports_inherited(void);
/* Defines a pointer to such a function. */
void tw_agent_ports_pointer(const char *module, const char *function, bool is_stream);
/* The layout of such a function of such a module; NULL: it is none.  Lends from @text, or a constant. */
const char *tw_agent_port_layout(const struct tw_agent_config *config, const char *soname, const char *name,
				 char text[TW_PORT_LAYOUT_BYTES]);

/* ---- layouts.c ---- */

struct tw_agent_layouts;
struct tw_plan;
struct tw_permit;
struct tw_function;
struct tw_entry_plan;
struct tw_entry_plan_row;
struct tw_frame_rows;

void tw_agent_layouts_destroy(struct tw_agent_layouts *layouts);

/*
 * tw_agent_layouts_update - parse text added to the layouts file since config->layouts_at.
 *
 * Under the permit, except the first time.  Text that cannot be read is ignored: arguments are then words.
 */
void tw_agent_layouts_update(struct tw_agent_config *config, const struct tw_rs *rs);

/*
 * tw_agent_layouts_missing - find an object that the plan arms and the command has not examined.
 *
 * Lends; NULL: none, or the command must not be asked.  Under the permit.
 */
const struct tw_sym_object *tw_agent_layouts_missing(const struct tw_agent_config *config, const struct tw_plan *plan);

/*
 * tw_agent_layouts_ask - ask the command to examine the objects of this process, including @object.
 *
 * Waits for the answer, at most config->ask_ns, and not at all while an earlier request is unanswered.  After a
 * timeout, writes a note to the capture: the object's arguments will be words.  Without permit.
 */
void tw_agent_layouts_ask(const struct tw_agent_config *config, struct tw_rs *rs, const struct tw_sym_object *object);
/*
 * tw_agent_set_layout - set the types of a function's arguments once, for hits and readers; if memory is short they remain words.
 *
 * @text	of tracewheel/layout.h; NULL: nothing is set.
 */
void tw_agent_set_layout(struct tw_function *function, const char *text, uint32_t string_bytes);
/* The layout of the function at this value in the object; borrowed; NULL: none.  @layouts may be NULL. */
const char *tw_agent_layouts_find(const struct tw_agent_layouts *layouts, const struct tw_sym_object *object,
				  uint64_t value);

/* That function's compiled guard for condition number @condition; borrowed; NULL: none.  Under a permit. */
const struct tw_match_program *tw_agent_layouts_guard(struct tw_agent_layouts *layouts,
						      const struct tw_sym_object *object, uint64_t value,
						      uint32_t condition);
/* The same as text; borrowed; NULL: none. */
const char *tw_agent_layouts_guard_text(const struct tw_agent_layouts *layouts, const struct tw_sym_object *object,
					uint64_t value, uint32_t condition);

/* ---- plan.c ---- */

/* A slot to arm. */
struct tw_plan_slot {
	size_t caller, definer; /* indexes into the set's objects */
	void **where;
	void *target;
	const char *function; /* borrowed from the object, which is pinned */
	bool is_watched;      /* our wrapper is called instead, and handles a return address of ours */
};

/* An entry sled to arm. */
struct tw_plan_sled {
	size_t object;
	struct tw_sym_sled sled;
};

/* A function's entry to plant. */
struct tw_plan_entry {
	size_t object;
	const struct tw_entry_plan *plan; /* of the object, until the process ends */
	const struct tw_entry_plan_row *row;
	const char *name; /* the one requested, borrowed from plan or object; NULL: nameless */
};

struct tw_plan_note {
	char *text;
	const void *unless; /* not told if the calls of this function are recorded in another way; NULL: told */
};

struct tw_plan_pointer {
	size_t object;	      /* that holds it */
	const char *function; /* borrowed by the object */
	bool is_stream;
};

struct tw_plan {
	struct tw_sym_set *set;
	struct tw_sym_sleds *sleds_of; /* by object */
	struct tw_plan_sled *sleds;
	size_t sled_count, sled_capacity;
	struct tw_plan_entry *entries; /* those of one object are adjacent */
	size_t entry_count, entry_capacity;
	struct tw_plan_entry *sites; /* probes, as entries */
	size_t site_count, site_capacity;
	struct tw_plan_slot *slots;
	size_t count, capacity;
	void **pins;	 /* by object; NULL: not pinned */
	bool *is_new;	 /* by object: examined for the first time */
	bool *was_known; /* by object: skipped as known */
	const struct tw_frame_rows *
		*frames;  /* by object; NULL: no callers are recorded beyond the direct one, or no table is there */
	bool *is_put_off; /* by object, once armed: entries are not planted yet, because a thread was in dlclose() */
	bool has_definer; /* some object may define a requested function */
	/* Sentences about functions that a pattern names but that cannot be traced. */
	struct tw_plan_note *notes;
	size_t note_count, note_capacity;
	/* With has_ports: pointers that objects hold, to functions that transfer bytes. */
	struct tw_plan_pointer *pointers;
	size_t pointer_count, pointer_capacity;
};

/*
 * tw_plan_wants - whether a function is requested.
 *
 * @arity	TW_PATTERN_ARITY_ANY: not looked up yet; patterns with an arity may then match.
 */
bool tw_plan_wants(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function,
		   uint32_t arity);

/* Does this pattern match the function, whatever the arity? */
bool tw_plan_matches(const struct tw_agent_config *config, struct tw_pattern *pattern,
		     const struct tw_sym_object *definer, const char *function);

/* Is a function that is requested to be counted, and not recorded? */
bool tw_plan_counts(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function,
		    uint32_t arity);

/* Are its calls to be recorded without callers and returns? */
bool tw_plan_is_bare(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function);
/* The condition on the calls of a function; borrowed; zeros: all calls. */
struct tw_plan_condition {
	const struct tw_match_program *program;
	const char *text;  /* the same, by the end of calls where that decides */
	const char *shown; /* as the user wrote it */
	uint64_t least_ns; /* instead: of calls that take so long */
};
/*
 * tw_plan_chooses - find the condition on its calls: of the first pattern that names it.
 *
 * @value	of the function in its object.
 *
 * False: it has none, though each function has its own: no call is recorded.  Under a permit.
 */
bool tw_plan_chooses(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function,
		     uint32_t arity, uint64_t value, struct tw_plan_condition *out);
/* How many words of the function's arguments are recorded. */
unsigned tw_plan_words(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function);

/* The same as tw_plan_wants(), but for patterns that exclude functions, and whatever the arity. */
bool tw_plan_selects(const struct tw_agent_config *config, const struct tw_sym_object *definer, const char *function);

/* A pattern names exactly this function: its absence deserves a note. */
bool tw_plan_is_named(const struct tw_agent_config *config, const char *function);
void tw_plan_put_note(struct tw_plan *plan, const void *unless, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns true for objects that were examined before.  Called without locks. */
typedef bool (*tw_plan_is_known_fn)(const struct tw_sym_object *object, void *arg);

/*
 * tw_plan_make - find the sleds and slots that a configuration requests.
 *
 * @is_known	NULL: examine all objects.  Other objects are pinned, so that nothing in the plan is unloaded before
 *		tw_plan_destroy().
 * @out		gives.
 *
 * Calls the loader: never under the permit.  Errors: TW_ENOMEM.
 */
int tw_plan_make(const struct tw_agent_config *config, tw_plan_is_known_fn is_known, void *arg, struct tw_plan **out);
/* May run destructors of objects that the program has closed meanwhile: never under the permit. */
void tw_plan_destroy(struct tw_plan *plan);

/* ---- plan_entries.c ---- */

/*
 * tw_plan_add_entries - add the functions of an object that have no sled and are to be recorded at their entries.
 *
 * @index	of the object, which is pinned and whose sleds are known.
 *
 * Adds none if there is no plan of the object.  TW_ENOMEM.
 */
int tw_plan_add_entries(struct tw_plan *plan, const struct tw_agent_config *config, size_t index);

/* ---- plan_sites.c ---- */

/* The name of the module of all probes; an object that has it stands for the probes of one. */
extern const char tw_agent_probes[];

/* Does a pattern ask for probes, and may code be changed for them? */
bool tw_agent_wants_probes(const struct tw_agent_config *config);
/* The object as the module of its probes: borrows what the object has. */
struct tw_sym_object tw_agent_probes_of(const struct tw_sym_object *object);
/* tw_plan_add_sites - add the probes of an object that patterns select.  As tw_plan_add_entries(). */
int tw_plan_add_sites(struct tw_plan *plan, const struct tw_agent_config *config, size_t index);

/* ---- sites.c ---- */

/* Stages the plan's probes.  Under the permit. */
void tw_agent_arm_sites(const struct tw_agent_config *config, struct tw_permit *permit, const struct tw_plan *plan);

/* ---- entries.c ---- */

/*
 * tw_agent_entries_init - where the command keeps plans of files seen before.
 *
 * @config	borrows until the process ends.
 */
void tw_agent_entries_init(const struct tw_agent_config *config);
/*
 * tw_agent_entry_plan - the plan of an object's entries, if the command has left one in the ring set, or keeps one.
 *
 * Lends until the process ends; NULL: there is none, or it is not this object's.  Threads: any.
 */
const struct tw_entry_plan *tw_agent_entry_plan(const struct tw_sym_object *object);
/*
 * tw_agent_keeps_return - does a function use its return address, other than by returning, as far as a plan is known that says so?
 *
 * Reads no files.  Threads: any.
 */
bool tw_agent_keeps_return(const struct tw_sym_object *object, uintptr_t address);
/*
 * tw_agent_entries_lack - does an object have no plan, although the command could make one?
 *
 * @object	pinned: its headers are read.  Threads: any.
 */
bool tw_agent_entries_lack(const struct tw_sym_object *object);
/*
 * tw_agent_frame_rows - the table of an object's frames: lends, as tw_agent_entry_plan().
 * tw_agent_frame_rows_lack - as tw_agent_entries_lack().
 */
const struct tw_frame_rows *tw_agent_frame_rows(const struct tw_sym_object *object);
bool tw_agent_frame_rows_lack(const struct tw_sym_object *object);
/* Are there more callers recorded than the direct one? */
static inline bool tw_agent_wants_frames(const struct tw_agent_config *config)
{
	return config->stack_depth > 1 || config->tells_crash;
}
/*
 * tw_agent_entries_ask - ask the command for plans, and tables of frames, of the objects of this process.
 *
 * @count	of objects that lack a plan.  They are counted in the ring set if no answer comes in time.
 *
 * Waits for the answer: plan_start_ns of the configuration while the program starts, else plan_ns, and not at all while an earlier
 * question, for which a thread has waited in vain, is unanswered.  Without permit.
 */
void tw_agent_entries_ask(struct tw_rs *rs, unsigned count);
/* Why an object has no plan: a clause.  *is_unforeseen: not by its kind, so it is told whatever is recorded. */
const char *tw_agent_entries_why_none(const struct tw_sym_object *object, const struct tw_rs *rs, bool *is_unforeseen);
/* Call around fork(). */
void tw_agent_entries_before_fork(void);
void tw_agent_entries_after_fork(void);

/* ---- held.c ---- */

/* From now on entries are also planted while several threads run. */
void tw_agent_held_init(void);
/* Writes a note about functions of a module that the last such attempt has left out.  @lack: "not traced".  Under the permit. */
void tw_agent_held_tell(unsigned count, const char *module, const char *lack);

/* ---- preload/bind.c ---- */

/*
 * After entries were planted: leads our own calls of these functions past them.  Under the permit.  Set before all constructors, NULL
 * outside of the preloaded library.
 */
extern void (*tw_agent_bind_beside)(struct tw_permit *permit);

/* ---- demote.c ---- */

/* A recording begins: nothing is demoted in it. */
void tw_agent_demote_init(void);
/* Was the recorder's request that calls of this function are counted?  Under the permit. */
bool tw_agent_is_demoted(const struct tw_function *function);
/* Does what the recorder has asked for, if anything.  Threads: that of dormant.c, while it is attached. */
void tw_agent_demote(void);

/* ---- places.c ---- */

/* @config	borrows until the process ends. */
void tw_agent_places_init(const struct tw_agent_config *config);
/* Stages the plan's places.  Under the permit. */
void tw_agent_arm_plan(struct tw_permit *permit, const struct tw_plan *plan);

/* ---- known.c ---- */

/* Has ld.so loaded or unloaded anything since the last complete scan? */
bool tw_known_is_change(void);
/* Was this object examined?  A tw_plan_is_known_fn. */
bool tw_known_has(const struct tw_sym_object *object, void *unused);

/* True if a newer scan has been applied, so that this one must not be.  Under the permit. */
bool tw_known_is_outdated(const struct tw_sym_set *set);
/*
 * tw_known_update - before a scan is applied, forget unloaded or replaced objects and their places.
 *
 * Returns false if it forgot an object that the scan skipped as known: another scan must follow.
 */
bool tw_known_update(struct tw_permit *permit, const struct tw_plan *plan);
/*
 * Under the permit, with the object's places staged.  If memory is short, or some places are put off, the object is examined
 * again next time.
 */
void tw_known_add(const struct tw_sym_object *object, bool is_put_off);
/* Call after the scan was committed. */
void tw_known_saw(const struct tw_sym_set *set);

/* Call around fork(). */
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
 * tw_agent_update - arm objects loaded since the last scan, and forget unloaded ones.
 *
 * Preserves errno and the thread's dlerror() of a successful dlopen(); calls of traced functions made here are not
 * recorded.  Without permit and outside of hits; nested calls do nothing.
 */
void tw_agent_update(void);

/* Closes a handle for the program with the given dlclose, and forgets what that unloads. */
int tw_agent_close(int (*close)(void *), void *handle);

/*
 * tw_agent_arm_before_fork - call on the thread that forks.
 * tw_agent_arm_after_fork - call in a forked child that is traced, once it has its own rings.  Takes no lock of ld.so if the parent had
 *	several threads.
 */
void tw_agent_arm_before_fork(void);
void tw_agent_arm_after_fork(void);

/* Called at program end: writes a note if slots were overwritten since they were armed. */
void tw_agent_bind_again(void);

/* True while the calling thread is inside tw_agent_update(): its calls of the loader are then ours. */
bool tw_agent_is_looking(void);

/* ---- returns.c ---- */

/* Removes from the configuration what this process does not allow, and writes a note about it. */
void tw_agent_returns_init(struct tw_agent_config *config);
/* Called after loading: an object may bring an unwinder that is not supported. */
void tw_agent_returns_check(void);
/* Called with the objects: one of them may copy stacks. */
void tw_agent_returns_see(const struct tw_sym_set *set);
/* Are exceptions and longjmp recorded? */
bool tw_agent_has_exceptions(void);
/* Called at program end: writes a note with the number of calls whose return was not seen. */
void tw_agent_returns_end(void);

/*
 * ---- program.c, environment.c: programs to be executed.  System calls and the stack only: for vfork(), signal
 * handlers ----
 */

/*
 * The kind of the program that would be executed, never TW_PROGRAM_SCRIPT: by name in a folder (a descriptor or AT_FDCWD); by descriptor; by a
 * shell's search.
 */
enum tw_program_kind tw_agent_program_at(int folder, const char *name);
enum tw_program_kind tw_agent_program_of(int fd);
enum tw_program_kind tw_agent_program_in(const char *path_list, const char *name);

/*
 * tw_agent_environment_init - remember our variables, and remove them if children are not followed.
 *
 * Threads: the constructor's, in a traced process.
 */
void tw_agent_environment_init(bool is_followed);
/* True if the calling process decides what it passes to the programs it executes, or to its children. */
bool tw_agent_environment_is_ours(void);
bool tw_agent_environment_is_followed(void);
/*
 * tw_agent_environment_for - the variables for a program, with or without ours.
 *
 * @variables	borrows; may be NULL.
 * @memory	holds the result: tw_agent_environment_bytes() of @variables.
 */
char **tw_agent_environment_for(enum tw_program_kind program, char *const *variables, void *memory);
size_t tw_agent_environment_bytes(char *const *variables);

/* ---- state.c: what every file may ask.  Any thread, but for what the constructor's writes. ---- */

struct tw_session;

/* Attached by start.c before anything is traced; detached only by leave.c. */
extern struct tw_rs tw_agent_ring_set;
/* The agent's own session: made by start.c, destroyed only by leave.c; NULL: none. */
extern struct tw_session *tw_agent_session;

/* The thread that begins or leaves a recording: all is set up, or nobody may enter any more. */
void tw_agent_set_active(bool is_tracing);
/* Does this process trace? */
bool tw_agent_is_active(void);
/*
 * tw_agent_enter - the calling thread is about to use ring set and session, which stay until tw_agent_leave().
 *
 * False: this process does not trace, and there is nothing to leave.  Calls may nest.
 */
bool tw_agent_enter(void);
void tw_agent_leave(void);
/* The ring set's directory while the agent is active; else NULL. */
const char *tw_agent_ring_set_path(void);
/* Writes a note to the capture, unless the same was written before. */
void tw_agent_tell(const char *text);
/* The same, of functions that are not armed as they should be: the account of the capture counts them. */
void tw_agent_tell_unarmed(unsigned count, const char *text);
/* In a forked child, whose image has no notes yet. */
void tw_agent_tell_again(void);
/* Counts a program that is executed and not traced, by the reason. */
void tw_agent_count_untraced(enum tw_program_kind program);

struct tw_place;

/* ---- written.c: what the recorder takes back when the recording ends.  Under the permit, but for is_over. ---- */

/* Called once, before the first place is armed. */
void tw_agent_written_init(void);
/*
 * tw_agent_written_begin - begin to arm places for the recording, or to write what is due for it.
 *
 * False: the recording has ended, and nothing is armed any more.  True: tw_agent_written_end() must follow, after the commit.
 */
bool tw_agent_written_begin(void);
/* The place is about to be staged for the recording. */
void tw_agent_written_expect(struct tw_place *place);
void tw_agent_written_end(void);
/*
 * tw_agent_written_raise - add 1 to a 16-bit semaphore of the program, for the recording, unless that was done.
 *
 * False: the system refuses.  Between tw_agent_written_begin() and its end.
 */
bool tw_agent_written_raise(uintptr_t semaphore);
/*
 * In a forked child that has claimed its image, with or without success, and has one thread: if the recording has ended meanwhile, the
 * recorder does not know the child, which takes back itself what was written.
 */
void tw_agent_written_after_fork(void);
/* Has the recorder ended the recording, or is it about to?  Threads: any that has entered, or has the permit. */
bool tw_agent_is_over(void);

/* ---- python.c: frames of CPython 3.11 ---- */

/* Their modules have this name as well, in patterns and captures. */
#define TW_AGENT_PYTHON_MODULE "py"

/* The configuration asks for them: looks for an interpreter in the program.  Threads: the constructor's, while the agent is active. */
void tw_agent_python_begin(void);
/* The same in an object that the program has opened; nothing if they are not asked for.  May leave a message for dlerror(). */
void tw_agent_python_look(void *handle);
/* At the end of the program: says why nothing was recorded. */
void tw_agent_python_end(void);

/* ---- start.c ---- */

/* Does the recording select a function of Python? */
bool tw_agent_wants_python(const char *module, const char *function);

/*
 * tw_agent_start - start tracing this process if the environment requests it.
 *
 * Does nothing without TRACEWHEEL_AGENT, in set-uid programs, in children that are not followed, and if the ring set
 * cannot be used: the program then runs untraced.  Threads: the constructor's.
 */
void tw_agent_start(void);

/* ---- loader.c ---- */

/* The real dlopen, and a dlclose that maintains slots. */
struct tw_loader_calls {
	void *(*open)(const char *, int);
	int (*close)(void *);
};

/*
 * tw_loader_open - open the file that the caller's dlopen(name) means.
 *
 * ld.so resolves a plain name by the run path of the calling object, which it finds by the return address; behind our
 * wrapper that would be this library.  Thus everything that depends on the caller is resolved here: $ORIGIN in the
 * name, and the directories of its RPATH and RUNPATH (with LD_LIBRARY_PATH between them, in ld.so's order).
 *
 * @caller	an address inside the calling object.
 *
 * Returns what dlopen would, and leaves dlerror() as dlopen would.
 */
void *tw_loader_open(const struct tw_loader_calls *calls, const char *name, int flags, const void *caller);

/*
 * Does this system call make a child that gets a copy of the memory and returns at the same point as its parent?
 * preload/fork.c.
 */
bool tw_preload_makes_child(long number, long a, long b);

/* Called before the program starts a process, and after it has done so: preload/children.c. */
void tw_preload_child_begins(void);
void tw_preload_child_began(void);

#endif
