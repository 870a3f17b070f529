/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - functions that call the host, and settings shared by all sessions. */
#include "match/machine.h"

#include "base/atomic.h"
#include "base/export.h"

#include <math.h>
#include <string.h>

#define FUNCTION(atom, arity) \
	struct tw_term tw_match_fn_##atom##_##arity(struct tw_match_machine *m, const struct tw_term *top)

/* True if the host has that function. */
#define HOST_HAS(m, function) ((m)->run->host && (m)->run->host->function)

#define RAISE tw_word(0)

static _Atomic uint32_t control_word;
static _Atomic uint32_t backtrace_depth = TW_BACKTRACE_DEPTH_DEFAULT;
static const struct tw_process_dumper *_Atomic process_dumper;

/* ---- settings ---- */

TW_API uint32_t tw_trace_control_word_get(void)
{
	/* PAIR match.tcw: acquire; release in tw_trace_control_word_set(). */
	return tw_load_acquire(&control_word);
}

TW_API uint32_t tw_trace_control_word_set(uint32_t word)
{
	/*
	 * PAIR match.tcw: acq_rel; acquire in tw_trace_control_word_get() and in the next set.  A thread that sees a
	 * word also sees its setter's earlier writes, and of two setters each gets a different old word.  Without it a
	 * specification could act on a word before the writes that explain it.
	 */
	return tw_exchange_acq_rel(&control_word, word);
}

TW_API uint32_t tw_backtrace_depth_get(void)
{
	/* PAIR match.depth: acquire; release in tw_backtrace_depth_set(). */
	return tw_load_acquire(&backtrace_depth);
}

TW_API uint32_t tw_backtrace_depth_set(uint32_t depth)
{
	if (depth > TW_BACKTRACE_DEPTH_MAX)
		depth = TW_BACKTRACE_DEPTH_MAX;
	/* PAIR match.depth: acq_rel; acquire in tw_backtrace_depth_get(). */
	return tw_exchange_acq_rel(&backtrace_depth, depth);
}

TW_API void tw_process_dump_set(const struct tw_process_dumper *dumper)
{
	/*
	 * PAIR match.dumper: release; acquire in dump().  Publishes the two fields.  Without it a run could call
	 * a function that is not set yet.
	 */
	tw_store_release(&process_dumper, dumper);
}

/* ---- the process ---- */

FUNCTION(SELF, 0)
{
	return HOST_HAS(m, self) ? m->run->host->self(m->run) : RAISE;
}

FUNCTION(NODE, 0)
{
	return HOST_HAS(m, node) ? m->run->host->node(m->run) : tw_atom(TW_ATOM_NONODE);
}

FUNCTION(NODE, 1)
{
	struct tw_identifier parts;

	if (tw_term_get_identifier(top[0], &parts) != 0)
		return RAISE;
	return tw_term_is_none(parts.node) ? tw_match_fn_NODE_0(m, top) : parts.node;
}

FUNCTION(CALLER, 0)
{
	return HOST_HAS(m, caller) ? m->run->host->caller(m->run) : tw_atom(TW_ATOM_UNDEFINED);
}

FUNCTION(CALLER_LINE, 0)
{
	return HOST_HAS(m, caller_line) ? m->run->host->caller_line(m->run) : tw_atom(TW_ATOM_UNDEFINED);
}

static struct tw_term stacktrace(struct tw_match_machine *m, int64_t depth)
{
	uint32_t most = tw_backtrace_depth_get();

	if (!HOST_HAS(m, stacktrace))
		return tw_term_nil();
	return m->run->host->stacktrace(m->run, depth < most ? (uint32_t)depth : most);
}

FUNCTION(CURRENT_STACKTRACE, 0)
{
	return stacktrace(m, TW_BACKTRACE_DEPTH_MAX);
}

FUNCTION(CURRENT_STACKTRACE, 1)
{
	if (!tw_is_small(top[0]) || tw_small_value(top[0]) < 0)
		return RAISE;
	return stacktrace(m, tw_small_value(top[0]));
}

/* The dumper's text, or else the pid, cut to the space available. */
static size_t dump(struct tw_match_machine *m, struct tw_term self, char *buffer, size_t bytes)
{
	/* PAIR match.dumper: acquire; release in tw_process_dump_set(). */
	const struct tw_process_dumper *dumper = tw_load_acquire(&process_dumper);
	size_t used;

	if (dumper) {
		used = dumper->dump(dumper->context, self, buffer, bytes);
		return used < bytes ? used : bytes;
	}
	if (bytes < 16)
		return 0;
	memcpy(buffer, "=proc:", 6);
	used = 6 + tw_term_format(self, TW_PRINT_WRITE, buffer + 6, bytes - 7);
	buffer[used++] = '\n';
	return used;
}

FUNCTION(PROCESS_DUMP, 0)
{
	struct tw_arena *arena = &m->run->arena;
	struct tw_term self = tw_match_fn_SELF_0(m, top);
	size_t capacity = (size_t)(arena->end - arena->at) / 2;
	char *buffer;

	if (HOST_HAS(m, process_dump))
		return m->run->host->process_dump(m->run);
	if (tw_term_is_none(self))
		self = tw_atom(TW_ATOM_UNDEFINED);
	/* Half of the space for the text, the other half for the binary. */
	buffer = capacity > 64 ? tw_arena_take(arena, capacity - 32) : NULL;
	return buffer ? tw_term_binary(arena, buffer, dump(m, self, buffer, capacity - 64)) : RAISE;
}

/* ---- tokens and flags ---- */

FUNCTION(IS_SEQ_TRACE, 0)
{
	return tw_term_bool(HOST_HAS(m, has_seq_token) && m->run->host->has_seq_token(m->run));
}

FUNCTION(GET_SEQ_TOKEN, 0)
{
	return HOST_HAS(m, get_seq_token) ? m->run->host->get_seq_token(m->run) : tw_term_nil();
}

FUNCTION(SET_SEQ_TOKEN, 2)
{
	return HOST_HAS(m, set_seq_token) ? m->run->host->set_seq_token(m->run, top[0], top[-1]) : RAISE;
}

/* Returns below 0 to raise, 0 for no change, 1 for a change. */
static int change_flags(struct tw_match_machine *m, struct tw_term tracee, struct tw_term off, struct tw_term on)
{
	if (!HOST_HAS(m, trace) || !tw_is_list(off) || !tw_is_list(on))
		return -1;
	if ((m->actions & (TW_MATCH_SILENCE | TW_MATCH_UNSILENCE)) && HOST_HAS(m, silence)) {
		m->run->host->silence(m->run, m->actions & TW_MATCH_SILENCE);
		m->actions &= (uint8_t) ~(TW_MATCH_SILENCE | TW_MATCH_UNSILENCE);
	}
	return m->run->host->trace(m->run, tracee, off, on);
}

static struct tw_term enable(struct tw_match_machine *m, struct tw_term tracee, struct tw_term flag, bool is_on)
{
	struct tw_term flags = tw_term_cons(&m->run->arena, flag, tw_term_nil());
	int change;

	if (tw_term_is_none(flags))
		return RAISE;
	change = change_flags(m, tracee, is_on ? tw_term_nil() : flags, is_on ? flags : tw_term_nil());
	return change < 0 ? RAISE : tw_atom(TW_ATOM_TRUE);
}

FUNCTION(ENABLE_TRACE, 1)
{
	return enable(m, tw_word(0), top[0], true);
}

FUNCTION(ENABLE_TRACE, 2)
{
	return enable(m, top[0], top[-1], true);
}

FUNCTION(DISABLE_TRACE, 1)
{
	return enable(m, tw_word(0), top[0], false);
}

FUNCTION(DISABLE_TRACE, 2)
{
	return enable(m, top[0], top[-1], false);
}

static struct tw_term trace(struct tw_match_machine *m, struct tw_term tracee, struct tw_term off, struct tw_term on)
{
	int change = change_flags(m, tracee, off, on);

	return change < 0 ? RAISE : tw_term_bool(change);
}

FUNCTION(TRACE, 2)
{
	return trace(m, tw_word(0), top[0], top[-1]);
}

FUNCTION(TRACE, 3)
{
	return trace(m, top[0], top[-1], top[-2]);
}

/* ---- the node ---- */

FUNCTION(GET_TCW, 0)
{
	return tw_small(tw_trace_control_word_get());
}

FUNCTION(SET_TCW, 1)
{
	uint64_t word;

	if (tw_term_get_uint64(top[0], &word) != 0 || word > UINT32_MAX)
		return RAISE;
	if (HOST_HAS(m, set_tcw))
		return tw_small(m->run->host->set_tcw(m->run, (uint32_t)word));
	return tw_small(tw_trace_control_word_set((uint32_t)word));
}

FUNCTION(DISPLAY, 1)
{
	if (HOST_HAS(m, display))
		m->run->host->display(m->run, top[0]);
	return tw_atom(TW_ATOM_TRUE);
}

/* ---- values of machine words ---- */

/* The string, or the address itself if there is none: a number equals no string, and 0 is NULL. */
FUNCTION(STRING_AT, 1)
{
	struct tw_term string = {0};
	int64_t address;

	if (tw_term_get_int64(top[0], &address) != 0)
		return RAISE;
	if (HOST_HAS(m, string_at))
		string = m->run->host->string_at(m->run, (uint64_t)address);
	return tw_term_is_none(string) ? top[0] : string;
}

static bool vector(struct tw_match_machine *m, struct tw_term number, uint64_t *bits)
{
	uint64_t index;

	return tw_term_get_uint64(number, &index) == 0 && index < 8 && HOST_HAS(m, vector) &&
	       m->run->host->vector(m->run, index, bits);
}

/* Raises for a value that is not finite, as arithmetic does. */
static struct tw_term finite_float(struct tw_match_machine *m, double value)
{
	return isfinite(value) ? tw_term_float(&m->run->arena, value) : RAISE;
}

FUNCTION(VECTOR_FLOAT, 1)
{
	uint64_t bits;
	float value;

	if (!vector(m, top[0], &bits))
		return RAISE;
	memcpy(&value, &bits, sizeof value);
	return finite_float(m, (double)value);
}

FUNCTION(VECTOR_DOUBLE, 1)
{
	uint64_t bits;
	double value;

	if (!vector(m, top[0], &bits))
		return RAISE;
	memcpy(&value, &bits, sizeof value);
	return finite_float(m, value);
}
