/* SPDX-License-Identifier: Apache-2.0 */
/* native_rows.c - ports while they are open, and sums of those that are alike. */
#include "tools/report/native_replay.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes an array of at least so many elements; new ones are zero. */
void *tw_native_grow(void *array, size_t *count, size_t wanted, size_t bytes)
{
	size_t more = *count ? 2 * *count : 16;
	if (wanted <= *count)
		return array;
	if (more < wanted)
		more = wanted;
	char *grown = realloc(array, more * bytes);
	if (!grown)
		return NULL;
	memset(grown + *count * bytes, 0, (more - *count) * bytes);
	*count = more;
	return grown;
}

static size_t hash_of(const struct tw_native_port *port)
{
	size_t hash = (size_t)(uintptr_t)port->kind;
	for (const char *at = port->what; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
	for (const char *at = port->opener; at && *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
	return hash ^ hash >> 32;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool rehash(struct tw_native_replay *r)
{
	size_t count = r->slot_count ? 2 * r->slot_count : 1024, *slots = calloc(count, sizeof *slots);
	if (!slots)
		return false;
	for (size_t i = 0; i < r->ports->count; i++) {
		size_t at = hash_of(&r->ports->rows[i]) & (count - 1);
		while (slots[at])
			at = (at + 1) & (count - 1);
		slots[at] = i + 1;
	}
	free(r->slots);
	r->slots = slots;
	r->slot_count = count;
	return true;
}

/* The row of ports like this one, or a new one that takes its text. NULL: no memory. */
static struct tw_native_port *row_of(struct tw_native_replay *r, struct tw_native_port *port)
{
	struct tw_native_ports *ports = r->ports;
	if (2 * ports->count >= r->slot_count && !rehash(r))
		return NULL;
	size_t at = hash_of(port) & (r->slot_count - 1);
	for (; r->slots[at] && !ports->is_each; at = (at + 1) & (r->slot_count - 1)) {
		struct tw_native_port *row = &ports->rows[r->slots[at] - 1];
		if (row->kind == port->kind && !strcmp(row->what, port->what) && same_text(row->opener, port->opener) &&
		    same_text(row->caller, port->caller))
			return row;
	}
	while (r->slots[at])
		at = (at + 1) & (r->slot_count - 1);
	struct tw_native_port *grown = tw_native_grow(ports->rows, &r->row_room, ports->count + 1, sizeof *ports->rows);
	if (!grown)
		return NULL;
	ports->rows = grown;
	r->slots[at] = ++ports->count;
	grown[ports->count - 1] = (struct tw_native_port){.what = port->what,
							  .kind = port->kind,
							  .opener = port->opener,
							  .caller = port->caller};
	port->what = NULL;
	return &grown[ports->count - 1];
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
