/* SPDX-License-Identifier: Apache-2.0 */
/* crash.c - the signal that ended the program, and the stack of its thread, for a flight recorder's capture. */
#include "views/names/crash.h"
#include "views/names/lines.h"
#include "views/names/names.h"
#include "views/names/threads.h"
#include "views/output/output.h"

#include "tracewheel/flight.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* A page fault so near below the stack pointer is one of the stack itself. */
#define OVERFLOW_BELOW (UINT64_C(64) << 10)
#define OVERFLOW_ABOVE UINT64_C(256)

static const struct code {
	int signal, code;
	const char *name, *text;
} codes[] = {{SIGSEGV, SEGV_MAPERR, "SEGV_MAPERR", "no memory is there"},
	     {SIGSEGV, SEGV_ACCERR, "SEGV_ACCERR", "the memory may not be used so"},
	     {SIGSEGV, SEGV_PKUERR, "SEGV_PKUERR", "a protection key forbids it"},
	     {SIGSEGV, SI_KERNEL, "SI_KERNEL", "an address that no memory can have"},
	     {SIGBUS, BUS_ADRALN, "BUS_ADRALN", "an address that is not aligned"},
	     {SIGBUS, BUS_ADRERR, "BUS_ADRERR", "behind the end of a mapped file, or no memory was left"},
	     {SIGBUS, BUS_OBJERR, "BUS_OBJERR", "an error of the hardware"},
	     {SIGILL, ILL_ILLOPN, "ILL_ILLOPN", "an instruction that does not exist"},
	     {SIGILL, ILL_ILLOPC, "ILL_ILLOPC", "an instruction that does not exist"},
	     {SIGFPE, FPE_INTDIV, "FPE_INTDIV", "an integer was divided by zero"},
	     {SIGFPE, FPE_INTOVF, "FPE_INTOVF", "an integer overflowed"},
	     {SIGFPE, FPE_FLTDIV, "FPE_FLTDIV", "a number was divided by zero"},
	     {SIGTRAP, TRAP_BRKPT, "TRAP_BRKPT", "a breakpoint"},
	     {SIGTRAP, SI_KERNEL, "SI_KERNEL", "a breakpoint"},
	     {SIGSYS, 1, "SYS_SECCOMP", "a system call that a filter forbids"},
	     {0, SI_USER, "SI_USER", ""},
	     {0, SI_QUEUE, "SI_QUEUE", ""},
	     {0, SI_TKILL, "SI_TKILL", ""}};

static const struct code *code_of(const struct tw_capture_crash *crash)
{
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].code == crash->code && (!codes[i].signal || codes[i].signal == crash->signal))
			return &codes[i];
	return NULL;
}

static bool has_address(const struct tw_capture_crash *crash)
{
	return crash->code > 0 && crash->code != SI_KERNEL && (crash->signal == SIGSEGV || crash->signal == SIGBUS);
}

static bool is_overflow(const struct tw_capture_crash *crash)
{
	return crash->signal == SIGSEGV && has_address(crash) &&
	       crash->address + OVERFLOW_BELOW >= crash->stack_pointer &&
	       crash->address < crash->stack_pointer + OVERFLOW_ABOVE;
}

/* "17512 worker-1" */
static void put_thread(struct tw_out *out, const struct tw_capture *capture, const struct tw_capture_crash *crash)
{
	char name[TW_THREAD_NAME_BYTES];
	const struct tw_capture_stream *stream;
	tw_out_format(out, "%d", (int)crash->thread_id);
	for (uint32_t i = 0; (stream = tw_capture_stream(capture, i)); i++)
		if (stream->image == crash->image && stream->thread_id == crash->thread_id &&
		    *tw_thread_name(capture, stream, name)) {
			tw_out_format(out, " (%s)", name);
			return;
		}
}

static void put_head(struct tw_out *out, const struct tw_capture *capture, const struct tw_capture_crash *crash)
{
	const struct code *code = code_of(crash);
	const char *name = sigabbrev_np(crash->signal);
	tw_out_format(out, "SIG%s in thread ", name ? name : "?");
	put_thread(out, capture, crash);
	if (is_overflow(crash))
		tw_out_text(out, ": its stack overflowed");
	else if (has_address(crash) && crash->address == crash->addresses[0])
		tw_out_text(out, ": it called, or jumped to, code that is none");
	else if (code && *code->text)
		tw_out_format(out, ": %s", code->text);
	else if (crash->sender == 0 && crash->code <= 0)
		tw_out_text(out, ": sent by the system or from outside of its container");
	else if (crash->code == SI_TKILL)
		tw_out_text(out, ": it was raised in the program");
	else if (crash->code <= 0)
		tw_out_format(out, ": sent by process %d", (int)crash->sender);
	if (has_address(crash))
		tw_out_format(out, "; address 0x%llx", (unsigned long long)crash->address);
	if (code && code->signal)
		tw_out_format(out, " (%s)", code->name);
}

/* How the stack ends, if not as all do. */
static const char *end_of(enum tw_crash_end end)
{
	switch (end) {
	case TW_CRASH_OUTERMOST: return NULL;
	case TW_CRASH_FULL: return "and more callers";
	case TW_CRASH_UNKNOWN_CODE:
		return "no further: the next address is in no code that is known (a damaged stack, or code made at run time)";
	case TW_CRASH_NO_ROW: return "no further: its code does not say where its caller is";
	case TW_CRASH_UNREADABLE: return "no further: the stack is damaged";
	case TW_CRASH_UNWALKED: break;
	}
	return "no further: the program died before more was known";
}

static const char *const end_words[] = {[TW_CRASH_OUTERMOST] = "outermost",	  [TW_CRASH_FULL] = "full",
					[TW_CRASH_UNKNOWN_CODE] = "unknown_code", [TW_CRASH_NO_ROW] = "no_row",
					[TW_CRASH_UNREADABLE] = "unreadable",	  [TW_CRASH_UNWALKED] = "unwalked"};

/* Has the instruction at the address not called?  The first has not, and none to which a signal handler returns. */
static bool is_instruction(const struct tw_capture *capture, const struct tw_capture_crash *crash, uint32_t index)
{
	struct tw_line line = {0};
	if (index)
		tw_line_of_return(capture, crash->image, crash->addresses[index - 1], &line);
	return !index || line.is_signal;
}

bool tw_crash_put(struct tw_out *out, const struct tw_capture *capture, const char *title, const char *indent)
{
	struct tw_capture_crash crash;
	if (!tw_capture_crash(capture, &crash))
		return false;
	tw_out_text(out, title);
	put_head(out, capture, &crash);
	tw_out_text(out, "\n");
	for (uint32_t i = 0, next; i < crash.count; i = next) {
		/* Of a recursion one line, with the number of its calls. */
		for (next = i + 1; next < crash.count && crash.addresses[next] == crash.addresses[i]; next++)
			;
		tw_out_format(out, "%s#%-3u ", indent, i);
		tw_line_put_code(out, capture, crash.image, crash.addresses[i], is_instruction(capture, &crash, i));
		if (next > i + 1)
			tw_out_format(out, "  x %u", next - i);
		tw_out_text(out, "\n");
	}
	if (end_of(crash.end))
		tw_out_format(out, "%s(%s)\n", indent, end_of(crash.end));
	return true;
}

static void json_frame(struct tw_json *json, const struct tw_capture *capture, const struct tw_capture_crash *crash,
		       uint32_t index)
{
	struct tw_line line;
	char address[32];
	bool is_behind = !is_instruction(capture, crash, index);
	tw_line_of_return(capture, crash->image, crash->addresses[index] + !is_behind, &line);
	snprintf(address, sizeof address, "0x%llx", (unsigned long long)crash->addresses[index]);
	tw_json_open(json, NULL, '{');
	tw_json_string(json, "address", address);
	if (line.module) {
		tw_json_string(json, "module", line.module->name);
		tw_json_u64(json, "offset", line.offset - !is_behind);
	}
	if (line.function) {
		const char *shown = tw_name_shown(line.function);
		tw_json_string(json, "function", shown);
	}
	if (line.file) {
		tw_json_string(json, "file", line.file);
		tw_json_u64(json, "line", line.line);
	}
	tw_json_close(json, '}');
}

void tw_json_crash(struct tw_json *json, const struct tw_capture *capture)
{
	struct tw_capture_crash crash;
	char name[32], address[32];
	if (!tw_capture_crash(capture, &crash))
		return;
	const struct code *code = code_of(&crash);
	const char *abbreviation = sigabbrev_np(crash.signal);
	tw_json_open(json, "crash", '{');
	tw_json_u64(json, "signal", (uint64_t)crash.signal);
	snprintf(name, sizeof name, "SIG%s", abbreviation ? abbreviation : "?");
	tw_json_string(json, "name", name);
	tw_json_i64(json, "code", crash.code);
	if (code)
		tw_json_string(json, "code_name", code->name);
	if (has_address(&crash)) {
		snprintf(address, sizeof address, "0x%llx", (unsigned long long)crash.address);
		tw_json_string(json, "address", address);
	}
	if (crash.sender > 0)
		tw_json_u64(json, "sender", (uint64_t)crash.sender);
	if (is_overflow(&crash))
		tw_json_bool(json, "is_stack_overflow", true);
	tw_json_open(json, "stack", '[');
	for (uint32_t i = 0; i < crash.count; i++)
		json_frame(json, capture, &crash, i);
	tw_json_close(json, ']');
	tw_json_string(json, "stack_end", end_words[crash.end]);
	tw_json_close(json, '}');
}
