/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_table.h - which tracee is which port, and who uses it.
 *
 * A port's number is (entry << 32 | number of the tracee).  An event looks it up without a lock, and holds the tracee while
 * it is made: the memory of a port that is closed meanwhile is given back by the last that drops it.
 *
 * Under the registry's lock, except where said.
 */
#ifndef TW_SESSION_PORT_TABLE_H
#define TW_SESSION_PORT_TABLE_H

#include "pipeline/hit/hit.h"

/* A free entry, to be opened or freed; 0: TW_PORTS_MAX are open, or no memory (*is_full tells). */
uint32_t tw_port_table_take(bool *is_full);
/* The entry is that of this port, which is open and held once. */
void tw_port_table_open(struct tw_tracee *port);
/* It is not open any more. */
void tw_port_table_close(const struct tw_tracee *port);
/* Nobody holds it. */
void tw_port_table_free(uint32_t entry);

/* The number of a port. */
static inline uint64_t tw_port_id(const struct tw_tracee *port)
{
	return (uint64_t)port->port_slot << 32 | port->pid_number;
}

/* With or without the lock. */
bool tw_port_is_open(uint64_t port);
/* The open port of that number; NULL: none. */
struct tw_tracee *tw_port_of(uint64_t port);

/*
 * tw_port_table_hold - hold what the entry of this number has now: perhaps another port.  NULL: none.
 *
 * Without the lock.  tw_port_table_drop() once; true: it was the last, and the caller forgets the tracee.
 */
struct tw_tracee *tw_port_table_hold(uint64_t port);
bool tw_port_table_drop(const struct tw_tracee *port);

#endif
