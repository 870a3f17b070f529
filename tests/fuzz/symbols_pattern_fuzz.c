/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   any text is a pattern or is refused with a sentence; any pattern can be matched against any names.  Method:
 * three texts, each after a zero byte: the pattern, a module, a function; the function is demangled too.
 */
#include "base/assert.h"
#include "tracewheel/error.h"
#include "tracewheel/pattern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = calloc(1, bytes + 3);
	const char *module, *function, *problem = NULL;
	struct tw_pattern *pattern;
	int error;

	/* fnmatch is exponential in the stars of hostile globs; real patterns are short. */
	if (!text || bytes > 200)
		goto free_text;
	memcpy(text, data, bytes);
	module = text + strlen(text) + 1;
	function = module < text + bytes ? module + strlen(module) + 1 : text + bytes;
	if (module > text + bytes)
		module = text + bytes;
	error = tw_pattern_parse(text, &pattern, &problem);
	TW_ASSERT(error == 0 || (error == TW_EBADARG && problem && strlen(problem) > 20));
	if (error == 0) {
		const struct tw_pattern_subject subject = {module, module, function, function, 3};

		if (tw_pattern_match(pattern, &subject))
			TW_ASSERT(tw_pattern_match_module(pattern, module, module));
		tw_pattern_wants_demangled(pattern);
		/* A name that is taken for its own demangled form. */
		if (*function && !tw_pattern_wants_demangled_of(pattern, function) && strncmp(text, "_Z", 2))
			tw_pattern_match_function(pattern, function, function);
		tw_pattern_destroy(pattern);
	}
free_text:
	free(text);
	return 0;
}
