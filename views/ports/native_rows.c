/* SPDX-License-Identifier: Apache-2.0 */
/* native_rows.c - ports while they are open, and sums of those that are alike. */
#include "views/ports/native_replay.h"
#include "base/map.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t key_of(const struct tw_native_port *port)
{
	uint64_t hash = tw_hash_bytes(port->what, strlen(port->what), (uintptr_t)port->kind);
	return port->opener ? tw_hash_bytes(port->opener, strlen(port->opener), hash) : hash;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool is_like(const struct tw_native_port *row, const struct tw_native_port *port)
{
	return row->kind == port->kind && !strcmp(row->what, port->what) && same_text(row->opener, port->opener) &&
	       same_text(row->caller, port->caller);
}

/* The row of ports like this one, or a new one that takes its text. NULL: no memory. */
static struct tw_native_port *row_of(struct tw_native_replay *r, struct tw_native_port *port)
{
	struct tw_native_ports *ports = r->ports;
	uint64_t key = key_of(port);
	uint32_t at = ports->is_each ? TW_MAP_NONE : tw_map_find(&r->by_port, key, i, is_like(&ports->rows[i], port));
	if (at != TW_MAP_NONE)
		return &ports->rows[at];
	if (!tw_grow_to(ports->rows, r->row_room, ports->count))
		return NULL;
	if (!ports->is_each && !tw_map_add(&r->by_port, key, (uint32_t)ports->count))
		return NULL;
	ports->count++;
	ports->rows[ports->count - 1] = (struct tw_native_port){.what = port->what,
								.kind = port->kind,
								.opener = port->opener,
								.caller = port->caller};
	port->what = NULL;
	return &ports->rows[ports->count - 1];
}

static bool is_empty(const struct tw_native_port *port)
{
	return !port->opened && !port->calls;
}

void tw_native_release(struct tw_native_replay *r, struct tw_native_instance *instance)
{
	if (!instance || --instance->references)
		return;
	struct tw_native_port *sums = &instance->sums, *row = is_empty(sums) ? NULL : row_of(r, sums);
	if (row) {
		row->opened += sums->opened;
		row->open += sums->opened && instance->open_count;
		row->calls += sums->calls;
		row->in_bytes += sums->in_bytes;
		row->out_bytes += sums->out_bytes;
		row->call_ns += sums->call_ns;
		row->failed += sums->failed;
		row->is_in_partial |= sums->is_in_partial;
		row->is_out_partial |= sums->is_out_partial;
	} else if (!is_empty(sums)) {
		r->error = TW_ENOMEM;
	}
	free(sums->what);
	free(instance);
}

struct tw_native_instance *tw_native_hold(struct tw_native_instance *instance)
{
	if (instance)
		instance->references++;
	return instance;
}
