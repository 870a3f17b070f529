/* SPDX-License-Identifier: Apache-2.0 */
/* seq.h - what `tracewheel seq` writes: text, JSON, Mermaid, Erlang terms, a page. */
#ifndef TW_TOOLS_SEQ_H
#define TW_TOOLS_SEQ_H

#include "views/folds/seq_trace.h"
#include "tools/tool.h"

void tw_seq_text(struct tw_out *out, const struct tw_seq_trace *trace);
void tw_seq_list(struct tw_out *out, const struct tw_requests *requests, const struct tw_capture *capture);
void tw_seq_json(struct tw_out *out, const struct tw_seq_trace *trace);
void tw_seq_list_json(struct tw_out *out, const struct tw_requests *requests);
void tw_seq_mermaid(struct tw_out *out, const struct tw_seq_trace *trace);
void tw_seq_erlang(struct tw_out *out, const struct tw_seq_trace *trace);
/* Returns false if the page is broken. */
bool tw_seq_page(struct tw_out *out, const struct tw_seq_trace *trace, const char *path);

#endif
