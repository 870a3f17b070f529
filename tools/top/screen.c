/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.c - a table of `top` on a terminal, by the curses library.
 *
 *	q quit	s sort	t other rows	r reset	p pause	/ filter (Enter: done, Esc: none)	arrows, PgUp, PgDn, Home: scroll
 *
 * Sleeps until a key is pressed, the stream brings something, or the terminal is resized.
 */
#include "tools/top/top.h"
#include "views/output/output.h"

#include <locale.h>
#include <ncursesw/curses.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ESCAPE 27

struct screen {
	const struct tw_top_view *view;
	uint32_t first; /* row that is shown */
	bool is_paused, is_typing, has_ended;
	uint64_t rounds;
};

/* Lines of the table. */
static uint32_t page(void)
{
	return LINES > 4 ? (uint32_t)LINES - 3 : 1;
}

static void put_line(int y, const char *text)
{
	move(y, 0);
	clrtoeol();
	addnstr(text, COLS);
}

static void draw(const struct screen *screen)
{
	const struct tw_top_kind *kind = screen->view->kind;
	const void *table = screen->view->table;
	const char *filter = screen->view->filter;
	uint32_t row_count = kind->row_count(table);
	char text[TW_TOP_LINE_BYTES], line[TW_TOP_LINE_BYTES + 128];
	snprintf(line, sizeof line, "%s; by %s%s%s", kind->head(table, text), kind->order_name(table),
		 screen->is_paused ? " (paused)" : "", screen->has_ended ? " (ended)" : "");
	put_line(0, line);
	attron(A_REVERSE);
	snprintf(line, sizeof line, "%-*s", COLS < (int)sizeof line ? COLS : (int)sizeof line - 1,
		 kind->titles(table, text));
	put_line(1, line);
	attroff(A_REVERSE);
	for (uint32_t i = 0; i < page(); i++) {
		uint32_t row = screen->first + i;
		bool is_active = row < row_count && kind->is_active(table, row);
		if (has_colors() && is_active)
			attron(COLOR_PAIR(1));
		put_line((int)i + 2, row < row_count ? kind->line(table, row, text) : "");
		attroff(COLOR_PAIR(1));
	}
	attron(A_BOLD);
	if (screen->is_typing || filter[0])
		snprintf(line, sizeof line, "/%s%s", filter, screen->is_typing ? "_" : "   (/ Esc: all)");
	else
		snprintf(line, sizeof line, "%s", kind->keys);
	put_line(LINES - 1, line);
	attroff(A_BOLD);
	refresh();
}

static void type(struct screen *screen, int key)
{
	char *filter = screen->view->filter;
	size_t bytes = strlen(filter);
	if (key == '\n' || key == '\r' || key == KEY_ENTER)
		screen->is_typing = false;
	else if (key == ESCAPE)
		screen->is_typing = false, filter[0] = 0;
	else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && bytes)
		filter[bytes - 1] = 0;
	else if (key >= ' ' && key < 256 && key != 127 && bytes + 1 < TW_TOP_FILTER_BYTES)
		filter[bytes] = (char)key, filter[bytes + 1] = 0;
	screen->first = 0;
}

static void scroll_by(struct screen *screen, int64_t lines)
{
	int64_t last = (int64_t)screen->view->kind->row_count(screen->view->table) - 1,
		first = (int64_t)screen->first + lines;
	screen->first = (uint32_t)(first < 0 ? 0 : first > last ? (last > 0 ? last : 0) : first);
}

/* False: the user has seen enough. */
static bool take_key(struct screen *screen, int key)
{
	const struct tw_top_kind *kind = screen->view->kind;
	void *table = screen->view->table;
	if (screen->is_typing) {
		type(screen, key);
		return true;
	}
	switch (key) {
	case 'q': return false;
	case 's': kind->next_order(table); break;
	case 't': kind->swap(table); break;
	case 'r': kind->reset(table); break;
	case 'p': screen->is_paused = !screen->is_paused; break;
	case '/':
		screen->is_typing = true;
		screen->view->filter[0] = 0;
		break;
	case KEY_UP: scroll_by(screen, -1); break;
	case KEY_DOWN: scroll_by(screen, 1); break;
	case KEY_PPAGE: scroll_by(screen, -(int64_t)page()); break;
	case KEY_NPAGE: scroll_by(screen, page()); break;
	case KEY_HOME: screen->first = 0; break;
	default: break;
	}
	return true;
}

/* All keys that have been pressed, and a new size. Returns 1, 0 to end, or an error. */
static int take_keys(struct screen *screen)
{
	int key, error;
	while ((key = getch()) != ERR)
		if (!take_key(screen, key))
			return 0;
	error = screen->view->kind->arrange(screen->view->table);
	return error ? error : 1;
}

/* The next round. Returns 1, 0 after the last that was asked for, or an error. */
static int take_round(struct screen *screen)
{
	const struct tw_top_view *view = screen->view;
	int taken = view->kind->take(view, screen->is_paused);
	screen->has_ended = taken == TW_TOP_ENDED;
	if (taken < 0)
		return taken;
	return !(taken == TW_TOP_ROUND && view->rounds && ++screen->rounds == view->rounds);
}

/* Until the user has seen enough, also after the end of the stream. */
static int loop(struct screen *screen)
{
	int result = 1;
	while (result > 0) {
		struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
				       {.fd = screen->has_ended ? -1 : screen->view->fd, .events = POLLIN}};
		draw(screen);
		int count = poll(fds, 2, -1);
		if (count > 0 && fds[1].revents)
			result = take_round(screen);
		/* A signal that interrupted it may have been that of a new size, which is a key as well. */
		if (result > 0 && (count < 0 || fds[0].revents))
			result = take_keys(screen);
		/* The terminal is gone. */
		if (count > 0 && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return 0;
	}
	return result;
}

int tw_top_screen(const struct tw_top_view *view)
{
	struct screen screen = {.view = view};
	setlocale(LC_CTYPE, "");
	SCREEN *terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return tw_top_lines(view);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	if (tw_colour_is_wanted(STDOUT_FILENO) && has_colors()) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_GREEN, -1);
	}
	int result = loop(&screen);
	endwin();
	delscreen(terminal);
	/* The terminal keeps what was seen last. */
	if (result >= 0)
		tw_top_put(view);
	return result < 0 ? result : screen.has_ended;
}
