/* SPDX-License-Identifier: Apache-2.0 */
/* lock_calls.c - functions by name. */
#include "views/folds/lock_calls.h"
#include "views/folds/locks.h"

#include <string.h>

static const struct {
	const char *name;
	uint8_t kind, does;
} functions[] = {
	{"pthread_mutex_lock", TW_LOCK_MUTEX, TW_LOCK_DOES_LOCK},
	{"pthread_mutex_trylock", TW_LOCK_MUTEX, TW_LOCK_DOES_TRY},
	{"pthread_mutex_timedlock", TW_LOCK_MUTEX, TW_LOCK_DOES_LOCK},
	{"pthread_mutex_clocklock", TW_LOCK_MUTEX, TW_LOCK_DOES_LOCK},
	{"pthread_mutex_unlock", TW_LOCK_MUTEX, TW_LOCK_DOES_UNLOCK},
	{"pthread_mutex_init", TW_LOCK_MUTEX, TW_LOCK_DOES_INIT},
	{"pthread_mutex_destroy", TW_LOCK_MUTEX, TW_LOCK_DOES_DESTROY},
	{"pthread_rwlock_wrlock", TW_LOCK_RWLOCK, TW_LOCK_DOES_LOCK},
	{"pthread_rwlock_trywrlock", TW_LOCK_RWLOCK, TW_LOCK_DOES_TRY},
	{"pthread_rwlock_timedwrlock", TW_LOCK_RWLOCK, TW_LOCK_DOES_LOCK},
	{"pthread_rwlock_clockwrlock", TW_LOCK_RWLOCK, TW_LOCK_DOES_LOCK},
	{"pthread_rwlock_rdlock", TW_LOCK_RWLOCK, TW_LOCK_DOES_READ},
	{"pthread_rwlock_tryrdlock", TW_LOCK_RWLOCK, TW_LOCK_DOES_TRY_READ},
	{"pthread_rwlock_timedrdlock", TW_LOCK_RWLOCK, TW_LOCK_DOES_READ},
	{"pthread_rwlock_clockrdlock", TW_LOCK_RWLOCK, TW_LOCK_DOES_READ},
	{"pthread_rwlock_unlock", TW_LOCK_RWLOCK, TW_LOCK_DOES_UNLOCK},
	{"pthread_rwlock_init", TW_LOCK_RWLOCK, TW_LOCK_DOES_INIT},
	{"pthread_rwlock_destroy", TW_LOCK_RWLOCK, TW_LOCK_DOES_DESTROY},
	{"pthread_cond_wait", TW_LOCK_CONDITION, TW_LOCK_DOES_WAIT},
	{"pthread_cond_timedwait", TW_LOCK_CONDITION, TW_LOCK_DOES_WAIT},
	{"pthread_cond_clockwait", TW_LOCK_CONDITION, TW_LOCK_DOES_WAIT},
	{"pthread_cond_signal", TW_LOCK_CONDITION, TW_LOCK_DOES_SIGNAL},
	{"pthread_cond_broadcast", TW_LOCK_CONDITION, TW_LOCK_DOES_SIGNAL},
	{"pthread_cond_init", TW_LOCK_CONDITION, TW_LOCK_DOES_INIT},
	{"pthread_cond_destroy", TW_LOCK_CONDITION, TW_LOCK_DOES_DESTROY},
};

uint8_t tw_lock_place_does(const struct tw_capture_place *place)
{
	for (size_t i = 0; place->function && place->function->name && i < sizeof functions / sizeof *functions; i++) {
		if (strcmp(place->function->name, functions[i].name) == 0)
			return (uint8_t)(functions[i].kind << TW_LOCK_KIND_SHIFT | functions[i].does);
	}
	return TW_LOCK_DOES_NOTHING;
}
