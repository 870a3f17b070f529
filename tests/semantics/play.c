/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.c - plays scenarios written as terms, and compares each answer with that of a real Erlang system.
 *
 *	semantics_play FILE.term...		all of them, alone and with a twin of each session
 *	semantics_play FILE.term... NAME...	these, and prints the answers
 *	semantics_play --module FILE.term...	the same, with tracer modules in place of queues
 *
 * Goal    A line {Name,Steps,Answer} was played on OTP by oracle/player.erl; the same steps give the same answer here.  A line
 *	   {Name,Steps,Answer,Why} says why OTP 25 cannot be asked, and where its answer is from.
 * Method  The first thing of each scenario is a session s with a tracer t, which is what steps are about.  Steps of the tester:
 *
 *	{session,S,T}  {in,S,Steps}  {destroy,S}			more sessions; steps about one of them
 *	{process,Who,How,Flags}  {function,MFA,Spec,Options}  {send_pattern,Spec}  {recv_pattern,Spec}  {tcw,N}
 *	{tracee,P}  {run,P,[Op]}  {value,P,[Op]}  {start,P,[Op]}  {await,P}  {do,Op}  {tell,P,Message}  {kill,P}  {gone,P}
 *	{info,What,Item}  all_info  get_tcw  ev  ev_now  tags
 *	{each,X,Values,Steps}  {times,N,Steps}  {wait,Ms}		each: with every value in place of the atom X
 *
 * '@p' is the pid of p.  The answer is a list: what info, ev, value, await and destroy say, and of the other calls all that is not
 * 1.  run and value wait until P has run the operations, start does not: await does.  ev: the events, those of each process in
 * their order.  Operations of processes (Op), alone or inside calls:
 *
 *	{send,To,M} {recv,M} {recv,M,Ms} {spawn,P} {spawn_link,P} {link,P} {unlink,P} {register,N,P} {unregister,N}
 *	{exit,P,R} {die,Class,R} {trap,B} {sensitive,B} {monitor,P} gc {sleep,Ms} {times,N,Op}
 *	{l,F,Tag,Body} a local call, {x,F,Tag,Body} one that names the module, {t,Op} with what it raises caught
 *
 * The functions are pl:a/2, b/2, c/2, and d/2, which is not exported.  A Body is a list of Ops; its last is the tail: a
 * call, {ret,V}, {error,R}, {exit,R} or {throw,R}.  In answers a body is left out: {pl,a,[Tag]}.
 */
#include "play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void begin(struct bed *b, bool has_twins, bool has_modules)
{
	tw_arena_init(&b->arena, SIZE_MAX);
	b->has_twins = has_twins;
	b->has_modules = has_modules;
	b->makes_twins = true;
	b->runtime = runtime_start(&(struct runtime_options){.schedulers = 2});
	b->me = outside_create(b->runtime);
	name_it(b, self_pid(b->me), "me");
	ops_load();
	tw_trace_control_word_set(0);
}

static void end(struct bed *b)
{
	close_sessions(b);
	for (size_t i = 0; i < b->program_count; i++)
		tw_match_destroy(b->programs[i]);
	outside_destroy(b->me);
	runtime_stop(b->runtime);
	tw_arena_fini(&b->arena);
}

/* The control word belongs to the program: a twin would see the other's. */
static const char *const of_program[] = {"set_tcw", NULL};
/* They ask the queue itself, or a monitor of the system. */
static const char *const of_queues[] = {"delivered", "system", NULL};

static bool mentions(struct tw_term term, const char *const *names)
{
	size_t count = tw_term_tuple_count(term);

	for (size_t i = 0; i < count; i++)
		if (mentions(tw_term_element(term, i), names))
			return true;
	for (; tw_term_type(term) == TW_TYPE_CONS; term = tw_term_tail(term))
		if (mentions(tw_term_head(term), names))
			return true;
	for (; *names; names++)
		if (lit_is(term, *names))
			return true;
	return false;
}

/* The first position in which two lists differ, as deep as possible. */
static void show_difference(struct tw_term a, struct tw_term b)
{
	while (tw_term_type(a) == TW_TYPE_CONS && tw_term_type(b) == TW_TYPE_CONS) {
		if (!tw_term_is_equal(tw_term_head(a), tw_term_head(b))) {
			if (tw_term_type(tw_term_head(a)) != TW_TYPE_CONS ||
			    tw_term_type(tw_term_head(b)) != TW_TYPE_CONS)
				break;
			a = tw_term_head(a);
			b = tw_term_head(b);
			continue;
		}
		a = tw_term_tail(a);
		b = tw_term_tail(b);
	}
	printf("from here on:\n  %s\nrecorded:\n  %s\n", lit_text(a), lit_text(b));
}

static bool play(struct tw_term line, bool has_twins, bool is_shown, bool has_modules)
{
	struct bed *b = calloc(1, sizeof *b);
	struct tw_term result, expected = tw_term_element(line, 2);
	bool is_same;

	begin(b, has_twins, has_modules);
	result = play_steps(b, tw_term_element(line, 1));
	is_same = !tw_term_is_none(expected) && tw_term_is_equal(result, expected);
	if (is_shown || !is_same)
		printf("%s%s:\n  %s\n", name_of(tw_term_element(line, 0)), has_twins ? ", with a twin" : "",
		       lit_text(result));
	if (!is_same) {
		printf("recorded:\n  %s\nof:\n  %s\n", lit_text(expected), lit_text(tw_term_element(line, 1)));
		show_difference(result, expected);
	}
	end(b);
	free(b);
	return is_same;
}

static char *read_all(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "r");
	char *text;
	long end = 0;

	if (!file || fseek(file, 0, SEEK_END) || (end = ftell(file)) <= 0) {
		perror(path);
		exit(2);
	}
	rewind(file);
	text = malloc((size_t)end);
	*bytes = fread(text, 1, (size_t)end, file);
	fclose(file);
	return text;
}

struct options {
	const char *names[64]; /* these scenarios only */
	size_t name_count;
	bool has_modules;
};

static bool is_asked(const struct options *options, struct tw_term name)
{
	for (size_t i = 0; i < options->name_count; i++)
		if (!strcmp(options->names[i], name_of(name)))
			return true;
	return options->name_count == 0;
}

struct result {
	unsigned played, failed;
};

static void play_file(const char *path, const struct options *options, struct result *result)
{
	struct tw_arena arena;
	struct tw_parser parser = {0};
	struct tw_term line;
	int error;

	tw_arena_init(&arena, SIZE_MAX);
	parser.text = read_all(path, &parser.bytes);
	while (!(error = tw_parse_next(&parser, &arena, &line)))
		for (unsigned twins = 0; twins < 2 && is_asked(options, tw_term_element(line, 0)); twins++) {
			if (twins && mentions(line, of_program))
				continue;
			if (options->has_modules && mentions(line, of_queues))
				continue;
			result->played++;
			result->failed += !play(line, twins, options->name_count > 0, options->has_modules);
		}
	if (error != TW_ENOENT) {
		fprintf(stderr, "%s: line %u: %s\n", path, parser.error.line, parser.error.message);
		exit(2);
	}
	tw_arena_fini(&arena);
	free((char *)parser.text);
}

static bool is_file(const char *argument)
{
	const char *end = strrchr(argument, '.');

	return end && !strcmp(end, ".term");
}

int main(int argc, char **argv)
{
	struct options options = {0};
	struct result result = {0};

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--module"))
			options.has_modules = true;
		else if (!is_file(argv[i]) && options.name_count < 64)
			options.names[options.name_count++] = argv[i];
	for (int i = 1; i < argc; i++)
		if (is_file(argv[i]))
			play_file(argv[i], &options, &result);
	printf("%u plays, %u answered otherwise\n", result.played, result.failed);
	return result.failed || !result.played;
}
