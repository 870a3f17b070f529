/* SPDX-License-Identifier: Apache-2.0 */
/* rcu.c - a program that uses liburcu itself, the same flavour as the agent: registers, reads, waits, on threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <urcu/urcu-memb.h>

static void allocate(void)
{
	void *volatile memory = malloc(16);

	free(memory);
}

static void *read_often(void *arg)
{
	urcu_memb_register_thread();
	for (int i = 0; i < 1000; i++) {
		urcu_memb_read_lock();
		allocate();
		urcu_memb_read_unlock();
	}
	urcu_memb_unregister_thread();
	allocate();
	return arg;
}

int main(void)
{
	pthread_t threads[3];

	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, read_often, NULL);
	read_often(NULL);
	for (int i = 0; i < 100; i++)
		urcu_memb_synchronize_rcu();
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	urcu_memb_synchronize_rcu();
	printf("rcu: done\n");
	return 0;
}
