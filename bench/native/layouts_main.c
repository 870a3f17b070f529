/* SPDX-License-Identifier: Apache-2.0 */
/* layouts_main.c - for layouts.py: each build of SQLite in turn, in random order; prints "ORDER TICKS TICKS ...". */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	unsigned long ticks[FORMS];
	unsigned which[FORMS];

	while (time(NULL) < end) {
		for (unsigned order = 0; order < ORDERS; order++) {
			for (unsigned i = 0; i < FORMS; i++)
				which[i] = i;
			for (unsigned i = FORMS - 1; i > 0; i--) {
				unsigned j = (unsigned)rand() % (i + 1), kept = which[i];

				which[i] = which[j];
				which[j] = kept;
			}
			for (unsigned i = 0; i < FORMS; i++) {
				turns[order][which[i]]();
				ticks[which[i]] = turns[order][which[i]]();
			}
			printf("%u", order);
			for (unsigned i = 0; i < FORMS; i++)
				printf(" %lu", ticks[i]);
			puts("");
		}
	}
	return 0;
}
