/* SPDX-License-Identifier: Apache-2.0 */
/* report_screen.c - what the tables of a report are made of. */
#include "tools/report/report.h"

#include <stdio.h>
#include <stdlib.h>

const char *tw_screen_bold(const struct tw_screen *screen)
{
	return screen->is_coloured ? "\033[1m" : "";
}

const char *tw_screen_red(const struct tw_screen *screen)
{
	return screen->is_coloured ? "\033[1;31m" : "";
}

const char *tw_screen_plain(const struct tw_screen *screen)
{
	return screen->is_coloured ? "\033[0m" : "";
}

bool tw_screen_is_utf8(void)
{
	const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

/* Eighths of a column where the terminal can show them. */
void tw_screen_bar(const struct tw_screen *screen, double share, int width)
{
	static const char *const eighths[] = {"",       "\u258f", "\u258e", "\u258d",
					      "\u258c", "\u258b", "\u258a", "\u2589"};
	int units = (int)(share * width * 8 + 0.5), columns = 0;
	if (screen->is_coloured)
		tw_out_text(screen->out, "\033[36m");
	for (; units >= 8; units -= 8, columns++)
		tw_out_text(screen->out, screen->is_utf8 ? "\u2588" : "#");
	if (units && screen->is_utf8) {
		tw_out_text(screen->out, eighths[units]);
		columns++;
	} else if (columns == 0 && share > 0 && !screen->is_utf8) {
		tw_out_text(screen->out, ".");
		columns++;
	}
	tw_out_format(screen->out, "%s%*s", tw_screen_plain(screen), width - columns, "");
}

void tw_screen_name(const struct tw_screen *screen, const char *name, int width)
{
	char text[TW_NAME_SHORT_BYTES];

	if (!screen->cuts_names) {
		tw_out_text(screen->out, name);
		tw_out_text(screen->out, "\n");
		return;
	}
	tw_name_shorten(name, (size_t)(width > TW_NAME_WIDTH_MIN ? width : TW_NAME_WIDTH_MIN), text, sizeof text);
	tw_out_format(screen->out, "%s\n", text);
}
