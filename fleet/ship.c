/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ship.c - tracewheel-ship, which `tracewheel ship` runs: closed segments and their summaries to a store.
 *
 *	1 link    a hard link in the spool: from here on the recorder's --keep cannot take the segment away
 *	2 segment its object is stored
 *	3 summary its object is stored
 *	4 sent    its key is in the spool's list
 *	5 unlink  the link goes, and with --remove the recorder's file
 *
 * A shipper that is killed between any two of them does the last one again, and writes the same bytes to the same place.
 */
#include "fleet/fleet.h"
#include "tools/tool.h"
#include "base/map.h"

#include "tracewheel/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACK_OFF_MIN_MS 50
#define BACK_OFF_MAX_MS 3000
#define LOOK_AGAIN_MS	500
/* Without --follow the command ends after so long without an object stored. */
#define GIVE_UP_MS    60000
#define LEVEL_SEGMENT 1
#define LEVEL_SUMMARY 3

enum { KEY_TO = 256, KEY_NODE, KEY_FOLLOW, KEY_REMOVE, KEY_SPOOL, KEY_QUOTA, KEY_GIVE_UP, KEY_PRESIGN };

static const struct tw_option options_table[] = {
	{KEY_TO, "to", "STORE",
	 "s3://BUCKET/PREFIX or a folder. AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials, say where and as whom"},
	{KEY_NODE, "node", "NAME", "the name of this machine in the store (its host name)"},
	{KEY_FOLLOW, "follow", NULL, "go on with segments that are closed later, until SIGINT or SIGTERM"},
	{KEY_REMOVE, "remove", NULL, "remove each segment from its folder when it is stored"},
	{KEY_SPOOL, "spool", "DIR",
	 "keep links to segments that are not stored yet in this folder, on their file system (.tracewheel-ship beside the first capture)"},
	{KEY_QUOTA, "quota", "SIZE",
	 "keep so much at most while the store is away: older segments are dropped, and the store is told which"},
	{KEY_PRESIGN, "presign", "COMMAND",
	 "PUT to the address that COMMAND prints, which it has signed for the object in its last argument, s3://BUCKET/PREFIX/...: this machine then has no key"},
	{KEY_GIVE_UP, "give-up", "TIME", "without --follow: end after so long in which nothing was stored (60s)"},
	{'q', "quiet", NULL, "say nothing when all went well"},
	{0}};

static const struct tw_command command = {
	.name = "ship",
	.arguments = "[OPTION]... --to STORE DIR...",
	.summary =
		"Stores the closed segments of captures, and a summary of each, in a folder or a bucket of an S3 object store (docs/fleet.md).\n"
		"\nDIR is a capture, or a folder of captures; they may still be recorded. Each step can be done again: an object that is there already is written once more with the same bytes, so shippers may be killed, and several may run.\n"
		"\nExit codes: 1 if something could not be stored, or is no segment.",
	.options = options_table,
	.examples = "  tracewheel ship --to /mnt/fleet app.tw\n"
		    "  tracewheel ship --follow --remove --quota 10G --to s3://traces /var/lib/tw\n",
};

struct ship {
	const char *to, *spool_path, *presign;
	char node[TW_FLEET_NODE_BYTES];
	bool follows, removes, is_quiet;
	uint64_t give_up_ms;
	struct tw_fleet_store *store;
	struct tw_fleet_spool spool;
	char **folders;
	int folder_count;
	uint64_t stored, refused, bytes;
	struct tw_map known; /* files of captures that were looked at: 0, or 1: no segments */
	char said[512];	     /* the last reason */
};

static volatile sig_atomic_t is_asked_to_end;

static void on_end(int number)
{
	is_asked_to_end = number;
}

/* ---- the segments of captures ---- */

static void set_aside(struct ship *ship, const char *folder, const char *name, int error)
{
	ship->refused++;
	if (error == TW_ENOTSUP)
		tw_say("%s/%s was set aside: the spool is on another file system; --spool names a folder on the same one.",
		       folder, name);
	else
		tw_say("%s/%s was set aside: %s", folder, name,
		       error == TW_EFORMAT
			       ? "it is no closed segment, or was cut off; `tracewheel recover` completes captures."
			       : tw_strerror(error));
}

/* Each file once: what it is does not change. */
static uint64_t file_key(const struct stat *status)
{
	return (uint64_t)status->st_ino * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)status->st_mtim.tv_sec << 30 ^
	       (uint64_t)status->st_mtim.tv_nsec;
}

static void take_segment(struct ship *ship, int fd, const char *folder, const char *name)
{
	struct stat status;
	bool was_sent = false;
	int error = 0;
	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode))
		return;
	uint64_t key = file_key(&status);
	bool is_known = tw_map_get(&ship->known, key) != TW_MAP_NONE;
	if (!is_known) {
		error = tw_fleet_spool_link(&ship->spool, fd, name, &was_sent);
		if (error != TW_ENOENT)
			tw_map_put(&ship->known, key, error != 0);
	}
	if (error && error != TW_ENOENT)
		set_aside(ship, folder, name, error);
	/* The spool's link went when it was stored, or dropped. */
	if (ship->removes && (was_sent || (is_known && !tw_map_get(&ship->known, key) && status.st_nlink == 1)))
		unlinkat(fd, name, 0);
}

static bool is_segment_name(const char *name)
{
	size_t bytes = strlen(name);
	return bytes > 4 && strcmp(name + bytes - 4, ".tws") == 0;
}

/* A capture, or with @is_deep a folder of captures. */
static void take_folder(struct ship *ship, const char *path, bool is_deep)
{
	struct dirent **entries;
	char below[PATH_MAX];
	struct stat status;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int count = fd < 0 ? -1 : scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		if (is_segment_name(name))
			take_segment(ship, fd, path, name);
		else if (is_deep && *name != '.' && fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			 S_ISDIR(status.st_mode) &&
			 (size_t)snprintf(below, sizeof below, "%s/%s", path, name) < sizeof below)
			take_folder(ship, below, false);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	if (fd >= 0)
		close(fd);
}

static void take_all(struct ship *ship)
{
	for (int i = 0; i < ship->folder_count; i++)
		take_folder(ship, ship->folders[i], true);
	char figure[TW_FIGURE_BYTES], events[TW_FIGURE_BYTES];
	uint64_t before = ship->spool.dropped;
	tw_fleet_spool_limit(&ship->spool);
	if (ship->spool.dropped != before)
		tw_say("the quota is full: %s with %s dropped so far.",
		       tw_figure_of(figure, ship->spool.dropped, "segment", "segments"),
		       tw_figure_of(events, ship->spool.dropped_events, "event was", "events were"));
}

/* ---- one segment ---- */

/* Stores an object; takes its bytes, of which there are none without memory. */
static enum tw_fleet_answer put(struct ship *ship, const char *path, struct tw_fleet_bytes *packed)
{
	const char *reason = "there is no memory, or the segment cannot be read";
	enum tw_fleet_answer answer = TW_FLEET_LATER;
	if (packed->data) {
		answer = tw_fleet_store_put(ship->store, path, packed, &reason);
		ship->bytes += answer == TW_FLEET_STORED ? packed->bytes : 0;
	}
	free(packed->data);
	if (answer != TW_FLEET_STORED && strcmp(reason, ship->said) != 0) {
		snprintf(ship->said, sizeof ship->said, "%s", reason);
		tw_say("%s.%s", reason,
		       answer == TW_FLEET_LATER ? " What is not stored stays, and is tried again." : "");
	}
	return answer;
}

/* The same of a summary, which it packs. */
static enum tw_fleet_answer put_summary(struct ship *ship, const char *path, struct tw_fleet_bytes *plain)
{
	struct tw_fleet_bytes packed = {0};
	tw_fleet_pack(plain, LEVEL_SUMMARY, &packed);
	free(plain->data);
	return put(ship, path, &packed);
}

static enum tw_fleet_answer put_segment(struct ship *ship, int fd)
{
	struct tw_segment_identity identity;
	struct tw_fleet_bytes packed = {0}, plain;
	char segment[TW_FLEET_PATH_BYTES], summary[TW_FLEET_PATH_BYTES];
	if (tw_segment_identify(fd, &identity))
		return TW_FLEET_REFUSED;
	tw_fleet_paths(&identity, ship->node, segment, summary);
	tw_fleet_pack_file(fd, identity.bytes, LEVEL_SEGMENT, &packed);
	enum tw_fleet_answer answer = put(ship, segment, &packed);
	if (answer != TW_FLEET_STORED)
		return answer;
	int error = tw_fleet_summary(fd, &identity, ship->node, &plain);
	if (error)
		return error == TW_ENOMEM ? TW_FLEET_LATER : TW_FLEET_REFUSED;
	return put_summary(ship, summary, &plain);
}

static enum tw_fleet_answer put_dropped(struct ship *ship, int fd)
{
	struct tw_segment_identity identity;
	struct tw_fleet_bytes plain;
	char segment[TW_FLEET_PATH_BYTES], summary[TW_FLEET_PATH_BYTES];
	if (pread(fd, &identity, sizeof identity, 0) != (ssize_t)sizeof identity)
		return TW_FLEET_REFUSED;
	tw_fleet_paths(&identity, ship->node, segment, summary);
	return tw_fleet_dropped(&identity, ship->node, &plain) ? TW_FLEET_LATER : put_summary(ship, summary, &plain);
}

/* ---- rounds ---- */

/* Of one entry of the spool. */
static enum tw_fleet_answer put_entry(struct ship *ship, const char *name)
{
	bool is_dropped = tw_fleet_spool_is_dropped(name);
	int fd = openat(ship->spool.folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	/* Another shipper was first. */
	if (fd < 0)
		return TW_FLEET_STORED;
	if (tw_fleet_spool_undo(&ship->spool, name)) {
		close(fd);
		return TW_FLEET_STORED;
	}
	enum tw_fleet_answer answer = is_dropped ? put_dropped(ship, fd) : put_segment(ship, fd);
	close(fd);
	if (answer == TW_FLEET_STORED && tw_fleet_spool_done(&ship->spool, name)) {
		ship->stored += !is_dropped;
		*ship->said = 0;
	}
	if (answer == TW_FLEET_REFUSED) {
		ship->refused++;
		tw_say("%s was set aside in the spool: its name ends in .bad there.", name);
		tw_fleet_spool_refuse(&ship->spool, name);
	}
	return answer;
}

/* Stores what is in the spool.  False: something is left, and the store does not take it now. */
static bool put_all(struct ship *ship)
{
	struct dirent **entries;
	int count = tw_fleet_spool_list(&ship->spool, &entries);
	bool is_done = true;
	for (int i = 0; i < count; i++) {
		is_done = is_done && !is_asked_to_end && put_entry(ship, entries[i]->d_name) != TW_FLEET_LATER;
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return is_done;
}

/* Half of it for certain: shippers that the same failure stopped do not come back at the same moment. */
static void rest(unsigned ms, bool has_jitter)
{
	unsigned half = ms / 2;
	usleep(1000 * (has_jitter ? half + (unsigned)random() % (half + 1) : ms));
}

static void run(struct ship *ship)
{
	uint64_t last_ns = tw_now_ns(), stored = 0;
	unsigned back_off = BACK_OFF_MIN_MS;
	while (!is_asked_to_end) {
		take_all(ship);
		if (put_all(ship)) {
			if (!ship->follows)
				break;
			back_off = BACK_OFF_MIN_MS;
			rest(LOOK_AGAIN_MS, false);
			continue;
		}
		if (ship->stored != stored) {
			stored = ship->stored;
			last_ns = tw_now_ns();
			back_off = BACK_OFF_MIN_MS;
		}
		if (!ship->follows && tw_now_ns() - last_ns > ship->give_up_ms * 1000000) {
			tw_say("nothing was stored for %llu s: what is left stays in the spool.",
			       (unsigned long long)(ship->give_up_ms / 1000));
			ship->refused++;
			break;
		}
		rest(back_off, true);
		back_off = back_off * 2 < BACK_OFF_MAX_MS ? back_off * 2 : BACK_OFF_MAX_MS;
	}
	/* Segments that were stored in this round go from their folders, too. */
	if (ship->removes)
		take_all(ship);
}

/* ---- the command ---- */

static bool take_node(struct ship *ship, const char *name)
{
	size_t bytes = strlen(name);
	if (!bytes || bytes >= sizeof ship->node)
		return tw_complain("--node is a name of 1 to %d characters.", TW_FLEET_NODE_BYTES - 1);
	/* Dots of a host name, and whatever else keys may not have. */
	for (size_t i = 0; i <= bytes; i++) {
		char c = name[i];
		bool is_plain = !c || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		ship->node[i] = is_plain ? c : '-';
	}
	return true;
}

static bool take_option(void *context, int key, const char *value)
{
	struct ship *ship = context;
	uint64_t ns;
	switch (key) {
	case KEY_TO: ship->to = value; break;
	case KEY_PRESIGN: ship->presign = value; break;
	case KEY_NODE: return take_node(ship, value);
	case KEY_FOLLOW: ship->follows = true; break;
	case KEY_REMOVE: ship->removes = true; break;
	case KEY_SPOOL: ship->spool_path = value; break;
	case KEY_QUOTA:
		if (!tw_parse_bytes(value, &ship->spool.quota_bytes) || !ship->spool.quota_bytes)
			return tw_complain("--quota is a size, such as 10G, not '%s'.", value);
		break;
	case KEY_GIVE_UP:
		if (!tw_parse_duration(value, &ns) || ns < 1000000)
			return tw_complain("--give-up is a time, such as 60s, not '%s'.", value);
		ship->give_up_ms = ns / 1000000;
		break;
	default: ship->is_quiet = true; break;
	}
	return true;
}

/* Beside the first capture, or in the first folder of captures: the links must be on their file system. */
static bool find_spool(struct ship *ship, char path[PATH_MAX])
{
	char real[PATH_MAX], first[PATH_MAX];
	const char *folder = ship->folders[0];
	size_t bytes = strlen(folder);
	while (bytes > 1 && folder[bytes - 1] == '/')
		bytes--;
	bool is_capture = bytes > 3 && strncmp(folder + bytes - 3, ".tw", 3) == 0;
	snprintf(first, sizeof first, "%.*s%s", (int)bytes, folder, is_capture ? "/.." : "");
	if (!realpath(first, real))
		return tw_complain("'%s' cannot be read: %s.", folder, strerror(errno));
	return (size_t)snprintf(path, PATH_MAX, "%s/.tracewheel-ship", real) < PATH_MAX;
}

static bool begin(struct ship *ship)
{
	char path[PATH_MAX], host[256] = "";
	if (!*ship->node && (gethostname(host, sizeof host - 1) < 0 || !take_node(ship, host)))
		return false;
	for (int i = 0; i < ship->folder_count; i++) {
		struct stat status;
		if (stat(ship->folders[i], &status) < 0 || !S_ISDIR(status.st_mode))
			return tw_complain("'%s' is no folder: a capture, or a folder of captures, is shipped.",
					   ship->folders[i]);
	}
	if (!ship->spool_path && !find_spool(ship, path))
		return false;
	ship->spool.node = ship->node;
	if (!tw_fleet_spool_open(&ship->spool, ship->spool_path ? ship->spool_path : path))
		return false;
	ship->store = tw_fleet_store_open(ship->to, true, ship->presign);
	return ship->store != NULL;
}

int main(int argc, char **argv)
{
	static struct ship ship = {.give_up_ms = GIVE_UP_MS, .spool = {.folder = -1}};
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	const struct sigaction end = {.sa_handler = on_end};
	char figure[TW_FIGURE_BYTES], bytes[TW_FIGURE_BYTES];
	int code;
	if (!tw_options_read(&options, take_option, &ship, &code))
		return code;
	if (!ship.to)
		return tw_usage(&command, "--to says where segments go: s3://BUCKET/PREFIX or a folder.");
	if (ship.presign && strncmp(ship.to, "s3://", 5) != 0)
		return tw_usage(&command, "--presign is for buckets: --to s3://BUCKET/PREFIX.");
	ship.folders = argv + options.index;
	ship.folder_count = argc - options.index;
	if (ship.folder_count < 1)
		return tw_usage(&command, "which captures are shipped? A folder's name follows.");
	srandom((unsigned)getpid() ^ (unsigned)tw_now_ns());
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	code = TW_EXIT_FAILURE;
	if (begin(&ship)) {
		run(&ship);
		code = ship.refused ? TW_EXIT_FAILURE : TW_EXIT_OK;
		if (!ship.is_quiet)
			tw_say("%s stored, %s.", tw_figure_of(figure, ship.stored, "segment", "segments"),
			       tw_figure_bytes(bytes, ship.bytes));
	}
	tw_map_fini(&ship.known);
	tw_fleet_store_close(ship.store);
	tw_fleet_spool_close(&ship.spool);
	return code;
}
