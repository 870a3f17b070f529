/* SPDX-License-Identifier: Apache-2.0 */
/* near.c - finds the nearest name by edit distance, and libraries by the names of their files. */
#include "tools/common/near.h"
#include "tools/tool.h"

#include "tracewheel/pattern.h"
#include "tracewheel/symbols.h"

#include <ctype.h>
#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_MAX_BYTES 64

/* The number of letters to insert, delete or change; a transposition costs 2, a difference of case nothing. */
static size_t distance(const char *a, const char *b)
{
	size_t row[NAME_MAX_BYTES + 1], n = strlen(a), m = strlen(b);
	if (n > NAME_MAX_BYTES || m > NAME_MAX_BYTES)
		return SIZE_MAX;
	for (size_t k = 0; k <= m; k++)
		row[k] = k;
	for (size_t i = 1; i <= n; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t k = 1; k <= m; k++) {
			bool is_same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[k - 1]);
			size_t best = diagonal + !is_same;
			diagonal = row[k];
			if (row[k] + 1 < best)
				best = row[k] + 1;
			if (row[k - 1] + 1 < best)
				best = row[k - 1] + 1;
			row[k] = best;
		}
	}
	return row[m];
}

void tw_near_see(struct tw_near *near, const char *name)
{
	size_t bytes = strlen(near->wanted), far = bytes < 4 ? 1 : bytes < 8 ? 2 : 3, d;
	/* "c" for "libc", "sqlite3" for "libsqlite3". */
	bool is_library = strncmp(name, "lib", 3) == 0 && strncasecmp(name + 3, near->wanted, bytes) == 0 &&
			  (!name[3 + bytes] || isdigit((unsigned char)name[3 + bytes]));
	if (!bytes || strlen(name) >= sizeof near->best)
		return;
	d = is_library ? 1 : distance(near->wanted, name);
	if (d <= far && (is_library || d < bytes) && (!*near->best || d < near->distance)) {
		strcpy(near->best, name);
		near->distance = d;
	}
}

/* The last name of a path, without parameters and template arguments: the bytes of it. */
static const char *last_name(const char *demangled, size_t *bytes)
{
	const char *name = demangled, *end = NULL;
	unsigned depth = 0;
	for (const char *at = demangled; *at; at++) {
		if (*at == '(' && !depth && at > name)
			break;
		if (*at == '<' && !depth && at > name)
			end = end ? end : at;
		depth += *at == '<' || *at == '(';
		depth -= depth && (*at == '>' || *at == ')');
		/* Rust writes name::<type>. */
		if (!depth && strncmp(at, "::", 2) == 0 && at[2] != '<') {
			name = at + 2;
			end = NULL;
			at++;
		} else if (!depth && *at == ' ') {
			name = at + 1;
			end = NULL;
		}
	}
	end = end ? end : name + strcspn(name, "(");
	if (end - name > 2 && strncmp(end - 2, "::", 2) == 0)
		end -= 2;
	*bytes = (size_t)(end - name);
	return name;
}

void tw_near_see_demangled(struct tw_near *near, const char *demangled)
{
	char name[NAME_MAX_BYTES + 1];
	size_t bytes, far = strlen(near->wanted);
	const char *last = last_name(demangled, &bytes);
	far = far < 4 ? 1 : far < 8 ? 2 : 3;
	if (!bytes || bytes >= sizeof name || (size_t)(last + bytes - demangled) >= sizeof near->best)
		return;
	memcpy(name, last, bytes);
	name[bytes] = 0;
	size_t d = distance(near->wanted, name);
	if (d > far || d >= strlen(near->wanted) || (*near->best && d >= near->distance))
		return;
	const char *from = demangled, *blank = memrchr(demangled, ' ', (size_t)(last - demangled));
	if (blank && !memchr(demangled, '<', (size_t)(last - demangled)))
		from = blank + 1; /* behind the result type */
	snprintf(near->best, sizeof near->best, "%.*s", (int)(last + strcspn(last, "(") - from), from);
	near->distance = d;
}

/* ---- libraries ---- */

/* Is it the file of the library that the pattern names, "libm" for "libm.so.6"? */
static bool is_library_of(const struct tw_pattern *pattern, const char *file)
{
	char name[NAME_MAX + 1];
	const char *end = strstr(file, ".so");
	while (end && end[3] && end[3] != '.')
		end = strstr(end + 1, ".so");
	if (!end || end == file || strlen(file) > NAME_MAX)
		return false;
	snprintf(name, sizeof name, "%.*s", (int)(end - file), file);
	return tw_pattern_match_module(pattern, name, file);
}

static bool is_in_folder(const struct tw_pattern *pattern, const char *folder, int bytes)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	bool found = false;
	if (snprintf(path, sizeof path, "%.*s", bytes, bytes ? folder : ".") >= PATH_MAX)
		return false;
	DIR *dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = is_library_of(pattern, entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

/* Searches the folders that /etc/ld.so.conf and its includes list, one per line. */
static bool is_in_configured(const struct tw_pattern *pattern)
{
	glob_t files = {0};
	bool found = false;
	glob("/etc/ld.so.conf", 0, NULL, &files);
	glob("/etc/ld.so.conf.d/*.conf", GLOB_APPEND, NULL, &files);
	for (size_t i = 0; i < files.gl_pathc && !found; i++) {
		FILE *file = fopen(files.gl_pathv[i], "re");
		char line[PATH_MAX];
		while (file && !found && fgets(line, sizeof line, file))
			found = *line == '/' && is_in_folder(pattern, line, (int)strcspn(line, " \t\n"));
		if (file)
			fclose(file);
	}
	globfree(&files);
	return found;
}

bool tw_near_library(const struct tw_symbols *symbols, const struct tw_pattern *pattern)
{
	static const char *const folders[] =
		{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "."};
	const char *path = getenv("LD_LIBRARY_PATH");
	bool found = is_in_configured(pattern);
	for (size_t i = 0; i < sizeof folders / sizeof *folders && !found; i++)
		found = is_in_folder(pattern, folders[i], (int)strlen(folders[i]));
	for (; path && *path && !found; path += strcspn(path, ":;"), path += *path != 0)
		found = is_in_folder(pattern, path, (int)strcspn(path, ":;"));
	for (size_t i = 0; i < tw_symbols_object_count(symbols) && !found; i++) {
		const char *file = tw_symbols_object(symbols, i)->path, *slash = strrchr(file, '/');
		found = slash && is_in_folder(pattern, file, (int)(slash - file));
	}
	return found;
}
