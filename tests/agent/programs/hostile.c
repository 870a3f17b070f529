/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile.c - a recorded program that writes into the memory that its recorder reads; as another user if started by
 * root.
 *
 *	hostile HOW SEED MILLISECONDS
 *
 * random	random words, and nearly valid words, everywhere
 * words	the same into the first words of control: requests, counts, wake words
 * slots	into the table of images
 * head		into the head of its image, and its table of rings
 * headers	into the headers of its rings
 * definitions	into the log of definitions
 * records	lengths of records, positions ahead of them
 * positions	a position that no ring can have
 * log		an invalid definition
 * table	a ring that lies outside the file
 * holes	removes the pages of all files (MADV_REMOVE)
 * cut		truncates the file of its image, before it drops its rights
 * nothing	does not write
 *
 * First three threads make calls of strtol(), and it prints their number.  While it writes it makes no traced call: the
 * damage to its own half is not tested.
 */
#include "ringbuf/ringset.h"
#include "tests/common/random.h"

#include <grp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	NOBODY = 65534,
	PIECES_MAX = 64,
	THREADS = 3,
	CALLS = 20000,
	PAGE = 4096,
	SLOTS_AT = offsetof(struct tw_rs_control, slots)
};

struct piece {
	char *at;
	size_t bytes;
	unsigned long offset; /* in its file */
};
static struct piece control, head, definitions, rings[PIECES_MAX];
static char image_path[512];
static unsigned ring_count;
static uint64_t state;
static pthread_barrier_t both;

static uint64_t random64(void)
{
	return random_word(&state);
}

static uint64_t word(uint64_t before)
{
	switch (random64() % 12) {
	case 0: return 0;
	case 1: return random64() % 64;
	case 2: return UINT64_MAX - random64() % 64;
	case 3: return UINT64_C(1) << random64() % 64;
	case 4: return random64() % 4096 * PAGE;
	case 5: return random64() % 5 | random64() % 32768 << 32;
	case 6: return random64() & UINT32_MAX;
	case 7: return before + 1;
	case 8: return before - 8;
	case 9: return before ^ UINT64_C(1) << random64() % 64;
	case 10: return before + (UINT64_C(1) << 32);
	default: return random64();
	}
}

/* The image's file has the head first, then part of the definitions, then rings, and a page that is no ring yet. */
static int find_memory(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof line, maps)) {
		unsigned long from, to, offset;
		struct piece piece;

		if (sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) != 3)
			continue;
		piece = (struct piece){(char *)from, to - from, offset};
		if (strstr(line, "/control"))
			control = piece;
		else if (!strstr(line, "/image-"))
			continue;
		else if (!offset) {
			head = piece;
			sscanf(line, "%*s %*s %*s %*s %*s %511s", image_path);
		} else if (!definitions.at || offset < definitions.offset) {
			if (definitions.at && ring_count < PIECES_MAX)
				rings[ring_count++] = definitions;
			definitions = piece;
		} else if (piece.bytes > PAGE && ring_count < PIECES_MAX)
			rings[ring_count++] = piece;
	}
	if (maps)
		fclose(maps);
	return control.at && head.at && definitions.at && ring_count;
}

static void scribble(const struct piece *piece, size_t from, size_t bytes)
{
	volatile uint64_t *words = (volatile uint64_t *)(void *)piece->at;
	size_t first, end;

	if (bytes > piece->bytes - from)
		bytes = piece->bytes - from;
	first = from / 8 + random64() % (bytes / 8);
	end = first + 1 + random64() % 3;
	for (size_t i = first; i < end && i < (from + bytes) / 8; i++)
		words[i] = word(words[i]);
}

static void scribble_anywhere(const char *how)
{
	static const char *const places[] = {"words", "slots", "head", "headers", "definitions", "records"};
	const struct piece *ring = &rings[random64() % ring_count];

	if (!strcmp(how, "random"))
		how = places[random64() % (sizeof places / sizeof *places)];
	if (!strcmp(how, "words"))
		scribble(&control, 0, SLOTS_AT);
	else if (!strcmp(how, "slots"))
		scribble(&control, SLOTS_AT, PAGE);
	else if (!strcmp(how, "head"))
		scribble(&head, 0, PAGE);
	else if (!strcmp(how, "headers"))
		scribble(ring, 0, 1024);
	else if (!strcmp(how, "definitions"))
		scribble(&definitions, 0, definitions.bytes);
	else if (!strcmp(how, "records"))
		scribble(ring, random64() % 2 ? 0 : PAGE, random64() % 2 ? PAGE : ring->bytes);
}

static struct tw_rb_shared *header_of(const struct piece *ring)
{
	return (struct tw_rb_shared *)(void *)ring->at;
}

static void write_once(const char *how)
{
	struct tw_rs_image_head *image = (struct tw_rs_image_head *)(void *)head.at;

	for (unsigned i = 0; i < ring_count; i++) {
		if (!strcmp(how, "positions"))
			header_of(&rings[i])->committed_pos = UINT64_MAX / 3 & ~UINT64_C(7);
		if (!strcmp(how, "records")) {
			memset(rings[i].at + PAGE, 0xff, rings[i].bytes - PAGE);
			header_of(&rings[i])->committed_pos += PAGE;
		}
		if (!strcmp(how, "holes"))
			madvise(rings[i].at, rings[i].bytes, MADV_REMOVE);
	}
	if (!strcmp(how, "table")) {
		image->rings[image->ring_count].offset_pages = UINT32_MAX - 7;
		image->rings[image->ring_count].data_pages = 16;
		image->ring_count++;
	}
	if (!strcmp(how, "log")) {
		memset(definitions.at + image->defs_committed_bytes, 0xa5, PAGE);
		image->defs_committed_bytes += PAGE;
	}
	if (!strcmp(how, "holes")) {
		madvise(head.at, head.bytes, MADV_REMOVE);
		madvise(definitions.at, definitions.bytes, MADV_REMOVE);
		madvise(control.at, control.bytes, MADV_REMOVE);
	}
}

static void *make_calls(void *unused)
{
	for (int i = 0; i < CALLS; i++)
		strtol("7", NULL, 10);
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	return unused;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	uint64_t end_ms;

	if (argc < 4)
		return 2;
	state = strtoull(argv[2], NULL, 0) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	pthread_barrier_init(&both, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, make_calls, NULL);
	pthread_barrier_wait(&both);
	if (!find_memory())
		return 3;
	if (!strcmp(argv[1], "cut") && truncate(image_path, PAGE))
		return 5;
	if (getuid() == 0 &&
	    (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		return 4;
	printf("calls %d of user %d\n", THREADS * CALLS, (int)geteuid());
	fflush(stdout);
	end_ms = now_ms() + strtoull(argv[3], NULL, 10);
	write_once(argv[1]);
	while (now_ms() < end_ms)
		for (int i = 0; i < 50; i++)
			scribble_anywhere(argv[1]);
	_exit(7);
}
