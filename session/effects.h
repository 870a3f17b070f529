/* SPDX-License-Identifier: Apache-2.0 */
/* effects.h - actions of match specifications on processes. */
#ifndef TW_SESSION_EFFECTS_H
#define TW_SESSION_EFFECTS_H

#include "term/term.h"

/* {trace,Off,On} and similar: 1 changed, 0 not, -1 to raise.  @who none: the executing process. */
int tw_effect_trace(unsigned session, struct tw_term who, struct tw_term off, struct tw_term on);
/* {get_seq_token} and {set_seq_token,Component,Value} of the process that the thread runs. */
struct tw_term tw_effect_get_seq_token(struct tw_arena *arena);
int tw_effect_set_seq_token(struct tw_term component, struct tw_term value);
/* {silent,B}. */
void tw_effect_silence(unsigned session, bool is_silent);

#endif
