/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.c - the names of kinds of events: see payload.h. */
#include "views/names/payload.h"

static const struct tw_print_kind kinds[] = {
	[TW_CAPTURE_SWITCH] = {"in", "in", 0},
	[TW_CAPTURE_CALL] = {"call", "call", 0},
	[TW_CAPTURE_RETURN_FROM] = {"return_from", "return_from", 0},
	[TW_CAPTURE_EXCEPTION_FROM] = {"exception_from", "exception_from", 0},
	[TW_CAPTURE_RETURN_TO] = {"return_to", "return_to", 0},
	[TW_CAPTURE_STACK] = {"stack", "stack", 0},
	[TW_CAPTURE_SEND] = {"send", "send", 2},
	[TW_CAPTURE_SEND_TO_NON_EXISTING_PROCESS] = {"send_to_non_existing_process", "send_to_non_existing_process", 2},
	[TW_CAPTURE_RECEIVE] = {"receive", "'receive'", 1},
	[TW_CAPTURE_SPAWN] = {"spawn", "spawn", 2},
	[TW_CAPTURE_SPAWNED] = {"spawned", "spawned", 2},
	[TW_CAPTURE_EXIT] = {"exit", "exit", 1},
	[TW_CAPTURE_REGISTER] = {"register", "register", 1},
	[TW_CAPTURE_UNREGISTER] = {"unregister", "unregister", 1},
	[TW_CAPTURE_LINK] = {"link", "link", 1},
	[TW_CAPTURE_UNLINK] = {"unlink", "unlink", 1},
	[TW_CAPTURE_GETTING_LINKED] = {"getting_linked", "getting_linked", 1},
	[TW_CAPTURE_GETTING_UNLINKED] = {"getting_unlinked", "getting_unlinked", 1},
	[TW_CAPTURE_IN] = {"in", "in", 1},
	[TW_CAPTURE_OUT] = {"out", "out", 1},
	[TW_CAPTURE_IN_EXITING] = {"in_exiting", "in_exiting", 1},
	[TW_CAPTURE_OUT_EXITING] = {"out_exiting", "out_exiting", 1},
	[TW_CAPTURE_OUT_EXITED] = {"out_exited", "out_exited", 1},
	[TW_CAPTURE_GC_MINOR_START] = {"gc_minor_start", "gc_minor_start", 0},
	[TW_CAPTURE_GC_MINOR_END] = {"gc_minor_end", "gc_minor_end", 0},
	[TW_CAPTURE_GC_MAJOR_START] = {"gc_major_start", "gc_major_start", 0},
	[TW_CAPTURE_GC_MAJOR_END] = {"gc_major_end", "gc_major_end", 0},
	[TW_CAPTURE_GC_MAX_HEAP_SIZE] = {"gc_max_heap_size", "gc_max_heap_size", 0},
	[TW_CAPTURE_OPEN] = {"open", "open", 2},
	[TW_CAPTURE_CLOSED] = {"closed", "closed", 1},
	[TW_CAPTURE_SEQ_SEND] = {"seq_send", "send", 5},
	[TW_CAPTURE_SEQ_RECEIVE] = {"seq_receive", "'receive'", 5},
	[TW_CAPTURE_SEQ_PRINT] = {"seq_print", "print", 5},
	[TW_CAPTURE_MONITOR] = {"monitor", "monitor", 2},
};

const struct tw_print_kind *tw_print_kind(unsigned kind)
{
	return kind < sizeof kinds / sizeof *kinds && kinds[kind].word ? &kinds[kind] : NULL;
}

const char *const tw_print_gc_keys[TW_PRINT_GC_KEYS] = {"heap_size",
							"heap_block_size",
							"old_heap_size",
							"old_heap_block_size",
							"stack_size",
							"recent_size",
							"mbuf_size",
							"bin_vheap_size",
							"bin_vheap_block_size",
							"bin_old_vheap_size",
							"bin_old_vheap_block_size",
							"wordsize"};
