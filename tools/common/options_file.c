/* SPDX-License-Identifier: Apache-2.0 */
/* options_file.c - options_file.h. */
#include "tools/common/options_file.h"
#include "base/file.h"
#include "tools/tool.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define WORDS_MAX      10000
#define FILES_MAX      16

/* A file; its words are written over its text, which is never longer than it was. */
struct file {
	const char *name;
	char *text;
	size_t bytes;
	size_t words; /* ends of words so far */
	struct word {
		const char *text;
		unsigned line;
	} * list;
};

static struct file files[FILES_MAX];
static size_t file_count;

/* Returns false after reporting why. */
static bool read_text(struct file *file)
{
	struct stat status;
	int fd = tw_file_open(file->name, &status);
	if (fd < 0)
		return tw_complain(
			fd == TW_EFORMAT ? "options of '%s' cannot be read: it is no regular file."
			: fd == TW_ENOENT
				? "options of '%s' cannot be read: there is no such file; a word that begins with @ names one."
				: "options of '%s' cannot be read.",
			file->name);
	bool is_long = (size_t)status.st_size > FILE_BYTES_MAX;
	ssize_t got = 0;
	file->text = is_long ? NULL : malloc((size_t)status.st_size + 1);
	while (file->text && (got = read(fd, file->text + file->bytes, (size_t)status.st_size - file->bytes)) > 0)
		file->bytes += (size_t)got;
	close(fd);
	if (is_long)
		tw_say("'%s' has more than 1 MiB: it is no file of options.", file->name);
	else if (!file->text || got < 0)
		tw_say("options of '%s' cannot be read.", file->name);
	else if (memchr(file->text, 0, file->bytes))
		tw_say("'%s' has bytes of 0: it is no file of options.", file->name);
	else
		return (file->text[file->bytes] = 0) == 0;
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/* The position at which the next word begins, and its line; comments are skipped. */
static const char *find_word(const char *at, unsigned *line)
{
	while (is_blank(*at) || *at == '#') {
		if (*at == '#')
			at += strcspn(at, "\n");
		*line += *at == '\n';
		at += *at != 0;
	}
	return at;
}

/* Copies a word to *to, which is not behind it, and moves *to behind its end.  Returns where it ended; NULL: a quote is open. */
static const char *take_word(const char *at, char **to, unsigned *line)
{
	char quote = 0;
	for (; *at && (quote || !is_blank(*at)); at++) {
		*line += *at == '\n';
		if (quote ? *at == quote : *at == '"' || *at == '\'') {
			quote = quote ? 0 : *at;
			continue;
		}
		if (*at == '\\' && at[1] && quote != '\'' && (!quote || at[1] == '"' || at[1] == '\\'))
			*line += *++at == '\n';
		*(*to)++ = *at;
	}
	return quote ? NULL : at;
}

/* Returns false after reporting a mistake. */
static bool split(struct file *file)
{
	const char *at = file->text;
	char *to = file->text;
	unsigned line = 1;
	file->list = calloc(WORDS_MAX, sizeof *file->list);
	if (!file->list)
		return tw_complain("no memory.");
	for (;;) {
		at = find_word(at, &line);
		if (!*at)
			return true;
		if (file->words == WORDS_MAX)
			return tw_complain("%s:%u: there are more than 10,000 words.", file->name, line);
		struct word *word = &file->list[file->words++];
		*word = (struct word){to, line};
		at = take_word(at, &to, &line);
		if (!at)
			return tw_complain("%s:%u: a quote that begins in this word does not end.", file->name,
					   word->line);
		/* The blank behind the word, or the end of the text, is overwritten: it is looked at first. */
		line += *at == '\n';
		bool is_last = !*at;
		*to++ = 0;
		if (is_last)
			return true;
		at++;
	}
}

/* Puts the words of the file in the place of argv[at]. */
static bool put_words(const struct file *file, int at, int *argc, char ***argv)
{
	char **made = calloc((size_t)*argc + file->words, sizeof *made);
	if (!made)
		return tw_complain("no memory.");
	memcpy(made, *argv, (size_t)at * sizeof *made);
	for (size_t i = 0; i < file->words; i++)
		made[(size_t)at + i] = (char *)(uintptr_t)file->list[i].text;
	memcpy(made + (size_t)at + file->words, *argv + at + 1, (size_t)(*argc - at - 1) * sizeof *made);
	*argc += (int)file->words - 1;
	/* The former one belongs to the system, or is kept: the words of earlier files are in it. */
	*argv = made;
	return true;
}

bool tw_options_files(int *argc, char ***argv)
{
	for (int at = 2; at < *argc && (*argv)[at][0] == '@' && (*argv)[at][1];) {
		struct file *file = &files[file_count];
		int before = *argc;
		if (file_count == FILES_MAX)
			return tw_complain("there are more than %d files of options.", FILES_MAX);
		file->name = (*argv)[at] + 1;
		file_count++;
		if (!read_text(file) || !split(file) || !put_words(file, at, argc, argv))
			return false;
		at += *argc - before + 1;
	}
	return true;
}

const char *tw_options_file_place(const char *word, char *text, size_t bytes)
{
	*text = 0;
	for (size_t i = 0; word && i < file_count; i++)
		for (size_t j = 0; files[i].list && j < files[i].words; j++)
			if (files[i].list[j].text == word)
				snprintf(text, bytes, "%s:%u: ", files[i].name, files[i].list[j].line);
	return text;
}
