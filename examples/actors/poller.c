/* SPDX-License-Identifier: Apache-2.0 */
/* poller.c - one thread, asleep in epoll until a socket or a timer is due. */
#include "poller.h"

#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS 64

void poller_wake(struct poller *poller)
{
	uint64_t one = 1;
	while (write(poller->wake, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static bool is_stopping(struct poller *poller)
{
	pthread_mutex_lock(&poller->lock);
	bool is = poller->is_stopping;
	pthread_mutex_unlock(&poller->lock);
	return is;
}

static void *poll_all(void *context)
{
	struct poller *poller = context;
	struct epoll_event events[EVENTS];
	trace_scheduler();
	while (!is_stopping(poller)) {
		int count = epoll_wait(poller->epoll, events, EVENTS, timers_run(poller));
		for (int i = 0; i < count; i++) {
			uint64_t number = events[i].data.u64;
			if (number)
				port_ready(poller, number, events[i].events);
			else if (read(poller->wake, &number, sizeof number) < 0 && errno != EAGAIN)
				return NULL;
		}
	}
	return NULL;
}

int poller_start(struct runtime *runtime)
{
	struct poller *poller = calloc(1, sizeof *poller);
	if (!poller)
		return 0;
	poller->runtime = runtime;
	poller->epoll = epoll_create1(EPOLL_CLOEXEC);
	poller->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&poller->lock, NULL);
	struct epoll_event event = {.events = EPOLLIN};
	if (poller->epoll >= 0 && poller->wake >= 0 &&
	    epoll_ctl(poller->epoll, EPOLL_CTL_ADD, poller->wake, &event) == 0 &&
	    pthread_create(&poller->thread, NULL, poll_all, poller) == 0) {
		runtime->poller = poller;
		return 1;
	}
	close(poller->epoll);
	close(poller->wake);
	free(poller);
	return 0;
}

void poller_stop(struct runtime *runtime)
{
	struct poller *poller = runtime->poller;
	pthread_mutex_lock(&poller->lock);
	poller->is_stopping = true;
	pthread_mutex_unlock(&poller->lock);
	poller_wake(poller);
	pthread_join(poller->thread, NULL);
	timers_fini(poller);
	ports_fini(poller);
	close(poller->epoll);
	close(poller->wake);
	pthread_mutex_destroy(&poller->lock);
	free(poller);
}
