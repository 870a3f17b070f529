/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prototypes.c - all prototypes: of the command line, of the user's folder, of the installed one.
 *
 * A file has prototypes, one a line, and lines `module PATTERN` (for all that follow; at first any module) and `table NAME ...`. A
 * line that begins with a blank goes on with the one before; # begins a comment.  Tables of all files of a folder are read first.
 */
#include "tools/record/prototypes.h"
#include "tools/common/patterns.h"
#include "tools/tool.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/search.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (4 << 20)

struct prototype {
	const char *name;
	const char *layout;
	const struct tw_pattern *module; /* NULL: any */
	const char *file;		 /* its name without .proto; "": the command line */
	enum tw_prototype_rank rank;
	size_t order;
};

struct tw_prototypes {
	struct prototype *all;
	size_t count, capacity;
	struct tw_prototype_table *tables;
	size_t table_count, table_capacity;
	struct tw_pattern **modules;
	size_t module_count, module_capacity;
	char **texts; /* what the others borrow */
	size_t text_count, text_capacity;
};

/* The origin of a line. */
struct place {
	const struct tw_pattern *module;
	const char *file;
	enum tw_prototype_rank rank;
	bool has_tables; /* they were read before */
};

/* Takes the text, which lives as long as the prototypes.  NULL: no memory. */
static char *keep(struct tw_prototypes *p, char *text)
{
	if (!text || !tw_grow(p->texts, p->text_count, p->text_capacity)) {
		free(text);
		return NULL;
	}
	return p->texts[p->text_count++] = text;
}

static const struct tw_prototype_table *find_table(const char *name, const void *arg)
{
	const struct tw_prototypes *p = arg;
	/* The last one: a user's own replaces an installed one. */
	for (size_t i = p->table_count; i-- > 0;)
		if (strcmp(p->tables[i].name, name) == 0)
			return &p->tables[i];
	return NULL;
}

static bool add_names(struct tw_prototypes *p, const struct place *place, char *names, const char *layout)
{
	for (char *name; (name = strsep(&names, ","));) {
		if (!*name)
			continue;
		if (!tw_grow(p->all, p->count, p->capacity))
			return false;
		p->all[p->count] = (struct prototype){.name = name,
						      .layout = layout,
						      .module = place->module,
						      .file = place->file,
						      .rank = place->rank,
						      .order = p->count};
		p->count++;
	}
	return true;
}

static const struct tw_pattern *add_module(struct tw_prototypes *p, const char *name, char reason[])
{
	struct tw_pattern *pattern;
	const char *problem = "it is no name of a module";
	char text[NAME_MAX + 8];
	snprintf(text, sizeof text, "%.*s:_", NAME_MAX, name);
	if (strchr(name, ':') || tw_pattern_parse(text, &pattern, &problem)) {
		snprintf(reason, TW_PROTOTYPE_REASON_BYTES, "'%.80s': %s", name, problem);
		return NULL;
	}
	if (!tw_grow(p->modules, p->module_count, p->module_capacity)) {
		tw_pattern_destroy(pattern);
		return NULL;
	}
	return p->modules[p->module_count++] = pattern;
}

static bool add_prototype(struct tw_prototypes *p, struct place *place, const char *text, char reason[])
{
	const struct tw_prototype_source source = {text, find_table, p};
	const struct tw_pattern *before = place->module;
	char *names, *layout;
	if (!tw_prototype_read(&source, &names, &layout, reason))
		return false;
	names = keep(p, names);
	layout = keep(p, layout);
	/* MODULE:FUNCTION, as in patterns. */
	char *colon = names ? strchr(names, ':') : NULL;
	if (colon) {
		*colon = 0;
		place->module = add_module(p, names, reason);
		names = colon + 1;
		if (!place->module)
			return false;
	}
	bool is_right = names && layout && add_names(p, place, names, layout);
	place->module = before;
	return is_right;
}

static bool add_table(struct tw_prototypes *p, const char *text, char reason[])
{
	return tw_grow(p->tables, p->table_count, p->table_capacity) &&
	       tw_prototype_table_read(text, &p->tables[p->table_count], reason) && ++p->table_count;
}

static bool is_directive(const char *line, const char *word)
{
	size_t bytes = strlen(word);
	return strncmp(line, word, bytes) == 0 && line[bytes] == ' ' && !strchr(line, '(');
}

static bool add_line(struct tw_prototypes *p, struct place *place, char *line, char reason[])
{
	for (char *c = line; *c; c++)
		*c = *c == '\t' ? ' ' : *c;
	for (size_t bytes = strlen(line); bytes && line[bytes - 1] == ' ';)
		line[--bytes] = 0;
	if (!*line)
		return true;
	if (is_directive(line, "table"))
		return place->has_tables || add_table(p, line + 6, reason);
	if (!place->has_tables)
		return true;
	if (!is_directive(line, "module"))
		return add_prototype(p, place, line, reason);
	place->module = add_module(p, line + 7 + strspn(line + 7, " "), reason);
	return place->module != NULL;
}

/* The file's text; a line that begins with a blank is joined to the one before. */
static char *read_text(const char *path, char reason[])
{
	struct stat status;
	int fd = tw_file_open(path, &status);
	char *text = NULL;
	if (fd < 0) {
		snprintf(reason, TW_PROTOTYPE_REASON_BYTES, "%s cannot be read", path);
		return NULL;
	}
	if (status.st_size <= FILE_BYTES_MAX && (text = malloc((size_t)status.st_size + 1))) {
		ssize_t bytes = read(fd, text, (size_t)status.st_size);
		text[bytes > 0 ? bytes : 0] = 0;
	}
	close(fd);
	if (!text)
		snprintf(reason, TW_PROTOTYPE_REASON_BYTES, "%s is too large", path);
	return text;
}

/* Ends the line at its comment.  Returns the next one, or NULL. */
static char *end_line(char *line, unsigned *number)
{
	char *next = line;
	for (;;) {
		next += strcspn(next, "\n");
		(*number)++;
		if (!*next || (next[1] != ' ' && next[1] != '\t'))
			break;
		*next = ' ';
	}
	bool is_last = !*next;
	*next = 0;
	line[strcspn(line, "#")] = 0;
	return is_last ? NULL : next + 1;
}

/* Without folders and .proto; to be freed. */
static char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	return strndup(name, dot ? (size_t)(dot - name) : strlen(name));
}

/*
 * Reads the tables, or with @has_tables all else.  Lines that are refused are reported and left out, except those of files of the command
 * line, where the first one ends it.
 */
static bool add_file(struct tw_prototypes *p, const char *path, enum tw_prototype_rank rank, bool has_tables,
		     char reason[TW_PROTOTYPE_REASON_BYTES])
{
	struct place place = {.rank = rank, .has_tables = has_tables, .file = keep(p, file_name(path))};
	bool is_lenient = rank != TW_PROTOTYPE_GIVEN;
	char why[TW_PROTOTYPE_REASON_BYTES] = "there is no memory";
	char *text = read_text(path, reason), *next;
	unsigned number = 0;
	bool is_right = text != NULL && place.file;
	for (char *line = text; line && is_right; line = next) {
		unsigned from = number + 1;
		next = end_line(line, &number);
		if (add_line(p, &place, line, why))
			continue;
		is_right = is_lenient;
		snprintf(reason, TW_PROTOTYPE_REASON_BYTES, "%.200s, line %u: %.280s", path, from, why);
		if (is_lenient)
			tw_say("%s; the line is left out.", reason);
	}
	free(text);
	return is_right;
}

static int is_file(const struct dirent *entry)
{
	size_t bytes = strlen(entry->d_name);
	return bytes > 6 && strcmp(entry->d_name + bytes - 6, ".proto") == 0;
}

static void add_folder(struct tw_prototypes *p, const char *folder, enum tw_prototype_rank rank)
{
	char reason[TW_PROTOTYPE_REASON_BYTES];
	struct dirent **entries;
	int count = scandir(folder, &entries, is_file, alphasort);
	for (int i = 0; i < 2 * count; i++) {
		char path[2 * PATH_MAX];
		snprintf(path, sizeof path, "%s/%s", folder, entries[i % count]->d_name);
		if (!add_file(p, path, rank, i >= count, reason) && i < count)
			tw_say("%s; it is left out.", reason);
	}
	for (int i = 0; i < count; i++)
		free(entries[i]);
	if (count >= 0)
		free(entries);
}

/* Beside the command, wherever both were moved to; "" where there is none. */
static void shipped_folder(char folder[PATH_MAX])
{
	static const char *const folders[] = {"/" TW_PROTOTYPE_FOLDER, "/../share/tracewheel/prototypes"};
	char own[PATH_MAX];
	int parent = tw_command_path(own);
	*folder = 0;
	for (size_t i = 0; parent >= 0 && i < sizeof folders / sizeof *folders && !*folder; i++) {
		char candidate[2 * PATH_MAX], *real;
		snprintf(candidate, sizeof candidate, "%.*s%s", parent, own, folders[i]);
		real = realpath(candidate, NULL);
		if (real && strlen(real) < PATH_MAX)
			strcpy(folder, real);
		free(real);
	}
}

/* "" where there is none. */
static void user_folder(char folder[PATH_MAX])
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	*folder = 0;
	if (config && *config == '/')
		snprintf(folder, PATH_MAX, "%s/tracewheel/prototypes", config);
	else if (home && *home == '/')
		snprintf(folder, PATH_MAX, "%s/.config/tracewheel/prototypes", home);
}

struct tw_prototypes *tw_prototypes_open(void)
{
	struct tw_prototypes *p = calloc(1, sizeof *p);
	char folder[PATH_MAX];
	if (!p)
		return NULL;
	shipped_folder(folder);
	if (*folder)
		add_folder(p, folder, TW_PROTOTYPE_SHIPPED);
	user_folder(folder);
	if (*folder)
		add_folder(p, folder, TW_PROTOTYPE_USER);
	return p;
}

void tw_prototypes_close(struct tw_prototypes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->table_count; i++) {
		free(p->tables[i].name);
		free(p->tables[i].text);
	}
	for (size_t i = 0; i < p->module_count; i++)
		tw_pattern_destroy(p->modules[i]);
	for (size_t i = 0; i < p->text_count; i++)
		free(p->texts[i]);
	free(p->tables);
	free(p->modules);
	free(p->texts);
	free(p->all);
	free(p);
}

bool tw_prototypes_give(struct tw_prototypes *p, const char *text, char reason[TW_PROTOTYPE_REASON_BYTES])
{
	struct place place = {.rank = TW_PROTOTYPE_GIVEN, .file = ""};
	return add_prototype(p, &place, text, reason);
}

bool tw_prototypes_give_file(struct tw_prototypes *p, const char *path, char reason[TW_PROTOTYPE_REASON_BYTES])
{
	return add_file(p, path, TW_PROTOTYPE_GIVEN, false, reason) &&
	       add_file(p, path, TW_PROTOTYPE_GIVEN, true, reason);
}

bool tw_prototypes_take_file(struct tw_prototypes *p, const char *file, bool (*visit)(const char *function, void *arg),
			     void *arg)
{
	for (size_t i = 0; i < p->count; i++) {
		if (strcmp(p->all[i].file, file) != 0)
			continue;
		p->all[i].rank = TW_PROTOTYPE_GIVEN;
		if (!visit(p->all[i].name, arg))
			return false;
	}
	return true;
}

/* Of two prototypes of one rank the later one counts. */
static int by_name(const void *a, const void *b)
{
	const struct prototype *x = a, *y = b;
	return strcmp(x->name, y->name) ?: TW_ORDER(x->rank, y->rank) ?: TW_ORDER(y->order, x->order);
}

void tw_prototypes_sort(struct tw_prototypes *p)
{
	if (p->count)
		qsort(p->all, p->count, sizeof *p->all, by_name);
}

static bool is_of(const struct prototype *prototype, const struct tw_patterns_subject *subject)
{
	return !prototype->module || tw_pattern_is_module(prototype->module, subject);
}

const char *tw_prototypes_find(const struct tw_prototypes *p, const struct tw_patterns_subject *subject, bool is_given)
{
	size_t at = tw_search(i, p->count, strcmp(p->all[i].name, subject->function) < 0);
	for (; at < p->count && strcmp(p->all[at].name, subject->function) == 0; at++)
		if (is_of(&p->all[at], subject) && (!is_given || p->all[at].rank == TW_PROTOTYPE_GIVEN))
			return p->all[at].layout;
	return NULL;
}

bool tw_prototypes_have_module(const struct tw_prototypes *p, const struct tw_patterns_subject *subject)
{
	for (size_t i = 0; i < p->count; i++)
		if (is_of(&p->all[i], subject))
			return true;
	return false;
}
