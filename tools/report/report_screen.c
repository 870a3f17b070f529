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

const char *tw_screen_time(char *text, uint64_t ns)
{
	static const struct {
		double from, unit;
		const char *name;
	} scale[] = {{999.5e6, 1e9, "s"}, {999.5e3, 1e6, "ms"}, {999.5, 1e3, "us"}, {0, 1, "ns"}};
	size_t i = 0;
	while ((double)ns < scale[i].from)
		i++;
	double value = (double)ns / scale[i].unit;
	snprintf(text, TW_FIGURE_BYTES,
		 scale[i].unit == 1 || value >= 99.95 ? "%.0f %s"
		 : value >= 9.995                     ? "%.1f %s"
						      : "%.2f %s",
		 value, scale[i].name);
	return text;
}
