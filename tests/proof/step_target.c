/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_target.c - the stepped side: a new thread makes its first calls between two marks (int3), and a signal
 * handler that makes a call of its own and ends in a mark too.
 */
#include "step.h"
#include "session/places.h"
#include "session/session.h"
#include "tracewheel/tracewheel.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define CALLS	 3
#define CALL_TAG UINT64_C(0x5157000000000000)
#define HIT_TAG	 UINT64_C(0x5158000000000000)
#define MAX	 100000
#define MARK()	 __asm__ volatile("int3" ::: "memory")

struct step_registers {
	unsigned char xmm[256]; /* 16 of 16 bytes */
	uint64_t words[13];
	uint64_t after[8]; /* the first words again, when the call has returned */
};
void step_call(const struct step_registers *in, struct step_registers *out, void **slot);
void step_target(void);

static struct tw_declared_function called = TW_DECLARED_FUNCTION("step", "called", 2);
static struct tw_declared_function handled = TW_DECLARED_FUNCTION("step", "handled", 2);
static struct tw_rs rs;
static struct tw_session *session;
static void **slot;
static enum step_place place_kind;
static enum step_handler handler_kind;
static volatile int failure;
static volatile unsigned handled_count, called_count;
static sigjmp_buf back;
static volatile int may_jump;
static unsigned char seen_call[CALLS + 2], seen_hit[MAX], seen_return[CALLS + 2 + MAX];
static unsigned return_count;

/* Every register arrives at the callee, and those that calls preserve come back. */
static void call_slot(uint64_t a)
{
	struct step_registers in, out;

	for (size_t i = 0; i < sizeof in.xmm; i++)
		in.xmm[i] = (unsigned char)(i * 7 + a);
	for (size_t i = 0; i < TW_COUNT_OF(in.words); i++)
		in.words[i] = 0x0101010101010101 * i + a;
	in.words[0] = a;
	in.words[1] = ~a;
	memcpy(in.after, in.words, sizeof in.after);
	memset(&out, 0, sizeof out);
	step_call(&in, &out, slot);
	if (memcmp(&in, &out, sizeof in) != 0)
		failure = STEP_BAD_REGISTERS;
}

static void on_signal(int number)
{
	/* One instruction: a handler that interrupts the handler gets another number. */
	unsigned n = __atomic_fetch_add(&handled_count, 1, __ATOMIC_SEQ_CST);
	int saved_errno = errno;

	errno = 1000 + (int)n;
	if (place_kind == STEP_DECLARED)
		tw_call2(&handled, HIT_TAG | n, ~(HIT_TAG | n));
	else
		call_slot(HIT_TAG | n);
	if (errno != 1000 + (int)n)
		failure = STEP_BAD_ERRNO;
	MARK();
	if (handler_kind == STEP_JUMPS && may_jump)
		siglongjmp(back, 1);
	errno = saved_errno;
}

static void call(uint64_t n)
{
	uint64_t a = CALL_TAG | n;

	if (place_kind == STEP_DECLARED)
		tw_call2(&called, a, ~a);
	else
		call_slot(a);
}

static void *stepped(void *unused)
{
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
		_exit(STEP_BAD_SETUP);
	errno = 77;
	MARK();
	for (volatile uint64_t i = 0; i < CALLS; i++) {
		/* A call left by a jump is not repeated; it is recorded or not. */
		if (sigsetjmp(back, 1) == 0) {
			may_jump = 1;
			called_count++;
			call(i);
			if (errno != 77)
				failure = STEP_BAD_ERRNO;
		}
		errno = 77;
		if (i == 0)
			step_between();
	}
	MARK();
	/* No longer stepped: calls of the thread are recorded. */
	call(CALLS);
	call(CALLS + 1);
	called_count += 2;
	return NULL;
}

/* ---- setting up ---- */

static int arm_slot(void)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL | (place_kind == STEP_RETURN ? TW_ACTION_RETURN : 0),
					.slot_words = 2};
	struct tw_module_options module_options = {.name = "step_slot", .is_declared = true};
	struct tw_place_options place_options = {.kind = TW_BP_SLOT, .target = (void *)step_target};
	struct tw_module *module;
	struct tw_function *function;
	struct tw_place *place;
	struct tw_permit *permit;
	int error;

	slot = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*slot = (void *)step_target;
	place_options.where = slot;
	if (tw_permit_seize(&permit))
		return -1;
	error = tw_bp_module_add(permit, &module_options, &module);
	if (!error)
		error = tw_bp_function_add(permit, module, "target", UINT32_MAX, 0, &function);
	if (!error)
		error = tw_bp_place_add(permit, function, &place_options, &place);
	if (!error)
		error = tw_session_stage(session, permit, place, &part);
	if (!error)
		tw_bp_commit(permit);
	tw_permit_drop(permit);
	return error;
}

static void set_up(void)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 20, .cap_bytes = 1 << 22, .has_fixed_rings = true};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
	uint32_t image;
	int error = tw_rs_create(&rs, &options);

	if (!error)
		error = tw_rs_image_claim(&rs, &image);
	if (!error)
		error = tw_session_make("step", &rs, &session);
	if (!error)
		error = tw_function_declare(&called);
	if (!error)
		error = tw_function_declare(&handled);
	if (!error && tw_trace_function(session, "step", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL) != 2)
		error = -1;
	if (!error && tw_trace_process(session, TW_PID_NEW, true, TW_FLAG_CALL) != 0)
		error = -1;
	if (!error && place_kind != STEP_DECLARED)
		error = arm_slot();
	if (error || sigaction(SIGUSR1, &action, NULL) < 0)
		_exit(STEP_BAD_SETUP);
}

/* ---- checking ---- */

/* A returned call gives back the value in %rax. */
static int look_at_return(const struct tw_rb_record *record)
{
	uint64_t word = *tw_event_payload(record) - 6 * UINT64_C(0x0101010101010101), n = word & 0xffffffffffff;
	bool is_call = (word ^ n) == CALL_TAG;

	if (place_kind != STEP_RETURN || tw_event_payload_words(record->head) != 1)
		return STEP_BAD_STREAM;
	if (is_call ? n >= CALLS + 2 : (word ^ n) != HIT_TAG || n >= handled_count)
		return STEP_BAD_STREAM;
	if (seen_return[is_call ? n : CALLS + 2 + n]++)
		return STEP_TWICE;
	return_count++;
	return 0;
}

static int look_at(const struct tw_rb_record *record, unsigned *events)
{
	uint64_t head = record->head;
	const uint64_t *words = tw_event_payload(record);
	unsigned char *seen;
	uint64_t n;

	/* A thread that left its first call by a jump identifies itself at the second. */
	if (TW_RB_HEAD_KIND(head) == TW_EVENT_LOSS || TW_RB_HEAD_KIND(head) == TW_EVENT_OWN_TIME ||
	    (TW_RB_HEAD_KIND(head) == TW_EVENT_SWITCH && handler_kind == STEP_JUMPS))
		return 0;
	if (TW_RB_HEAD_KIND(head) == TW_EVENT_RETURN_FROM)
		return look_at_return(record);
	if (TW_RB_HEAD_KIND(head) != TW_EVENT_CALL || tw_event_payload_words(head) != 2 || words[1] != ~words[0])
		return STEP_BAD_STREAM;
	n = words[0] & 0xffffffffffff;
	if ((words[0] ^ n) == CALL_TAG && n < CALLS + 2)
		seen = &seen_call[n];
	else if ((words[0] ^ n) == HIT_TAG && n < handled_count)
		seen = &seen_hit[n];
	else
		return STEP_BAD_STREAM;
	if ((*seen)++)
		return STEP_TWICE;
	(*events)++;
	return 0;
}

static int check(void)
{
	uint64_t counted = rs.own.head->no_ring_lost, all = handled_count + called_count;
	unsigned events = 0;

	for (uint32_t i = 0; i < tw_rs_scan(&rs); i++) {
		struct tw_rb_shared *ring = tw_rs_ring(&rs, i);
		const uint8_t *at;
		uint64_t pos = 0, end = 0;
		int64_t bytes;

		while ((bytes = tw_rb_peek(ring, pos, TW_BLOCK_RAW_BYTES_MAX, &at, &end)) > 0) {
			for (int64_t b = 0; b < bytes; b += TW_RB_HEAD_BYTES(((struct tw_rb_record *)(at + b))->head)) {
				int wrong = look_at((const struct tw_rb_record *)(at + b), &events);

				if (wrong)
					return wrong;
			}
			pos = end;
		}
		if (bytes < 0)
			return STEP_BAD_STREAM;
		for (int cause = 0; cause < TW_RB_CAUSES; cause++)
			counted += ring->lost[cause];
	}
	if (!seen_call[CALLS] || !seen_call[CALLS + 1])
		return STEP_DEAF;
	if (place_kind == STEP_RETURN) {
		if (!seen_return[CALLS] || !seen_return[CALLS + 1])
			return STEP_DEAF;
		/* A return is recorded or counted, or its call was counted: at most twice the calls. */
		return events + return_count + counted <= 2 * all &&
				       (handler_kind == STEP_JUMPS || events + counted >= all)
			       ? 0
			       : STEP_NOT_ACCOUNTED;
	}
	if (handler_kind == STEP_RETURNS)
		return events + counted == all ? 0 : STEP_NOT_ACCOUNTED;
	/* A call left by a jump is in flight forever: at most one for each jump. */
	return events + counted <= all && events + counted + handled_count >= all ? 0 : STEP_NOT_ACCOUNTED;
}

void step_child(enum step_place place, enum step_handler handler)
{
	pthread_t thread;
	int result;

	place_kind = place;
	handler_kind = handler;
	set_up();
	if (pthread_create(&thread, NULL, stepped, NULL))
		_exit(STEP_BAD_SETUP);
	pthread_join(thread, NULL);
	result = failure ? failure : check();
	tw_session_destroy(session);
	tw_rs_destroy(&rs);
	_exit(result);
}
