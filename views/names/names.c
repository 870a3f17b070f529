/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - names in a capture. */
#include "views/names/lines.h"
#include "views/names/holes.h"
#include "views/names/missing.h"
#include "views/names/names.h"
#include "views/names/namesakes.h"
#include "views/names/spool.h"
#include "views/names/threads.h"
#include "views/output/output.h"
#include "base/grow.h"

#include "tracewheel/consumer.h"
#include "tracewheel/error.h"
#include "tracewheel/follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKERS_MAX 9

/* Appends; never writes past `capacity`. */
static size_t add(char *text, size_t used, size_t capacity, const char *more)
{
	size_t bytes = strlen(more);
	if (bytes > capacity - used)
		bytes = capacity - used;
	memcpy(text + used, more, bytes);
	return used + bytes;
}

/* Appends a name, cleaned for people. */
static size_t add_name(char *text, size_t used, size_t capacity, const char *name)
{
	return used + tw_clean(name, strlen(name), text + used, capacity - used);
}

size_t tw_name_arity(uint32_t arity, char *text, size_t capacity)
{
	char digits[16] = "_";
	if (arity != TW_CAPTURE_ARITY_UNKNOWN)
		snprintf(digits, sizeof digits, "%u", arity);
	return add(text, 0, capacity, digits);
}

size_t tw_name_arity_shown(uint32_t arity, char *text, size_t capacity)
{
	if (arity == TW_CAPTURE_ARITY_UNKNOWN)
		return 0;
	size_t used = add(text, 0, capacity, "/");
	return used + tw_name_arity(arity, text + used, capacity - used);
}

bool tw_name_lacks_arity(const struct tw_capture_function *function)
{
	return !function || function->arity == TW_CAPTURE_ARITY_UNKNOWN;
}

void tw_json_name(struct tw_json *json, const char *name, size_t bytes, bool lacks_arity)
{
	char text[TW_NAME_TEXT_BYTES + 2];
	if (!lacks_arity || bytes > TW_NAME_TEXT_BYTES) {
		tw_json_text(json, "name", name, bytes);
		return;
	}
	memcpy(text, name, bytes);
	memcpy(text + bytes, "/_", 2);
	tw_json_text(json, "name", text, bytes + 2);
}

size_t tw_name_function(const struct tw_capture_function *function, char *text, size_t capacity)
{
	if (!function)
		return add(text, 0, capacity, "?:?");
	size_t used = add_name(text, 0, capacity, function->module ? function->module->name : "?");
	used = add(text, used, capacity, ":");
	char *demangled = tw_name_demangled(function->name);
	used = add_name(text, used, capacity, demangled ? demangled : function->name);
	if (demangled && tw_namesakes_has(function)) {
		used = add(text, used, capacity, " [");
		used = add_name(text, used, capacity, function->name);
		used = add(text, used, capacity, "]");
	}
	free(demangled);
	return used + tw_name_arity_shown(function->arity, text + used, capacity - used);
}

static bool is_reserved(const char *name)
{
	static const char *const words[] = {"after",   "and",  "andalso", "band",  "begin", "bnot", "bor",  "bsl",
					    "bsr",     "bxor", "case",	  "catch", "cond",  "div",  "else", "end",
					    "fun",     "if",   "let",	  "maybe", "not",   "of",   "or",   "orelse",
					    "receive", "rem",  "try",	  "when",  "xor"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strcmp(name, words[i]) == 0)
			return true;
	}
	return false;
}

size_t tw_name_atom(const char *name, char *text, size_t capacity)
{
	bool is_plain = *name >= 'a' && *name <= 'z' && !is_reserved(name);
	for (const char *c = name; *c && is_plain; c++)
		is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
			   *c == '_' || *c == '@';
	if (is_plain)
		return add(text, 0, capacity, name);
	size_t used = add(text, 0, capacity, "'");
	for (size_t left = strlen(name), n; left; name += n, left -= n) {
		char piece[TW_CLEAN_PIECE_BYTES];
		uint32_t code;
		n = tw_utf8_next(name, left, &code);
		if (n && (code == '\'' || code == '\\'))
			snprintf(piece, sizeof piece, "\\%c", (int)code);
		else if (!n || tw_is_unsafe(code))
			snprintf(piece, sizeof piece, "\\x{%x}", n ? code : (unsigned char)*name);
		else
			snprintf(piece, sizeof piece, "%.*s", (int)n, name);
		used = add(text, used, capacity, piece);
		n = n ? n : 1;
	}
	return add(text, used, capacity, "'");
}

const char *tw_name_shown(const char *linkage)
{
	static char *shown;
	free(shown);
	shown = tw_name_demangled(linkage);
	return shown ? shown : linkage;
}

/* Erlang has no atoms of more than 255 characters. */
size_t tw_name_function_atom(const char *linkage, char *text, size_t capacity)
{
	char cut[256];
	const char *name = tw_name_shown(linkage);
	size_t bytes = 252;
	if (strlen(name) > 255 && strlen(linkage) <= 255)
		name = linkage;
	if (strlen(name) <= 255)
		return tw_name_atom(name, text, capacity);
	while (bytes && ((unsigned char)name[bytes] & 0xc0) == 0x80)
		bytes--;
	snprintf(cut, sizeof cut, "%.*s...", (int)bytes, name);
	return tw_name_atom(cut, text, capacity);
}

void tw_json_function(struct tw_json *json, const struct tw_capture_function *function)
{
	if (!function)
		return;
	const char *name = tw_name_shown(function->name);
	if (function->module)
		tw_json_string(json, "module", function->module->name);
	tw_json_string(json, "function", name);
	if (name != function->name)
		tw_json_string(json, "linkage", function->name);
	if (function->arity != TW_CAPTURE_ARITY_UNKNOWN)
		tw_json_u64(json, "arity", function->arity);
}

size_t tw_name_mfa_open(const struct tw_capture_function *function, char *text, size_t capacity)
{
	size_t used = add(text, 0, capacity, "{");
	used += tw_name_atom(function && function->module ? function->module->name : "?", text + used, capacity - used);
	used = add(text, used, capacity, ",");
	used += tw_name_function_atom(function ? function->name : "?", text + used, capacity - used);
	return add(text, used, capacity, ",");
}

const char *tw_name_numbers(uint32_t number, uint32_t serial, char text[TW_NAME_NUMBERS_BYTES])
{
	if (serial == TW_SERIAL_OF_PORT)
		snprintf(text, TW_NAME_NUMBERS_BYTES, "#Port<0.%u>", number);
	else
		snprintf(text, TW_NAME_NUMBERS_BYTES, "<0.%u.%u>", number, serial);
	return text;
}

size_t tw_name_pid(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text, size_t capacity)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(capture, image, tracee_id);
	char pid[TW_NAME_NUMBERS_BYTES];
	tw_name_numbers(tracee ? tracee->pid_number : tracee_id, tracee ? tw_name_serial(tracee) : 0, pid);
	return add(text, 0, capacity, pid);
}

/* A program linked to fixed addresses has base 0, and a module loaded later may overlap an earlier one. */
const struct tw_capture_module *tw_name_address(const struct tw_capture *capture, uint32_t image, uint64_t address,
						uint64_t *offset)
{
	const struct tw_capture_module *module, *best = NULL;
	uint32_t at = 0;
	while ((module = tw_capture_module_next(capture, image, &at))) {
		if (!module->is_declared && address >= module->base_address && address < module->end_address &&
		    (!best || module->base_address >= best->base_address))
			best = module;
	}
	if (best)
		*offset = address - best->base_address;
	return best;
}

static bool set_name(struct tw_names *names, uint32_t id, const char *text, size_t bytes)
{
	/* Ids are small and dense; names of larger ones, in a hostile file, are not kept. */
	if (id > UINT32_C(1) << 26)
		return true;
	if (!tw_grow_to(names->at, names->count, id))
		return false;
	char *copy = malloc(bytes + 1);
	if (!copy)
		return false;
	memcpy(copy, text, bytes);
	copy[bytes] = 0;
	free(names->at[id].text);
	names->at[id] = (struct tw_name){.text = copy, .bytes = (uint32_t)bytes};
	return true;
}

bool tw_names_places(struct tw_names *names, const struct tw_capture *capture, uint32_t image, tw_names_make *make)
{
	const struct tw_capture_place *place;
	char text[TW_NAME_TEXT_BYTES];
	uint32_t at = 0;
	*names = (struct tw_names){0};
	while ((place = tw_capture_place_next(capture, image, &at))) {
		if (!set_name(names, place->place_id, text, make(place, text, sizeof text))) {
			tw_names_free(names);
			return false;
		}
	}
	return true;
}

void tw_names_free(struct tw_names *names)
{
	for (uint32_t id = 0; id < names->count; id++)
		free(names->at[id].text);
	free(names->at);
	*names = (struct tw_names){0};
}

size_t tw_names_images(const struct tw_capture *capture, const struct tw_capture_image **images, size_t capacity)
{
	const struct tw_capture_image *image;
	size_t count = 0;
	for (uint32_t i = 0; (image = tw_capture_image(capture, i)) && count < capacity; i++) {
		/* A capture of nothing has an image of no process; converted captures do not know its number. */
		if (!image->process_id && !*image->program)
			continue;
		size_t at = count++;
		for (; at > 0 && images[at - 1]->start_ns > image->start_ns; at--)
			images[at] = images[at - 1];
		images[at] = image;
	}
	return count;
}

static bool has_base(const char *path, const char *start)
{
	const char *slash = strrchr(path, '/');
	return strncmp(slash ? slash + 1 : path, start, strlen(start)) == 0;
}

bool tw_names_is_erlang_vm(const struct tw_capture *capture, uint32_t number)
{
	const struct tw_capture_image *image = tw_capture_image(capture, number);
	if (!image)
		return false;
	if (has_base(image->program, "beam."))
		return true;
	/* Some packages start it by a loader of their own: it is among the first arguments. */
	size_t at = 0;
	for (int i = 0; i < 8 && at < image->command_bytes && has_base(image->program, "ld"); i++) {
		const char *argument = image->command + at;
		if (has_base(argument, "beam."))
			return true;
		at += strnlen(argument, image->command_bytes - at) + 1;
	}
	return false;
}

bool tw_names_newest(char *name, size_t capacity)
{
	DIR *folder = opendir(".");
	const struct dirent *entry;
	struct timespec newest = {0};
	*name = 0;
	while (folder && (entry = readdir(folder))) {
		size_t bytes = strlen(entry->d_name);
		struct stat status;
		if (bytes < 4 || bytes >= capacity || strcmp(entry->d_name + bytes - 3, ".tw") != 0 ||
		    stat(entry->d_name, &status) || !S_ISDIR(status.st_mode) ||
		    (*name && (status.st_mtim.tv_sec < newest.tv_sec ||
			       (status.st_mtim.tv_sec == newest.tv_sec && status.st_mtim.tv_nsec < newest.tv_nsec))))
			continue;
		newest = status.st_mtim;
		strcpy(name, entry->d_name);
	}
	if (folder)
		closedir(folder);
	return *name != 0;
}

/* Is NAME.tw the folder of a capture? */
static bool has_capture_of(const char *path, char *name)
{
	struct stat status;
	return (size_t)snprintf(name, PATH_MAX, "%s.tw", path) < PATH_MAX && stat(name, &status) == 0 &&
	       S_ISDIR(status.st_mode);
}

/* Under any name: unfinished ones end in .tws.part. */
static bool has_segments(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	bool found = false;
	while (folder && !found && (entry = readdir(folder)))
		found = strstr(entry->d_name, ".tws") != NULL;
	if (folder)
		closedir(folder);
	return found;
}

void tw_names_use(const struct tw_capture *capture)
{
	tw_lines_forget();
	tw_threads_forget();
	tw_namesakes_of(capture);
}

static struct tw_capture *say_why_not(const char *path, int error)
{
	char name[PATH_MAX], newest[NAME_MAX + 1];
	if (error == TW_ENOENT && !strchr(path, '/') && tw_names_newest(newest, sizeof newest))
		tw_say("there is no capture '%s'; the newest here is %s.", path, newest);
	else if (error == TW_EFORMAT && has_capture_of(path, name))
		tw_say("'%s' is not a capture; did you mean %s?", path, name);
	else if (error == TW_ENOENT)
		tw_say("there is no capture '%s'.", path);
	else if (error == TW_EPERM)
		tw_say("the capture '%s' may not be read by you.", path);
	else if (error == TW_EFORMAT && !has_segments(path))
		tw_say("'%s' is not a capture: there are no segments (*.tws) in it.", path);
	else if (error == TW_EFORMAT)
		tw_say("'%s' is not a capture, or nothing in it can be read: no segment begins as one "
		       "should. After a crash, "
		       "`tracewheel recover %s` may help.",
		       path, path);
	else
		tw_say("the capture '%s' cannot be read: %s", path, tw_strerror(error));
	return NULL;
}

static struct tw_capture *say_no_stream(const char *path, int error)
{
	if (error != TW_EFORMAT)
		return say_why_not(path, error);
	char name[PATH_MAX];
	if (has_capture_of(path, name))
		tw_say("'%s' is not a capture; did you mean %s?", path, name);
	else
		tw_say("'%s' is not the stream of a recording (`tracewheel record -o -`), or it ended before it began.",
		       path);
	return NULL;
}

static bool is_stream_path(const char *path)
{
	struct stat status;
	return strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISDIR(status.st_mode));
}

/* Opens a file; "-" is standard input. Negative: an error, which has been reported. */
static int open_stream_file(const char *path)
{
	if (strcmp(path, "-") == 0)
		return STDIN_FILENO;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		say_why_not(path, errno == EACCES ? TW_EPERM : TW_EIO);
	return fd;
}

static bool is_recorded, is_followed, is_growing;

bool tw_names_is_recorded(void)
{
	return is_recorded;
}

void tw_names_expect_no_end(void)
{
	is_followed = true;
}

const char *tw_names_unfinished(void)
{
	return is_recorded ? "it is being recorded"
			   : "its recorder died, or ends at this moment; `tracewheel recover` completes it";
}

/* TRACEWHEEL_WORKERS: the number of threads that read a capture, the command's own included.  False: it is none, which is said. */
static bool take_workers(struct tw_capture_options *options)
{
	const char *asked = getenv("TRACEWHEEL_WORKERS");
	uint64_t workers;
	*options = (struct tw_capture_options){0};
	if (!asked || !*asked)
		return true;
	if (!tw_parse_count(asked, &workers) || !workers || workers > WORKERS_MAX)
		return tw_complain(
			"TRACEWHEEL_WORKERS is a number of threads from 1 to %d, not '%s'; without it, captures are read by as many as "
			"there are processors.",
			WORKERS_MAX, asked);
	options->no_workers = workers == 1;
	options->workers = (uint32_t)workers - 1;
	return true;
}

struct tw_capture *tw_names_open(const char *path)
{
	struct tw_capture *capture;
	struct tw_capture_options options;
	if (!take_workers(&options))
		return NULL;
	if (!is_stream_path(path)) {
		char name[PATH_MAX];
		int error = tw_capture_open(path, &options, &capture);
		if (error == TW_ENOENT && has_capture_of(path, name))
			error = tw_capture_open(path = name, &options, &capture);
		is_recorded = error == 0 && tw_recording_is_alive(path);
		tw_namesakes_of(error ? NULL : capture);
		return error ? say_why_not(path, error) : capture;
	}
	int fd = open_stream_file(path);
	int file = fd < 0 ? -1 : tw_spool(fd);
	int error = file < 0 ? 0 : tw_capture_open_stream_file(file, &options, &capture);
	if (file >= 0 && file != fd)
		close(file);
	if (fd > STDIN_FILENO)
		close(fd);
	if (file < 0)
		return NULL;
	tw_namesakes_of(error ? NULL : capture);
	return error ? say_no_stream(path, error) : capture;
}

struct tw_capture *tw_names_open_stream(const char *path, bool *is_stream)
{
	struct tw_capture *capture;
	*is_stream = is_stream_path(path);
	if (!*is_stream)
		return tw_names_open(path);
	/* The file stays open until the command ends. */
	int fd = open_stream_file(path);
	if (fd < 0)
		return NULL;
	int error = tw_capture_open_stream(fd, &capture);
	return error ? say_no_stream(path, error) : capture;
}

struct tw_capture *tw_names_follow(const char *path, bool or_whole)
{
	struct tw_capture *capture;
	char name[PATH_MAX];
	int error = is_stream_path(path) ? TW_EFORMAT : tw_capture_follow(path, &capture);
	if (error == TW_ENOENT && has_capture_of(path, name))
		error = tw_capture_follow(path = name, &capture);
	if (error == TW_EDEAD && or_whole)
		return tw_names_open(path);
	is_recorded = is_growing = error == 0;
	if (error == TW_EDEAD)
		tw_say("no recording writes '%s' now: without --follow it is shown as it is.", path);
	else if (error == TW_EPERM)
		tw_say("'%s' cannot be followed: another user's recording writes it. Run this as that user.", path);
	else if (error == TW_ENOTSUP)
		tw_say("'%s' cannot be followed: its recorder runs in another container, or inside the program without files for its rings.",
		       path);
	else if (is_stream_path(path))
		tw_say("--follow is for the folder of a capture; a stream is shown as it arrives anyway.");
	else if (error)
		say_why_not(path, error);
	return error ? NULL : capture;
}

/* A damaged or truncated file is shown as far as possible, and is a failure unless the loss was requested. */
static int exit_of(const struct tw_capture *capture, const struct tw_capture_info *info)
{
	struct tw_capture_account account;
	tw_capture_account(capture, &account);
	return tw_missing_is_failure(&account, info) ? TW_EXIT_FAILURE : TW_EXIT_OK;
}

static void say_hole(void *context, const char *line)
{
	tw_say("%s: %s.", (const char *)context, line);
}

/* Reports data missing for other causes than counted losses, which views of single events do not show. */
static void say_missing(const struct tw_capture *capture, const char *path, bool failures_only)
{
	struct tw_capture_account account;
	char clause[TW_MISSING_TEXT_BYTES];
	tw_capture_account(capture, &account);
	for (unsigned cause = failures_only ? TW_MISSING_SEGMENTS : TW_MISSING_REMOVED; cause <= TW_MISSING_UNSTORED;
	     cause++) {
		if (*tw_missing_clause(&account, cause, clause))
			tw_say("%s: %s.", path, clause);
	}
	tw_missing_each_hole(capture, TW_HOLES_SHOWN, say_hole, (void *)path);
}

int tw_names_end(const struct tw_capture *capture, const char *path, int code)
{
	const struct tw_capture_damage *damage;
	bool is_stream = is_stream_path(path);
	for (uint32_t i = 0; (damage = tw_capture_damage(capture, i)) && i < 5; i++) {
		if (is_growing)
			tw_say("%s: %s.", path, damage->reason);
		else if (is_stream)
			tw_say("'%s', byte %llu: %s", path, (unsigned long long)damage->offset, damage->reason);
		else if (damage->error == TW_ENOTSUP)
			tw_say("%s/%s was set aside: %s.", path, damage->file, damage->reason);
		else
			tw_say("%s/%s is damaged at byte %llu: %s", path, damage->file,
			       (unsigned long long)damage->offset, damage->reason);
	}
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	if (info.damages > 5)
		tw_say("... and %u more; `tracewheel info %s` lists them.", info.damages - 5, path);
	if (info.is_live && is_followed && is_recorded)
		return code;
	if (info.is_live)
		tw_say("%s has no end yet: %s.", path, tw_names_unfinished());
	else
		say_missing(capture, path, false);
	return code == TW_EXIT_OK ? exit_of(capture, &info) : code;
}

int tw_names_exit(const struct tw_capture *capture, const char *path, int code)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	if (code != TW_EXIT_OK || exit_of(capture, &info) == TW_EXIT_OK)
		return code;
	say_missing(capture, path, true);
	return TW_EXIT_FAILURE;
}
