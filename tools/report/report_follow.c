/* SPDX-License-Identifier: Apache-2.0 */
/* report_follow.c - `report --follow`: a report of a capture that is being recorded, again and again. */
#include "tools/report/report.h"
#include "views/names/names.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS UINT64_C(2000000000)

/* Rests until the next time, which is later if the last report took long: reading takes at most a quarter of one processor. */
static void rest_since(uint64_t begun_ns)
{
	uint64_t took_ns = tw_now_ns() - begun_ns, every_ns = took_ns * 4 > EVERY_NS ? took_ns * 4 : EVERY_NS;
	uint64_t left_ns = every_ns - took_ns;
	const struct timespec rest = {(time_t)(left_ns / 1000000000), (long)(left_ns % 1000000000)};
	nanosleep(&rest, NULL);
}

int tw_report_follow(int (*show)(void *context, const char *path), void *context, const char *path)
{
	bool is_terminal = isatty(STDOUT_FILENO), is_live = true;
	int code = TW_EXIT_OK;
	tw_names_expect_no_end();
	for (bool is_first = true; is_live; is_first = false) {
		uint64_t begun_ns = tw_now_ns();
		/* The screen is cleared by the first bytes of the new one. */
		tw_out_before(is_terminal ? "\033[H\033[2J\033[3J" : is_first ? "" : "\n");
		code = show(context, path);
		is_live = code != TW_EXIT_USAGE && tw_names_is_recorded();
		if (is_live)
			rest_since(begun_ns);
	}
	return code;
}
