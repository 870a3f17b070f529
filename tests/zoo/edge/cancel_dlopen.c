/* SPDX-License-Identifier: Apache-2.0 */
/* gcc: -pthread -ldl */
/*
 * A thread with a pending cancellation calls dlopen(), which is no cancellation point: it returns, and so does the next
 * call.
 */
#include "edge.h"
#include <dlfcn.h>
#include <pthread.h>

static volatile int out_of_it;

static void *run(void *arg)
{
	void *library;

	edge_call(1);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	library = dlopen("libm.so.6", RTLD_NOW);
	out_of_it++;
	if (library)
		dlclose(library);
	out_of_it++;
	pthread_testcancel();
	return arg;
}

int main(void)
{
	int is_right = 1;

	for (int i = 0; i < 5; i++) {
		pthread_t thread;
		void *result, *library;

		out_of_it = 0;
		pthread_create(&thread, NULL, run, NULL);
		pthread_join(thread, &result);
		is_right &= out_of_it == 2 && result == PTHREAD_CANCELED;
		library = dlopen("libresolv.so.2", RTLD_NOW);
		is_right &= library != NULL;
		dlclose(library);
		edge_calls(100);
	}
	return edge_end(is_right);
}
