/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prototypes.h - prototypes of functions that have no debug information: docs/prototypes.md.
 *
 *	a line of text	--> prototype_text.c --> a layout, as debug information yields it (tracewheel/layout.h)
 *	files, options	--> prototypes.c     --> all prototypes, by name
 *
 * Threads  any may look one up, once all are read.
 */
#ifndef TW_TOOLS_PROTOTYPES_H
#define TW_TOOLS_PROTOTYPES_H

#include <stdbool.h>
#include <stddef.h>

struct tw_patterns_subject;
struct tw_prototypes;

#define TW_PROTOTYPE_REASON_BYTES 512

/* ---- one prototype ---- */

/* Names of numbers, as layouts have them: "O_RDONLY.3=0,O_CREAT=64". */
struct tw_prototype_table {
	char *name;
	char *text;
};

/* The places in which a prototype's tables are found. */
typedef const struct tw_prototype_table *(*tw_prototype_table_fn)(const char *name, const void *arg);

struct tw_prototype_source {
	const char *text; /* borrowed */
	tw_prototype_table_fn find_table;
	const void *arg;
};

/*
 * tw_prototype_read - the layout of a prototype, and the names that it is for.
 *
 * @names	gives: the text before the parenthesis, without the result: "open,open64", "libc:open".
 * @layout	gives.
 *
 * False: it is refused; @reason is a sentence without a full stop.
 */
bool tw_prototype_read(const struct tw_prototype_source *source, char **names, char **layout,
		       char reason[TW_PROTOTYPE_REASON_BYTES]);

/* "open O_RDONLY=0/3 O_CREAT=0100" as a table.  False: refused. */
bool tw_prototype_table_read(const char *text, struct tw_prototype_table *out, char reason[TW_PROTOTYPE_REASON_BYTES]);

/* ---- all of them ---- */

/* In the order in which they are asked. */
enum tw_prototype_rank {
	TW_PROTOTYPE_GIVEN,  /* on the command line: instead of debug information, too */
	TW_PROTOTYPE_USER,   /* of the user's folder */
	TW_PROTOTYPE_SHIPPED /* installed with the command */
};

/*
 * tw_prototypes_open - read the user's folder ($XDG_CONFIG_HOME or ~/.config, /tracewheel/prototypes) and the installed one.
 *
 * Reports what is wrong in the user's files, and leaves it out.  NULL: no memory.  tw_prototypes_close() takes.
 */
struct tw_prototypes *tw_prototypes_open(void);
void tw_prototypes_close(struct tw_prototypes *prototypes);

/* Adds one of the command line, or a file.  False: refused. */
bool tw_prototypes_give(struct tw_prototypes *prototypes, const char *text, char reason[TW_PROTOTYPE_REASON_BYTES]);
bool tw_prototypes_give_file(struct tw_prototypes *prototypes, const char *path,
			     char reason[TW_PROTOTYPE_REASON_BYTES]);

/*
 * tw_prototypes_take_file - as if all prototypes of the files of this name had been given on the command line: "syscalls".
 *
 * @visit	gets each of their names; false ends it, and is returned.
 */
bool tw_prototypes_take_file(struct tw_prototypes *prototypes, const char *file,
			     bool (*visit)(const char *function, void *arg), void *arg);

/* To be called once, before the first search. */
void tw_prototypes_sort(struct tw_prototypes *prototypes);

/*
 * tw_prototypes_find - the layout of a function.
 *
 * @is_given	only those of the command line.
 *
 * NULL: there is none.  Lends until the prototypes are closed.
 */
const char *tw_prototypes_find(const struct tw_prototypes *prototypes, const struct tw_patterns_subject *subject,
			       bool is_given);

/* Is there any for functions of that module? */
bool tw_prototypes_have_module(const struct tw_prototypes *prototypes, const struct tw_patterns_subject *subject);

#endif
