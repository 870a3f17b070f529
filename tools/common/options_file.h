/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_file.h - `tracewheel COMMAND @FILE ...`: words of a file in place of its name, as compilers take them.
 *
 *	words are separated by blanks and line breaks; "a b" and 'a b' are one word; a backslash takes the next character as it is
 *	(not between '', and between "" only " and itself); # at the begin of a word: the rest of the line is a comment
 *
 * Only directly behind COMMAND, so that words of the traced program are never taken for one; and words of a file are not
 * replaced again.
 *
 * Threads  one.  Limits: 1 MiB a file, 10,000 words in all.
 */
#ifndef TW_TOOLS_OPTIONS_FILE_H
#define TW_TOOLS_OPTIONS_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * tw_options_files - replace names of files behind argv[1].
 *
 * @argc, @argv	in and out; the words live until the command ends.
 *
 * False: a file could not be read, or has a mistake, which was reported.
 */
bool tw_options_files(int *argc, char ***argv);

/* "FILE:LINE: " if this word comes from a file; "". */
const char *tw_options_file_place(const char *word, char *text, size_t bytes);

#endif
