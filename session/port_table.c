/* SPDX-License-Identifier: Apache-2.0 */
/* port_table.c - the table of ports: chunks of entries that are never freed, found by index. */
#include "session/port_table.h"
#include "base/limits.h"

#include <sys/mman.h>

#define CHUNK_ENTRIES 1024u
#define CHUNKS	      (TW_PORTS_MAX / CHUNK_ENTRIES)

struct entry {
	_Atomic uint64_t port;	/* 0: not open */
	_Atomic uint32_t users; /* one for an open port, and one for each call in progress; 0: free */
	uint32_t next_free;
	struct tw_tracee *tracee; /* while there are users */
};

static struct entry *_Atomic chunks[CHUNKS];
static uint32_t next_entry = 1; /* the first that was never used; entry 0 stays unused */
static uint32_t first_free;

static struct entry *entry_at(uint64_t index)
{
	struct entry *chunk;

	if (!index || index >= TW_PORTS_MAX)
		return NULL;
	/* PAIR port.chunk: acquire; release in tw_port_table_take(). */
	chunk = tw_load_acquire(&chunks[index / CHUNK_ENTRIES]);
	return chunk ? &chunk[index % CHUNK_ENTRIES] : NULL;
}

uint32_t tw_port_table_take(bool *is_full)
{
	uint32_t index = first_free;
	void *more;

	*is_full = false;
	if (index) {
		first_free = entry_at(index)->next_free;
		return index;
	}
	if (next_entry == TW_PORTS_MAX) {
		*is_full = true;
		return 0;
	}
	if (!entry_at(next_entry)) {
		more = mmap(NULL, CHUNK_ENTRIES * sizeof(struct entry), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (more == MAP_FAILED)
			return 0;
		/* PAIR port.chunk: release; acquire in entry_at(). */
		tw_store_release(&chunks[next_entry / CHUNK_ENTRIES], more);
	}
	return next_entry++;
}

void tw_port_table_open(struct tw_tracee *port)
{
	struct entry *entry = entry_at(port->port_slot);

	entry->tracee = port;
	/* RELAXED port.open: an event that finds it holds the entry first. */
	tw_store_relaxed(&entry->port, tw_port_id(port));
	/* PAIR port.users: release; acquire in tw_port_table_hold(). */
	tw_store_release(&entry->users, 2);
}

void tw_port_table_close(const struct tw_tracee *port)
{
	/* RELAXED port.open: a concurrent event is made or not; the entry keeps the tracee while it is held. */
	tw_store_relaxed(&entry_at(port->port_slot)->port, 0);
}

void tw_port_table_free(uint32_t index)
{
	struct entry *entry = entry_at(index);

	/* RELAXED port.open: as above; in a forked child other threads may have held it. */
	tw_store_relaxed(&entry->port, 0);
	/* RELAXED port.users: it is 0 already, except in a forked child. */
	tw_store_relaxed(&entry->users, 0);
	entry->next_free = first_free;
	first_free = index;
}

bool tw_port_is_open(uint64_t port)
{
	struct entry *entry = entry_at(port >> 32);

	/* RELAXED port.open: true now, or a moment ago. */
	return entry && port && tw_load_relaxed(&entry->port) == port;
}

struct tw_tracee *tw_port_of(uint64_t port)
{
	return tw_port_is_open(port) ? entry_at(port >> 32)->tracee : NULL;
}

struct tw_tracee *tw_port_table_hold(uint64_t port)
{
	struct entry *entry = entry_at(port >> 32);
	uint32_t users;

	if (!entry)
		return NULL;
	/* RELAXED port.users: a first value for the exchange below. */
	users = tw_load_relaxed(&entry->users);
	do {
		if (!users)
			return NULL;
		/* PAIR port.users: acquire; release in tw_port_table_open().  The tracee is seen whole. */
	} while (!tw_cas_acq_rel(&entry->users, &users, users + 1));
	return entry->tracee;
}

bool tw_port_table_drop(const struct tw_tracee *port)
{
	/*
	 * PAIR port.users: release: this thread's use of the tracee comes before it is freed; acquire: the last user
	 * sees that.
	 */
	return tw_fetch_sub_acq_rel(&entry_at(port->port_slot)->users, 1) == 1;
}
