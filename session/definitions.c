/* SPDX-License-Identifier: Apache-2.0 */
/* definitions.c - definitions of a session's ids, appended to its log before any event uses the id. */
#include "session/definitions.h"
#include "session/places.h"
#include "session/session.h"
#include "base/clock.h"
#include "pipeline/thread/image.h"
#include "tracewheel/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets of ids ---- */

static bool has_id(const struct tw_id_set *set, uint32_t id)
{
	return id < set->bits && (set->words[id / 64] >> (id % 64) & 1);
}

static int add_id(struct tw_id_set *set, uint32_t id)
{
	if (id >= set->bits) {
		uint32_t bits = set->bits ? set->bits : 1024;
		uint64_t *words;

		while (bits <= id)
			bits *= 2;
		words = realloc(set->words, bits / 8);
		if (!words)
			return TW_ENOMEM;
		memset((char *)words + set->bits / 8, 0, (bits - set->bits) / 8);
		set->words = words;
		set->bits = bits;
	}
	set->words[id / 64] |= UINT64_C(1) << (id % 64);
	return 0;
}

void tw_definitions_fini(struct tw_session *session)
{
	free(session->modules.words);
	free(session->functions.words);
	free(session->places.words);
	session->modules = session->functions = session->places = (struct tw_id_set){0};
}

/* ---- records: a fixed part, copied in last, and strings behind it ---- */

struct record {
	uint8_t bytes[sizeof(struct tw_def_module) + 4 * (TW_PATH_BYTES_MAX + 1)];
	size_t used;
};

/* The buffer is not cleared, because it is large and every used byte is written. */
static void begin(struct record *record, size_t fixed_bytes)
{
	record->used = fixed_bytes;
}

/* Appends text, cut at max; returns its length for the fixed part, which is written afterwards. */
static uint16_t put_text(struct record *record, const void *text, size_t bytes, size_t max)
{
	if (bytes > max)
		bytes = max;
	if (bytes)
		memcpy(record->bytes + record->used, text, bytes);
	record->used += bytes;
	return (uint16_t)bytes;
}

static uint16_t put_string(struct record *record, const char *text, size_t max)
{
	return put_text(record, text, text ? strlen(text) : 0, max);
}

static int append(struct tw_session *session, uint32_t type, const struct record *record)
{
	return tw_rs_defs_append(session->rs, type, record->bytes, record->used);
}

int tw_define(struct tw_session *session, uint32_t type, const void *payload, size_t bytes)
{
	int error;

	if (!session->rs)
		return 0;
	tw_quiet_lock(&session->definitions);
	error = tw_rs_defs_append(session->rs, type, payload, bytes);
	tw_quiet_unlock(&session->definitions);
	return error;
}

int tw_define_note(struct tw_session *session, const char *text)
{
	struct {
		struct tw_def_note note;
		char text[512];
	} record = {.note = {0}};
	size_t bytes = strnlen(text, sizeof record.text);

	record.note.text_bytes = (uint16_t)bytes;
	memcpy(record.text, text, bytes);
	return tw_define(session, TW_DEF_NOTE, &record, sizeof record.note + bytes);
}

static int define_module(struct tw_session *session, const struct tw_module *module)
{
	struct record record;
	struct tw_def_module fixed = {.module_id = module->module_id,
				      .is_declared = module->is_declared,
				      .base_address = module->base_address,
				      .end_address = module->end_address};
	int error;

	if (has_id(&session->modules, module->module_id))
		return 0;
	begin(&record, sizeof fixed);
	fixed.name_bytes = put_string(&record, module->name, TW_NAME_BYTES_MAX);
	fixed.path_bytes =
		put_string(&record, module->whole_path ? module->whole_path : module->path, TW_PATH_BYTES_MAX);
	fixed.soname_bytes = put_string(&record, module->soname, TW_NAME_BYTES_MAX);
	fixed.build_id_bytes = put_text(&record, module->build_id, module->build_id_bytes, 64);
	memcpy(record.bytes, &fixed, sizeof fixed);
	error = append(session, TW_DEF_MODULE, &record);
	return error ? error : add_id(&session->modules, module->module_id);
}

int tw_define_module(struct tw_session *session, const struct tw_module *module)
{
	int error;

	if (!session->rs)
		return 0;
	tw_quiet_lock(&session->definitions);
	error = define_module(session, module);
	tw_quiet_unlock(&session->definitions);
	return error;
}

static int define_layout(struct tw_session *session, const struct tw_function *function)
{
	struct record record;
	struct tw_def_layout fixed = {.function_id = function->function_id};

	begin(&record, sizeof fixed);
	fixed.text_bytes = put_string(&record, function->layout, TW_LAYOUT_TEXT_BYTES_MAX);
	memcpy(record.bytes, &fixed, sizeof fixed);
	return append(session, TW_DEF_LAYOUT, &record);
}

static int define_function(struct tw_session *session, const struct tw_function *function)
{
	struct record record;
	struct tw_def_function fixed = {.function_id = function->function_id,
					.module_id = function->module->module_id,
					.arity = function->arity,
					.address = function->address};
	int error;

	if (has_id(&session->functions, function->function_id))
		return 0;
	begin(&record, sizeof fixed);
	fixed.name_bytes = put_string(&record, function->name, TW_NAME_BYTES_MAX);
	memcpy(record.bytes, &fixed, sizeof fixed);
	error = append(session, TW_DEF_FUNCTION, &record);
	if (!error && function->layout)
		error = define_layout(session, function);
	return error ? error : add_id(&session->functions, function->function_id);
}

static const struct tw_module *module_by_id(struct tw_permit *permit, uint32_t module_id)
{
	for (const struct tw_module *module = tw_bp_modules(permit); module; module = module->next)
		if (module->module_id == module_id)
			return module;
	return NULL;
}

/* Under the lock. */
static int define_place(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place)
{
	const struct tw_module *caller = NULL;
	struct tw_def_place fixed = {place->place_id, place->function->function_id,
				     place->kind | (place->has_no_end ? TW_PLACE_HAS_NO_END : 0),
				     place->caller_module_id, (uintptr_t)place->where};
	int error;

	if (has_id(&session->places, place->place_id))
		return 0;
	if (place->caller_module_id)
		caller = module_by_id(permit, place->caller_module_id);
	error = define_module(session, place->function->module);
	if (!error && caller)
		error = define_module(session, caller);
	if (!error)
		error = define_function(session, place->function);
	if (!error)
		error = tw_rs_defs_append(session->rs, TW_DEF_PLACE, &fixed, sizeof fixed);
	return error ? error : add_id(&session->places, place->place_id);
}

bool tw_is_place_defined(const struct tw_session *session, const struct tw_place *place)
{
	return has_id(&session->places, place->place_id);
}

bool tw_is_function_defined(const struct tw_session *session, const struct tw_function *function)
{
	return has_id(&session->functions, function->function_id);
}

int tw_define_place(struct tw_session *session, struct tw_permit *permit, const struct tw_place *place)
{
	int error;

	if (!session->rs || has_id(&session->places, place->place_id))
		return 0;
	tw_quiet_lock(&session->definitions);
	error = define_place(session, permit, place);
	tw_quiet_unlock(&session->definitions);
	return error;
}

/* Under the lock. */
static int define_counted(struct tw_session *session, const struct tw_session_place *set)
{
	struct {
		struct tw_def_longer fixed;
		char text[TW_DEF_CONDITION_BYTES_MAX];
	} def = {.fixed.counted = {.place_id = set->place->place_id, .since_ticks = tw_clock_ticks()}};
	size_t bytes = sizeof def.fixed.counted;

	if (set->longer) {
		bytes = sizeof def.fixed;
		def.fixed.longer_ns = set->longer->least_ns | (set->longer->has_children ? TW_DEF_LONGER_CHILDREN : 0) |
				      (set->longer->is_child ? TW_DEF_LONGER_CHILD_ONLY : 0);
		if (set->longer->condition)
			bytes += (size_t)snprintf(def.text, sizeof def.text, "%.*s", (int)sizeof def.text - 1,
						  set->longer->text);
	}
	return tw_rs_defs_append(session->rs, TW_DEF_COUNTED, &def, bytes);
}

int tw_define_counted(struct tw_session *session, const struct tw_session_place *set)
{
	int error;

	tw_quiet_lock(&session->definitions);
	error = define_counted(session, set);
	tw_quiet_unlock(&session->definitions);
	return error;
}

static int define_again(struct tw_session *session, struct tw_permit *permit, const struct tw_session_place *set)
{
	int error = define_place(session, permit, set->place);

	return !error && set->counter && tw_session_shares_counts(session) ? define_counted(session, set) : error;
}

/* Number of places defined with signals blocked at a time, which takes about 20 us. */
#define PLACES_AT_ONCE 64

static int define_places(struct tw_session *session, struct tw_permit *permit)
{
	int error = 0;

	const struct tw_session_place *set;

	for (uint32_t id = 0; session->rs && !error && tw_session_next_place(session, &id);) {
		tw_quiet_lock(&session->definitions);
		for (uint32_t i = 0; i < PLACES_AT_ONCE && !error && (set = tw_session_next_place(session, &id));
		     i++, id++)
			error = define_again(session, permit, set);
		tw_quiet_unlock(&session->definitions);
	}
	return error;
}

int tw_definitions_continue(struct tw_session *session, struct tw_permit *permit)
{
	struct tw_id_set modules = session->modules;
	int error;

	session->modules = (struct tw_id_set){0};
	tw_definitions_fini(session);
	error = define_places(session, permit);
	for (const struct tw_module *module = tw_bp_modules(permit); module && !error; module = module->next)
		if (has_id(&modules, module->module_id))
			error = tw_define_module(session, module);
	free(modules.words);
	return error;
}

/* Called in hits: the stack is the program's and may be small, or a signal handler's. */
int tw_define_tracee(struct tw_session *session, const struct tw_tracee *tracee)
{
	struct {
		struct tw_def_tracee fixed;
		char name[sizeof tracee->name];
	} record = {.fixed = {.tracee_id = tracee->tracee_id,
			      .thread_id = tracee->thread_id,
			      .pid_number = tracee->pid_number,
			      .kind = tracee->port_slot ? TW_TRACEE_PORT : TW_TRACEE_PROCESS}};
	size_t bytes = strnlen(tracee->name, sizeof tracee->name);
	int error;

	record.fixed.name_bytes = (uint16_t)bytes;
	memcpy(record.name, tracee->name, bytes);
	tw_quiet_lock(&session->definitions);
	error = tw_rs_defs_append(session->rs, TW_DEF_TRACEE, &record, sizeof record.fixed + bytes);
	tw_quiet_unlock(&session->definitions);
	return error;
}

/* ---- the first records of a log ---- */

static int define_session(struct tw_session *session)
{
	struct record record;
	struct tw_def_session fixed = {.session_index = (uint32_t)session->id,
				       .flags = session->wanted_actions & TW_ACTION_RETURN ? TW_SESSION_HAS_RETURNS : 0,
				       .session_id = session->id};

	begin(&record, sizeof fixed);
	fixed.name_bytes = put_string(&record, session->name, sizeof session->name);
	memcpy(record.bytes, &fixed, sizeof fixed);
	return append(session, TW_DEF_SESSION, &record);
}

int tw_define_wanted(struct tw_session *session)
{
	int error;

	if (!session->rs || !(session->wanted_actions & TW_ACTION_RETURN))
		return 0;
	tw_quiet_lock(&session->definitions);
	error = define_session(session);
	tw_quiet_unlock(&session->definitions);
	return error;
}

/* Tells the reader of a capture whose program died why its end is missing. */
static int define_note(struct tw_session *session)
{
	static const char text[] = "the rings were in memory without a name, because tmpfs was refused: "
				   "their contents are lost in a crash";
	struct record record;
	struct tw_def_note fixed = {0};

	if (!session->rs->config.is_anonymous)
		return 0;
	begin(&record, sizeof fixed);
	fixed.text_bytes = put_string(&record, text, sizeof text);
	memcpy(record.bytes, &fixed, sizeof fixed);
	return append(session, TW_DEF_NOTE, &record);
}

int tw_define_image(struct tw_session *session)
{
	int error;

	tw_quiet_lock(&session->definitions);
	error = tw_image_define(session->rs);
	if (!error)
		error = define_session(session);
	if (!error)
		error = define_note(session);
	tw_quiet_unlock(&session->definitions);
	return error;
}
