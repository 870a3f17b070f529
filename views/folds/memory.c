/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - blocks of memory, from the calls that make and free them, in order of time. */
#include "views/folds/memory.h"
#include "views/folds/memory_inherited.h"
#include "base/grow.h"
#include "views/folds/pass.h"
#include "views/names/missing.h"
#include "views/names/threads.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>

/* Calls of one thread inside each other. */
#define NESTED_MAX 4
/* Linux: mmap() without a file, and for stacks; the errors of system calls. */
#define MAPS_NO_FILE 0x20
#define MAPS_STACK   0x20000
#define ERRNO_MAX    4095

static const struct tw_memory_function list[] = {
	{"malloc", TW_MEMORY_ALLOCATES, 1, 0, 0},
	{"calloc", TW_MEMORY_ALLOCATES, 1, 2, 0},
	{"aligned_alloc", TW_MEMORY_ALLOCATES, 2, 0, 0},
	{"memalign", TW_MEMORY_ALLOCATES, 2, 0, 0},
	{"valloc", TW_MEMORY_ALLOCATES, 1, 0, 0},
	{"pvalloc", TW_MEMORY_ALLOCATES, 1, 0, 0},
	{"realloc", TW_MEMORY_REALLOCATES, 2, 0, 0},
	{"reallocarray", TW_MEMORY_REALLOCATES, 2, 3, 0},
	{"posix_memalign", TW_MEMORY_ALLOCATES_ELSEWHERE, 3, 0, 0},
	{"mmap", TW_MEMORY_MAPS, 2, 0, 0},
	{"mmap64", TW_MEMORY_MAPS, 2, 0, 0},
	{"free", TW_MEMORY_FREES, 0, 0, 0},
	{"cfree", TW_MEMORY_FREES, 0, 0, 0},
	{"munmap", TW_MEMORY_UNMAPS, 2, 0, 0},
};

static uint8_t mark(const void *context, uint32_t image, const struct tw_capture_place *place)
{
	(void)context;
	for (size_t i = 0; place->function && place->function->name && i < sizeof list / sizeof *list; i++) {
		if (strcmp(place->function->name, list[i].name) == 0)
			return (uint8_t)(i + 1);
	}
	return 0;
}
static const struct tw_memory_functions malloc_and_kin = {mark, NULL, list, sizeof list / sizeof *list};

static bool wants_place(void *context, uint32_t image, const struct tw_capture_place *place)
{
	const struct tw_memory *memory = context;
	return memory->functions->mark(memory->functions->context, image, place) != 0;
}

struct tw_memory_thread {
	struct {
		uint32_t image, place;
	} open[NESTED_MAX]; /* the outermost first */
	uint32_t open_count;
	uint32_t last; /* the block that it allocated last, + 1 */
	/* The outermost call. */
	uint8_t does;
	bool is_sized, wants_row;
	uint64_t bytes;
	uint32_t row;
	/* The block that it reallocates: its address is none already. */
	bool has_old;
	struct tw_memory_block old;
};

/* ---- sums ---- */

/* The row is about to change: what it had when the whole was most. */
static void settle(const struct tw_memory *memory, struct tw_memory_row *row)
{
	if (row->epoch != memory->peaks)
		row->peak_bytes = row->live_bytes;
	row->epoch = memory->peaks;
}

/* The memory that is live now has been so since the last change. */
static void note_time(struct tw_memory *memory, uint64_t now_ns)
{
	uint64_t span = memory->to_ns - memory->from_ns, part;
	if (now_ns < memory->from_ns || !span)
		return;
	part = (uint64_t)((__uint128_t)(now_ns - memory->from_ns) * TW_MEMORY_PARTS / span);
	part = part < TW_MEMORY_PARTS ? part : TW_MEMORY_PARTS - 1;
	while (memory->part < part)
		memory->parts[++memory->part] = memory->live_bytes;
	if (memory->live_bytes > memory->parts[part])
		memory->parts[part] = memory->live_bytes;
}

static void add_live(struct tw_memory *memory, struct tw_memory_row *row, uint64_t bytes, uint64_t now_ns)
{
	note_time(memory, now_ns);
	settle(memory, row);
	row->live_bytes += bytes;
	row->live_blocks++;
	memory->live_bytes += bytes;
	memory->live_blocks++;
	if (memory->live_bytes > memory->peak_bytes) {
		memory->peak_bytes = memory->live_bytes;
		memory->peak_ns = now_ns;
		memory->peaks++;
	}
	note_time(memory, now_ns);
	if (memory->on_live)
		memory->on_live(memory->context, now_ns);
}

static void take_live(struct tw_memory *memory, struct tw_memory_row *row, uint64_t bytes, uint64_t now_ns)
{
	note_time(memory, now_ns);
	settle(memory, row);
	row->live_bytes -= bytes;
	row->live_blocks--;
	memory->live_bytes -= bytes;
	memory->live_blocks--;
	if (memory->on_live)
		memory->on_live(memory->context, now_ns);
}

/* ---- blocks ---- */

struct tw_memory_block *tw_memory_block_at(const struct tw_memory *memory, uint32_t image, uint64_t address)
{
	uint32_t at = tw_map_find(&memory->by_address, tw_hash_word(image, address), i,
				  memory->blocks[i].address == address && memory->blocks[i].image == image);
	return at == TW_MAP_NONE ? NULL : &memory->blocks[at];
}

/* A place for a block at that address, which is live. */
static struct tw_memory_block *make_block(struct tw_memory *memory, uint32_t image, uint64_t address, uint64_t now_ns)
{
	struct tw_memory_block *block = tw_memory_block_at(memory, image, address);
	if (block)
		return block;
	if (!tw_grow(memory->blocks, memory->block_count, memory->block_capacity) ||
	    !tw_map_add(&memory->by_address, tw_hash_word(image, address), memory->block_count)) {
		memory->has_no_memory = true;
		return NULL;
	}
	block = &memory->blocks[memory->block_count++];
	*block = (struct tw_memory_block){.address = address, .image = image, .first_ns = now_ns};
	return block;
}

static bool list_map(struct tw_memory *memory, uint32_t block)
{
	if (!tw_grow(memory->maps, memory->map_count, memory->map_capacity))
		return memory->has_no_memory = true;
	memory->maps[memory->map_count++] = block;
	return true;
}

static void put_block(struct tw_memory *memory, struct tw_memory_block what, uint64_t now_ns)
{
	struct tw_memory_block *block = make_block(memory, what.image, what.address, now_ns);
	if (!block)
		return;
	what.first_ns = block->first_ns;
	if (block->is_live) {
		memory->unseen_frees++;
		take_live(memory, &memory->rows[block->row], block->bytes, now_ns);
	}
	what.is_live = true;
	what.is_listed = block->is_listed || (what.is_map && list_map(memory, (uint32_t)(block - memory->blocks)));
	*block = what;
	add_live(memory, &memory->rows[what.row], what.bytes, now_ns);
}

static void free_block(struct tw_memory *memory, struct tw_memory_thread *thread, struct tw_memory_block *block,
		       uint64_t now_ns)
{
	memory->rows[block->row].temporary += thread->last == (uint32_t)(block - memory->blocks) + 1;
	memory->frees++;
	take_live(memory, &memory->rows[block->row], block->bytes, now_ns);
	block->is_live = false;
}

/* A mapping in which the address lies; NULL: none. */
static struct tw_memory_block *find_map(const struct tw_memory *memory, uint32_t image, uint64_t address)
{
	struct tw_memory_block *at = tw_memory_block_at(memory, image, address);
	if (at && at->is_live)
		return at->is_map ? at : NULL;
	for (uint32_t i = 0; i < memory->map_count; i++) {
		at = &memory->blocks[memory->maps[i]];
		if (at->is_map && at->is_live && at->image == image && address - at->address < at->bytes)
			return at;
	}
	return NULL;
}

/* The rest on both sides of what is unmapped is a mapping each. */
static void unmap(struct tw_memory *memory, struct tw_memory_thread *thread, uint32_t image, uint64_t address,
		  uint64_t bytes, uint64_t now_ns)
{
	struct tw_memory_block *block = find_map(memory, image, address), was;
	bytes = (bytes + 4095) & ~UINT64_C(4095);
	/* Mappings that were there before, and those of libraries and stacks. */
	if (!block)
		return;
	was = *block;
	uint64_t before = address - was.address, whole = (was.bytes + 4095) & ~UINT64_C(4095);
	if (!before && bytes >= whole) {
		free_block(memory, thread, block, now_ns);
		return;
	}
	take_live(memory, &memory->rows[was.row], was.bytes, now_ns);
	block->is_live = false;
	if (before)
		put_block(memory,
			  (struct tw_memory_block){.address = was.address,
						   .bytes = before,
						   .image = image,
						   .row = was.row,
						   .is_map = true},
			  now_ns);
	if (before + bytes < whole)
		put_block(memory,
			  (struct tw_memory_block){.address = address + bytes,
						   .bytes = whole - before - bytes,
						   .image = image,
						   .row = was.row,
						   .is_map = true},
			  now_ns);
}

/* ---- rows ---- */

static uint32_t find_row(struct tw_memory *memory, uint32_t image, const uint64_t *words, uint32_t count)
{
	uint64_t key = tw_hash_bytes(words, count * sizeof *words, image);
	uint32_t at = tw_map_find(&memory->by_stack, key, i,
				  memory->rows[i].image == image && memory->rows[i].word_count == count &&
					  !memcmp(memory->rows[i].words, words, count * sizeof *words));
	if (at != TW_MAP_NONE)
		return at;
	if (memory->row_count >= TW_MEMORY_ROWS_MAX) {
		memory->is_full = true;
		return 0;
	}
	uint64_t *copy = malloc((count + (size_t)1) * sizeof *copy);
	if (!copy || !tw_grow(memory->rows, memory->row_count, memory->row_capacity) ||
	    !tw_map_add(&memory->by_stack, key, memory->row_count)) {
		free(copy);
		memory->has_no_memory = true;
		return 0;
	}
	memcpy(copy, words, count * sizeof *copy);
	memory->rows[memory->row_count] =
		(struct tw_memory_row){.words = copy, .word_count = count, .image = image, .epoch = memory->peaks};
	return memory->row_count++;
}

/* ---- calls ---- */

/*
 * Behind a thread's last destructor libc empties the thread's store of freed blocks, by free(): they were freed before, and the store itself no
 * malloc() has made.
 */
static bool is_of_thread_cache(const struct tw_memory *memory, const struct tw_capture_event *event)
{
	const struct tw_capture_stream *stream = tw_capture_stream(memory->capture, event->stream);
	return stream && stream->thread_end_ns && event->time_ns >= stream->thread_end_ns;
}

static struct tw_memory_thread *thread_of(const struct tw_memory *memory, const struct tw_capture_event *event)
{
	const struct tw_capture_stream *stream = tw_capture_stream(memory->capture, event->stream);
	return stream && stream->thread < memory->thread_count ? &memory->threads[stream->thread] : NULL;
}

/* The block that should be reallocated stays. */
static void keep_old(struct tw_memory *memory, struct tw_memory_thread *thread)
{
	struct tw_memory_block *block =
		make_block(memory, thread->old.image, thread->old.address, thread->old.first_ns);
	if (block && !block->is_live)
		*block = thread->old;
}

/* The open call has no known end. */
static void drop_open(struct tw_memory *memory, struct tw_memory_thread *thread)
{
	memory->unreturned += thread->open_count != 0;
	if (thread->open_count && thread->has_old)
		keep_old(memory, thread);
	thread->open_count = 0;
	thread->has_old = thread->wants_row = false;
}

/* No block is live there. */
static void free_unmade(struct tw_memory *memory, const struct tw_memory_block *block,
			const struct tw_capture_event *event, uint64_t address)
{
	if (is_of_thread_cache(memory, event))
		return;
	if (block || !tw_memory_is_inherited(memory, event->image, address)) {
		memory->unknown_frees++;
		return;
	}
	memory->inherited_frees++;
	/* Its copy is freed once. */
	make_block(memory, event->image, address, event->time_ns);
}

static void on_free(struct tw_memory *memory, struct tw_memory_thread *thread, const struct tw_capture_event *event,
		    uint64_t address)
{
	struct tw_memory_block *block;
	/* realloc() may call free() of the block that it replaces. */
	if (!address || (thread->open_count && thread->has_old && thread->old.address == address))
		return;
	if (thread->open_count)
		drop_open(memory, thread);
	block = tw_memory_block_at(memory, event->image, address);
	if (block && block->is_live)
		free_block(memory, thread, block, event->time_ns);
	else
		free_unmade(memory, block, event, address);
}

/* A block leaves its address when realloc() is called: another thread may get it before realloc() returns. */
static void take_old(struct tw_memory *memory, struct tw_memory_thread *thread, const struct tw_capture_event *event,
		     uint64_t address)
{
	struct tw_memory_block *block = address ? tw_memory_block_at(memory, event->image, address) : NULL;
	thread->has_old = block && block->is_live;
	if (thread->has_old) {
		thread->old = *block;
		block->is_live = false;
	} else if (address) {
		free_unmade(memory, block, event, address);
	}
}

static void open_call(struct tw_memory *memory, struct tw_memory_thread *thread, const struct tw_capture_event *event,
		      const struct tw_memory_function *function)
{
	const uint64_t *words = event->payload;
	unsigned size = function->size, times = function->times;
	thread->does = (uint8_t)function->does;
	thread->bytes = (size ? words[size - 1] : 1) * (times ? words[times - 1] : 1);
	thread->is_sized = true;
	thread->row = 0;
	thread->wants_row = true;
	thread->has_old = false;
	if (thread->does == TW_MEMORY_REALLOCATES)
		take_old(memory, thread, event, words[0]);
	if (thread->does == TW_MEMORY_MAPS && (words[3] & (MAPS_NO_FILE | MAPS_STACK)) != MAPS_NO_FILE)
		thread->is_sized = false;
}

/* How many arguments matter. */
static unsigned words_of(const struct tw_memory_function *function)
{
	unsigned words = function->size > function->times ? function->size : function->times;
	if (function->does == TW_MEMORY_MAPS)
		return 4;
	if (function->does == TW_MEMORY_FREES)
		return function->block ? function->block : 1;
	return function->does == TW_MEMORY_REALLOCATES && !words ? 1 : words;
}

static void on_call(struct tw_memory *memory, const struct tw_capture_event *event,
		    const struct tw_memory_function *function)
{
	struct tw_memory_thread *thread = thread_of(memory, event);
	if (!thread)
		return;
	if (event->payload_words < words_of(function) ||
	    (event->flags & (TW_CAPTURE_FLAG_TERMS | TW_CAPTURE_FLAG_ARGS))) {
		memory->wordless++;
		return;
	}
	if (function->does == TW_MEMORY_FREES) {
		on_free(memory, thread, event, event->payload[function->block ? function->block - 1 : 0]);
		return;
	}
	if (function->does == TW_MEMORY_UNMAPS) {
		if (!thread->open_count)
			unmap(memory, thread, event->image, event->payload[0], event->payload[1], event->time_ns);
		return;
	}
	/* The same function again: its last call did not return. */
	if (thread->open_count == NESTED_MAX ||
	    (thread->open_count && thread->open[0].place == event->id && thread->open[0].image == event->image))
		drop_open(memory, thread);
	thread->open[thread->open_count].image = event->image;
	thread->open[thread->open_count].place = event->id;
	if (thread->open_count++ == 0)
		open_call(memory, thread, event, function);
}

static void made(struct tw_memory *memory, struct tw_memory_thread *thread, const struct tw_capture_event *event,
		 uint64_t address)
{
	struct tw_memory_row *row = &memory->rows[thread->row];
	memory->calls++;
	memory->bytes += thread->bytes;
	row->calls++;
	row->bytes += thread->bytes;
	row->largest = thread->bytes > row->largest ? thread->bytes : row->largest;
	if (thread->does == TW_MEMORY_ALLOCATES_ELSEWHERE) {
		memory->nowhere++;
		return;
	}
	put_block(memory,
		  (struct tw_memory_block){.address = address,
					   .bytes = thread->bytes,
					   .image = event->image,
					   .row = thread->row,
					   .is_map = thread->does == TW_MEMORY_MAPS},
		  event->time_ns);
	struct tw_memory_block *block = tw_memory_block_at(memory, event->image, address);
	thread->last = block ? (uint32_t)(block - memory->blocks) + 1 : 0;
}

static void end_call(struct tw_memory *memory, struct tw_memory_thread *thread, const struct tw_capture_event *event)
{
	uint64_t value = event->payload[0];
	bool has_failed = thread->does == TW_MEMORY_MAPS		  ? value >= -(uint64_t)ERRNO_MAX
			  : thread->does == TW_MEMORY_ALLOCATES_ELSEWHERE ? (uint32_t)value != 0
									  : !value || value == UINT64_MAX;
	/* realloc(block, 0) frees it. */
	bool is_freed = thread->has_old && (!has_failed || !thread->bytes);
	thread->wants_row = false;
	if (thread->has_old && is_freed) {
		memory->frees++;
		take_live(memory, &memory->rows[thread->old.row], thread->old.bytes, event->time_ns);
	} else if (thread->has_old) {
		keep_old(memory, thread);
	}
	thread->has_old = false;
	if (has_failed)
		memory->failed += thread->does == TW_MEMORY_MAPS || thread->bytes;
	else if (thread->is_sized)
		made(memory, thread, event, value);
}

static void on_return(struct tw_memory *memory, const struct tw_capture_event *event)
{
	struct tw_memory_thread *thread = thread_of(memory, event);
	uint32_t at = thread ? thread->open_count : 0;
	while (at && (thread->open[at - 1].place != event->id || thread->open[at - 1].image != event->image))
		at--;
	if (!at)
		return;
	if (at == 1 && (!event->payload_words || event->kind != TW_CAPTURE_RETURN_FROM)) {
		memory->wordless += event->kind == TW_CAPTURE_RETURN_FROM;
		drop_open(memory, thread);
		return;
	}
	thread->open_count = at - 1;
	if (at == 1)
		end_call(memory, thread, event);
}

static void on_stack(struct tw_memory *memory, const struct tw_capture_event *event)
{
	struct tw_memory_thread *thread = thread_of(memory, event);
	if (!thread || !thread->wants_row || !thread->open_count || thread->open[0].place != event->id)
		return;
	thread->row = find_row(memory, event->image, event->payload, event->payload_words);
	thread->wants_row = false;
}

static void on_loss(struct tw_memory *memory, const struct tw_capture_event *event)
{
	struct tw_missing_loss loss;
	struct tw_memory_thread *thread = thread_of(memory, event);
	tw_missing_loss(memory->capture, event, &loss);
	memory->lost += loss.sum;
	memory->overwritten += loss.overwritten;
	if (thread)
		drop_open(memory, thread);
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct tw_memory *memory = self;
	unsigned function = tw_marks_of(&memory->places, event);
	if (event->kind == TW_CAPTURE_LOSS)
		on_loss(memory, event);
	else if (function && event->kind == TW_CAPTURE_CALL) {
		memory->is_called[function - 1] = true;
		on_call(memory, event, &memory->functions->list[function - 1]);
	} else if (function && event->kind == TW_CAPTURE_STACK)
		on_stack(memory, event);
	else if (function && (event->kind == TW_CAPTURE_RETURN_FROM || event->kind == TW_CAPTURE_EXCEPTION_FROM))
		on_return(memory, event);
	return memory->has_no_memory ? TW_ENOMEM : 0;
}

/* The selection begins: what was made before it is live, and that is all. */
static int begin(void *self, uint64_t from_ns)
{
	struct tw_memory *memory = self;
	(void)from_ns;
	memory->bytes = memory->calls = memory->frees = memory->failed = 0;
	memory->peak_bytes = memory->parts[0] = memory->live_bytes;
	memory->peak_ns = memory->from_ns;
	memory->peaks++;
	for (uint32_t i = 0; i < memory->row_count; i++) {
		struct tw_memory_row *row = &memory->rows[i];
		row->bytes = row->calls = row->largest = row->temporary = 0;
	}
	return 0;
}

/* ---- the pass ---- */

static bool init(struct tw_memory *memory, struct tw_capture *capture, const struct tw_capture_filter *filter,
		 const struct tw_memory_functions *functions)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*memory = (struct tw_memory){.capture = capture,
				     .functions = functions ? functions : &malloc_and_kin,
				     .thread_count = tw_thread_count(capture)};
	memory->from_ns = filter->from_ns > info.start_ns ? filter->from_ns : info.start_ns;
	memory->to_ns = filter->to_ns && filter->to_ns < info.end_ns ? filter->to_ns : info.end_ns;
	memory->threads = calloc(memory->thread_count + (size_t)1, sizeof *memory->threads);
	memory->images = tw_memory_images(capture, &memory->image_count);
	if (!memory->threads || !memory->images ||
	    !tw_marks_make(&memory->places, capture, memory->functions->mark, memory->functions->context))
		return false;
	/* The first row is that of calls without callers. */
	find_row(memory, UINT32_MAX, &(uint64_t){0}, 0);
	return !memory->has_no_memory;
}

void tw_memory_end(struct tw_memory *memory)
{
	note_time(memory, memory->to_ns);
	for (uint32_t i = 0; i < memory->row_count; i++)
		settle(memory, &memory->rows[i]);
	for (uint32_t i = 0; i < memory->thread_count; i++)
		memory->unreturned += memory->threads[i].open_count != 0;
}

int tw_memory_begin(struct tw_memory *memory, struct tw_capture *capture, const struct tw_capture_filter *filter,
		    const struct tw_memory_functions *functions, struct tw_fold *fold)
{
	*fold = (struct tw_fold){.self = memory, .filter = *filter, .wants_before = true, .begin = begin, .see = see};
	fold->filter.wants_place = wants_place;
	fold->filter.wants_stream = NULL;
	fold->filter.context = memory;
	fold->filter.wants_own_time = false;
	fold->filter.kinds = UINT64_C(1) << TW_CAPTURE_CALL | UINT64_C(1) << TW_CAPTURE_RETURN_FROM |
			     UINT64_C(1) << TW_CAPTURE_EXCEPTION_FROM | UINT64_C(1) << TW_CAPTURE_STACK;
	return init(memory, capture, filter, functions) ? 0 : TW_ENOMEM;
}

int tw_memory_make(struct tw_memory *memory, struct tw_capture *capture, const struct tw_capture_filter *filter,
		   const struct tw_memory_functions *functions)
{
	struct tw_fold fold;
	int error = tw_memory_begin(memory, capture, filter, functions, &fold);
	if (!error)
		error = tw_pass_one(capture, &fold, "following memory");
	if (!error)
		tw_memory_end(memory);
	return error;
}

void tw_memory_free(struct tw_memory *memory)
{
	for (uint32_t i = 0; i < memory->row_count; i++)
		free((uint64_t *)(uintptr_t)memory->rows[i].words);
	tw_marks_free(&memory->places);
	free(memory->threads);
	free(memory->images);
	free(memory->rows);
	free(memory->blocks);
	free(memory->maps);
	tw_map_fini(&memory->by_stack);
	tw_map_fini(&memory->by_address);
	*memory = (struct tw_memory){0};
}

bool tw_memory_lacks(const struct tw_memory *memory, unsigned function)
{
	bool is_needed = tw_memory_is_of_pairs(memory) ||
			 (memory->calls && strcmp(memory->functions->list[function].name, "free") == 0);
	return memory->places.has_any && is_needed && !memory->is_called[function];
}

bool tw_memory_is_of_pairs(const struct tw_memory *memory)
{
	return memory->functions != &malloc_and_kin;
}
