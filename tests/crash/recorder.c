/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.c - the recorder as a process of its own, with a disk that cuts writes or is full at times. */
#include "tests/crash/harness.h"
#include "pipeline/recorder/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set by wrong_order.c if the harness is linked with it. */
extern void (*wrong_order_begin)(struct tw_rs *rs, struct witness *witness);
void (*wrong_order_begin)(struct tw_rs *rs, struct witness *witness);

static unsigned disk_seed;
static bool is_mended; /* space was freed, at the end */
static unsigned writes_until_full, writes_until_room;

static ssize_t write_first_bytes(int fd, const struct iovec *pieces, off_t offset, size_t most)
{
	struct iovec first = pieces[0];

	if (first.iov_len > most)
		first.iov_len = most;
	return pwritev(fd, &first, 1, offset);
}

/* A slow one at times, so that a kill falls between two writes, or between the last one and the next step. */
static ssize_t write_slowly(int fd, const struct iovec *pieces, off_t offset, size_t most)
{
	ssize_t written = write_first_bytes(fd, pieces, offset, most);

	if (rand_r(&disk_seed) % 32 == 0 || (size_t)written < most)
		usleep(50);
	return written;
}

static ssize_t cut_write(int fd, const struct iovec *pieces, int count, off_t offset)
{
	return write_slowly(fd, pieces, offset, 256);
}

/* Full in the middle of a block, for a while. */
static ssize_t full_write(int fd, const struct iovec *pieces, int count, off_t offset)
{
	if (is_mended || writes_until_full) {
		writes_until_full -= !is_mended;
		return write_slowly(fd, pieces, offset, 512);
	}
	if (writes_until_room) {
		writes_until_room--;
		errno = ENOSPC;
		return -1;
	}
	writes_until_full = (unsigned)rand_r(&disk_seed) % 200;
	writes_until_room = (unsigned)rand_r(&disk_seed) % 2;
	errno = ENOSPC;
	return -1;
}

/* Slow enough that the recorder's queue thread writes the gathered blocks; full at times, but never for an index. */
static ssize_t slow_write(int fd, const struct iovec *pieces, int count, off_t offset)
{
	static _Thread_local unsigned seed;
	unsigned chance;

	if (!seed)
		seed = disk_seed + (unsigned)gettid();
	chance = (unsigned)rand_r(&seed) % 64;
	usleep(chance < 16 ? 2500 : 100);
	if (chance < 63 || count <= 3 || is_mended)
		return pwritev(fd, pieces, count, offset);
	errno = ENOSPC;
	return -1;
}

static const struct tw_segment_io disks[] = {
	[DISK_CUT] = {cut_write, fdatasync},
	[DISK_FULL_NOW_AND_THEN] = {full_write, fdatasync},
	[DISK_SLOW] = {slow_write, fdatasync},
};

static struct tw_recorder *create(const struct variant *variant, const char *capture)
{
	struct tw_recorder_options options = {
		.path = capture,
		.ring_bytes = variant->ring_bytes,
		.cap_bytes = variant->cap_bytes,
		.policy = variant->policy,
		.segment_bytes = variant->segment_bytes,
		/* The program is started by the harness, and is no child of this process. */
		.follow_fork = true,
		.config = variant->is_slots ? "pattern libcrash_work:_\ncallers main\narguments 2\n"
					    : "pattern crash:_\n",
	};
	struct tw_recorder *recorder;

	return tw_recorder_create(&options, &recorder) == 0 ? recorder : NULL;
}

_Noreturn void record_in_child(const struct variant *variant, struct witness *witness, const char *capture,
			       unsigned seed, int path_fd)
{
	struct tw_recorder *recorder = create(variant, capture);
	struct tw_recorder_stats stats;
	const char *path;
	ssize_t told;

	signal(SIGXFSZ, SIG_IGN);
	disk_seed = seed;
	if (!recorder)
		_exit(1);
	if (variant->disk != DISK_GOOD)
		tw_recorder_set_io(recorder, &disks[variant->disk]);
	if (wrong_order_begin)
		wrong_order_begin(tw_recorder_ring_set(recorder), witness);
	path = tw_recorder_ring_set_path(recorder);
	told = write(path_fd, path, strlen(path) + 1);
	close(path_fd);
	while (told > 0 && !atomic_load_explicit(&witness->recorder_stops, memory_order_acquire))
		tw_recorder_poll(recorder, UINT64_C(10000000));
	is_mended = true;
	witness->finish_error = tw_recorder_finish(recorder, &stats);
	witness->events = stats.events;
	witness->unstored = stats.unstored;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		witness->lost += stats.lost[cause];
	atomic_store_explicit(&witness->is_finished, 1, memory_order_release);
	_exit(0);
}
