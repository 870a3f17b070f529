/* SPDX-License-Identifier: Apache-2.0 */
/* system_log.c - see system_log.h. */
#include "tools/attach/system_log.h"
#include "tools/common/proc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#define KEPT "TRACEWHEEL_BEGUN_BY"

/* As the kernel has noted it at the login, whatever user the command runs as since. */
static long login_user(void)
{
	char text[32];
	unsigned long user =
		tw_proc_read(getpid(), "loginuid", text, sizeof text) > 0 ? strtoul(text, NULL, 10) : UINT32_MAX;
	return user < UINT32_MAX ? (long)user : -1;
}

static long begun_by(void)
{
	const char *kept = getenv(KEPT);
	long user = login_user();
	return user >= 0 ? user : kept ? atol(kept) : (long)getuid();
}

void tw_system_log(const char *verb, int process, const char *why)
{
	char name[64] = "?";
	tw_proc_read(process, "comm", name, sizeof name);
	name[strcspn(name, "\n")] = 0;
	openlog("tracewheel", LOG_PID, LOG_AUTHPRIV);
	syslog(LOG_NOTICE, "%s process %d (%s) of user %ld, by user %ld%s%s", verb, process, name,
	       tw_proc_status(process, "Uid", 1), begun_by(), why ? ": " : "", why ? why : "");
	closelog();
}

void tw_system_log_keep_user(void)
{
	char text[32];
	snprintf(text, sizeof text, "%ld", begun_by());
	setenv(KEPT, text, 1);
}
