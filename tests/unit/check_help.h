/* SPDX-License-Identifier: Apache-2.0 */
/* check_help.h - CHECK, for threads: cmocka's assertions leave a test by longjmp, which only its own thread may. */
#ifndef TW_TESTS_CHECK_HELP_H
#define TW_TESTS_CHECK_HELP_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(x)                                                                \
	do {                                                                    \
		if (!(x)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			abort();                                                \
		}                                                               \
	} while (0)

#endif
