/* SPDX-License-Identifier: Apache-2.0 */
/* compact.c - `tracewheel compact`: replaces the NOPs of entry sleds by one long NOP, after linking. */
#include "tools/tool.h"

#include "tracewheel/error.h"
#include "tracewheel/symbols.h"

struct request {
	bool is_quiet;
};

static const struct tw_option options_table[] = {
	{TW_SETS('q', struct request, is_quiet), "quiet", NULL, "say nothing when all went well"},
	{0},
};

static const struct tw_command command = {
	.name = "compact",
	.arguments = "[--quiet] FILE...",
	.summary =
		"Makes a program or library that was compiled with -fpatchable-function-entry run faster while it is not\n"
		"traced: the one-byte NOPs that gcc leaves at each function become one instruction. Run it once, after\n"
		"linking and before stripping. The file is replaced; running programs keep the old one.",
	.options = options_table,
	.examples = "  gcc -O2 -fpatchable-function-entry=9 -o app app.c && tracewheel compact app\n",
};

static int compact(const char *path, bool is_quiet)
{
	uint64_t sleds, changed;
	char figure[TW_FIGURE_BYTES];
	if (strcmp(path, "-") == 0)
		return tw_fail("standard input cannot be rewritten in place: name the file.");
	int error = tw_symbols_compact(path, &sleds, &changed);

	if (error == TW_ENOENT)
		return tw_fail("there is no file '%s'.", path);
	if (error == TW_EFORMAT || error == TW_ENOTSUP)
		return tw_fail("'%s' is not a program or library for this machine; it was not touched.", path);
	if (error)
		return tw_fail("'%s' could not be rewritten, and is as it was: %s", path, tw_strerror(error));
	if (!sleds)
		return tw_fail("'%s' has no entry sleds; compile and link it with -fpatchable-function-entry=9.", path);
	if (!is_quiet)
		tw_say("%s: %s made one instruction.", path, tw_figure_of(figure, changed, "sled was", "sleds were"));
	return TW_EXIT_OK;
}

int tw_tool_compact(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct request request = {0};
	int status;

	if (!tw_options_read(&options, NULL, &request, &status))
		return status;
	if (options.index >= argc)
		return tw_usage(&command, "which program or library?");
	status = TW_EXIT_OK;
	for (int i = options.index; i < argc; i++)
		if (compact(argv[i], request.is_quiet))
			status = TW_EXIT_FAILURE;
	return status;
}
