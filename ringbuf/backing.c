/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backing.c - files on tmpfs, created and opened without trusting other users.
 *
 * Pages of sparse files are allocated (MADV_POPULATE_WRITE) before anything is written to them: on a full tmpfs a store
 * into a hole would kill the program by SIGBUS.
 */
#include "ringbuf/backing.h"
#include "base/error.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * TRACEWHEEL_SHM selects another tmpfs (or, slower, any directory): a small one for tests, a large one for long
 * captures.
 */
static const char *tmpfs_root(void)
{
	const char *root = secure_getenv("TRACEWHEEL_SHM");

	return root && root[0] == '/' ? root : "/dev/shm";
}

int tw_backing_check_directory(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return tw_error_from_errno(errno);
	if (!S_ISDIR(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		return TW_EPERM;
	return 0;
}

/*
 * The user's directory is tracewheel-UID or, if another user has taken that name, tracewheel-UID-NUMBER. The first few
 * numbers are tried in order, so that a recording finds the directory of the previous one.  The last ones are random:
 * another user cannot guess and take them first.
 */
#define NAMES_IN_ORDER 4
#define NAMES_MAX      8

static int base_path(unsigned attempt, char *path, size_t path_bytes)
{
	uint64_t number = attempt;
	int used = snprintf(path, path_bytes, "%s/tracewheel-%u", tmpfs_root(), (unsigned)geteuid());

	if (attempt >= NAMES_IN_ORDER && getrandom(&number, sizeof number, 0) != sizeof number)
		return tw_error_from_errno(errno);
	if (attempt && used > 0 && (size_t)used < path_bytes)
		used += snprintf(path + used, path_bytes - (size_t)used, "-%llu", (unsigned long long)number);
	return used < 0 || (size_t)used >= path_bytes ? TW_EBADARG : used;
}

/* Stricter than tw_backing_check_directory(): root's directory may be trusted, but not written to. */
static int check_base(const char *path)
{
	struct stat st;
	int error = tw_backing_check_directory(path);

	return error ? error : lstat(path, &st) == 0 && st.st_uid == geteuid() ? 0 : TW_EPERM;
}

int tw_backing_make_directory(const char *name, char *path, size_t path_bytes)
{
	int error = TW_EPERM, used = 0;

	for (unsigned attempt = 0; error == TW_EPERM && attempt < NAMES_MAX; attempt++) {
		used = base_path(attempt, path, path_bytes);
		if (used < 0)
			return used;
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return tw_error_from_errno(errno);
		error = check_base(path);
	}
	if (error)
		return error;
	used += snprintf(path + used, path_bytes - (size_t)used, "/%s", name);
	if ((size_t)used >= path_bytes)
		return TW_EBADARG;
	return mkdir(path, 0700) < 0 ? tw_error_from_errno(errno) : 0;
}

static void each_entry(const char *path, void (*fn)(int directory, const char *name, void *arg), void *arg)
{
	/* The root belongs to the system and may be a link; directories below it may not. */
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (strcmp(path, tmpfs_root()) == 0 ? 0 : O_NOFOLLOW));

	if (fd < 0)
		return;
	tw_sys_each_name(fd, fn, arg);
	close(fd);
}

struct each_directory {
	const char *base;
	void (*fn)(const char *path, void *arg);
	void *arg;
};

static void tell_directory(int directory, const char *name, void *arg)
{
	const struct each_directory *each = arg;
	char path[512];
	int used = snprintf(path, sizeof path, "%s/%s", each->base, name);

	if (used > 0 && (size_t)used < sizeof path && !tw_backing_check_directory(path))
		each->fn(path, each->arg);
}

struct each_base {
	char name[32];
	void (*fn)(const char *path, void *arg);
	void *arg;
};

static void visit_base(int directory, const char *name, void *arg)
{
	const struct each_base *each = arg;
	size_t bytes = strlen(each->name);
	char path[256];
	int used;

	if (strncmp(name, each->name, bytes) != 0 || (name[bytes] && name[bytes] != '-'))
		return;
	used = snprintf(path, sizeof path, "%s/%s", tmpfs_root(), name);
	if (used > 0 && (size_t)used < sizeof path && !check_base(path))
		each_entry(path, tell_directory, &(struct each_directory){path, each->fn, each->arg});
}

void tw_backing_each_directory(void (*fn)(const char *path, void *arg), void *arg)
{
	struct each_base each = {.fn = fn, .arg = arg};

	snprintf(each.name, sizeof each.name, "tracewheel-%u", (unsigned)geteuid());
	each_entry(tmpfs_root(), visit_base, &each);
}

static int file_path(const char *directory, const char *file, char *out, size_t bytes)
{
	int used = snprintf(out, bytes, "%s/%s", directory, file);

	return used < 0 || (size_t)used >= bytes ? TW_EBADARG : 0;
}

/* Exceeding RLIMIT_FSIZE would kill the program by a signal: the limit is raised for the moment, as far as allowed. */
static int set_size(int fd, uint64_t bytes)
{
	struct rlimit before, raised;
	bool is_low = getrlimit(RLIMIT_FSIZE, &before) == 0 && before.rlim_cur < bytes;
	int error;

	if (is_low && before.rlim_max < bytes)
		return TW_EPERM;
	if (is_low) {
		raised = (struct rlimit){before.rlim_max, before.rlim_max};
		if (setrlimit(RLIMIT_FSIZE, &raised) < 0)
			return TW_EPERM;
	}
	error = ftruncate(fd, (off_t)bytes) < 0 ? tw_error_from_errno(errno) : 0;
	if (is_low)
		setrlimit(RLIMIT_FSIZE, &before);
	return error;
}

int tw_backing_create_pieces(const char *directory, const char *file, uint64_t file_bytes,
			     struct tw_backing_piece *pieces, unsigned count)
{
	char path[512];
	unsigned done = 0;
	int fd, error = file_path(directory, file, path, sizeof path);

	if (error)
		return error;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return tw_error_from_errno(errno);
	/* The program's umask may have removed the owner's permissions too. */
	error = fchmod(fd, 0600) < 0 ? tw_error_from_errno(errno) : set_size(fd, file_bytes);
	for (; !error && done < count; done++) {
		void *at = pieces[done].mapped;
		void *p = mmap(at, pieces[done].bytes, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0), fd, (off_t)pieces[done].offset);

		if (p == MAP_FAILED) {
			error = tw_error_from_errno(errno);
			break;
		}
		pieces[done].mapped = p;
	}
	close(fd);
	if (!error)
		return 0;
	while (done--)
		munmap(pieces[done].mapped, pieces[done].bytes);
	unlink(path);
	return error;
}

int tw_backing_create(const char *directory, const char *file, size_t bytes, void **out)
{
	struct tw_backing_piece whole = {0, bytes, NULL};
	int error = tw_backing_create_pieces(directory, file, bytes, &whole, 1);

	if (!error)
		*out = whole.mapped;
	return error;
}

static int open_checked(const char *directory, const char *file, int flags, struct stat *st)
{
	char path[512];
	int fd, error = file_path(directory, file, path, sizeof path);

	if (error)
		return error;
	fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return tw_error_from_errno(errno);
	if (fstat(fd, st) < 0)
		error = tw_error_from_errno(errno);
	else if (!S_ISREG(st->st_mode) || (st->st_uid != geteuid() && st->st_uid != 0) || (st->st_mode & 022))
		error = TW_EPERM;
	else if (st->st_size <= 0)
		error = TW_EFORMAT;
	if (!error)
		return fd;
	close(fd);
	return error;
}

int tw_backing_open(const char *directory, const char *file, bool is_private, void **out, size_t *bytes)
{
	struct stat st;
	int fd = open_checked(directory, file, O_RDWR, &st), error = 0;
	void *p;

	if (fd < 0)
		return fd;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
		 (is_private ? MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE, fd, 0);
	if (p == MAP_FAILED) {
		error = tw_error_from_errno(errno);
	} else {
		*out = p;
		*bytes = (size_t)st.st_size;
	}
	close(fd);
	return error;
}

static int write_all(int fd, const void *from, size_t bytes)
{
	int result = tw_sys_write_all(fd, from, bytes);

	return result ? tw_error_from_errno(-result) : 0;
}

int tw_backing_write(const char *directory, const char *file, const void *head, size_t head_bytes, const char *text,
		     size_t text_bytes)
{
	char path[512];
	int fd, error = file_path(directory, file, path, sizeof path);

	if (error)
		return error;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return tw_error_from_errno(errno);
	error = write_all(fd, head, head_bytes);
	if (!error)
		error = write_all(fd, text, text_bytes);
	close(fd);
	return error;
}

static int read_all(int fd, void *to, size_t bytes)
{
	char *at = to;

	while (bytes) {
		ssize_t n = read(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return TW_EFORMAT;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int tw_backing_read(const char *directory, const char *file, void *head, size_t head_bytes, char **text,
		    size_t text_bytes_max)
{
	struct stat st;
	int fd = open_checked(directory, file, O_RDONLY, &st), error = 0;
	size_t text_bytes;

	if (fd < 0)
		return fd;
	if ((uint64_t)st.st_size < head_bytes || (uint64_t)st.st_size > head_bytes + text_bytes_max) {
		close(fd);
		return TW_EFORMAT;
	}
	text_bytes = (size_t)st.st_size - head_bytes;
	*text = malloc(text_bytes + 1);
	error = *text ? read_all(fd, head, head_bytes) : TW_ENOMEM;
	if (!error)
		error = read_all(fd, *text, text_bytes);
	close(fd);
	if (error) {
		free(*text);
		*text = NULL;
	} else {
		(*text)[text_bytes] = '\0';
	}
	return error;
}

static int map_zeros(size_t bytes, int flags, void **out)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return tw_error_from_errno(errno);
	*out = p;
	return 0;
}

int tw_backing_anonymous(size_t bytes, void **out)
{
	return map_zeros(bytes, MAP_SHARED, out);
}

int tw_backing_own(size_t bytes, void **out)
{
	return map_zeros(bytes, MAP_PRIVATE, out);
}

void tw_backing_unmap(void *address, size_t bytes)
{
	if (address)
		munmap(address, bytes);
}

void tw_backing_remove_file(const char *directory, const char *file)
{
	char path[512];

	if (!file_path(directory, file, path, sizeof path))
		unlink(path);
}

struct removal {
	bool (*fn)(const char *name);
};

static void remove_entry(int directory, const char *name, void *arg)
{
	if (((const struct removal *)arg)->fn(name))
		unlinkat(directory, name, 0);
}

void tw_backing_remove_files(const char *directory, bool (*fn)(const char *name))
{
	each_entry(directory, remove_entry, &(struct removal){fn});
}

static void add_entry(int directory, const char *name, void *arg)
{
	struct stat st;

	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		*(uint64_t *)arg += (uint64_t)st.st_blocks * 512;
}

uint64_t tw_backing_used_bytes(const char *directory)
{
	uint64_t bytes = 0;

	each_entry(directory, add_entry, &bytes);
	return bytes;
}

bool tw_backing_is_old(const char *directory)
{
	struct stat st;

	return lstat(directory, &st) == 0 && time(NULL) - st.st_mtime > 60;
}
