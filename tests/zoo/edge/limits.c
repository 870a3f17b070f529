/* SPDX-License-Identifier: Apache-2.0 */
/* A limit of 1 GiB of address space, most of it requested; then all memory locked, and little of it used. */
#include "edge.h"
#include "locked.h"
#include <string.h>
#include <sys/resource.h>

int main(void)
{
	struct rlimit limit = {1 << 30, 1 << 30};
	char *most;
	int is_right;

	edge_calls(1000);
	is_right = setrlimit(RLIMIT_AS, &limit) == 0;
	most = malloc(700 << 20);
	is_right &= most != NULL;
	edge_calls(1000);
	free(most);
	is_right &= mlockall(MCL_CURRENT) == 0;
	edge_calls(1000);
	/* A ring or two, and the program's own mappings. */
	if (locked_kib() > 64 << 10) {
		printf("locked too much\n");
		is_right = 0;
	}
	munlockall();
	return edge_end(is_right);
}
