/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.c - `tracewheel match`: tries a match specification, as erlang:match_spec_test/3 does.
 */
#include <tracewheel/match.h>
#include <tracewheel/term.h>

#include "tools/tool.h"
#include "base/grow.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
	const char *spec;
	const char *when;
	const char *args;
	const char *file;
	bool is_show;
	struct tw_match_options compile;
};

static const struct tw_option options_table[] = {
	{TW_SETS('a', struct options, args), "args", "LIST",
	 "the arguments of the call to match, an Erlang list; prints\n"
	 "{ok,Result,Flags}: false for no event, true for an event,\n"
	 "or the value of {message,Value}"},
	{TW_SETS('w', struct options, when), "when", "CONDITION",
	 "instead of SPEC: one condition, such as '$1 > 4096'; $N is\n"
	 "argument N"},
	{TW_SETS('s', struct options, is_show), "show", NULL,
	 "print the byte code, and how a hit tests it; without\n"
	 "--args this is the default"},
	{'t', "target", "TARGET",
	 "call (the default), send: [To, Message],\n"
	 "receive: [Node, From, Message], or table: any one term"},
	{TW_SETS('f', struct options, file), "file", "CASES",
	 "read cases, each {Args, Spec}. or {table, Term, Spec}., and\n"
	 "print a line for each: {ok,Result,Flags}. or {error,[Text]}."},
	{0},
};

static const struct tw_command command = {
	.name = "match",
	.arguments = "SPEC | --when CONDITION | --file CASES [OPTION]...",
	.summary = "Tries a match specification over one event, without tracing anything. docs/match.md\n"
		   "explains the language.",
	.options = options_table,
	.examples = "  tracewheel match --when '$1 > 4096 and $2 == \"users\"'\n"
		    "  tracewheel match --when '$1 band 7 == 0' --args '[64]'\n"
		    "  tracewheel match \"[{['\\$1'],[{'>','\\$1',5}],[{return_trace}]}]\" --args '[9]'\n"
		    "  tracewheel match --show \"[{'_', [], [{message, {caller}}]}]\"\n",
};

/* ---- printing ---- */

static int drain(struct tw_sink *sink)
{
	size_t bytes = (size_t)(sink->at - sink->start);

	sink->at = sink->start;
	return fwrite(sink->start, 1, bytes, sink->context) == bytes ? 0 : TW_EIO;
}

static struct tw_sink sink_to(FILE *file, char *buffer, size_t bytes)
{
	return (struct tw_sink){.start = buffer, .at = buffer, .end = buffer + bytes, .drain = drain, .context = file};
}

static int print_term(struct tw_term term, enum tw_print_form form)
{
	char buffer[4096];
	struct tw_sink sink = sink_to(stdout, buffer, sizeof(buffer));
	int error = tw_term_print(term, form, &sink);

	return error ? error : drain(&sink);
}

/* {ok,Result,[return_trace,exception_trace]}. */
static int print_answer(struct tw_arena *arena, const struct tw_match_answer *answer)
{
	struct tw_term flags = tw_term_nil();
	struct tw_term tuple[3] = {tw_term_atom_z("ok"), answer->result, flags};
	int error;

	if (answer->is_exception_trace)
		flags = tw_term_cons(arena, tw_term_atom_z("exception_trace"), flags);
	if (answer->is_return_trace)
		flags = tw_term_cons(arena, tw_term_atom_z("return_trace"), flags);
	tuple[2] = flags;
	error = print_term(tw_term_tuple(arena, tuple, 3), TW_PRINT_WRITE);
	puts(".");
	return error;
}

/* {error,["..."]}. */
static int print_refusal(struct tw_arena *arena, const char *text)
{
	struct tw_term list = tw_term_cons(arena, tw_term_string(arena, text, strlen(text)), tw_term_nil());
	struct tw_term tuple[2] = {tw_term_atom_z("error"), list};
	int error = print_term(tw_term_tuple(arena, tuple, 2), TW_PRINT_PRETTY);

	puts(".");
	return error;
}

/* Prints the line of the text that has the error, and a mark below its column. */
static void point_at(const char *text, const struct tw_match_error *error)
{
	const char *line = text + error->offset - (error->column - 1);
	size_t bytes = strcspn(line, "\n");
	size_t from = error->column > 60 ? error->column - 60 : 0;
	uint32_t i;

	fprintf(stderr, "  %.*s\n  ", (int)(bytes - from < 100 ? bytes - from : 100), line + from);
	for (i = 1; i < error->column - from; i++)
		fputc(line[from + i - 1] == '\t' ? '\t' : ' ', stderr);
	fputs("^\n", stderr);
}

static int complain(const char *what, const char *text, const struct tw_match_error *error, int result)
{
	if (result != TW_EBADARG && result != TW_ELIMIT) {
		tw_say("%s: %s", what, tw_strerror(result));
	} else if (error->line) {
		tw_say("%s, line %u, column %u: %s", what, error->line, error->column, error->text);
		point_at(text, error);
	} else {
		tw_say("%s: %s", what, error->text);
	}
	return TW_EXIT_FAILURE;
}

/* ---- one specification ---- */

static int show(const struct tw_match_program *program, bool is_when)
{
	static const char *const speeds[] = {
		"by the interpreter: byte code",
		"fused: one comparison of one integer argument, without the interpreter",
		"not at all: each event with the right number of arguments is accepted",
	};
	char buffer[4096];
	struct tw_sink sink = sink_to(stdout, buffer, sizeof(buffer));
	int error = 0;

	if (is_when) {
		error = print_term(tw_match_spec(program), TW_PRINT_PRETTY);
		puts(".");
	}
	if (!error)
		error = tw_match_show(program, &sink);
	if (!error)
		error = drain(&sink);
	printf("tested %s\n", speeds[tw_match_speed(program)]);
	return error;
}

static int try_args(const struct tw_match_program *program, const char *text)
{
	struct tw_arena arena;
	struct tw_term args;
	struct tw_match_answer answer;
	struct tw_parse_error parse_error = {0};
	int error;

	tw_arena_init(&arena, SIZE_MAX);
	error = tw_term_parse(&arena, text, strlen(text), &args, &parse_error);
	if (error) {
		struct tw_match_error position = {.line = parse_error.line,
						  .column = parse_error.column,
						  .offset = parse_error.offset};

		snprintf(position.text, sizeof(position.text), "%s", parse_error.message ? parse_error.message : "");
		/* The column of a parse error counts characters; the mark is placed by bytes. */
		while (position.offset > position.column - 1 && text[position.offset - position.column] != '\n')
			position.column++;
		error = complain("--args", text, &position, error);
	} else {
		error = tw_match_test(program, args, &arena, &answer);
		if (!error)
			error = print_answer(&arena, &answer);
		if (error) {
			error = tw_fail("--args is not a list of at most 255 elements");
		}
	}
	tw_arena_fini(&arena);
	return error;
}

static int run_one(const struct options *o)
{
	const char *text = o->when ? o->when : o->spec;
	struct tw_match_program *program;
	struct tw_match_error refusal = {.line = 0};
	int error;

	if (o->when)
		error = tw_match_compile_when(text, strlen(text), &o->compile, &program, &refusal);
	else
		error = tw_match_compile_text(text, strlen(text), &o->compile, &program, &refusal);
	if (error)
		return complain(o->when ? "--when" : "SPEC", text, &refusal, error);
	if (o->is_show || !o->args)
		error = show(program, o->when != NULL);
	if (!error && o->args)
		error = try_args(program, o->args);
	tw_match_destroy(program);
	return error ? TW_EXIT_FAILURE : TW_EXIT_OK;
}

/* ---- many cases ---- */

static int run_case(struct tw_arena *arena, struct tw_term term)
{
	bool is_table = tw_term_tuple_count(term) == 3;
	struct tw_match_options options = {.target = is_table ? TW_MATCH_TABLE : TW_MATCH_CALL};
	struct tw_term target = tw_term_element(term, is_table ? 1 : 0);
	struct tw_match_program *program;
	struct tw_match_error refusal = {.line = 0};
	struct tw_match_answer answer;
	int error;

	/* As OTP: arguments that are no list are rejected before the specification is run. */
	if (!is_table && tw_term_type(target) != TW_TYPE_NIL && tw_term_type(target) != TW_TYPE_CONS) {
		puts("{raised,badarg}.");
		return 0;
	}
	error = tw_match_compile(tw_term_element(term, is_table ? 2 : 1), &options, &program, &refusal);
	if (error == TW_EBADARG || error == TW_ELIMIT)
		return print_refusal(arena, refusal.text);
	if (error)
		return error;
	error = tw_match_test(program, target, arena, &answer);
	if (!error)
		error = print_answer(arena, &answer);
	else if (error == TW_EBADARG)
		error = puts("{raised,badarg}.") < 0 ? TW_EIO : 0;
	tw_match_destroy(program);
	return error;
}

static bool is_case(struct tw_term term)
{
	size_t count = tw_term_tuple_count(term);

	return count == 2 || (count == 3 && tw_term_is_same(tw_term_element(term, 0), tw_term_atom_z("table")));
}

static int run_cases(const char *path, const char *text, size_t bytes)
{
	struct tw_parser parser = {.text = text, .bytes = bytes};
	struct tw_arena arena;
	struct tw_term term;
	int error;

	tw_arena_init(&arena, SIZE_MAX);
	while ((error = tw_parse_next(&parser, &arena, &term)) == 0) {
		if (!is_case(term)) {
			tw_say("%s: neither {Args, Spec}. nor {table, Term, Spec}.", path);
			break;
		}
		error = run_case(&arena, term);
		if (error)
			break;
		tw_arena_reset(&arena);
	}
	tw_arena_fini(&arena);
	if (error == TW_ENOENT)
		return TW_EXIT_OK;
	if (error == TW_EBADARG || error == TW_ELIMIT)
		tw_say("%s:%u:%u: %s", path, parser.error.line, parser.error.column, parser.error.message);
	else if (error)
		tw_say("%s: %s", path, tw_strerror(error));
	return TW_EXIT_FAILURE;
}

static int run_file(const char *path)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	char *text = NULL;
	size_t bytes = 0;
	size_t capacity = 0;
	int result = TW_EXIT_FAILURE;

	if (!file)
		return tw_fail("%s: %s", path, strerror(errno));
	while (!feof(file) && !ferror(file)) {
		if (!tw_grow_by(text, bytes, capacity, 4096))
			break;
		bytes += fread(text + bytes, 1, capacity - bytes, file);
	}
	if (feof(file))
		result = run_cases(path, text, bytes);
	else
		tw_say("%s: cannot be read", path);
	free(text);
	if (file != stdin)
		fclose(file);
	return result;
}

/* ---- command line ---- */

static bool take_target(void *context, int key, const char *value)
{
	static const char *const names[] = {"call", "send", "receive", "table"};
	struct options *o = context;
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) == 0) {
			o->compile.target = (enum tw_match_target)i;
			return true;
		}
	}
	return tw_refuse(&command, "--target is call, send, receive or table");
}

int tw_tool_match(int argc, char **argv)
{
	struct options o = {.compile = {.sense = TW_MATCH_SENSE_TERMS}};
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	uint32_t count = 0;
	int status = words ? tw_options_words(&options, take_target, &o, words, &count) : tw_fail("no memory.");

	if (status < 0 && count > 1)
		status = tw_usage(&command, "one SPEC at a time");
	o.spec = count ? words[0] : NULL;
	free(words);
	if (status >= 0)
		return status;
	if ((o.spec != NULL) + (o.when != NULL) + (o.file != NULL) != 1)
		return tw_usage(&command, "exactly one of SPEC, --when and --file is wanted");
	if (o.file && (o.args || o.is_show))
		return tw_usage(&command, "--file goes with neither --args nor --show");
	status = o.file ? run_file(o.file) : run_one(&o);
	if (fflush(stdout) != 0 || ferror(stdout))
		return tw_fail("standard output: %s", strerror(errno));
	return status;
}
