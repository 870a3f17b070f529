/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_code.c - which function of the capture a code object of CPython is.
 *
 *	module		__name__ of the globals that it runs with: json.decoder; of __main__, and without a name, the file's: app.py
 *	function	co_qualname: Decoder.decode; with the line of its definition where many have one name: main.<locals>.<lambda>:12
 *
 * The functions of a module are constants of its code, so all of them are declared when the module begins to run, in one change. A code
 * object leads to its function by a word in its co_extra. Functions are found again by name: code that is made again and again, by exec(),
 * does not make new ones.
 */
#include "agent/agent.h"
#include "agent/python.h"

#include "base/filter.h"
#include "base/grow.h"
#include "base/map.h"
#include "pipeline/thread/thread.h"
#include "session/native.h"
#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a name that is declared. */
#define NAME_BYTES 256
/* Functions inside of functions, as far as they are looked at before they run themselves. */
#define NESTED_MAX 64
/* Functions that a program has made; those beyond are not recorded. */
#define FUNCTIONS_MAX 200000

int64_t tw_python_index = -1;
uint32_t tw_python_recording;
struct tw_python_function **tw_python_functions;

/* All that are not selected, unless more is to be known of them. */
static struct tw_python_function unselected;

static size_t function_count, function_capacity;
static struct tw_map by_name;

/* Those that are declared next. */
static struct tw_declared_function **fresh;
static size_t fresh_count, fresh_capacity;

/* ---- names ---- */

/* Copies what fits, whole characters of UTF-8 only. */
static void copy_name(char to[NAME_BYTES], const char *from)
{
	size_t bytes = strnlen(from, NAME_BYTES);

	if (bytes == NAME_BYTES) {
		bytes--;
		while (bytes && ((unsigned char)from[bytes] & 0xc0) == 0x80)
			bytes--;
	}
	memcpy(to, from, bytes);
	to[bytes] = '\0';
}

/* An attribute that is a string; "" if it is none. */
static void copy_attribute(char to[NAME_BYTES], struct tw_py_code *code, const char *name)
{
	struct tw_py_object *value = tw_py.attribute(&code->object, name);
	const char *text = value && value->type == tw_py.string_type ? tw_py.text(value) : NULL;

	copy_name(to, text ? text : "");
	if (value)
		tw_py.release(value);
}

static long number_of(struct tw_py_code *code, const char *name)
{
	struct tw_py_object *value = tw_py.attribute(&code->object, name);
	long number = value ? tw_py.number(value) : 0;

	if (value)
		tw_py.release(value);
	return number;
}

static void module_name(char to[NAME_BYTES], const struct tw_py_frame *frame)
{
	struct tw_py_object *globals = frame->globals, *value = NULL;
	const char *text = NULL, *slash;
	char path[NAME_BYTES];

	if (globals && tw_py.is_subtype(globals->type, tw_py.dictionary_type))
		value = tw_py.item(globals, "__name__");
	if (value && value->type == tw_py.string_type)
		text = tw_py.text(value);
	copy_name(to, text ? text : "");
	if (*to && strcmp(to, "__main__") != 0 && strcmp(to, "__mp_main__") != 0)
		return;
	/* The start of a long path is left out. */
	struct tw_py_object *file = tw_py.attribute(&frame->code->object, "co_filename");

	text = file && file->type == tw_py.string_type ? tw_py.text(file) : NULL;
	slash = text ? strrchr(text, '/') : NULL;
	copy_name(path, slash ? slash + 1 : text ? text : "");
	if (file)
		tw_py.release(file);
	strcpy(to, *path ? path : "?");
}

/* Lambdas, comprehensions and generator expressions have one name; the line tells them apart. */
static void function_name(char to[NAME_BYTES], struct tw_py_code *code)
{
	char line[32];
	size_t bytes;

	copy_attribute(to, code, "co_qualname");
	bytes = strlen(to);
	if (!bytes)
		strcpy(to, "?");
	if (!bytes || to[bytes - 1] != '>' || !strcmp(to, "<module>"))
		return;
	snprintf(line, sizeof line, ":%ld", number_of(code, "co_firstlineno"));
	if (bytes + strlen(line) < NAME_BYTES)
		strcat(to, line);
}

/* ---- functions ---- */

static bool is_item(struct tw_py_code *code)
{
	char name[NAME_BYTES];

	copy_attribute(name, code, "co_name");
	return !strcmp(name, "__getitem__");
}

/* The body of a class: it runs in a namespace of its own, which is no frame's. */
static bool is_body(const struct tw_py_code *code)
{
	return !(code->flags & (TW_PY_OPTIMIZED | TW_PY_NEW_LOCALS));
}

static uint64_t hash_of(const char *module, const char *name)
{
	return tw_hash_bytes(name, strlen(name), tw_hash_bytes(module, strlen(module), 0));
}

static struct tw_python_function *find(const char *module, const char *name)
{
	uint32_t number = tw_map_find(&by_name, hash_of(module, name), i,
				      !strcmp(tw_python_functions[i]->declared.name, name) &&
					      !strcmp(tw_python_functions[i]->declared.module, module));

	return number == TW_MAP_NONE ? NULL : tw_python_functions[number];
}

/* Gives; in one piece with its names.  NULL: no memory, or too many. */
static struct tw_python_function *make(const char *module, const char *name)
{
	size_t module_bytes = strlen(module) + 1, bytes = strlen(name) + 1;
	struct tw_python_function *made;
	char *text;

	if (function_count == FUNCTIONS_MAX) {
		tw_agent_tell(
			"a program of Python has made more than 200,000 functions: those beyond are not recorded");
		return NULL;
	}
	if (!tw_grow(tw_python_functions, function_count, function_capacity))
		return NULL;
	made = calloc(1, sizeof *made + module_bytes + bytes);
	if (!made)
		return NULL;
	text = (char *)(made + 1);
	made->declared.module = memcpy(text, module, module_bytes);
	made->declared.name = memcpy(text + module_bytes, name, bytes);
	made->declared.arity = UINT32_MAX;
	if (!tw_map_add(&by_name, hash_of(module, name), (uint32_t)function_count)) {
		free(made);
		return NULL;
	}
	made->number = (uint32_t)function_count;
	tw_python_functions[function_count++] = made;
	return made;
}

static struct tw_python_function *take(const char *module, struct tw_py_code *code, bool has_item)
{
	struct tw_python_function *function;
	char name[NAME_BYTES];
	bool is_wanted;

	function_name(name, code);
	is_wanted = tw_agent_wants_python(module, name);
	if (!is_wanted && !has_item)
		return &unselected;
	function = find(module, name);
	if (!function) {
		function = make(module, name);
		if (!function)
			return &unselected;
	}
	/* One that an earlier recording has declared is set since this one began. */
	if (is_wanted && !function->is_declared) {
		if (!tw_grow(fresh, fresh_count, fresh_capacity))
			return &unselected;
		fresh[fresh_count++] = &function->declared;
		function->is_declared = true;
	}
	/* Several may have one name. */
	function->may_be_item |= number_of(code, "co_argcount") == 2;
	function->has_item |= has_item;
	return function;
}

/* Under a filter nothing new is declared: it is missing in the recording. */
static struct tw_python_function *leave(const char *module, struct tw_py_code *code)
{
	char name[NAME_BYTES];

	function_name(name, code);
	if (tw_agent_wants_python(module, name))
		tw_rs_count_unarmed(&tw_agent_ring_set, 1);
	return &unselected;
}

/* Of the code object and those among its constants.  Returns the first one's. */
static struct tw_python_function *see_all(const char *module, struct tw_py_code *code, unsigned depth)
{
	struct tw_py_object *constants = tw_py.attribute(&code->object, "co_consts");
	int64_t count = constants ? tw_py.tuple_count(constants) : 0;
	struct tw_python_function *function;
	bool has_item = false;

	for (int64_t i = 0; i < count && depth < NESTED_MAX; i++) {
		struct tw_py_object *constant = tw_py.tuple_item(constants, i);

		if (!constant || constant->type != tw_py.code_type)
			continue;
		has_item |= is_body(code) && is_item((struct tw_py_code *)constant);
		if (!tw_python_function_of((struct tw_py_code *)constant))
			see_all(module, (struct tw_py_code *)constant, depth + 1);
	}
	if (constants)
		tw_py.release(constants);
	function = tw_thread_may_call_system() ? take(module, code, has_item) : leave(module, code);
	if (tw_py.set_extra(&code->object, tw_python_index,
			    (void *)(uintptr_t)((uint64_t)tw_python_recording << 32 | function->number)))
		tw_py.clear_error();
	return function;
}

bool tw_python_functions_init(void)
{
	if (function_count)
		return true;
	if (!tw_grow(tw_python_functions, function_count, function_capacity))
		return false;
	tw_python_functions[function_count++] = &unselected;
	return true;
}

/* In one change. */
static void declare_fresh(void)
{
	if (!tw_functions_declare(fresh, fresh_count, TW_AGENT_PYTHON_MODULE))
		return;
	tw_agent_tell("some functions of Python are not recorded: there was no memory for them");
	for (size_t i = 0; i < fresh_count; i++)
		((struct tw_python_function *)(void *)fresh[i])->is_declared = false;
}

/* Our own calls of the interpreter are no calls of the program. */
static struct tw_python_function *see_quietly(const struct tw_py_frame *frame)
{
	bool is_own =
		tw_thread_may_call_system() && tw_thread_join() && tw_thread_begin_own_work(__builtin_frame_address(0));
	struct tw_python_function *function;
	char module[NAME_BYTES];

	module_name(module, frame);
	fresh_count = 0;
	function = see_all(module, frame->code, 0);
	declare_fresh();
	tw_thread_end_own_work(is_own);
	return function;
}

struct tw_python_function *tw_python_see(const struct tw_py_frame *frame)
{
	struct tw_py_object *error[3];
	struct tw_python_function *function = &unselected;

	tw_py.fetch_error(&error[0], &error[1], &error[2]);
	if (tw_agent_enter()) {
		function = see_quietly(frame);
		tw_agent_leave();
	}
	tw_py.restore_error(error[0], error[1], error[2]);
	return function;
}

/* ---- __getitem__() ---- */

/*
 * obj[key] becomes an inlined call in CPython 3.11, also where frames are evaluated by another function than the default; later releases
 * do not inline it then.  The specialised instruction has 16 bits for the function's version, so that functions with a larger one are
 * called as others are.  Versions are numbers that CPython gives in order, from 1.
 */
static uint32_t last_version = UINT32_MAX;

void tw_python_keep_item(struct tw_py_function *function)
{
	if (function->object.type == tw_py.function_type && function->version <= UINT16_MAX)
		function->version = last_version--;
}

/* The interpreter gives it another version when it needs one. */
static void free_item(struct tw_py_function *function)
{
	if (function->object.type == tw_py.function_type && function->version > last_version)
		function->version = 0;
}

void tw_python_keep_item_of(struct tw_py_object *names)
{
	struct tw_py_object *item;

	if (!tw_py.is_subtype(names->type, tw_py.dictionary_type))
		return;
	item = tw_py.item(names, "__getitem__");
	if (item)
		tw_python_keep_item((struct tw_py_function *)item);
}

/* All classes, each once. */
struct types {
	struct tw_py_object **all; /* borrows */
	size_t count, capacity;
	struct tw_map known;
	struct tw_py_object *subclasses, *item;
};

static bool add_type(struct types *types, struct tw_py_object *type)
{
	if (tw_map_get(&types->known, (uintptr_t)type) != TW_MAP_NONE)
		return true;
	if (!tw_grow(types->all, types->count, types->capacity) || !tw_map_add(&types->known, (uintptr_t)type, 0))
		return false;
	types->all[types->count++] = type;
	return true;
}

/* False: there is no memory. */
static bool add_subclasses(struct types *types, struct tw_py_object *type)
{
	struct tw_py_object *list = tw_py.call(types->subclasses, type);
	int64_t count = list ? tw_py.list_count(list) : 0;
	bool is_added = list != NULL;

	for (int64_t i = 0; i < count && is_added; i++)
		is_added = add_type(types, tw_py.list_item(list, i));
	if (list)
		tw_py.release(list);
	return is_added;
}

/* Nothing of the program runs meanwhile, and none of its classes goes: collections are put off, and the lock is held. */
static void for_each_item(void (*fn)(struct tw_py_function *function))
{
	struct types types = {.subclasses = tw_py.attribute(tw_py.type_type, "__subclasses__"),
			      .item = tw_py.interned("__getitem__")};
	bool has_collected = tw_py.stop_collector();
	bool is_whole = types.subclasses && types.item && add_type(&types, tw_py.object_type);

	for (size_t i = 0; i < types.count; i++) {
		struct tw_py_object *item = tw_py.lookup(types.all[i], types.item);

		if (item)
			fn((struct tw_py_function *)item);
		is_whole = is_whole && add_subclasses(&types, types.all[i]);
	}
	if (!is_whole) {
		tw_py.clear_error();
		tw_agent_tell(
			"some calls by obj[key] are not recorded: there was no memory to look at all classes of Python");
	}
	if (types.subclasses)
		tw_py.release(types.subclasses);
	if (types.item)
		tw_py.release(types.item);
	free(types.all);
	tw_map_fini(&types.known);
	if (has_collected)
		tw_py.start_collector();
}

void tw_python_keep_items(void)
{
	for_each_item(tw_python_keep_item);
}

void tw_python_free_items(void)
{
	for_each_item(free_item);
}
