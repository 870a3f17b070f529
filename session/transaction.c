/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.c - several changes that become visible at one moment: the calls. */
#include "session/change.h"
#include "session/session.h"
#include "session/watched.h"

TW_API int tw_trace_begin(void)
{
	return tw_transaction_begin();
}

TW_API int tw_trace_commit(void)
{
	int result = tw_transaction_commit();

	if (result >= 0) {
		tw_sessions_clear_dropped();
		tw_watched_follow();
	}
	return result;
}

TW_API int tw_trace_abort(void)
{
	return tw_transaction_abort();
}
