/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that format a line on a signal stack of 8 KiB, below which nothing is mapped. */
#include "edge.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { STACK_BYTES = 8192, SIGNALS = 5000 };

static volatile long handled;
static char line[200];

static void on_signal(int number)
{
	edge_call(handled);
	handled += snprintf(line, sizeof line, "caught %ld at %p (%s)", handled, (void *)line, strerror(number)) > 0;
}

int main(void)
{
	char *memory = mmap(NULL, 4096 + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory + 4096, .ss_size = STACK_BYTES};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	if (memory == MAP_FAILED || mprotect(memory, 4096, PROT_NONE) || sigaltstack(&stack, NULL))
		return edge_end(0);
	sigaction(SIGUSR2, &action, NULL);
	for (int i = 0; i < SIGNALS; i++)
		kill(getpid(), SIGUSR2);
	return edge_end(handled == SIGNALS);
}
