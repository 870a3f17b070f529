/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - resolves code addresses; each module's file is opened once, each address looked up once. */
#include "views/names/lines.h"
#include "views/names/names.h"
#include "views/output/output.h"

#include "tracewheel/debug.h"

#include <stdlib.h>
#include <string.h>

#define MODULES_MAX   256
#define CACHE_ENTRIES 4096

static struct {
	const struct tw_capture_module *module;
	struct tw_debug *debug; /* NULL: could not be opened */
} modules[MODULES_MAX];
static unsigned module_count;

static struct {
	uint64_t address;
	uint32_t image;
	struct tw_line line;
} cache[CACHE_ENTRIES];

static struct tw_debug *debug_of(const struct tw_capture_module *module)
{
	for (unsigned i = 0; i < module_count; i++)
		if (modules[i].module == module)
			return modules[i].debug;
	if (module_count == MODULES_MAX)
		return NULL;
	modules[module_count].module = module;
	if (tw_debug_open(module->path, module->build_id_bytes ? module->build_id : NULL, module->build_id_bytes,
			  &modules[module_count].debug))
		modules[module_count].debug = NULL;
	return modules[module_count++].debug;
}

static void resolve(const struct tw_capture *capture, uint32_t image, uint64_t address, struct tw_line *out)
{
	struct tw_debug_location at;
	*out = (struct tw_line){.is_return = true};
	out->module = tw_name_address(capture, image, address, &out->offset);
	if (!out->module)
		return;
	out->offset = address - out->module->base_address;
	const struct tw_capture_line *known = tw_capture_line(capture, image, address);
	if (known) {
		out->is_return = known->is_return;
		out->function = known->function;
		out->file = known->file;
		out->line = known->line;
		return;
	}
	struct tw_debug *debug = out->module->is_declared ? NULL : debug_of(out->module);
	out->is_signal = debug && tw_debug_ends_signal(debug, out->offset);
	out->is_return = !debug || out->is_signal || tw_debug_follows_call(debug, out->offset);
	/* The byte before belongs to the call; the address itself may be another function's. */
	if (!debug || !tw_debug_locate(debug, out->offset - 1, &at))
		return;
	out->function = at.function;
	out->file = at.line ? at.file : NULL;
	out->line = at.line;
}

void tw_line_of_return(const struct tw_capture *capture, uint32_t image, uint64_t address, struct tw_line *out)
{
	unsigned slot = (unsigned)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 52) % CACHE_ENTRIES;
	if (cache[slot].address != address || cache[slot].image != image) {
		resolve(capture, image, address, &cache[slot].line);
		cache[slot].address = address;
		cache[slot].image = image;
	}
	*out = cache[slot].line;
}

uint32_t tw_line_stack_count(const struct tw_capture *capture, uint32_t image, const uint64_t *words, uint32_t count)
{
	struct tw_line line = {0};
	bool is_interrupted = false;
	for (uint32_t i = 0; i < count; i++) {
		tw_line_of_return(capture, image, words[i], &line);
		if (i && (!line.module || !(line.is_return || is_interrupted)))
			return i;
		is_interrupted = line.is_signal;
	}
	return count;
}

void tw_line_put(struct tw_out *out, const struct tw_capture *capture, uint32_t image, uint64_t address)
{
	tw_line_put_code(out, capture, image, address, false);
}

void tw_line_put_code(struct tw_out *out, const struct tw_capture *capture, uint32_t image, uint64_t address,
		      bool is_instruction)
{
	struct tw_line line;
	tw_line_of_return(capture, image, address + is_instruction, &line);
	if (!line.module) {
		tw_out_format(out, "0x%llx", (unsigned long long)address);
		return;
	}
	tw_out_name(out, line.module->name);
	if (line.function) {
		char *demangled = tw_name_demangled(line.function);
		tw_out_text(out, ":");
		tw_out_name(out, demangled ? demangled : line.function);
		free(demangled);
	} else {
		tw_out_format(out, "+0x%llx", (unsigned long long)(line.offset - is_instruction));
	}
	if (line.file) {
		const char *slash = strrchr(line.file, '/');
		const char *file = slash ? slash + 1 : line.file;
		tw_out_text(out, " at ");
		tw_out_clean(out, file, strnlen(file, 200));
		tw_out_format(out, ":%u", line.line);
	}
}

void tw_lines_forget(void)
{
	for (unsigned i = 0; i < module_count; i++)
		tw_debug_close(modules[i].debug);
	module_count = 0;
	memset(cache, 0, sizeof cache);
}
