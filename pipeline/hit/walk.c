/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - goes from frame to frame, strictly within the thread's own stack. */
#include "pipeline/hit/walk.h"

#include "breakpoints/entry.h"
#include "breakpoints/returns.h"
#include "pipeline/hit/callers.h"
#include "pipeline/hit/hit.h"
#include "base/sys.h"
#include "symbols/frame_rows.h"

/* Code addresses lie between these. */
#define CODE_LOW  4096
#define CODE_HIGH (UINT64_C(1) << 47)

/* Reads frames of uninstrumented code, where a sanitizer sees a gap between variables. */
#define READS_STACK __attribute__((no_sanitize("address")))
#define INLINE	    inline __attribute__((always_inline))

/* A frame: the registers that its function has behind the call, and the part of the stack that may be read. */
struct walk {
	uintptr_t pc;
	bool is_interrupted; /* pc is that of an instruction that has not run; else it is behind a call */
	bool is_checked;     /* each word is read by a system call: the stack is not known, or not trusted */
	uintptr_t rsp, rbp;
	uintptr_t end;
	struct tw_caller_code code; /* of the object of the last frame */
};

/*
 * The end of the thread's own stack; 0: `inside` is on another stack, or the stack is not known. Memory above a
 * thread's control block may be another's in the same mapping, and be unmapped at any time.
 */
static uintptr_t stack_end(const struct tw_thread *thread, uintptr_t inside)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	if (inside < thread->stack_low || inside >= thread->stack_high)
		return 0;
	return self > inside && self < thread->stack_high ? self : thread->stack_high;
}

/* The return address that a slot has, or the one it had before its call was watched; 0: none. */
static uint64_t return_address(const uint64_t *slot, uint64_t address)
{
	if (tw_unlikely(tw_returns_is_stub(address))) {
		const struct tw_return_entry *entry = tw_returns_find(slot);

		address = entry ? entry->return_address : 0;
	}
	return address >= CODE_LOW && address < CODE_HIGH ? address : 0;
}

READS_STACK uint64_t tw_walk_caller(const uint64_t *slot)
{
	return return_address(slot, *slot);
}

/* The word at an address of the frame or above it; false: it may not be read. */
static INLINE READS_STACK bool read_word(const struct walk *walk, uintptr_t at, uintptr_t *out)
{
	if (at < walk->rsp || at >= walk->end || at % sizeof(uint64_t))
		return false;
	if (walk->is_checked)
		return tw_sys_read_own_word(at, out);
	*out = *(const uint64_t *)at;
	return true;
}

static INLINE bool find_cfa(const struct walk *walk, const struct tw_frame_rule *rule, uintptr_t *cfa)
{
	bool is_rbp = rule->cfa == TW_FRAME_RBP || rule->cfa == TW_FRAME_RBP_MEMORY;

	*cfa = (is_rbp ? walk->rbp : walk->rsp) + (uintptr_t)(intptr_t)rule->offset;
	switch (rule->cfa) {
	case TW_FRAME_RSP:
	case TW_FRAME_RBP: break;
	case TW_FRAME_RSP_PLT: *cfa += (walk->pc & 15) >= (uintptr_t)rule->add ? sizeof(uint64_t) : 0; break;
	case TW_FRAME_RSP_MEMORY:
	case TW_FRAME_RBP_MEMORY:
		if (!read_word(walk, *cfa, cfa))
			return false;
		*cfa += (uintptr_t)(intptr_t)rule->add;
		break;
	default: return false;
	}
	return *cfa > walk->rsp && *cfa <= walk->end && *cfa % sizeof(uint64_t) == 0;
}

static INLINE uintptr_t place_of(const struct walk *walk, uint8_t at, uintptr_t cfa, int32_t offset)
{
	return (at == TW_FRAME_AT_CFA	? cfa
		: at == TW_FRAME_AT_RSP ? walk->rsp
					: walk->rbp) +
	       (uintptr_t)(intptr_t)offset;
}

/* The rule of the frame; NULL: there is none.  *is_chained: the object is not known, nor is another, and frame pointers are followed. */
static INLINE const struct tw_frame_rule *rule_of(struct walk *walk, bool *is_chained)
{
	/* A call may be the last instruction of a function. */
	uintptr_t pc = walk->pc - !walk->is_interrupted;

	if (tw_unlikely(pc - walk->code.base >= walk->code.end - walk->code.base) &&
	    !tw_callers_code(pc, &walk->code)) {
		/* A copy of displaced instructions runs with the frame that they have in their function. */
		uintptr_t original = walk->is_interrupted ? tw_entry_original(pc) : 0;

		*is_chained = !original;
		if (!original || !tw_callers_code(original, &walk->code))
			return NULL;
		pc = original;
	}
	*is_chained = !walk->code.rows;
	return walk->code.rows ? tw_frame_rows_find(walk->code.rows, pc - walk->code.base) : NULL;
}

/* By the chain of frame pointers. */
static INLINE bool follow_chain(struct walk *walk)
{
	const uint64_t *words = (const uint64_t *)walk->rbp;
	uintptr_t next;

	if (!read_word(walk, walk->rbp, &next) || !read_word(walk, walk->rbp + sizeof *words, &walk->pc))
		return false;
	walk->pc = return_address(&words[1], walk->pc);
	walk->rsp = walk->rbp + 2 * sizeof *words;
	walk->rbp = next;
	return walk->pc;
}

/* To the frame of the caller. */
static INLINE bool follow_rule(struct walk *walk, const struct tw_frame_rule *rule)
{
	uintptr_t cfa, at, rbp = 0;

	if (!find_cfa(walk, rule, &cfa))
		return false;
	at = place_of(walk, rule->return_at, cfa, rule->return_offset);
	if (!read_word(walk, at, &walk->pc))
		return false;
	walk->pc = return_address((const uint64_t *)at, walk->pc);
	if (rule->rbp_at == TW_FRAME_SAME)
		rbp = walk->rbp;
	else if (rule->rbp_at != TW_FRAME_LOST &&
		 !read_word(walk, place_of(walk, rule->rbp_at, cfa, rule->rbp_offset), &rbp))
		return false;
	walk->rbp = rbp;
	walk->rsp = cfa;
	walk->is_interrupted = rule->is_interrupted;
	return walk->pc;
}

READS_STACK unsigned tw_walk_callers(const struct tw_thread *thread, const uint64_t *slot, uintptr_t frame,
				     uint64_t *out, unsigned capacity)
{
	struct walk walk = {.rsp = (uintptr_t)(slot + 1), .rbp = frame, .pc = return_address(slot, *slot)};
	const struct tw_frame_rule *rule = NULL;
	bool is_chained = false;
	unsigned count = 0;

	if (!walk.pc)
		return 0;
	out[count++] = walk.pc;
	if (capacity <= count)
		return count;
	walk.end = stack_end(thread, (uintptr_t)slot);
	while (count < capacity) {
		rule = rule_of(&walk, &is_chained);
		if (!(is_chained ? follow_chain(&walk) : rule && follow_rule(&walk, rule)))
			break;
		out[count++] = walk.pc;
	}
	if (count < capacity && !is_chained && (!rule || rule->cfa != TW_FRAME_OUTERMOST))
		out[count++] = 0;
	return count;
}

/* To the caller of code that is not known. */
static bool follow_slot(struct walk *walk, const uint64_t *slot)
{
	struct tw_caller_code code;

	walk->rsp = (uintptr_t)slot;
	if (!slot || !read_word(walk, walk->rsp, &walk->pc))
		return false;
	walk->pc = return_address(slot, walk->pc);
	walk->rsp += sizeof *slot;
	walk->is_interrupted = false;
	return walk->pc && tw_callers_code(walk->pc - 1, &code);
}

/* To the next frame.  False: *end says why not. */
static bool follow(struct walk *walk, enum tw_walk_end *end)
{
	bool is_chained;
	const struct tw_frame_rule *rule = rule_of(walk, &is_chained);
	/* Of an object that has no rows, frame pointers are as good; of no object, any word may lie there. */
	bool is_code = is_chained && walk->pc - walk->code.base <= walk->code.end - walk->code.base;

	if (rule ? follow_rule(walk, rule) : is_code && follow_chain(walk))
		return true;
	if (rule && rule->cfa == TW_FRAME_OUTERMOST)
		*end = TW_WALK_OUTERMOST;
	else if (!walk->pc || (is_chained && !is_code))
		*end = TW_WALK_UNKNOWN_CODE;
	else
		*end = rule && rule->cfa != TW_FRAME_UNKNOWN ? TW_WALK_UNREADABLE : TW_WALK_NO_ROW;
	return false;
}

unsigned tw_walk_interrupted(const struct tw_walk_registers *at, uint64_t *out, unsigned capacity,
			     enum tw_walk_end *end)
{
	struct walk walk = {.pc = at->pc,
			    .is_interrupted = true,
			    .rsp = at->rsp,
			    .rbp = at->rbp,
			    .end = CODE_HIGH,
			    .is_checked = true};
	uintptr_t original = tw_entry_original(at->pc);
	struct tw_caller_code code;
	unsigned count = 0;

	tw_callers_keep();
	out[count++] = original ? original : at->pc;
	if (!original && !tw_callers_code(at->pc, &code)) {
		*end = TW_WALK_UNKNOWN_CODE;
		if (capacity <= count || !follow_slot(&walk, at->slot))
			return count;
		out[count++] = walk.pc;
	}
	for (*end = TW_WALK_FULL; count < capacity && follow(&walk, end);)
		out[count++] = walk.pc;
	return count;
}
