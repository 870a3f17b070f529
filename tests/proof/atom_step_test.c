/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A signal handler that interrupts its thread while that adds an atom, at any instruction, either does not find
 *	the name, or finds an atom whose entry it may read: it never waits for the thread that it interrupted.
 * Method	The test single-steps itself (the trap flag) through tw_term_atom() of new names: the first ones, and those
 *	around the one that makes the table grow. Before each instruction the trap's handler looks the name up,
 *	without adding it.
 */
#include "term/term.h"
#include "trap.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The first table has 2,048 slots and grows when half of them are used. */
enum { FULL = 1024, AROUND = 5 };

static char name[32];
static size_t name_bytes;
static volatile sig_atomic_t is_stepping;
static volatile long steps, found;
static volatile unsigned wrong;

static void on_trap(int number)
{
	struct tw_term atom;

	if (!is_stepping)
		return;
	is_stepping = 0;
	steps++;
	atom = tw_term_atom_existing(name, name_bytes);
	if (!tw_term_is_none(atom)) {
		found++;
		/* tw_term_atom_name() waits until the count covers the atom. */
		if (tw_atom_index(atom) >= tw_atom_count() || strcmp(tw_term_atom_name(atom, NULL), name) != 0)
			wrong++;
	}
	is_stepping = 1;
}

static struct tw_term add_stepped(void)
{
	struct tw_term atom;

	is_stepping = 1;
	STEP_ON();
	atom = tw_term_atom(name, name_bytes);
	STEP_OFF();
	is_stepping = 0;
	return atom;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_trap, .sa_flags = SA_NODEFER};
	long names = 0, missed = 0;

	sigaction(SIGTRAP, &action, NULL);
	for (unsigned i = 0; tw_atom_count() < FULL + AROUND; i++) {
		bool is_stepped = i < AROUND || tw_atom_count() >= FULL - AROUND;
		struct tw_term atom;
		long before = found;

		name_bytes = (size_t)snprintf(name, sizeof name, "stepped %u", i);
		atom = is_stepped ? add_stepped() : tw_term_atom(name, name_bytes);
		if (tw_term_is_none(atom) || strcmp(tw_term_atom_name(atom, NULL), name) != 0)
			wrong++;
		names += is_stepped;
		missed += is_stepped && found - before < 2;
	}
	printf("%ld names in %ld instructions, found in %ld of them, %u wrong: %s\n", names, (long)steps, (long)found,
	       wrong, wrong || missed || names < AROUND * 3 ? "FAIL" : "PASS");
	return wrong || missed || names < AROUND * 3;
}
