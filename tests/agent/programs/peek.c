/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peek.c - can a child that has dropped its rights see what was recorded of its parent?
 *
 * The parent makes 2,000 calls of strtol() with a secret number as the base, which is recorded (--args=raw), and
 * forks.  The child drops its rights, if it has any, searches all shared memory for the number, and tries to open the
 * files of the rings below $TRACEWHEEL_SHM.  Prints what each found; 0: the parent finds it, the child does not,
 * neither in memory nor in files.
 */
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, PIECES_MAX = 256 };

static const char *volatile text = "7";
/* Nowhere stored in plain form. */
static uint32_t hidden, mask;

static unsigned count_in(const char *from, const char *to)
{
	unsigned found = 0;

	for (const char *at = from; at + 8 <= to; at += 8)
		found += *(const volatile uint64_t *)(const void *)at == (uint64_t)(hidden ^ mask);
	return found;
}

/* In shared mappings, and in those of a recording's files. */
static unsigned look(void)
{
	static struct {
		char *from, *to;
	} pieces[PIECES_MAX];
	unsigned count = 0, found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	while (maps && fgets(line, sizeof line, maps) && count < PIECES_MAX) {
		unsigned long from, to;
		char rights[8];

		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[0] == 'r' &&
		    (rights[3] == 's' || strstr(line, "/tracewheel-"))) {
			pieces[count].from = (char *)from;
			pieces[count++].to = (char *)to;
		}
	}
	if (maps)
		fclose(maps);
	for (unsigned i = 0; i < count; i++)
		found += count_in(pieces[i].from, pieces[i].to);
	return found;
}

static unsigned opens(const char *rings)
{
	static const char *const files[] = {"config", "control", "image-1", "image-2", "answers"};
	unsigned opened = 0;
	char path[512];

	for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
		int fd;

		snprintf(path, sizeof path, "%s/%s", rings, files[i]);
		fd = open(path, O_RDONLY);
		opened += fd >= 0;
	}
	snprintf(path, sizeof path, "/proc/%d/mem", (int)getppid());
	opened += open(path, O_RDONLY) >= 0;
	return opened;
}

/* While there are the rights to see it. */
static const char *find_rings(void)
{
	const char *shm = getenv("TRACEWHEEL_SHM");
	static glob_t found;
	char pattern[512];

	snprintf(pattern, sizeof pattern, "%s/tracewheel-*/*", shm ? shm : "/dev/shm");
	return glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathv[0] : NULL;
}

int main(void)
{
	const char *rings = find_rings();
	unsigned own, reached, found, opened = 0;
	int status = 0;
	pid_t child;

	if (getrandom(&hidden, sizeof hidden, 0) != sizeof hidden || getrandom(&mask, sizeof mask, 0) != sizeof mask)
		return 2;
	for (int i = 0; i < 2000; i++)
		strtol(text, NULL, (int)(hidden ^ mask));
	own = look();
	reached = rings ? opens(rings) : 0;
	printf("parent %u, opened %u\n", own, reached);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		int is_root = getuid() == 0;

		if (is_root &&
		    (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
			_exit(3);
		for (int i = 0; i < 100; i++)
			strtol(text, NULL, 10);
		found = look();
		if (is_root && rings)
			opened = opens(rings);
		printf("child %u, opened %u\n", found, opened);
		fflush(stdout);
		_exit(found || opened ? 4 : 0);
	}
	waitpid(child, &status, 0);
	/* The parent's ring may have been drained, but its contents are not wiped. */
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 && own && reached > 2 ? 0 : 1;
}
