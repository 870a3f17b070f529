/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.c - `tracewheel top --erlang`: the processes of an Erlang node, and calls that it counts.
 *
 *	1 start the helper VM of `record --erlang`, which puts a process of its own into the node (erlang/src/tracewheel_top.erl)
 *	2 show its lines, a round at a time, until it ends or the user has seen enough
 *	3 the end of the helper's standard input is the order to stop; then nothing is left in the node
 */
#include "tools/top/node.h"
#include "tools/top/top.h"
#include "tools/common/erlang_helper.h"
#include "tools/tool.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	KEY_ERLANG = 256,
	KEY_SORT,
	KEY_EVERY,
	KEY_COUNT,
	KEY_TOP,
	KEY_BATCH,
	KEY_FORMAT,
	KEY_PORT,
	KEY_COOKIE,
	KEY_TLS
};

static const struct tw_option options_table[] =
	{{KEY_ERLANG, "erlang", NULL, "the first option: the others are these, not those of `tracewheel top`"},
	 {'t', "trace", "PATTERN",
	  "also count the calls of these functions (call_count): lists:seq/2, lists:seq, lists; may be given often"},
	 {KEY_SORT, "sort", "rate|reductions|mailbox|memory|name",
	  "the order of rows (rate: reductions of the last round)"},
	 {KEY_EVERY, "every", "TIME", "the length of a round (1s)"},
	 {KEY_COUNT, "count", "N", "end after N rounds"},
	 {KEY_TOP, "top", "N", "with --batch: only the first N rows"},
	 {KEY_BATCH, "batch", NULL, "print each round as text, also on a terminal"},
	 {KEY_FORMAT, "format", "text|json", "json: each round is one line, an object (docs/json.md)"},
	 {KEY_PORT, "port", "PORT", "where NODE listens for other nodes: no epmd is asked"},
	 {KEY_COOKIE, "cookie-file", "FILE", "where the node's cookie is (as of `record --erlang`)"},
	 {KEY_TLS, "ssl-opts", "FILE", "for a node whose distribution is by TLS (as of `record --erlang`)"},
	 {0}};

static const struct tw_command command = {
	.name = "top --erlang",
	.arguments = "[OPTION]... NODE|PID",
	.summary =
		"Shows the processes of a running Erlang node (OTP 25 or later) that work the most, by reductions, mailbox and memory, each "
		"second; with -t the calls of functions, too. The node needs a name (-sname, -name) and nothing else. It may have any number of processes: "
		"at most 3,200 of them, and those that are shown, are asked in a second.\n"
		"\n"
		"Keys: q quit, s next order, t functions, r reset, p pause, / filter by a part of the text, arrows scroll.\n"
		"After q nothing is left in the node.",
	.options = options_table,
	.examples = "  tracewheel top --erlang shop@localhost\n"
		    "  tracewheel top --erlang -t shop_cart --sort mailbox $(pgrep -n beam)\n"
		    "  tracewheel top --erlang --batch --count 5 --top 10 shop\n"
		    "  tracewheel top --erlang --format json shop | jq '.rows[0]'\n"};

struct request {
	struct tw_node node;
	struct tw_top_view view;
	struct tw_erlang_helper helper;
	char *arguments[TW_ERLANG_ARGUMENTS_MAX + 1];
	unsigned count;
	uint64_t every_ns;
	bool is_batch;
};

static bool add(struct request *request, const char *key, const char *value)
{
	/* Behind the options come what this command adds itself. */
	if (request->count + 8 > TW_ERLANG_ARGUMENTS_MAX)
		return tw_usage(&command, "there are more than %d options.", TW_ERLANG_ARGUMENTS_MAX - 8), false;
	return asprintf(&request->arguments[request->count++], "%s=%s", key, value) > 0;
}

static bool take_option(void *arg, int key, const char *value)
{
	struct request *request = arg;
	uint64_t number;
	char text[2 * PATH_MAX];
	switch (key) {
	case KEY_ERLANG: return true;
	case 't': request->node.has_functions = true; return add(request, "pattern", value);
	case KEY_SORT:
		request->node.order = tw_node_order_named(value);
		if (request->node.order < TW_NODE_ORDERS)
			return true;
		return tw_usage(&command, "--sort is rate, reductions, mailbox, memory or name, not '%s'.", value),
		       false;
	case KEY_EVERY: return tw_top_set_every(&command, &request->every_ns, value);
	case KEY_COUNT: return tw_top_set_number(&command, &request->view.rounds, "count", value);
	case KEY_TOP:
		if (!tw_top_set_number(&command, &number, "top", value))
			return false;
		request->view.row_count = (uint32_t)number;
		return true;
	case KEY_BATCH: request->is_batch = true; return true;
	case KEY_FORMAT: request->is_batch = true; return tw_top_set_format(&command, &request->view, value);
	case KEY_PORT:
		if (tw_parse_decimal(value, false, &number) && number > 0 && number < 65536)
			return add(request, "port", value);
		return tw_usage(&command, "--port is a number from 1 to 65535, not '%s'.", value), false;
	default:
		if (!tw_erlang_helper_path(&command, text, value) ||
		    !add(request, key == KEY_TLS ? "ssl_opts" : "cookie_file", text))
			return false;
		if (key == KEY_TLS)
			request->helper.tls = strchr(request->arguments[request->count - 1], '=') + 1;
		return true;
	}
}

/* The end, of which the user reads when the table is no longer on the screen. Returns the exit code. */
static int tell_end(struct request *request, int result)
{
	const struct tw_node *node = &request->node;
	tw_erlang_helper_stop();
	while (result > 0 && tw_node_read(&request->node, request->view.fd, true) > 0)
		;
	if (*node->end)
		tw_say("%s", node->end);
	if (result < 0)
		return tw_fail("the rounds cannot be shown: %s", strerror(ENOMEM));
	return node->code;
}

static int show(struct request *request, FILE *lines)
{
	struct tw_top_view *view = &request->view;
	struct tw_node *node = &request->node;
	bool has_terminal = !request->is_batch && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	view->kind = &tw_top_of_node;
	view->table = node;
	view->filter = node->filter;
	view->fd = fileno(lines);
	tw_erlang_helper_catch_signals(&(struct tw_erlang_helper_calls){0});
	/* A failure is said before anything is shown. */
	while (!node->is_watching && tw_node_read(node, view->fd, false) > 0)
		;
	if (!node->is_watching) {
		tw_say("%s", *node->end ? node->end
			     : tw_erlang_helper_was_stopped()
				     ? "it was stopped before a process was looked at."
				     : "the helper VM has ended before a process was looked at.");
		return *node->end ? node->code : TW_EXIT_NOT_STARTED;
	}
	tw_erlang_helper_set_tracing();
	return tell_end(request, has_terminal ? tw_top_screen(view) : tw_top_lines(view));
}

int tw_top_node(int argc, char **argv)
{
	static struct request request;
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	FILE *lines = NULL;
	char self[PATH_MAX], every[32];
	int code = TW_EXIT_USAGE;
	request = (struct request){.every_ns = UINT64_C(1000000000)};
	request.helper.arguments = request.arguments;
	if (!add(&request, "top", "true") || !tw_options_read(&options, take_option, &request, &code))
		return code;
	snprintf(every, sizeof every, "%llu", (unsigned long long)request.every_ns / 1000000);
	request.helper.target = argv[options.index];
	if (!request.helper.target || argv[options.index + 1])
		return tw_usage(&command, "which node? Its name, or the number of its process, comes last.");
	if (!tw_erlang_helper_find(&request.helper, self))
		return TW_EXIT_NOT_STARTED;
	if (!add(&request, "every", every) || !add(&request, "target", request.helper.target))
		return TW_EXIT_USAGE;
	code = tw_erlang_helper_begin(&request.helper, &lines);
	if (!code) {
		code = show(&request, lines);
		fclose(lines);
		tw_erlang_helper_wait();
	}
	for (unsigned i = 0; i < request.count; i++)
		free(request.arguments[i]);
	tw_node_free(&request.node);
	return code;
}
