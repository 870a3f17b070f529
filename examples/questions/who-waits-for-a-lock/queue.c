/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads share a table; one of them holds its lock while it writes a log. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static long table;

__attribute__((noinline)) static void write_log(void)
{
	usleep(20000);
}

__attribute__((noinline)) void *collect(void *argument)
{
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&table_lock);
		table++;
		write_log();
		pthread_mutex_unlock(&table_lock);
		usleep(1000);
	}
	return argument;
}

__attribute__((noinline)) void serve(void)
{
	pthread_mutex_lock(&table_lock);
	table++;
	pthread_mutex_unlock(&table_lock);
}

int main(void)
{
	pthread_t collector;
	pthread_create(&collector, NULL, collect, NULL);
	pthread_setname_np(collector, "collector");
	for (int i = 0; i < 20; i++) {
		usleep(3000);
		serve();
	}
	return pthread_join(collector, NULL);
}
