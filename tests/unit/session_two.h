/* SPDX-License-Identifier: Apache-2.0 */
/* session_two.h - two sessions and two processes, made for each case. */
#ifndef TW_TESTS_SESSION_TWO_H
#define TW_TESTS_SESSION_TWO_H

#include "session_events.h"

static struct bed one, two;
static struct tw_process *p, *q;

static int begin(void **state)
{
	open_bed(&one, "one");
	open_bed(&two, "two");
	tw_scheduler_declare();
	p = new_process("p");
	q = new_process("q");
	return 0;
}

/* A case that ends p sets it to NULL. */
static int end(void **state)
{
	if (p)
		tw_process_exit(p);
	tw_process_exit(q);
	close_bed(&two);
	close_bed(&one);
	forget_names();
	return 0;
}

#endif
