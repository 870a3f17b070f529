/* SPDX-License-Identifier: Apache-2.0 */
/* report_ports.c - the table of ports, for people and as JSON. */
#include "views/names/descriptors.h"
#include "tools/report/report.h"

#include <stdio.h>
#include <string.h>

static const char *figure(char text[TW_FIGURE_BYTES], uint64_t bytes, bool is_partial)
{
	return bytes ? tw_figure_bytes(text, bytes) : is_partial ? "?" : "-";
}

static const char *mark(uint64_t bytes, bool is_partial)
{
	return bytes && is_partial ? "+" : " ";
}

static void put_row(const struct tw_screen *screen, const struct tw_native_port *row)
{
	char in[TW_FIGURE_BYTES], out[TW_FIGURE_BYTES], time[TW_FIGURE_BYTES], calls[TW_FIGURE_BYTES];
	char name[TW_DESCRIPTOR_TEXT_BYTES + 400];
	snprintf(name, sizeof name,
		 row->opener && row->caller	  ? "%s (%s by %s)"
		 : row->opener			  ? "%s (%s)"
		 : strcmp(row->kind, "inherited") ? "%s (inherited)"
						  : "%s",
		 row->what, row->opener, row->caller);
	tw_out_format(screen->out, "%7llu %5llu %9s %10s%s %10s%s %8s  ", (unsigned long long)row->opened,
		      (unsigned long long)row->open, tw_figure_count(calls, row->calls),
		      figure(in, row->in_bytes, row->is_in_partial), mark(row->in_bytes, row->is_in_partial),
		      figure(out, row->out_bytes, row->is_out_partial), mark(row->out_bytes, row->is_out_partial),
		      tw_figure_duration(time, row->call_ns));
	tw_out_clean(screen->out, name, strlen(name));
	tw_out_text(screen->out, "\n");
}

void tw_native_ports_screen(const struct tw_screen *screen, const struct tw_native_ports *ports, size_t top)
{
	char figure[TW_FIGURE_BYTES];
	size_t shown = top && top < ports->count ? top : ports->count;
	bool is_partial = false;
	if (!ports->is_recorded) {
		tw_out_text(screen->out,
			    "\nNo calls with descriptors were recorded: `tracewheel record --ports` does.\n");
		return;
	}
	tw_out_format(screen->out, "\n%sports%s\n%7s %5s %9s %11s %11s %9s  %s\n", tw_screen_bold(screen),
		      tw_screen_plain(screen), "opened", "open", "calls", "in ", "out ", "in calls",
		      "what (opened how)");
	for (size_t i = 0; i < shown; i++) {
		put_row(screen, &ports->rows[i]);
		is_partial |= ports->rows[i].is_in_partial || ports->rows[i].is_out_partial;
	}
	if (shown < ports->count)
		tw_out_format(screen->out, "        and %s more (--top 0 shows all)\n",
			      tw_figure_count(figure, ports->count - shown));
	tw_out_text(screen->out,
		    "open: never closed by a call that was seen. Calls that libc makes inside itself, io_uring and\n"
		    "bare system calls are not all seen.\n");
	if (is_partial)
		tw_out_text(
			screen->out,
			"+ and ?: at least, and unknown; fputs, fgets, scanf, recvmmsg and sendmmsg do not return sizes,\n"
			"and calls that were left by longjmp do not return.\n");
	for (unsigned i = 0; i < ports->indirect_count; i++) {
		tw_out_text(screen->out,
			    i ? ", "
			      : "Calls through pointers are not seen; the ports of these modules are at least: ");
		tw_out_clean(screen->out, ports->indirect[i], strlen(ports->indirect[i]));
		tw_out_text(screen->out, i + 1 == ports->indirect_count ? ".\n" : "");
	}
	if (ports->unknown)
		tw_out_format(screen->out, "Calls of descriptors that were not seen to be opened: %s.\n",
			      tw_figure_count(figure, ports->unknown));
	if (ports->unfollowed)
		tw_out_format(screen->out,
			      "Calls not followed to their returns: %s; longjmp left them, or half was lost.\n",
			      tw_figure_count(figure, ports->unfollowed));
	if (ports->gaps)
		tw_out_format(
			screen->out,
			"Gaps of lost events: %s. Ports that were open in one are lower bounds, and calls behind it\n"
			"may stand at a port that had the number before.\n",
			tw_figure_count(figure, ports->gaps));
}

void tw_native_ports_json(struct tw_json *json, const struct tw_native_ports *ports, size_t top)
{
	size_t shown = top && top < ports->count ? top : ports->count;
	tw_json_u64(json, "port_count", ports->count);
	tw_json_u64(json, "calls_of_unseen_descriptors", ports->unknown);
	tw_json_u64(json, "unfollowed_calls", ports->unfollowed);
	tw_json_u64(json, "gaps", ports->gaps);
	tw_json_open(json, "modules_with_pointers", '[');
	for (unsigned i = 0; i < ports->indirect_count; i++)
		tw_json_string(json, NULL, ports->indirect[i]);
	tw_json_close(json, ']');
	tw_json_open(json, "ports", '[');
	for (size_t i = 0; i < shown; i++) {
		const struct tw_native_port *row = &ports->rows[i];
		tw_json_open(json, NULL, '{');
		tw_json_string(json, "kind", row->kind);
		tw_json_string(json, "what", row->what);
		if (row->opener)
			tw_json_string(json, "opener", row->opener);
		if (row->caller)
			tw_json_string(json, "caller", row->caller);
		tw_json_u64(json, "opened", row->opened);
		tw_json_u64(json, "open", row->open);
		tw_json_u64(json, "calls", row->calls);
		tw_json_u64(json, "failed", row->failed);
		tw_json_u64(json, "in_bytes", row->in_bytes);
		tw_json_u64(json, "out_bytes", row->out_bytes);
		tw_json_seconds(json, "call_seconds", row->call_ns);
		tw_json_bool(json, "partial", row->is_in_partial || row->is_out_partial);
		tw_json_close(json, '}');
	}
	tw_json_close(json, ']');
}
