/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pager.h - standard output on a terminal goes through a pager, as git's does.
 *
 * The pager is $TRACEWHEEL_PAGER, else $PAGER, else less if it is there; empty or `cat`: none. Without an environment of
 * its own, less shows colours and ends by itself where the output fits the screen (LESS=FRX). The width and the colours
 * are those of the terminal.
 *
 * Threads  one.
 */
#ifndef TW_TOOLS_PAGER_H
#define TW_TOOLS_PAGER_H

/* No pager is started later: --no-pager, or output that is shown while it arrives. */
void tw_pager_forbid(void);
/*
 * Starts the pager if standard output is a terminal; standard error goes there too if it is one. Called when the options are
 * known to be right, before anything is written. When the command ends, by a signal too, it waits for the pager; its exit code stays its own.
 */
void tw_pager_start(void);

#endif
