/* SPDX-License-Identifier: Apache-2.0 */
/* returns.c - whether returns can be recorded in this process, and counts of those that were missed. */
#include "agent/agent.h"

#include "base/atomic.h"
#include "base/figure.h"
#include "breakpoints/returns.h"
#include "breakpoints/unwind.h"
#include "pipeline/hit/native.h"

#include <dlfcn.h>
#include <stdio.h>

static bool has_exceptions; /* and this process allows it */
static bool are_recorded;
static bool is_asked_for;

static void refuse(const char *what, const char *reason)
{
	char text[320];

	snprintf(text, sizeof text, "%s are not recorded: %.240s", what, reason);
	tw_agent_tell(text);
}

void tw_agent_returns_init(struct tw_agent_config *config)
{
	const char *reason;

	has_exceptions = are_recorded = is_asked_for = false;
	if (!config->has_returns && !config->has_return_to && !config->has_ports)
		return;
	/* MemorySanitizer is about to map its memory at these addresses, and would end the program if it could not. */
	reason = dlsym(RTLD_DEFAULT, "__msan_init") ? "MemorySanitizer's memory lies where return addresses are kept"
						    : NULL;
	if (reason || tw_returns_init(&reason)) {
		refuse(config->has_exceptions ? "returns and exceptions" : "returns", reason);
		config->has_returns = config->has_exceptions = config->has_return_to = config->has_ports = false;
		return;
	}
	are_recorded = true;
	if (!config->has_exceptions)
		return;
	is_asked_for = true;
	reason = tw_unwind_find();
	if (reason)
		refuse("exceptions", reason);
	has_exceptions = !reason;
}

bool tw_agent_has_exceptions(void)
{
	return is_asked_for && tw_agent_is_active();
}

void tw_agent_returns_check(void)
{
	const char *reason;

	if (!has_exceptions)
		return;
	reason = tw_unwind_find();
	if (!reason)
		return;
	refuse("exceptions of calls from here on", reason);
	has_exceptions = false;
}

void tw_agent_returns_see(const struct tw_sym_set *set)
{
	static bool was_noted;
	char text[256];

	if (!are_recorded)
		return;
	for (size_t i = 0; i < set->count; i++) {
		if (!tw_sym_repeats_stacks(set->objects[i].path))
			continue;
		/* Calls already watched keep being watched. */
		are_recorded = false;
		tw_native_stop_watching();
		snprintf(text, sizeof text, "%.64s copies stacks, and goes back to one copy more than once (call/cc)",
			 set->objects[i].name);
		refuse(is_asked_for ? "returns and exceptions of calls from here on" : "returns of calls from here on",
		       text);
		return;
	}
	for (size_t i = 0; i < set->count && !was_noted; i++) {
		if (!tw_sym_copies_stacks(set->objects[i].path))
			continue;
		was_noted = true;
		tw_returns_stacks_are_copied();
		snprintf(text, sizeof text,
			 "%.64s copies stacks: calls that take the place of another stack's are not seen "
			 "to return",
			 set->objects[i].name);
		tw_agent_tell(text);
	}
}

static uint64_t take(_Atomic uint64_t *counter)
{
	/* RELAXED returns.lost: a count; later increments are reported the next time. */
	uint64_t value = tw_load_relaxed(counter);

	/* RELAXED returns.lost: as above. */
	tw_fetch_add_relaxed(counter, -value);
	return value;
}

static void tell_count(_Atomic uint64_t *counter, const char *why)
{
	uint64_t count = take(counter);
	char text[256], figure[TW_COUNT_TEXT_BYTES];

	if (!count)
		return;
	snprintf(text, sizeof text, "%s call%s not seen to return: %s", tw_count_text(figure, count),
		 count == 1 ? " was" : "s were", why);
	tw_agent_tell(text);
}

void tw_agent_returns_end(void)
{
	tell_count(&tw_returns_lost.no_memory, "there was no memory for their return addresses");
	tell_count(&tw_returns_lost.no_stack, "all stacks of the tracer were in use for other threads");
	tell_count(&tw_returns_lost.chain, "too many tail calls in a row, of which the first are seen");
	tell_count(&tw_returns_lost.copied, "their places on the stack were those of frames that were copied away");
	tell_count(&tw_returns_lost.unusable, "the program has moved their return addresses");
}
