/* SPDX-License-Identifier: Apache-2.0 */
/* poller.h - the thread that waits: for sockets (port.c) and for time (timer.c). */
#ifndef ACTORS_POLLER_H
#define ACTORS_POLLER_H

#include "run.h"

struct port;

struct timer {
	int64_t at_ms;
	uint64_t number;
	struct value to;
	struct signal *signal;
};

struct poller {
	struct runtime *runtime;
	pthread_t thread;
	int epoll, wake;
	pthread_mutex_t lock; /* for all fields below */
	bool is_stopping;
	struct timer *timers; /* a heap: the first is the next */
	size_t timer_count, timer_capacity;
	struct port *ports;
};

int64_t now_ms(void);
/* Sends due timers; returns the milliseconds until the next, -1: none. */
int timers_run(struct poller *poller);
void timers_fini(struct poller *poller);

/* Something can be read or written; the port is looked up by its number. */
void port_ready(struct poller *poller, uint64_t number, uint32_t events);
void ports_fini(struct poller *poller);

void poller_wake(struct poller *poller);

#endif
