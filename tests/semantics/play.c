/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.c - plays scenarios written as terms, and compares each answer with that of a real Erlang system.
 *
 *	semantics_play FILE.term...		all of them, alone and with a twin of each session
 *	semantics_play FILE.term... NAME...	these, and prints the answers
 *	semantics_play --module FILE.term...	the same, with tracer modules in place of queues
 *
 * Under a sanitizer one scenario in four, and all of them in ./run test --long.
 *
 * Goal    A line {Name,Steps,Answer} was played on OTP by oracle/player.erl; the same steps give the same answer here.  A line
 *	   {Name,Steps,Answer,Why} says why OTP 25 cannot be asked, and where its answer is from.
 * Method  The first thing of each scenario is a session s with a tracer t, which is what steps are about.  Steps of the tester:
 *
 *	{session,S,T}  {in,S,Steps}  {destroy,S}  {destroy_weak,S}	more sessions; steps about one of them
 *	{process,Who,How,Flags}  {port,Who,How,Flags}  {function,MFA,Spec,Options}  {send_pattern,Spec}  {recv_pattern,Spec}
 *	{system_monitor,Event,Value}  {tcw,N}
 *	{tracee,P}  {run,P,[Op]}  {value,P,[Op]}  {start,P,[Op]}  {await,P}  {do,Op}  {tell,P,Message}  {kill,P}  {gone,P}
 *	{info,What,Item}  all_info  get_tcw  {session_info,What}  listed	listed: the session's name in the list of all
 *	ev  ev_now  tags  count  {only,Tag}  {monitored,P}  {alternating,N}  {delivered,Who}	events
 *	{everybody,Who,How,Flags}		does it count all processes?
 *	{each,X,Values,Steps}  {times,N,Steps}	each: with every value in place of the atom X
 *	{system_tracer,B}  seq_ev		sequential tracing: its events, sorted
 *	{results,Steps}  {last,Step}  {wait,Ms}  alone	alone: without a twin
 *
 * '@p' is the pid of p.  The answer is a list: what the steps say that ask something, and of the other calls all results that are not
 * 1, or all inside results.  run and value wait until P has run the operations, start does not: await does.  ev: the events,
 * those of each process in their order.  Operations of processes (Op), alone or inside calls:
 *
 *	{send,To,M} {recv,M} {recv,M,Ms} {spawn,P} {spawn_link,P} {spawn_undef,P} {link,P} {unlink,P} {register,N,P}
 *	{unregister,N} {exit,P,R} {die,Class,R} {trap,B} {sensitive,B} {max_heap,Words} {monitor,P} gc {grow,N} {sleep,Ms}
 *	reload (the module pm) {times,N,Op} {all,[Op]} the results of all
 *	{set_token,C,V} {set_token,T} {set_tokens,[Flag]} {get_token} {get_token,C} {seq_print,L,I} {seq_print,I} {reset_trace}
 *	{l,F,Tag,Body} a local call, {x,F,Tag,Body} one that names the module, {t,Op} with what it raises caught
 *
 * The functions are pl:a/2, b/2, c/2, and d/2, which is not exported; e is pm:e/2.  A Body is a list of Ops; its last is the tail: a
 * call, {ret,V}, {error,R}, {exit,R} or {throw,R}.  In answers a body is left out: {pl,a,[Tag]}.
 */
#include "play.h"
#include "../unit/sanitized_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The run-time decides what {process_dump} shows. */
static size_t dump_process(void *context, struct tw_term pid, char *buffer, size_t bytes)
{
	static const char text[] = "=proc:\nState: Running\nSpawned as: runner:loop/0\nHeap: 233 words\n";
	size_t count = sizeof text - 1 < bytes ? sizeof text - 1 : bytes;

	(void)context, (void)pid;
	memcpy(buffer, text, count);
	return count;
}

/* The control word, the system tracer and tokens belong to the program: a twin would see the other's.  A scenario of many sessions says alone. */
static const char *const of_program[] = {"set_tcw", "alone", "system_tracer", "set_seq_token", NULL};
/* They ask the queue itself, or a monitor of the system. */
static const char *const of_queues[] = {"delivered", "system_monitor", NULL};

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
	static const struct tw_process_dumper dumper = {.dump = dump_process};
	struct bed *b = bed_create(has_twins, has_modules);
	struct tw_term result, expected = tw_term_element(line, 2);
	bool is_same;

	ops_load();
	tw_process_dump_set(&dumper);
	tw_trace_control_word_set(0);
	result = play_steps(b, tw_term_element(line, 1));
	is_same = !tw_term_is_none(expected) && tw_term_is_equal(result, expected);
	if (is_shown || !is_same)
		printf("%s%s:\n  %s\n", name_of(tw_term_element(line, 0)), has_twins ? ", with a twin" : "",
		       lit_text(result));
	if (!is_same) {
		printf("recorded:\n  %s\nof:\n  %s\n", lit_text(expected), lit_text(tw_term_element(line, 1)));
		show_difference(result, expected);
	}
	bed_destroy(b);
	return is_same;
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

/* In the short form, a scenario plays beside a twin here or in a module, if it plays in both. */
static bool has_twin_turn(const struct options *options, struct tw_term line, unsigned number)
{
	return options->name_count || getenv("TW_TEST_LONG") || mentions(line, of_queues) ||
	       number % 2 == options->has_modules;
}

struct result {
	unsigned played, failed;
};

static void play_file(const char *path, const struct options *options, struct result *result)
{
	struct tw_arena arena;
	struct tw_parser parser = {0};
	struct tw_term line;
	unsigned number = 0, stride = options->name_count ? 1 : test_stride(4);
	int error;

	tw_arena_init(&arena, SIZE_MAX);
	parser.text = lit_read(path, &parser.bytes);
	while (!(error = tw_parse_next(&parser, &arena, &line))) {
		if (number++ % stride || !is_asked(options, tw_term_element(line, 0)))
			continue;
		for (unsigned twins = 0; twins < 2; twins++) {
			if (twins && (mentions(line, of_program) || !has_twin_turn(options, line, number / stride)))
				continue;
			if (options->has_modules && mentions(line, of_queues))
				continue;
			result->played++;
			result->failed += !play(line, twins, options->name_count > 0, options->has_modules);
		}
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
