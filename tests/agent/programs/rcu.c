/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rcu.c - a program that uses liburcu itself: registers, reads, waits, on threads.
 *
 *	rcu jump	a timer's handler jumps back into a read section, over and over, also out of traced calls
 *	rcu open FILE	opens a plugin inside a read section and calls it, there and afterwards
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <urcu/urcu-memb.h>

static sigjmp_buf back;
static volatile sig_atomic_t jumps;

static void jump_back(int number)
{
	jumps++;
	siglongjmp(back, 1);
}

static int jump_in_section(void)
{
	static const char *volatile seven = "7";
	const struct itimerval often = {{0, 300}, {0, 300}}, never = {0};
	struct sigaction action = {.sa_handler = jump_back};
	volatile long sum = 0;

	sigaction(SIGALRM, &action, NULL);
	urcu_memb_register_thread();
	urcu_memb_read_lock();
	setitimer(ITIMER_REAL, &often, NULL);
	sigsetjmp(back, 1);
	while (jumps < 300) {
		sum += strtol(seven, NULL, 10);
		if (!urcu_memb_read_ongoing()) {
			printf("rcu: the section is gone\n");
			return 1;
		}
	}
	setitimer(ITIMER_REAL, &never, NULL);
	urcu_memb_read_unlock();
	urcu_memb_unregister_thread();
	printf("rcu: the section stayed\n");
	return 0;
}

static int open_in_section(const char *file)
{
	int (*work)(int);
	void *handle;
	int sum;

	urcu_memb_register_thread();
	urcu_memb_read_lock();
	handle = dlopen(file, RTLD_NOW);
	work = handle ? (int (*)(int))dlsym(handle, "plugin_work") : NULL;
	sum = work ? work(5) : 0;
	urcu_memb_read_unlock();
	sum += work ? work(5) : 0;
	urcu_memb_unregister_thread();
	printf("rcu: %d\n", sum);
	return 0;
}

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

int main(int argc, char **argv)
{
	pthread_t threads[3];

	if (argc > 2)
		return open_in_section(argv[2]);
	if (argc > 1)
		return jump_in_section();

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
