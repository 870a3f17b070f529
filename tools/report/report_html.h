/* SPDX-License-Identifier: Apache-2.0 */
/* report_html.h - `report --html`: the flame graph's page, and below it all else that a report has. */
#ifndef TW_TOOLS_REPORT_HTML_H
#define TW_TOOLS_REPORT_HTML_H

#include "tools/common/select.h"
#include "tools/report/report.h"

struct tw_report_html {
	const struct tw_selection *selection;
	struct tw_capture *capture;
	const struct tw_capture_filter *filter;
	const struct tw_calltree *tree;	     /* made with parts */
	const struct tw_native_ports *ports; /* NULL: none were recorded */
	const char *path;
	/* Writes the object of `report --json`. */
	void (*put_report)(void *context);
	void *context;
};

/* Reads the capture once more for locks, if it has any, and for the slowest calls. Returns 0 or an error. */
int tw_report_html(struct tw_out *out, const struct tw_report_html *html);

#endif
