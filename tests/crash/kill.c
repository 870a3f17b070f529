/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill.c - SIGKILL at random instants: of the traced program, of the recorder, of both.
 *
 *	kill VARIANT [--kills N] [--seconds N] [--expect-loss]
 *
 * One round: start a recorder and a program, let them run for a random time, kill, recover if the recorder died (one
 * recovery in four is killed as well), and compare the capture with the witness (verify.c).  One victim in four gets
 * SIGSTOP first.  TW_CRASH_KILLS and TW_SEED replace the options in a ctest run.
 *
 * --expect-loss: the recorder is built wrongly (wrong_order.c), and the test must notice.
 */
#include "tests/crash/harness.h"

#include "tests/common/folder.h"
#include "tracewheel/capture.h"
#include "tracewheel/error.h"
#include "tests/common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB UINT64_C(1024)

static const struct variant variants[] = {
	{.name = "full_speed", .threads = 2, .ring_bytes = 1024 * KIB, .longest_us = 10000},
	{.name = "paced",
	 .threads = 3,
	 .calls_a_pause = 50,
	 .pause_us = 50,
	 .ring_bytes = 256 * KIB,
	 .longest_us = 12000},
	{.name = "block", .threads = 2, .policy = TW_RECORDER_BLOCK, .ring_bytes = 256 * KIB, .longest_us = 12000},
	{.name = "small_ring", .threads = 4, .ring_bytes = 64 * KIB, .longest_us = 10000},
	{.name = "few_rings",
	 .threads = 24,
	 .calls_a_pause = 20,
	 .pause_us = 50,
	 .ring_bytes = 64 * KIB,
	 .cap_bytes = 800 * KIB,
	 .longest_us = 20000},
	{.name = "cut_writes",
	 .threads = 2,
	 .policy = TW_RECORDER_BLOCK,
	 .ring_bytes = 256 * KIB,
	 .disk = DISK_CUT,
	 .longest_us = 12000},
	{.name = "slow_disk",
	 .threads = 3,
	 .ring_bytes = 512 * KIB,
	 .segment_bytes = 256 * KIB,
	 .disk = DISK_SLOW,
	 .longest_us = 60000},
	{.name = "full_disk",
	 .threads = 2,
	 .calls_a_pause = 2000,
	 .pause_us = 100,
	 .ring_bytes = 1024 * KIB,
	 .disk = DISK_FULL_NOW_AND_THEN,
	 .longest_us = 60000},
	{.name = "flight", .threads = 2, .policy = TW_RECORDER_OVERWRITE, .ring_bytes = 64 * KIB, .longest_us = 10000},
	{.name = "slots", .threads = 2, .ring_bytes = 256 * KIB, .is_slots = true, .longest_us = 12000},
	{.name = "rotate",
	 .threads = 2,
	 .policy = TW_RECORDER_BLOCK,
	 .ring_bytes = 64 * KIB,
	 .segment_bytes = 20000,
	 .longest_us = 12000},
	{.name = "itself", .threads = 2, .by_itself = true, .longest_us = 15000},
	{.name = "command",
	 .threads = 2,
	 .policy = TW_RECORDER_BLOCK,
	 .ring_bytes = 256 * KIB,
	 .by_command = true,
	 .longest_us = 15000},
	{0},
};

enum { OF_PROGRAM, OF_RECORDER, OF_BOTH, VICTIMS };

struct round {
	const struct variant *variant;
	struct witness *witness;
	char folder[200], witness_path[240], capture[240];
	const char *bin; /* folder of the test programs */
	pid_t recorder, program;
	unsigned victim;
};

static struct totals totals;
static unsigned seed;

static unsigned below(unsigned end)
{
	return end ? (unsigned)rand_r(&seed) % end : 0;
}

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "kill: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- starting ---- */

static void die_with_harness(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void start_program(struct round *round, const char *ring_set)
{
	char program[4200], agent[4200];

	snprintf(program, sizeof program, "%s/tests/crash/crash_program", round->bin);
	snprintf(agent, sizeof agent, "%s/lib/libtracewheel-agent.so", round->bin);
	round->program = fork();
	if (round->program < 0)
		give_up("fork");
	if (round->program)
		return;
	die_with_harness();
	setenv("LD_PRELOAD", agent, 1);
	setenv("TRACEWHEEL_AGENT", ring_set, 1);
	execl(program, program, round->witness_path, NULL);
	_exit(127);
}

static void start_both(struct round *round)
{
	char ring_set[256] = "";
	int path[2];
	ssize_t got;

	if (pipe2(path, O_CLOEXEC) < 0)
		give_up("pipe");
	round->recorder = fork();
	if (round->recorder < 0)
		give_up("fork");
	if (round->recorder == 0) {
		die_with_harness();
		record_in_child(round->variant, round->witness, round->capture, seed, path[1]);
	}
	close(path[1]);
	got = read(path[0], ring_set, sizeof ring_set - 1);
	close(path[0]);
	if (got <= 0)
		give_up("the recorder did not start");
	start_program(round, ring_set);
}

/* The writer is a thread of the program. */
static void start_itself(struct round *round)
{
	char program[4200];

	snprintf(program, sizeof program, "%s/tests/crash/crash_program", round->bin);
	round->program = fork();
	if (round->program < 0)
		give_up("fork");
	if (round->program)
		return;
	die_with_harness();
	execl(program, program, round->witness_path, round->capture, NULL);
	_exit(127);
}

static void start_command(struct round *round)
{
	char command[4200], program[4200];

	snprintf(command, sizeof command, "%s/bin/tracewheel", round->bin);
	snprintf(program, sizeof program, "%s/tests/crash/crash_program", round->bin);
	round->recorder = fork();
	if (round->recorder < 0)
		give_up("fork");
	if (round->recorder == 0) {
		die_with_harness();
		execl(command, command, "record", "-q", "-t", "crash:_", "--on-full", "block", "--ring", "256K", "-o",
		      round->capture, "--", program, round->witness_path, NULL);
		_exit(127);
	}
}

static void nap(unsigned us)
{
	nanosleep(&(struct timespec){us / 1000000, (long)(us % 1000000) * 1000}, NULL);
}

/* The program's first calls, or some instant of its start. */
static void let_live(struct round *round)
{
	const struct variant *variant = round->variant;
	bool at_start = below(4) == 0;

	/* A command killed too early leaves no capture, and its program no name. */
	for (int i = 0; i < 240000 && !atomic_load(&round->witness->running) &&
			!(at_start && atomic_load(&round->witness->process_id));
	     i++)
		nap(500);
	if (!round->program)
		round->program = atomic_load(&round->witness->process_id);
	nap(below(at_start ? 2000 : variant->longest_us));
}

/* ---- killing ---- */

static void kill_one(pid_t pid)
{
	if (below(4) == 0) {
		kill(pid, SIGSTOP);
		nap(below(1000));
		totals.stopped_first++;
	}
	kill(pid, SIGKILL);
	totals.kills++;
}

static void wait_for(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Ends in an orderly way, within minutes on the slowest machine. */
static bool has_finished(struct round *round)
{
	for (int i = 0; i < 120000; i++) {
		if (waitpid(round->recorder, NULL, WNOHANG) == round->recorder)
			return true;
		nap(1000);
	}
	kill(round->recorder, SIGKILL);
	wait_for(round->recorder);
	return false;
}

static const char *kill_victims(struct round *round)
{
	struct witness *witness = round->witness;

	round->victim = round->variant->by_itself ? OF_BOTH : below(VICTIMS);
	if (round->variant->by_itself) {
		totals.of_both++;
		kill_one(round->program);
		wait_for(round->program);
		return NULL;
	}
	if (round->victim == OF_PROGRAM) {
		totals.of_program++;
		kill_one(round->program);
		wait_for(round->program);
		atomic_store(&witness->recorder_stops, 1);
		return has_finished(round) ? NULL : "the recorder does not end";
	}
	totals.of_recorder += round->victim == OF_RECORDER;
	totals.of_both += round->victim == OF_BOTH;
	kill_one(round->recorder);
	wait_for(round->recorder);
	/* The program continues alone for a while, and is then told to end, or killed. */
	if (round->victim == OF_RECORDER) {
		nap(below(4000));
		atomic_store(&witness->program_stops, round->variant->policy != TW_RECORDER_BLOCK);
	}
	if (!atomic_load(&witness->program_stops))
		kill_one(round->program);
	wait_for(round->program);
	return NULL;
}

/* ---- afterwards ---- */

/* A recovery that is killed as well: the next one continues. */
static void recover_and_die(const struct round *round)
{
	pid_t child = fork();

	if (child == 0) {
		tw_recover(round->capture, NULL);
		_exit(0);
	}
	if (child < 0)
		return;
	nap(below(3000));
	kill(child, SIGKILL);
	wait_for(child);
	totals.recoveries_killed++;
}

static const char *recover(const struct round *round)
{
	static char sentence[128];
	struct tw_recorder_stats stats;
	const char *wrong = verify_before_recovery(round->capture, round->witness, &totals);
	int error;

	if (wrong)
		return wrong;
	if (below(4) == 0)
		recover_and_die(round);
	error = tw_recover(round->capture, NULL);
	totals.recoveries++;
	if (error) {
		snprintf(sentence, sizeof sentence, "tw_recover: %d", error);
		return sentence;
	}
	error = tw_recover(round->capture, &stats);
	return error || stats.events ? "a second recovery found something" : NULL;
}

static const char *run_round(struct round *round)
{
	struct witness *witness = round->witness;
	const char *wrong;

	memset(witness, 0, sizeof *witness);
	witness->threads = round->variant->threads;
	witness->calls_a_pause = round->variant->calls_a_pause;
	witness->pause_us = round->variant->pause_us;
	witness->is_slots = round->variant->is_slots;
	round->program = 0;
	if (round->variant->by_command)
		start_command(round);
	else if (round->variant->by_itself)
		start_itself(round);
	else
		start_both(round);
	let_live(round);
	if (!round->program)
		return "the program did not start";
	wrong = kill_victims(round);
	totals.rounds++;
	if (!wrong && round->victim != OF_PROGRAM)
		wrong = recover(round);
	if (!wrong)
		wrong = verify_capture(round->capture, witness,
				       round->victim == OF_PROGRAM && !round->variant->by_command, &totals);
	return wrong;
}

/* ---- all rounds ---- */

static void say_totals(const struct variant *variant, double seconds)
{
	printf("%s: %llu kills in %llu rounds (program %llu, recorder %llu, both %llu; %llu stopped first), "
	       "%.1f s, "
	       "%.0f kills/s\n",
	       variant->name, (unsigned long long)totals.kills, (unsigned long long)totals.rounds,
	       (unsigned long long)totals.of_program, (unsigned long long)totals.of_recorder,
	       (unsigned long long)totals.of_both, (unsigned long long)totals.stopped_first, seconds,
	       (double)totals.kills / seconds);
	printf("%s: %llu committed, %llu returned, %llu counted as lost, %llu in flight; %llu recoveries, "
	       "%llu killed "
	       "ones, %llu blocks stored twice, %llu torn before recovery\n",
	       variant->name, (unsigned long long)totals.committed, (unsigned long long)totals.returned,
	       (unsigned long long)totals.lost, (unsigned long long)totals.in_flight,
	       (unsigned long long)totals.recoveries, (unsigned long long)totals.recoveries_killed,
	       (unsigned long long)totals.duplicate_blocks, (unsigned long long)totals.damaged_before_recovery);
}

static void begin(struct round *round, const char *bin)
{
	int fd;

	round->bin = bin;
	snprintf(round->folder, sizeof round->folder, "%s/tracewheel-crash-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(round->folder))
		give_up(round->folder);
	snprintf(round->capture, sizeof round->capture, "%s/a.tw", round->folder);
	snprintf(round->witness_path, sizeof round->witness_path, "%s/witness", round->folder);
	fd = open(round->witness_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *round->witness) < 0)
		give_up(round->witness_path);
	round->witness = mmap(NULL, sizeof *round->witness, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (round->witness == MAP_FAILED)
		give_up("mmap");
	close(fd);
	/* A program whose command was killed becomes our child. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int run(struct round *round, unsigned kills, double seconds, bool expects_loss)
{
	double start = (double)now_ns() / 1e9;
	const char *wrong = NULL;

	while (!wrong && (seconds > 0 ? (double)now_ns() / 1e9 - start < seconds : totals.kills < kills)) {
		unsigned round_seed = seed;

		wrong = run_round(round);
		if (wrong && !expects_loss)
			printf("%s: seed %u, victim %u: WRONG: %s\n", round->variant->name, round_seed, round->victim,
			       wrong);
		if (wrong && !expects_loss && getenv("TW_CRASH_KEEP"))
			break;
		/* A failing round may still have its rings. */
		if (wrong)
			tw_recover(round->capture, NULL);
		remove_folder(round->capture);
	}
	say_totals(round->variant, (double)now_ns() / 1e9 - start);
	if (expects_loss)
		printf("the wrong order was %s\n", wrong ? wrong : "NOT NOTICED");
	return expects_loss ? !wrong : wrong != NULL;
}

int main(int argc, char **argv)
{
	unsigned kills = getenv("TW_CRASH_KILLS") ? (unsigned)atoi(getenv("TW_CRASH_KILLS"))
			 : getenv("TW_TEST_LONG") ? 120
						  : 12;
	double seconds = 0;
	bool expects_loss = false;
	struct round round = {.variant = variants};
	int failed;

	if (argc < 3)
		give_up("usage: kill BUILD VARIANT [--kills N] [--seconds N] [--expect-loss]");
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "--expect-loss") == 0)
			expects_loss = true;
		else if (strcmp(argv[i], "--kills") == 0 && i + 1 < argc)
			kills = (unsigned)atoi(argv[++i]);
		else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
			seconds = atof(argv[++i]);
	}
	while (round.variant->name && strcmp(round.variant->name, argv[2]) != 0)
		round.variant++;
	if (!round.variant->name)
		give_up("no such variant");
	seed = getenv("TW_SEED") ? (unsigned)strtoul(getenv("TW_SEED"), NULL, 10) : (unsigned)getpid();
	printf("%s: seed %u\n", round.variant->name, seed);
	fflush(stdout);
	begin(&round, argv[1]);
	failed = run(&round, kills, seconds, expects_loss);
	unlink(round.witness_path);
	rmdir(round.folder);
	return failed;
}
