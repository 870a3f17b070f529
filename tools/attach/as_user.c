/* SPDX-License-Identifier: Apache-2.0 */
/* as_user.c - executes the command again with other rights: as_user.h. */
#include "tools/attach/as_user.h"

#include "tools/attach/system_log.h"
#include "tools/common/proc.h"
#include "tools/tool.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments;

static const int capabilities[] = {CAP_SYS_PTRACE, CAP_DAC_OVERRIDE};
#define CAPABILITIES (sizeof capabilities / sizeof *capabilities)

/* Permitted, effective, and kept by execve(). */
static bool set_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	for (size_t i = 0; i < CAPABILITIES; i++) {
		struct __user_cap_data_struct *words = &data[CAP_TO_INDEX(capabilities[i])];
		words->permitted |= CAP_TO_MASK(capabilities[i]);
		words->effective = words->inheritable = words->permitted;
	}
	if (syscall(SYS_capset, &header, data))
		return false;
	for (size_t i = 0; i < CAPABILITIES; i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capabilities[i], 0, 0))
			return false;
	return true;
}

static bool become(uid_t user, gid_t group)
{
	return !prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) && !setgroups(0, NULL) && !setresgid(group, group, group) &&
	       !setresuid(user, user, user) && set_capabilities();
}

/* A step that cannot be undone is tried by a child. */
static bool may_become(uid_t user, gid_t group)
{
	int status = 1;
	pid_t child = fork();
	if (child == 0)
		_exit(!become(user, group));
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool is_quiet(void)
{
	for (char *const *word = arguments; *word; word++)
		if (strncmp(*word, "-q", 2) == 0 || strcmp(*word, "--quiet") == 0)
			return true;
	return false;
}

void tw_as_user_arguments(char **argv)
{
	arguments = argv;
}

void tw_as_user_of(int process)
{
	long user = tw_proc_status(process, "Uid", 1), group = tw_proc_status(process, "Gid", 1);
	if (!arguments || geteuid() != 0 || user <= 0 || group < 0 || !may_become((uid_t)user, (gid_t)group))
		return;
	const struct passwd *entry = getpwuid((uid_t)user);
	if (!is_quiet() && entry)
		tw_say("process %d belongs to user %s: this command goes on as that user.", process, entry->pw_name);
	else if (!is_quiet())
		tw_say("process %d belongs to user %ld: this command goes on as that user.", process, user);
	tw_system_log_keep_user();
	unsetenv("HOME");
	unsetenv("XDG_CACHE_HOME");
	if (become((uid_t)user, (gid_t)group))
		execv("/proc/self/exe", arguments);
	tw_say("this command cannot go on as the user of process %d.", process);
	exit(TW_EXIT_NOT_STARTED);
}
