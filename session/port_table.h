/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_table.h - maps ports to tracees, and counts their users.
 *
 * A port's number is (entry << 32 | number of the tracee). An event looks it up without a lock, and holds the tracee
 * while it is made: if the port is closed meanwhile, the last user to drop it frees its memory.
 *
 * Called under the registry's lock, except where said.
 */
#ifndef TW_SESSION_PORT_TABLE_H
#define TW_SESSION_PORT_TABLE_H

#include "pipeline/hit/hit.h"

/* Takes a free entry, to be opened or freed; 0: TW_PORTS_MAX are open (*is_full), or no memory. */
uint32_t tw_port_table_take(bool *is_full);
/* Assigns the entry to this port, which is then open and held twice: as long as it is open, and until the caller drops it. */
void tw_port_table_open(struct tw_tracee *port);
/* The port is no longer open. */
void tw_port_table_close(const struct tw_tracee *port);
/* The entry has no users. */
void tw_port_table_free(uint32_t entry);

/* The number of a port. */
static inline uint64_t tw_port_id(const struct tw_tracee *port)
{
	return (uint64_t)port->port_slot << 32 | port->pid_number;
}

/* With or without the lock. */
bool tw_port_is_open(uint64_t port);
/* The open port with that number; NULL: none. */
struct tw_tracee *tw_port_of(uint64_t port);

/*
 * tw_port_table_hold - hold the tracee that the entry of this number has now: perhaps another port. NULL: none.
 *
 * Called without the lock. tw_port_table_drop() is called once for it; true: that was the last user, and the caller
 * frees the tracee.
 */
struct tw_tracee *tw_port_table_hold(uint64_t port);
bool tw_port_table_drop(const struct tw_tracee *port);

#endif
