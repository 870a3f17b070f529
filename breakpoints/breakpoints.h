/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breakpoints.h - places where events can arise, in two generations, changed under the one permit.
 *
 *	struct tw_function (a name) ---> struct tw_place (a declared check, a GOT slot, a sled, an entry)
 *	                                     gen[0]  {sessions, special, parts} \  the active index, one
 *	                                     gen[1]  {sessions, special, parts} /  word, picks one of them
 *
 * A *place* is a point that calls pass; it lives as long as the process.  A *part* holds one session's settings of a
 * place.  Parts are immutable once active: a change builds new ones in the staging generation, and one store of the
 * active index makes all changes of a transaction visible at once.
 *
 * This room knows sessions as numbers (bits) only.  The recipe is in commit.c.
 *
 * Threads  Every function that makes a change takes the permit as a parameter.  Hits read generations
 *	    inside a read section of progress/.
 * Units    session: a bit index below TW_SESSIONS_MAX.
 */
#ifndef TW_BREAKPOINTS_BREAKPOINTS_H
#define TW_BREAKPOINTS_BREAKPOINTS_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/cacheline.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_match_program;
struct tw_arg_plan;
struct tw_function;
struct tw_entry_plan;
struct tw_entry_plan_row;
struct tw_frame_rows;

/* Actions of a session when a call passes. */
enum {
	TW_ACTION_CALL = 1,
	TW_ACTION_RETURN = 2,
	TW_ACTION_EXCEPTION = 4,
	TW_ACTION_RETURN_TO = 8,
	TW_ACTION_COUNT = 16,
	TW_ACTION_TIME = 32,
	TW_ACTION_MEMORY = 64,
	TW_ACTION_META = 128,
	/* With TW_ACTION_CALL: only calls that name the module; those give no return_to. */
	TW_ACTION_GLOBAL = 256,
	/* Alone: calls that take tw_place.longer_ticks or longer, or fulfil tw_place.condition, decided when they end; others are counted. */
	TW_ACTION_LONGER = 512
};

/* Counts by process, for one place and session: made, reset and freed by session/. */
struct tw_counts;
/* Counter of the calls of one place and session. */
struct tw_counter;

/*
 * A range test on one raw argument word, decided without the interpreter: word - low << shift <= span.  It replaces
 * the part's program if a call has `count` words.
 */
struct tw_bp_quick {
	uint8_t is_set;
	uint8_t is_prefix; /* at least count words */
	uint8_t argument;  /* index, below count */
	uint8_t count;
	uint8_t shift;
	uint64_t low;
	uint64_t span;
};

/* The settings of one session for one place.  Immutable while reachable. */
struct tw_bp_part {
	uint32_t actions;
	uint8_t session;
	uint8_t slot_words;  /* slots: argument registers to record, or TW_SLOT_WORDS_TYPED */
	uint8_t stack_depth; /* sleds, slots: return addresses to record with each call; 0: none */
	uint8_t reserved;
	struct tw_bp_quick quick;
	const struct tw_match_program *program;	     /* TW_ACTION_CALL; borrows: outlives the part; NULL: always */
	const struct tw_match_program *meta_program; /* the same for TW_ACTION_META */
	struct tw_counter *counter;		     /* TW_ACTION_COUNT, TW_ACTION_LONGER: where to count */
	/* Not used after the read section: a commit that replaces them frees them. */
	struct tw_counts *times;    /* TW_ACTION_TIME */
	struct tw_counts *memories; /* TW_ACTION_MEMORY */
};

/* The value of slot_words for typed arguments; it is not a number of words. */
#define TW_SLOT_WORDS_TYPED 255

/* Arguments that are words of integer registers, and nothing else is to be read for them. */
struct tw_bp_words {
	bool is_known; /* false: they are not so simple */
	uint8_t count;
	uint8_t registers[TW_ARGS_MAX]; /* of the first `count`; the others are 0 */
};

/*
 * One generation of a place.  Written under the permit while it is the staging one; read by hits
 * while it is the active one: ordered by PAIR bp.active and thread progress.
 */
struct tw_bp_generation {
	/* One line of the cache, of which most calls read nothing else. */
	TW_LINE_ALIGNED uint64_t sessions; /* a bit for each session that wants calls here */
	/*
	 * Of these, sessions whose calls are records without anything to be done before: plain ones, those that `fused` decides, or
	 * the one session that wants words.  0 if any session counts.
	 */
	uint64_t at_once;
	uint64_t special;    /* those that want more than a plain call event */
	uint64_t returns;    /* those that want return_from of each recorded call */
	uint64_t exceptions; /* the same for exception_from */
	uint64_t counting;   /* those that count or want (meta) the calls of every process, independent of its flags */
	/* The only session, if its calls are records of `at_once` without words, test or end, and nothing comes before them; else 0. */
	uint64_t bare;
	/* The words in each record of `at_once`: of the form, and their registers. */
	uint8_t form;	/* TW_BP_FORM_*, and how many */
	bool is_tested; /* the special one of at_once has the range test */
	uint8_t registers[TW_ARGS_MAX];
	uint64_t global;			/* sessions that want only calls that name the module */
	struct tw_counter *only_counter;	/* set if all that is wanted here is one session's count; else NULL */
	const struct tw_bp_part *only_accounts; /* the same for counts with time or memory: the session's part */
	struct tw_bp_part *parts;		/* by rank of the session's bit in `special`; NULL when none */
	/* The range test of the one special session whose part is nothing else, or also words, stored inline. */
	uint64_t fused; /* nothing else */
	struct tw_bp_quick quick;
};

enum { TW_BP_FORM_RAW = 0, TW_BP_FORM_TYPED = 8, TW_BP_FORMS = 16 };

/* The part of a session's bit, which must be a special one.  Mostly it is the only one, or the first. */
static inline const struct tw_bp_part *tw_bp_part_of(const struct tw_bp_generation *generation, uint64_t bit)
{
	uint64_t before = generation->special & (bit - 1);

	return &generation->parts[tw_likely(!before) ? 0 : __builtin_popcountll(before)];
}

/* The part that wants calls by their length, of the one session that may have such parts; NULL: none. */
static inline const struct tw_bp_part *tw_bp_longer_part(const struct tw_bp_generation *generation, uint64_t bit)
{
	const struct tw_bp_part *part =
		generation->sessions & generation->special & bit ? tw_bp_part_of(generation, bit) : NULL;

	return part && part->actions & TW_ACTION_LONGER ? part : NULL;
}

static inline bool tw_bp_has_longer(const struct tw_bp_generation *generation)
{
	for (uint64_t todo = generation->special; todo; todo &= todo - 1)
		if (tw_bp_longer_part(generation, todo & -todo))
			return true;
	return false;
}

/* Decides a call by its words: 1 wanted, 0 not, -1 the program must decide. */
static inline int tw_bp_quick_test(const struct tw_bp_quick *quick, const uint64_t *words, unsigned count)
{
	if (!quick->is_set || (quick->is_prefix ? count < quick->count : count != quick->count))
		return -1;
	return (words[quick->argument] - quick->low) << quick->shift <= quick->span;
}

enum tw_bp_kind { TW_BP_DECLARED = 1, TW_BP_SLED = 2, TW_BP_SLOT = 3, TW_BP_ENTRY = 4 };

/* A function of an unmodified object, by its row of a plan (symbols/entry_plan.h). */
struct tw_bp_entry {
	const struct tw_entry_plan *plan;
	const struct tw_entry_plan_row *row; /* not refused */
	uintptr_t base;			     /* of the object: address = base + value */
};

/* The registers of a result, in order. */
enum tw_bp_gives {
	TW_BP_GIVES_WORD,	 /* rax */
	TW_BP_GIVES_VECTOR,	 /* xmm0; its low half, as in all below */
	TW_BP_GIVES_WORDS,	 /* rax, rdx */
	TW_BP_GIVES_VECTORS,	 /* xmm0, xmm1 */
	TW_BP_GIVES_WORD_VECTOR, /* rax, xmm0 */
	TW_BP_GIVES_VECTOR_WORD, /* xmm0, rax */
	TW_BP_GIVES_X87,	 /* st(0), in two words */
	TW_BP_GIVES_MORE	 /* rax, and what the call has made or filled */
};

/*
 * A property of a function that the library itself traces: the number of bytes to allocate (first word, second word, or
 * their product), or the creation of a thread.
 */
enum tw_bp_allocator {
	TW_BP_ALLOCATES_NOTHING,
	TW_BP_ALLOCATES_FIRST,
	TW_BP_ALLOCATES_SECOND,
	TW_BP_ALLOCATES_PRODUCT,
	TW_BP_ALLOCATES_THIRD,
	TW_BP_MAKES_THREAD
};

enum {
	TW_BP_FIRST_ALLOCATION = 1, /* report the requested size, or the creation of a thread: `allocator` */
	TW_BP_FIRST_COUNTER = 2,    /* possibly only a count: only_counter of either generation */
	TW_BP_FIRST_ACCOUNTS = 4,   /* the same for only_accounts */
	TW_BP_FIRST_LONGER = 8,	    /* possibly a part with TW_ACTION_LONGER in either generation */
	TW_BP_FIRST_TRIGGER = 16    /* possibly `trigger` */
};

/* A number of a counted call: an argument register or the result, extended to 64 bits. */
struct tw_bp_source {
	uint8_t word;  /* of the argument registers */
	uint8_t shift; /* 64 - the bits of the number */
	bool is_unsigned;
	bool is_unknown; /* the function has no such number */
};

struct tw_call_condition;

struct tw_place {
	/* Read by every hit. */
	struct tw_bp_generation gen[2];
	_Atomic uint64_t counting; /* a hint: not 0 while either generation counts */
	uint32_t place_id;
	uint32_t arity;	      /* or UINT32_MAX */
	void *_Atomic target; /* slot: continuation of the call */
	/*
	 * Sleds, slots: what a call does before or in place of the general case, TW_BP_FIRST_*.  A hint: the general case
	 * must be correct even if it is not 0.
	 */
	_Atomic uint32_t first;
	uint32_t allocator;	    /* enum tw_bp_allocator of a slot, by its function's name; constant */
	struct tw_bp_source by, of; /* of calls that are counted and aggregated; written before the place is staged */
	/* With TW_ACTION_LONGER: how long a call takes at least that is recorded; set before the part is. */
	_Atomic uint64_t longer_ticks;
	bool is_unwatched; /* its returns are not watched: it returns twice or never, or reads its return address */
	uint8_t gives;	   /* native: the registers of its function's result (enum tw_bp_gives) */
	/*
	 * Sleds, slots, entries: where the code goes on that their stubs share, in assembly: tw_bp_whole_slot, tw_bp_whole_sled, or
	 * a shorter way for what the generations want.  A hint: each of them must be correct for any generation.
	 */
	const char *_Atomic way;
	/* Written under the permit. */
	TW_LINE_ALIGNED uint32_t kind; /* enum tw_bp_kind */
	uint32_t caller_module_id;     /* slot: the module that has it */
	bool is_installed;
	bool is_staged;
	bool is_gone;	     /* its object was unloaded: memory at `where` is not touched again */
	bool is_back;	     /* it was gone or taken back, and memory is to be prepared again; sled: it is not ready */
	bool is_parked;	     /* sled: see sled.c */
	bool is_allocating;  /* hits are needed for `allocator`, independent of sessions */
	bool has_no_end;     /* is_unwatched, but later events do not lie inside its calls */
	bool is_planted;     /* entry: its jump is in memory */
	bool is_due;	     /* sled: to be brought to the state is_installed, when it may be written again */
	uint8_t sled_bytes;  /* sled: length of the NOPs, from `where` */
	uint8_t sled_offset; /* sled: offset from `where` of the five bytes that become a jump */
	_Atomic uint8_t longer_flags; /* with TW_ACTION_LONGER: TW_LONGER_* of longer.h, shifted */
	/* Sessions whose tracer a meta event here has found gone; written by hits, once. */
	_Atomic uint64_t without_tracer;
	struct tw_function *function;
	struct tw_place *next_of_function;
	struct tw_place *next_staged;
	void *where; /* declared: the armed word; slot: the slot; sled: its first byte; entry: its window */
	void *stub;  /* slot: what the slot points to when armed; sled, entry: target of its jump */
	const struct tw_bp_entry *entry; /* entry: its own copy below; else NULL */
	struct tw_bp_entry own_entry;
	/* sled, entry: where the call continues, as unwinders see it: in the function, also if that is in a copy. */
	uintptr_t shown;
	const struct tw_call_condition *_Atomic trigger; /* snapshots for its calls; NULL: none.  PAIR bp.trigger */
	/* With TW_ACTION_LONGER: the condition that decides in place of a length; NULL: none.  PAIR bp.condition */
	const struct tw_call_condition *_Atomic condition;
};

/* The permit to change code and breakpoints: one holder at a time in the process, served in order of arrival. */
struct tw_permit;

/*
 * tw_permit_seize - wait until no other thread has it.
 *
 * Errors: TW_EDEADLK in a hit, in a read section, or when this thread has it already.
 */
int tw_permit_seize(struct tw_permit **permit);
void tw_permit_drop(struct tw_permit *permit);
/* Does the calling thread hold it? */
bool tw_permit_is_mine(void);

/*
 * Called by hits through trampolines (sleds, slots), set once by the room above before any place of
 * that kind is installed.  `words` are the six integer argument registers in order, then %r11, %r10,
 * %rax and the caller's %rbp; `slot` is where the call's return address lies.  Keeps errno.
 *
 * Returns where the call continues: NULL, in the function; else the address that tw_returns_open() gave.
 */
typedef const char *(*tw_bp_hit_fn)(struct tw_place *place, const uint64_t *words, uint64_t *slot);
extern tw_bp_hit_fn tw_bp_trampoline_hit;

/*
 * The same for sites, the NOPs of probes.  `registers` are the sixteen general registers at the NOP, in the order in which instructions number
 * them.  Returns nothing: the program goes on behind the NOP.
 */
typedef void (*tw_bp_site_fn)(struct tw_place *place, const uint64_t registers[16]);
extern tw_bp_site_fn tw_bp_site_hit;

/* The ways that calls take (tw_place.way): that of all calls, which saves the registers and calls tw_bp_trampoline_hit. */
extern const char tw_bp_whole_slot[], tw_bp_whole_sled[];
/*
 * That of calls of which a generation's `bare` may be the session, where nothing has to be saved; set once by the room above; NULL:
 * there is none.  It begins with what whole_slot and whole_sled begin with, and goes on there if it is not for the call.
 */
extern const char *tw_bp_bare_slot, *tw_bp_bare_sled;

/*
 * A list of what was written for one session, which another process may take back; set once by the room above, NULL: there
 * is none.  Called with the permit.
 */
struct tw_bp_list {
	/* The place is set for these sessions: it is not taken back while others than the list's session are among them. */
	void (*keep)(const struct tw_place *place, uint64_t sessions);
	/* Is memory at the place, which is installed, as it was before? */
	bool (*is_taken_back)(const struct tw_place *place);
	/* Is the place, whose write is still due, wanted by the list's session alone, which has ended?  Then it is not written. */
	bool (*is_left)(const struct tw_place *place);
	/* The write of the place, which was due, is done. */
	void (*see_written)(const struct tw_place *place);
	/* The place's object was unloaded. */
	void (*forget)(const struct tw_place *place);
};
extern const struct tw_bp_list *tw_bp_list;

/* ---- functions and their places ---- */

struct tw_module {
	uint32_t module_id;
	bool is_declared;
	bool is_replaced; /* see tw_bp_modules_check() */
	const char *name;
	const char *path;
	const char *whole_path; /* absolute form of a relative path; NULL: path is absolute, or not known */
	const char *soname;
	uint64_t base_address, end_address;
	uint8_t build_id[32];
	uint32_t build_id_bytes;
	const struct tw_frame_rows *frames; /* how callers are found in its code; NULL: not known.  Never unmapped */
	struct tw_function *functions;
	struct tw_module *next;
};

struct tw_function {
	uint32_t function_id;
	uint32_t arity;	  /* or UINT32_MAX */
	bool is_exported; /* if not, only local kinds of tracing find it */
	const char *name;
	uint64_t address; /* 0 when declared */
	uint32_t bytes;	  /* length of its code; 0: not known */
	/* Both names as terms, for tracer modules; set once before the first place that such a session sets; 0: not needed. */
	uint64_t module_atom, name_atom;
	struct tw_module *module;
	struct tw_function *next_of_module;
	struct tw_function *next_of_chain; /* next function of the same hash chain */
	uint32_t hash;
	struct tw_place *places;
	struct tw_place *gone_places; /* places in unloaded objects */
	uint32_t
		demoted_in; /* the agent's: the recording in which calls are counted since there were too many; 0: none */
	/* Its arguments, set before its first place is staged in a session, and again for a later one; NULL: not known. */
	const char *layout;		     /* text */
	const struct tw_arg_plan *arguments; /* the same for hits */
	struct tw_bp_words words;	     /* the same, if it is so simple */
};

/* Describes a module to tw_bp_module_add(); strings are copied. */
struct tw_module_options {
	const char *name, *path, *whole_path, *soname;
	bool is_declared;
	uint64_t base_address, end_address;
	const uint8_t *build_id;
	uint32_t build_id_bytes;
};

/* Finds (by name and base address) or adds.  TW_ENOMEM. */
int tw_bp_module_add(struct tw_permit *permit, const struct tw_module_options *options, struct tw_module **out);
/* Finds (by name and arity) or adds.  TW_ENOMEM. */
int tw_bp_function_add(struct tw_permit *permit, struct tw_module *module, const char *name, uint32_t arity,
		       uint64_t address, struct tw_function **out);

/* The function of that name and arity; NULL: none.  O(1). */
struct tw_function *tw_bp_function_find(struct tw_permit *permit, struct tw_module *module, const char *name,
					uint32_t arity);

struct tw_place_options {
	enum tw_bp_kind kind;
	void *where;
	void *target;		   /* slots */
	uint32_t caller_module_id; /* slots */
	uint8_t sled_bytes;	   /* sleds: number of bytes of NOPs */
	/* Entries: copied; the plan is borrowed until the process ends; `where` is base + value + window_offset. */
	const struct tw_bp_entry *entry;
	bool is_watched;   /* slots: returns may be watched, independent of the function's name */
	bool is_unwatched; /* returns may not be watched, whatever the function's name */
};
/*
 * Adds a place to a function, not installed.  A known slot, sled or entry (same `where`) is found again.  TW_ENOMEM; TW_EFORMAT: of a site and an
 * entry at one address, the other one is known.
 */
int tw_bp_place_add(struct tw_permit *permit, struct tw_function *function, const struct tw_place_options *options,
		    struct tw_place **out);

/*
 * tw_bp_place_renew - what tw_bp_place_add() would make of a place that it has found.
 *
 * For one that earlier sessions knew and none does now: the same code may be another function for the next, with a number of arguments
 * that these did not ask for, and its returns may be watched or not.
 */
void tw_bp_place_renew(struct tw_permit *permit, struct tw_place *place, struct tw_function *function,
		       const struct tw_place_options *options);

/* Before the place is staged. */
static inline void tw_bp_place_set_trigger(struct tw_place *place, const struct tw_call_condition *trigger)
{
	/* PAIR bp.trigger: release; acquire in trigger_of(). */
	tw_store_release(&place->trigger, trigger);
}

/* Looks up an allocator by name; TW_BP_ALLOCATES_NOTHING: not one of the C library's. */
enum tw_bp_allocator tw_bp_allocator_of(const char *function);

/* The place at exactly this address, in a loaded object; NULL: none. */
struct tw_place *tw_bp_place_at(struct tw_permit *permit, void *where);

/* The first module of the process; follow `next`.  Under the permit. */
struct tw_module *tw_bp_modules(struct tw_permit *permit);

/*
 * tw_bp_module_gone - an object was unloaded: its places are never written again, nor matched.
 *
 * Its functions stay known (undelivered events may name them).
 *
 * @is_unloaded	its memory is certainly not mapped any more, so no thread is in it: copies of its instructions are freed. Not
 *		if it only seems to have been replaced (tw_bp_modules_check), since somebody may just have written into it.
 */
void tw_bp_module_gone(struct tw_permit *permit, struct tw_module *module, bool is_unloaded);

/*
 * tw_bp_modules_check - has another object taken a module's place in memory, perhaps the same file loaded again?
 *
 * Sets is_replaced if the module has installed places and none of them holds the bytes written there.  Unmapped
 * memory does no harm.  If the system refuses such reads, nothing is set.
 */
void tw_bp_modules_check(struct tw_permit *permit);

/* ---- staging and commit: the recipe's steps 2 to 12, in commit.c ---- */

/* Step 2.  The part is copied.  Errors: TW_ENOMEM, TW_ELIMIT (no stub for another slot; nothing of this call staged), TW_ENOTSUP. */
int tw_bp_stage_set(struct tw_permit *permit, struct tw_place *place, const struct tw_bp_part *part);
/* Step 2.  No effect without a part of this session.  Cannot fail, even without memory; returns 0. */
int tw_bp_stage_clear(struct tw_permit *permit, struct tw_place *place, unsigned session);
/*
 * Step 2.  Keeps a slot of an allocator (place->allocator) installed while @is_wanted, so that the library sees its
 * hits; no session gets events of them.  Errors as tw_bp_stage_set(); false cannot fail.  The wish survives an abort
 * of the change, after which the slot may be not installed.
 */
int tw_bp_stage_allocations(struct tw_permit *permit, struct tw_place *place, bool is_wanted);
/* Gives the staged part (or the active one, if none is staged) of this session at this place; returns whether there is one. */
bool tw_bp_staged_part(struct tw_permit *permit, struct tw_place *place, unsigned session, struct tw_bp_part *out);
/* Steps 3 to 12.  Returns the number of places changed.  Cannot fail: everything that can fail was done by staging. */
unsigned tw_bp_commit(struct tw_permit *permit);
/* Discards everything staged. */
void tw_bp_abort(struct tw_permit *permit);

/*
 * The gate of every hit, alone in a page that fork() wipes: 0 in a forked child (and before the permit is first
 * seized), else 1 + the index of the active generation.
 */
struct tw_bp_gate {
	_Alignas(TW_PAGE_BYTES) _Atomic uint32_t active;
};
extern struct tw_bp_gate tw_bp_gate __attribute__((visibility("hidden")));

/* Makes the gate.  Called by tw_permit_seize(). */
void tw_bp_init(void);
/* The recipe's step 6: the staging generation becomes the active one.  Under the permit. */
void tw_bp_switch(void);
/* Lets hits through again in a forked child that is traced separately. */
void tw_bp_gate_open(void);
/* The index of the active generation.  Under the permit. */
unsigned tw_bp_active_index(void);
/* In the child of fork(): frees the permit if a thread that does not exist here held it. */
void tw_permit_after_fork_in_child(void);

#endif
