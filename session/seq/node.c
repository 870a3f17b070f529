/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - the name of this OS process as a node. */
#include "session/seq/parts.h"

#include "base/atomic.h"
#include "base/sys.h"
#include "term/term.h"

#include <stdio.h>
#include <unistd.h>

static struct tw_term make_name(int pid)
{
	char name[64];
	uint8_t boot_id[16];
	uint64_t start_time = 0;
	int bytes;

	tw_sys_process_start_time(pid, &start_time);
	tw_sys_boot_id(boot_id);
	bytes = snprintf(name, sizeof name, "tw-%d-%llu@%02x%02x%02x%02x", pid, (unsigned long long)start_time,
			 boot_id[0], boot_id[1], boot_id[2], boot_id[3]);
	return tw_term_atom(name, (size_t)bytes);
}

struct tw_term tw_seq_own_node(void)
{
	/* The pid above the atom: a child of fork() has another name. */
	static _Atomic uint64_t known;
	uint32_t pid = (uint32_t)getpid();
	/* RELAXED seq.node: a number that names an atom, and atoms are published by their table. */
	uint64_t word = tw_load_relaxed(&known);
	struct tw_term name;

	if (word >> 32 == pid)
		return tw_word((uint32_t)word);
	name = make_name((int)pid);
	/* RELAXED seq.node: as above; threads that come here at once find the same name. */
	if (!tw_term_is_none(name))
		tw_store_relaxed(&known, (uint64_t)pid << 32 | name.word);
	return name;
}
