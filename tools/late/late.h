/* SPDX-License-Identifier: Apache-2.0 */
/* late.h - what `tracewheel why-late` writes: text, JSON, a page. */
#ifndef TW_TOOLS_LATE_H
#define TW_TOOLS_LATE_H

#include "views/folds/lates.h"
#include "tools/tool.h"

void tw_late_text(struct tw_out *out, const struct tw_lates *lates, const struct tw_capture *capture);
void tw_late_json(struct tw_out *out, const struct tw_lates *lates, const struct tw_capture *capture);
/* Returns false if the page is broken. */
bool tw_late_page(struct tw_out *out, const struct tw_lates *lates, const struct tw_capture *capture, const char *path);

#endif
