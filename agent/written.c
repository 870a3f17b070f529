/* SPDX-License-Identifier: Apache-2.0 */
/*
 * written.c - the list of what was written into this process' code and tables for the recording, which the recorder takes back
 * when the recording ends and the process lives on (pipeline/recorder/restore.c, docs/decisions/0033).
 *
 * The piece of a place has the place's number.  Its bytes are read before the place is staged:
 *
 *	slot	its word
 *	entry	its window; if that lies on two pages, which no single write changes, the word behind its jump: that is then led
 *		to the copy
 *	sled	all of it, if the address at which its stub continues is an instruction there before and after; else the window,
 *		which becomes one NOP
 *
 * A place that a session of the program sets is kept, as long as the session wants it.  After the end such a session may want
 * a place that was taken back: then it is written again, as one that was never written.
 */
#include "agent/agent.h"
#include "agent/leave.h"

#include "base/assert.h"
#include "base/grow.h"
#include "base/sys.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/entry.h"
#include "breakpoints/patch.h"
#include "breakpoints/sled.h"
#include "ringbuf/held.h"
#include "session/session.h"
#include "symbols/entry_plan.h"
#include "symbols/symbols.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* All under the permit. */
static struct tw_rs_written *written;
static struct tw_place **armed; /* since tw_agent_written_begin() */
static size_t armed_count, armed_capacity;
static unsigned changes;       /* begun, and not ended */
static size_t semaphore_count; /* pieces ever used for them */
static bool has_left;	       /* a recording has ended before: places of it may have been taken back */
static bool is_leaving;	       /* a recording ends now: nothing but its end changes what was written */

/* More than programs have; places have the first 1,048,576 pieces at most. */
#define SEMAPHORE_BLOCKS_MAX 16u

_Static_assert(TW_ENTRY_WINDOW_BYTES_MAX <= TW_RS_HELD_BYTES_MAX, "a piece holds a window");

bool tw_agent_is_over(void)
{
	/* PAIR rs.closed: acquire; release in tw_rs_close(). */
	return tw_agent_ring_set.control && tw_load_acquire(&tw_agent_ring_set.control->is_closed);
}

static void *map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Changes may nest. */
static void begin_change(void)
{
	if (!changes++ && written)
		tw_rs_written_begin(written);
}

static void end_change(void)
{
	if (!--changes && written)
		tw_rs_written_end(written);
}

/* NULL: there is none. */
static struct tw_rs_held_piece *find_piece(const struct tw_place *place)
{
	uint32_t block = place->place_id / TW_RS_WRITTEN_BLOCK_PIECES;

	if (!written || block >= TW_RS_WRITTEN_BLOCKS_MAX || !written->blocks[block])
		return NULL;
	return (struct tw_rs_held_piece *)(uintptr_t)written->blocks[block] +
	       place->place_id % TW_RS_WRITTEN_BLOCK_PIECES;
}

static struct tw_rs_held_piece *make_piece(const struct tw_place *place)
{
	uint32_t block = place->place_id / TW_RS_WRITTEN_BLOCK_PIECES;

	if (written && block < TW_RS_WRITTEN_BLOCKS_MAX && !written->blocks[block])
		written->blocks[block] =
			(uint64_t)(uintptr_t)map(TW_RS_WRITTEN_BLOCK_PIECES * sizeof(struct tw_rs_held_piece));
	return find_piece(place);
}

/* ---- a change by the agent ---- */

bool tw_agent_written_begin(void)
{
	if (!written)
		written = map(sizeof *written);
	if (written && !tw_agent_ring_set.written)
		tw_rs_written_show(&tw_agent_ring_set, written);
	armed_count = 0;
	begin_change();
	/* Looked at behind the mark: a recorder that has closed the set waits until the mark is gone, or has seen none. */
	if (!tw_agent_is_over())
		return true;
	end_change();
	return false;
}

static unsigned bytes_of(const struct tw_place *place)
{
	switch ((enum tw_bp_kind)place->kind) {
	case TW_BP_SLOT: return sizeof(void *);
	case TW_BP_ENTRY: return place->entry->row->window_bytes;
	case TW_BP_SLED: return place->sled_bytes < TW_RS_HELD_BYTES_MAX ? place->sled_bytes : TW_RS_HELD_BYTES_MAX;
	default: return 0;
	}
}

static bool is_within_page(const struct tw_rs_held_piece *piece)
{
	return piece->at % TW_PAGE_BYTES + piece->count <= TW_PAGE_BYTES;
}

/*
 * The page that was read last.  All places are looked at when a recording ends, those of one page after one another, and a system
 * call for each takes longer than all else.
 */
struct seen {
	long process_id;
	uint64_t page;
	bool is_read;
	uint8_t bytes[TW_PAGE_BYTES];
};

/* The bytes at the piece now; NULL: the piece is not mapped any more. */
static const uint8_t *see(struct seen *seen, const struct tw_rs_held_piece *piece, uint8_t found[TW_RS_HELD_BYTES_MAX])
{
	uint64_t page = piece->at / TW_PAGE_BYTES;

	if (!is_within_page(piece))
		return tw_sys_read_own_memory(seen->process_id, found, piece->at, piece->count) == (long)piece->count
			       ? found
			       : NULL;
	if (page != seen->page) {
		seen->page = page;
		seen->is_read = tw_sys_read_own_memory(seen->process_id, seen->bytes, page * TW_PAGE_BYTES,
						       sizeof seen->bytes) == sizeof seen->bytes;
	}
	return seen->is_read ? seen->bytes + piece->at % TW_PAGE_BYTES : NULL;
}

static struct seen seen_while_leaving;

static bool is_there(const struct tw_rs_held_piece *piece, const uint8_t *bytes)
{
	uint8_t found[TW_RS_HELD_BYTES_MAX];

	return piece->count &&
	       tw_sys_read_own_memory(tw_sys_process_id(), found, piece->at, piece->count) == (long)piece->count &&
	       !memcmp(found, bytes, piece->count);
}

/* The same while a recording ends: a place is looked at before its own bytes are changed, and those of others do not matter. */
static bool was_there(const struct tw_rs_held_piece *piece, const uint8_t *bytes)
{
	uint8_t found[TW_RS_HELD_BYTES_MAX];
	const uint8_t *now = piece->count ? see(&seen_while_leaving, piece, found) : NULL;

	return now && !memcmp(now, bytes, piece->count);
}

/* The same of the piece of a place whose object is held: its own bytes are mapped, and need no system call. */
static bool is_at_place(const struct tw_place *place, const struct tw_rs_held_piece *piece, const uint8_t *bytes)
{
	uint64_t at = piece->at - (uintptr_t)place->where;

	if (at > bytes_of(place) || piece->count > bytes_of(place) - at)
		return is_there(piece, bytes);
	return piece->count && !memcmp((const void *)(uintptr_t)piece->at, bytes, piece->count);
}

/* An earlier recording has written the whole place, and nobody has taken that back: the recorder was gone. */
static bool is_written_before(const struct tw_place *place, const struct tw_rs_held_piece *piece)
{
	return has_left && piece->at == (uintptr_t)place->where && piece->count == bytes_of(place) &&
	       is_at_place(place, piece, piece->after);
}

void tw_agent_written_expect(struct tw_place *place)
{
	struct tw_rs_held_piece *piece, made = {.at = (uintptr_t)place->where};

	if (place->is_installed || !bytes_of(place) || !tw_grow(armed, armed_count, armed_capacity) ||
	    !(piece = make_piece(place)))
		return;
	if (has_left && is_at_place(place, piece, piece->before))
		tw_patch_was_taken_back(place);
	memcpy(made.before, is_written_before(place, piece) ? piece->before : place->where, bytes_of(place));
	*piece = made;
	armed[armed_count++] = place;
}

/* Threads that are between the stub and the sled continue behind the window. */
static bool continues_at_instruction(const struct tw_place *place, const struct tw_rs_held_piece *piece)
{
	unsigned at = 0, end = place->sled_offset + TW_SYM_JUMP_BYTES, bytes = 1;

	while (at < end && bytes)
		at += bytes = tw_sym_nop_bytes(piece->before + at, piece->count - at);
	return at == end;
}

static void leave_nop(const struct tw_place *place, struct tw_rs_held_piece *piece)
{
	static const uint8_t nop[TW_SYM_JUMP_BYTES] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

	piece->at = (uintptr_t)place->where + place->sled_offset;
	piece->count = sizeof nop;
	memcpy(piece->before, nop, sizeof nop);
}

/* The bytes of an armed sled. */
static void overlay_jump(const struct tw_place *place, struct tw_rs_held_piece *piece)
{
	uint8_t jump[8];
	uintptr_t at;
	size_t bytes = tw_sled_written(place, jump, &at);

	for (size_t i = 0; i < bytes; i++)
		if (at + i - piece->at < piece->count)
			piece->after[at + i - piece->at] = jump[i];
}

/* The bytes that the commit has written, or will write where the program's own transaction goes on; of a sled that is due, what is there now. */
static void fill_after(const struct tw_place *place, struct tw_rs_held_piece *piece)
{
	uintptr_t at;

	/* The jump stays, and leads to the copy. */
	if (place->kind == TW_BP_ENTRY && !is_within_page(piece)) {
		piece->count = (uint32_t)tw_entry_switch(place, piece->before, piece->after, &at);
		piece->at = at;
		return;
	}
	if (place->kind == TW_BP_SLED && (!is_within_page(piece) || !continues_at_instruction(place, piece)))
		leave_nop(place, piece);
	memcpy(piece->after,
	       place->kind == TW_BP_SLOT ? (const void *)&place->stub : (const void *)(uintptr_t)piece->at,
	       piece->count);
	if (place->kind == TW_BP_SLED)
		overlay_jump(place, piece);
}

/* A piece without bytes is not used: nothing is written there. */
static void complete(const struct tw_place *place)
{
	struct tw_rs_held_piece *piece = find_piece(place);

	if (!piece || place->is_gone || !place->stub || (place->kind == TW_BP_ENTRY && !place->is_planted) ||
	    (place->kind == TW_BP_SLED && place->is_back))
		return;
	piece->count = bytes_of(place);
	fill_after(place, piece);
	/* Bytes that are due are not there yet: see_written(). */
	if (!place->is_due && !memcmp(piece->after, piece->before, piece->count))
		piece->count = 0;
}

/* ---- semaphores, which have the last blocks: of 2 bytes each ---- */

static struct tw_rs_held_piece *semaphore_piece(size_t number)
{
	size_t block = TW_RS_WRITTEN_BLOCKS_MAX - 1 - number / TW_RS_WRITTEN_BLOCK_PIECES;

	if (!written || number / TW_RS_WRITTEN_BLOCK_PIECES >= SEMAPHORE_BLOCKS_MAX)
		return NULL;
	if (!written->blocks[block])
		written->blocks[block] =
			(uint64_t)(uintptr_t)map(TW_RS_WRITTEN_BLOCK_PIECES * sizeof(struct tw_rs_held_piece));
	return written->blocks[block] ? (struct tw_rs_held_piece *)(uintptr_t)written->blocks[block] +
						number % TW_RS_WRITTEN_BLOCK_PIECES
				      : NULL;
}

/* The piece of a semaphore, or a free one; NULL: there is no memory. */
static struct tw_rs_held_piece *find_semaphore(uintptr_t semaphore)
{
	struct tw_rs_held_piece *piece, *free_piece = NULL;

	for (size_t i = 0; i < semaphore_count; i++) {
		piece = semaphore_piece(i);
		if (piece->at == semaphore)
			return piece;
		if (!piece->at && !free_piece)
			free_piece = piece;
	}
	if (!free_piece && (free_piece = semaphore_piece(semaphore_count)))
		semaphore_count++;
	return free_piece;
}

/* The kernel refuses what cannot be written, without a fault. */
static bool write_semaphore(uintptr_t at, uint16_t value)
{
	const struct iovec from = {&value, sizeof value}, to = {(void *)at, sizeof value};

	return syscall(SYS_process_vm_writev, tw_sys_process_id(), &from, 1, &to, 1, 0) == sizeof value;
}

bool tw_agent_written_raise(uintptr_t semaphore)
{
	struct tw_rs_held_piece *piece = semaphore % sizeof(uint16_t) ? NULL : find_semaphore(semaphore);
	uint16_t value;

	if (!piece)
		return false;
	if (piece->at && is_there(piece, piece->after))
		return true;
	if (tw_sys_read_own_memory(tw_sys_process_id(), &value, semaphore, sizeof value) != sizeof value)
		return false;
	*piece = (struct tw_rs_held_piece){.at = semaphore, .count = sizeof value};
	memcpy(piece->before, &value, sizeof value);
	value++;
	memcpy(piece->after, &value, sizeof value);
	if (write_semaphore(semaphore, value))
		return true;
	*piece = (struct tw_rs_held_piece){0};
	return false;
}

static void forget_semaphore(const struct tw_place *place)
{
	const struct tw_entry_plan_row *row = place->entry ? place->entry->row : NULL;
	uint64_t value = row && row->flags & TW_ENTRY_SITE ? tw_entry_plan_site_of(row)->semaphore : 0;

	for (size_t i = 0; value && i < semaphore_count; i++)
		if (semaphore_piece(i)->at == place->entry->base + value)
			*semaphore_piece(i) = (struct tw_rs_held_piece){0};
}

void tw_agent_written_end(void)
{
	for (size_t i = 0; i < armed_count; i++)
		complete(armed[i]);
	armed_count = 0;
	end_change();
}

/* ---- a child that was forked at the end ---- */

static void take_back_block(int memory, const struct tw_rs_held_piece *pieces)
{
	for (unsigned i = 0; i < TW_RS_WRITTEN_BLOCK_PIECES; i++) {
		const struct tw_rs_held_piece *piece = &pieces[i];
		uint8_t found[TW_RS_HELD_BYTES_MAX];

		if (!piece->count || piece->is_kept ||
		    pread(memory, found, piece->count, (off_t)piece->at) != (ssize_t)piece->count ||
		    memcmp(found, piece->after, piece->count) != 0)
			continue;
		/* Memory that the system refuses to write stays as it is, and works. */
		if (pwrite(memory, piece->before, piece->count, (off_t)piece->at) < 0)
			return;
	}
}

void tw_agent_written_after_fork(void)
{
	int memory;

	/* Behind the claim of the image: the recorder has seen it, or this process sees that the set is closed. */
	if (!written || tw_agent_written_begin()) {
		if (written)
			tw_agent_written_end();
		return;
	}
	memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	for (unsigned i = 0; memory >= 0 && i < TW_RS_WRITTEN_BLOCKS_MAX; i++)
		if (written->blocks[i])
			take_back_block(memory, (const struct tw_rs_held_piece *)(uintptr_t)written->blocks[i]);
	if (memory >= 0)
		close(memory);
}

/* ---- the end of a recording, in a process that may be recorded again ---- */

/* The list is being changed, and nothing but the end of the recording does so, or it is complete. */
static void set_changing(bool is_changing)
{
	struct tw_permit *permit;
	int error = tw_permit_seize(&permit);

	TW_ASSERT(!error);
	is_leaving = is_changing;
	seen_while_leaving = (struct seen){.process_id = tw_sys_process_id()};
	if (is_changing)
		begin_change();
	else
		end_change();
	tw_permit_drop(permit);
}

void tw_agent_written_show(void)
{
	if (written)
		tw_rs_written_show(&tw_agent_ring_set, written);
}

void tw_agent_written_leave(void)
{
	set_changing(true);
}

/* A sled that is switched off is not as it was when it was armed, nor as in the file. */
static void see_block(struct seen *seen, struct tw_rs_held_piece *pieces)
{
	for (unsigned i = 0; i < TW_RS_WRITTEN_BLOCK_PIECES; i++) {
		struct tw_rs_held_piece *piece = &pieces[i];
		uint8_t found[TW_RS_HELD_BYTES_MAX];
		const uint8_t *now = piece->count && !piece->is_kept ? see(seen, piece, found) : NULL;

		if (now && memcmp(now, piece->before, piece->count) != 0)
			memcpy(piece->after, now, piece->count);
	}
}

void tw_agent_written_left(void)
{
	struct seen seen = {.process_id = tw_sys_process_id()};

	for (unsigned i = 0; written && i < TW_RS_WRITTEN_BLOCKS_MAX; i++)
		if (written->blocks[i])
			see_block(&seen, (struct tw_rs_held_piece *)(uintptr_t)written->blocks[i]);
	has_left = true;
	set_changing(false);
}

/* ---- sessions of the program ---- */

static bool is_kept_for(const struct tw_place *place, uint64_t sessions)
{
	uint64_t own = tw_agent_session ? UINT64_C(1) << tw_agent_session->slot : 0;

	return place->is_allocating || (sessions & ~own) != 0;
}

static void keep(const struct tw_place *place, uint64_t sessions)
{
	struct tw_rs_held_piece *piece = find_piece(place);

	if (!piece || piece->is_kept == is_kept_for(place, sessions))
		return;
	begin_change();
	piece->is_kept = is_kept_for(place, sessions);
	end_change();
}

static bool is_taken_back(const struct tw_place *place)
{
	const struct tw_rs_held_piece *piece = has_left || tw_agent_is_over() ? find_piece(place) : NULL;

	return piece && (is_leaving ? was_there(piece, piece->before) : is_there(piece, piece->before));
}

static bool is_left(const struct tw_place *place)
{
	const struct tw_rs_held_piece *piece = tw_agent_is_over() ? find_piece(place) : NULL;

	return place->is_installed && piece && piece->count && !piece->is_kept;
}

static void see_written(const struct tw_place *place)
{
	struct tw_rs_held_piece *piece = find_piece(place);

	if (!piece || !piece->count || place->kind != TW_BP_SLED)
		return;
	begin_change();
	overlay_jump(place, piece);
	end_change();
}

static void forget(const struct tw_place *place)
{
	struct tw_rs_held_piece *piece = find_piece(place);

	begin_change();
	forget_semaphore(place);
	if (piece)
		piece->count = 0;
	end_change();
}

void tw_agent_written_init(void)
{
	static const struct tw_bp_list list = {.keep = keep,
					       .is_taken_back = is_taken_back,
					       .is_left = is_left,
					       .see_written = see_written,
					       .forget = forget};

	tw_bp_list = &list;
}
