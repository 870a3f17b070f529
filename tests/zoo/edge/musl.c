/* SPDX-License-Identifier: Apache-2.0 */
/* musl-gcc: */
/* A program linked with another C library. */
#include <stdio.h>

int main(void)
{
	puts("of another library");
	return 4;
}
