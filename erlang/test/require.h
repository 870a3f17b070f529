/* SPDX-License-Identifier: Apache-2.0 */
/* require.h - main() of a test ends with 1, and a line that says why, where a condition does not hold. */
#ifndef TW_ERLANG_TEST_REQUIRE_H
#define TW_ERLANG_TEST_REQUIRE_H

#include <stdio.h>

#define REQUIRE(condition)                                             \
	do {                                                           \
		if (!(condition)) {                                    \
			printf("line %d: %s\n", __LINE__, #condition); \
			return 1;                                      \
		}                                                      \
	} while (0)

#endif
