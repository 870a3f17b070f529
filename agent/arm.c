/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm.c - turns a plan into places, and forgets unloaded objects.
 *
 *  1 scan: list the loaded objects, pin the new ones, find their slots                       loader's locks
 *    (ask the command for layouts of the new ones, for a bounded time)
 *  2 seize the permit; scan again if a newer scan was applied meanwhile
 *  3 forget objects that were unloaded or replaced: their slots are never written again
 *  4 stage modules, functions and places of the plan for the session; add the new objects to the known ones
 *  5 commit, drop the permit
 *  6 unpin the new objects (which may run destructors)                                       loader's locks
 *
 * Between 1 and 6 nothing in the plan can be unloaded.  Two threads may examine the same objects at once: the second
 * one finds the places of the first.
 */
#include "agent/agent.h"

#include "base/clock.h"
#include "base/filter.h"
#include "base/sys.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "pipeline/hit/callers.h"
#include "pipeline/format/definitions.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"
#include "session/change.h"
#include "session/definitions.h"
#include "session/native.h"
#include "session/places.h"
#include "session/session.h"
#include "session/setting.h"
#include "tracewheel/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>

/* How long dlopen() waits for another thread's dlclose(), during which nothing may be written. */
#define CLOSING_NS UINT64_C(1000000000)
#define NAP_NS	   UINT64_C(50000)
/* Limit of retries while threads are found binding slots. */
#define BINDING_NAPS 20

static struct tw_agent_config config;

static __thread bool is_looking;
/* This library's frame while it works: libc calls made on our behalf also pass armed slots and must not be recorded. */
static __thread const void *own_work;
static __thread unsigned closings;     /* number of handles we are closing, with slots suspended */
static __thread unsigned own_closings; /* number of the program's dlclose calls this thread is inside */

void tw_agent_arm_init(struct tw_agent_config *new_config)
{
	tw_agent_returns_init(new_config);
	config = *new_config;
}

bool tw_agent_is_looking(void)
{
	return is_looking;
}

/* ---- arming ---- */

static int add_module(struct tw_permit *permit, const struct tw_sym_object *object, struct tw_module **module)
{
	return *module ? 0 : tw_native_module(permit, object, module);
}

/* The most of a path, without typed arguments. */
#define PORT_PATH_BYTES 256

/* Sets the types of its arguments once, for hits and readers.  If memory is short they remain words. */
static void set_layout(struct tw_function *function, const char *text)
{
	struct tw_arg_plan *arguments;
	struct tw_layout *layout;

	/* Events recorded without the layout may be in flight. */
	if (!text || function->layout || function->places || tw_layout_parse(text, strlen(text), &layout))
		return;
	arguments = malloc(sizeof *arguments);
	if (arguments) {
		tw_arg_plan_make(arguments, layout, config.string_bytes ? config.string_bytes : PORT_PATH_BYTES);
		function->layout = strdup(text);
	}
	if (arguments && function->layout)
		function->arguments = arguments;
	else
		free(arguments);
	tw_layout_destroy(layout);
}

/* The number of arguments, if known. */
static uint32_t arity_of(const char *text)
{
	struct tw_layout *layout = NULL;
	uint32_t arity = TW_PATTERN_ARITY_UNKNOWN;

	if (text && !tw_layout_parse(text, strlen(text), &layout) && !layout->is_variadic)
		arity = layout->count;
	tw_layout_destroy(layout);
	return arity;
}

static int add_function(struct tw_permit *permit, const struct tw_sym_object *object, struct tw_module *module,
			const char *name, uint64_t address, struct tw_function **out)
{
	const char *text = tw_agent_layouts_find(config.layouts, object, address - object->elf.base), *port = NULL;
	char layout[TW_PORT_LAYOUT_BYTES];
	int error = tw_bp_function_add(permit, module, name, arity_of(text), address, out);

	if (config.has_ports)
		port = tw_agent_port_layout(&config, object->elf.soname, name, layout);
	if (!error && port)
		set_layout(*out, port);
	else if (!error && config.string_bytes)
		set_layout(*out, text);
	return error;
}

/*
 * The condition on a function's calls; *program NULL: none.  Returns false if the function is not requested.  Calls that use
 * descriptors have none: the table of ports needs all of them.
 */
static bool is_asked_for(const struct tw_sym_object *object, const char *name, uint64_t address,
			 const struct tw_match_program **program)
{
	uint64_t value = address - object->elf.base;
	bool is_port = tw_agent_is_port_module(&config, object->elf.soname) && tw_agent_is_port_function(&config, name);

	*program = is_port ? NULL : config.program;
	/* The plan was made without arities: those of a library are known only after the command has examined it. */
	if (config.has_arities &&
	    !tw_plan_wants(&config, object, name, arity_of(tw_agent_layouts_find(config.layouts, object, value))))
		return false;
	if (!config.has_guards || is_port)
		return true;
	*program = tw_agent_layouts_guard(config.layouts, object, value);
	return *program != NULL;
}

/* Adds the place and stages it. */
static int arm_place(struct tw_permit *permit, struct tw_function *function, const struct tw_match_program *program,
		     const struct tw_place_options *options)
{
	struct tw_bp_part part = {.actions = TW_ACTION_CALL | tw_agent_end_actions(&config),
				  .slot_words = (uint8_t)config.argument_words,
				  .stack_depth = (uint8_t)config.stack_depth};
	struct tw_place *place;
	int error = tw_bp_place_add(permit, function, options, &place);

	if (tw_agent_is_port_module(&config, function->module->soname) &&
	    tw_agent_is_port_function(&config, function->name))
		part.actions |= TW_ACTION_RETURN;
	if (function->arguments) {
		part.slot_words = TW_SLOT_WORDS_TYPED;
		if (!error)
			place->gives = function->arguments->gives;
	}
	if (!error && program)
		tw_session_use_program(&part, place, program);
	return error ? error : tw_session_stage(tw_agent_session, permit, place, &part);
}

static int arm_sled(struct tw_permit *permit, const struct tw_plan *plan, const struct tw_plan_sled *planned,
		    struct tw_module **modules)
{
	const struct tw_sym_sled *sled = &planned->sled;
	const struct tw_place_options options = {.kind = TW_BP_SLED,
						 .where = (void *)sled->where,
						 .sled_bytes = (uint8_t)sled->bytes};
	const struct tw_sym_object *object = &plan->set->objects[planned->object];
	const struct tw_match_program *program;
	struct tw_function *function;
	int error;

	if (!is_asked_for(object, sled->function, sled->entry, &program))
		return 0;
	error = add_module(permit, object, &modules[planned->object]);
	if (!error)
		error = add_function(permit, object, modules[planned->object], sled->function, sled->entry, &function);
	if (error)
		return error;
	function->bytes = sled->function_bytes;
	return arm_place(permit, function, program, &options);
}

/*
 * True if the callee's sled is armed, whose event suffices.  The sled begins at the entry, or after the endbr64 there.
 */
static bool has_armed_sled(struct tw_permit *permit, const void *target)
{
	for (uintptr_t distance = 0; distance <= 4; distance += 4) {
		struct tw_place *place = tw_bp_place_at(permit, (void *)((uintptr_t)target + distance));
		struct tw_bp_part part;

		if (place && place->kind == TW_BP_SLED && place->function->address == (uint64_t)(uintptr_t)target &&
		    tw_bp_staged_part(permit, place, tw_agent_session->slot, &part))
			return true;
	}
	return false;
}

static int arm_slot(struct tw_permit *permit, const struct tw_plan *plan, const struct tw_plan_slot *slot,
		    struct tw_module **modules)
{
	struct tw_place_options options = {.kind = TW_BP_SLOT, .where = slot->where, .target = slot->target};
	const struct tw_match_program *program;
	struct tw_function *function;
	int error;

	if (has_armed_sled(permit, slot->target) || !is_asked_for(&plan->set->objects[slot->definer], slot->function,
								  (uint64_t)(uintptr_t)slot->target, &program))
		return 0;
	error = add_module(permit, &plan->set->objects[slot->definer], &modules[slot->definer]);
	if (!error)
		error = add_module(permit, &plan->set->objects[slot->caller], &modules[slot->caller]);
	if (!error)
		error = add_function(permit, &plan->set->objects[slot->definer], modules[slot->definer], slot->function,
				     (uint64_t)(uintptr_t)slot->target, &function);
	if (error)
		return error;
	options.caller_module_id = modules[slot->caller]->module_id;
	options.is_watched = slot->is_watched;
	return arm_place(permit, function, program, &options);
}

/* Counts of failures to arm, by cause. */
struct refusals {
	unsigned slots, sleds, late_sleds;
	const struct tw_sym_object *late; /* the object of the last of late_sleds */
	bool lacks_memory;
};

static void count_refusal(struct refusals *refusals, int error, bool is_sled)
{
	if (error == TW_ENOMEM || error == TW_ENOSPC)
		refusals->lacks_memory = true;
	else if (error && is_sled && error == TW_ENOTSUP)
		refusals->late_sleds++;
	else if (error && is_sled)
		refusals->sleds++;
	else if (error)
		refusals->slots++;
}

/* For gcc's sleds, one-byte NOPs, in a library opened while other threads were running. */
static void tell_late(const struct refusals *refusals)
{
	char text[512];

	snprintf(
		text, sizeof text,
		"%u functions of %s are not traced: other threads were running when it was opened, and no single store "
		"arms their entry sleds; run `tracewheel compact` on it (%s)",
		refusals->late_sleds, refusals->late->name, refusals->late->path);
	tw_agent_tell(text);
}

static void tell_refusals(const struct refusals *refusals)
{
	if (refusals->lacks_memory)
		tw_agent_tell("not all functions that were asked for are traced: there was no memory for more");
	if (refusals->slots)
		tw_agent_tell("some functions are not traced: the system refuses to make their GOT writable");
	if (refusals->sleds)
		tw_agent_tell("some functions are not traced: the system refuses to make their code writable");
	if (refusals->late_sleds)
		tell_late(refusals);
}

static void arm_sleds(struct tw_permit *permit, const struct tw_plan *plan, struct tw_module **modules,
		      struct refusals *refusals)
{
	tw_patch_begin(permit);
	for (size_t i = 0; i < plan->sled_count && !refusals->lacks_memory; i++) {
		const struct tw_sym_object *object = &plan->set->objects[plan->sleds[i].object];

		/* One note per object. */
		if (refusals->late_sleds && refusals->late != object) {
			tell_late(refusals);
			refusals->late_sleds = 0;
		}
		refusals->late = object;
		count_refusal(refusals, arm_sled(permit, plan, &plan->sleds[i], modules), true);
	}
	tw_patch_end(permit);
}

/* Callers may lie in any object, so a reader of their addresses needs all modules. */
static void add_all_modules(struct tw_permit *permit, const struct tw_plan *plan, struct tw_module **modules)
{
	if (!config.program && !config.stack_depth && !config.has_return_to)
		return;
	for (size_t i = 0; i < plan->set->count; i++)
		if (plan->set->objects[i].elf.image.high && !add_module(permit, &plan->set->objects[i], &modules[i]))
			tw_define_module(tw_agent_session, modules[i]);
	if (config.program)
		tw_callers_update(permit);
}

/* Sleds first: a function with a sled needs no slot. */
static void arm(struct tw_permit *permit, const struct tw_plan *plan)
{
	struct tw_module **modules = calloc(plan->set->count + 1, sizeof *modules);
	struct refusals refusals = {0};

	if (!modules)
		return;
	arm_sleds(permit, plan, modules, &refusals);
	tw_patch_begin(permit);
	for (size_t i = 0; i < plan->count && !refusals.lacks_memory; i++)
		count_refusal(&refusals, arm_slot(permit, plan, &plan->slots[i], modules), false);
	tw_patch_end(permit);
	add_all_modules(permit, plan, modules);
	free(modules);
	for (size_t i = 0; i < plan->note_count; i++)
		tw_agent_tell(plan->notes[i]);
	for (size_t i = 0; i < plan->pointer_count; i++)
		tw_agent_ports_pointer(plan->set->objects[plan->pointers[i].object].name, plan->pointers[i].function,
				       plan->pointers[i].is_stream);
	tell_refusals(&refusals);
}

/* ---- a scan ---- */

/* After tw_patch_suspend(), and after what was unloaded since was forgotten. */
static void resume_slots(void)
{
	struct tw_permit *permit;

	if (tw_permit_seize(&permit))
		permit = NULL;
	tw_patch_resume(permit);
	if (permit)
		tw_permit_drop(permit);
}

/* Steps 2 to 5. */
static bool apply(const struct tw_plan *plan)
{
	bool is_whole;
	struct tw_permit *permit;

	if (tw_change_begin(&permit))
		return false;
	if (tw_known_is_outdated(plan->set)) {
		tw_change_end(permit, 0);
		return true;
	}
	tw_agent_returns_see(plan->set);
	is_whole = tw_known_update(permit, plan);
	tw_agent_layouts_update(&config, &tw_agent_ring_set);
	arm(permit, plan);
	for (size_t i = 0; i < plan->set->count; i++)
		if (plan->is_new[i])
			tw_known_add(&plan->set->objects[i]);
	tw_change_end(permit, 0);
	if (is_whole)
		tw_known_saw(plan->set);
	return true;
}

/* Between steps 1 and 2: asks for layouts of new objects.  The command waits for none of our locks. */
static void ask(const struct tw_plan *plan)
{
	const struct tw_sym_object *missing;
	struct tw_permit *permit;

	if (!config.ask_ns || tw_permit_seize(&permit))
		return;
	missing = tw_agent_layouts_missing(&config, plan);
	tw_permit_drop(permit);
	if (missing)
		tw_agent_layouts_ask(&config, &tw_agent_ring_set, missing);
}

static bool is_anything_due(void)
{
	struct tw_permit *permit;
	bool is_due;

	if (tw_permit_seize(&permit))
		return false;
	is_due = tw_patch_is_due(permit);
	tw_permit_drop(permit);
	return is_due;
}

/*
 * A thread may be binding a slot that was armed before it was bound; it overwrites the slot as soon as it runs.  The
 * next scan, or the end of the program, finds later overwrites and reports them.
 */
static void bind_again(unsigned naps)
{
	unsigned found = 1, late = 0;
	struct tw_permit *permit;

	do {
		unsigned late_now = 0;

		if (naps)
			tw_sys_sleep(NAP_NS);
		if (tw_permit_seize(&permit))
			break;
		found = tw_got_may_be_bound(permit) ? tw_got_bind_again(permit, &late_now) : 0;
		tw_permit_drop(permit);
		late += late_now;
	} while (found && naps-- > 1);
	if (late)
		tw_agent_tell(
			"some calls were not seen for a while: a thread was binding their slots when these were armed");
}

void tw_agent_bind_again(void)
{
	bind_again(0);
}

/*
 * While a thread closes a handle, changes of any thread are deferred until it is done.  An object opened meanwhile
 * should be traced from its first call, so this waits.  It gives up after CLOSING_NS, because the other thread may be
 * in a destructor that waits for this one.
 */
static void await_closings(void)
{
	static const _Atomic uint32_t never;
	uint64_t begun = tw_clock_monotonic_ns();

	if (own_closings)
		return;
	while (is_anything_due()) {
		if (tw_clock_monotonic_ns() - begun > CLOSING_NS) {
			tw_agent_tell(
				"calls of an object that was opened while another thread closed one were not traced "
				"at first: that took too long");
			return;
		}
		tw_sys_futex_wait(&never, 0, NAP_NS);
	}
}

/* Returns false when nothing is left to do. */
static bool update_once(void)
{
	struct tw_plan *plan;
	bool was_applied;

	if (config.has_no_functions || !tw_known_is_change() || tw_plan_make(&config, tw_known_has, NULL, &plan))
		return false;
	ask(plan);
	was_applied = apply(plan);
	tw_plan_destroy(plan);
	return was_applied;
}

/*
 * Unpinning may close an object's last handle and unload it; slots then stay suspended until the next round has found
 * out what was unloaded.  Destructors may open and close more objects; the number of rounds is limited.
 */
static void update_all(void)
{
	unsigned rounds = 0;

	while (rounds++ < 8 && update_once())
		;
	bind_again(__libc_single_threaded ? 0 : BINDING_NAPS);
	tw_agent_returns_check();
	for (; closings > 1; closings--)
		tw_patch_resume(NULL);
	if (closings) {
		closings = 0;
		resume_slots();
	}
	await_closings();
	/* Failed symbol lookups left a message that is not the program's. */
	dlerror();
}

int tw_agent_close(int (*close)(void *), void *handle)
{
	int result;

	/* Destructors run in here and objects are unloaded: no slot is written until it is known which. */
	tw_patch_suspend();
	if (is_looking) {
		closings++;
		/* Destructors are the program's code, and are recorded. */
		tw_thread_end_own_work(own_work != NULL);
		result = close(handle);
		if (own_work)
			tw_thread_begin_own_work(own_work);
		return result;
	}
	own_closings++;
	result = close(handle);
	/* Under a seccomp filter this thread cannot find out what was unloaded: nothing is written any more. */
	if (!tw_thread_may_call_system())
		return result;
	tw_agent_update();
	own_closings--;
	resume_slots();
	return result;
}

void tw_agent_update(void)
{
	int saved_errno = errno, cancel_state;

	if (is_looking || !tw_thread_may_call_system())
		return;
	is_looking = true;
	/* dlopen() and dlclose() are no cancellation points, but reading files is one. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	own_work = __builtin_frame_address(0);
	if (!tw_thread_join() || !tw_thread_begin_own_work(own_work))
		own_work = NULL;
	update_all();
	tw_thread_end_own_work(own_work != NULL);
	pthread_setcancelstate(cancel_state, NULL);
	is_looking = false;
	errno = saved_errno;
}

/*
 * A thread that was inside dlclose() does not exist in the child, and its suspension would last forever.  It is unknown
 * what it has unloaded so far: nothing is written before a scan has found out.
 */
void tw_agent_arm_after_fork(void)
{
	tw_patch_after_fork_in_child(closings + own_closings + 1);
	tw_agent_update();
	resume_slots();
}
