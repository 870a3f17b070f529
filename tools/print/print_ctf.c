/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_ctf.c - a capture as a trace of the Common Trace Format 1.8: a folder with a text, `metadata`, and binary files of packets.
 *
 *	stream_N	the events of one thread, or of one thread for processes of a run-time; times never go back in it
 *	a packet	begins with its bounds in time, its bytes, and how many events its stream had lost before it
 *	an event	its kind, the lower half of its time, process and thread, the number of the function, and its values as text
 *
 * Functions are an enumeration: readers show their names, and a name is stored once. Lost events lie between the two packets around
 * them: each loss ends a packet, so that readers say how many were discarded, and when.
 *
 * Source	diamon.org/ctf, Common Trace Format v1.8.3: 5 (packets), 6 (events), 7 (types), 8 (clocks), C (the text).
 */
#include "tools/print/print.h"
#include "views/folds/pass.h"
#include "views/folds/places.h"
#include "views/names/missing.h"
#include "views/names/threads.h"

#include "base/grow.h"
#include "base/map.h"
#include "tracewheel/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE   "/* CTF 1.8 */\n"
#define MAGIC	     UINT32_C(0xc1fc1fc1)
#define PACKET_BYTES (UINT32_C(64) << 10)
/* Of one event; a longer text is cut, and ends with dots. */
#define TEXT_BYTES UINT32_C(32768)
#define NAME_BYTES 32
/* The id of events of kinds that this version does not know. */
#define UNKNOWN_KIND 255u

/* Streams of a thread's own events, and of those of processes that it runs, which say their pid. */
enum { OF_THREADS, OF_PROCESSES, STREAM_KINDS };

/* A file, and the packet that is being made for it. */
struct ctf_stream {
	uint32_t number, image, kind;
	int32_t thread_id;
	char thread_name[17];
	uint64_t lost, packets; /* of the whole stream so far */
	uint64_t from_ns, to_ns;
	char *data; /* the packet's events */
	uint32_t used, capacity;
};

struct ctf {
	struct tw_printer printer;
	struct tw_places places;
	struct ctf_stream *streams;
	size_t capacity;
	uint32_t count;
	struct tw_map by_key; /* number of the capture's stream, image and kind */
	uint8_t uuid[16];
	const char *path;
	int folder;
	int error;  /* of the library: no memory */
	int failed; /* an errno of the folder's files */
};

static struct tw_out text;

/* ---- files ---- */

static void name_of(uint32_t number, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "stream_%u", number);
}

static void put(char *at, size_t *used, const void *data, size_t bytes)
{
	memcpy(at + *used, data, bytes);
	*used += bytes;
}

/* Behind what the file has: a thread's file is open only while a packet of it is written. */
static void write_packet(struct ctf *ctf, const struct ctf_stream *stream, const char *head, size_t head_bytes)
{
	static struct tw_out out;
	char name[NAME_BYTES];
	name_of(stream->number, name);
	int fd = openat(ctf->folder, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	int error = fd < 0 ? errno : 0;
	if (!error) {
		tw_out_init(&out, fd);
		tw_out_bytes(&out, head, head_bytes);
		tw_out_bytes(&out, stream->data, stream->used);
		error = tw_out_flush(&out);
	}
	if (fd >= 0 && close(fd) && !error)
		error = errno;
	if (!ctf->failed)
		ctf->failed = error;
}

/* Ends the packet, which may have no events: then it says what was lost at its time. */
static void end_packet(struct ctf *ctf, struct ctf_stream *stream)
{
	const struct tw_capture_image *image = tw_capture_image(ctf->printer.capture, stream->image);
	const char *program = image ? image->program : "";
	const uint32_t magic = MAGIC, kind = stream->kind;
	const uint64_t instance = stream->number;
	char head[512];
	size_t program_bytes = strlen(program), used = 0;
	/* The end of a path tells more than its beginning. */
	if (program_bytes > 255) {
		program += program_bytes - 255;
		program_bytes = 255;
	}
	size_t name_bytes = strlen(stream->thread_name);
	uint64_t bits = (4 + 16 + 4 + 8 + 6 * 8 + program_bytes + 1 + name_bytes + 1 + stream->used) * UINT64_C(8);
	put(head, &used, &magic, 4);
	put(head, &used, ctf->uuid, 16);
	put(head, &used, &kind, 4);
	put(head, &used, &instance, 8);
	const uint64_t context[] = {stream->from_ns, stream->to_ns, bits, bits, stream->lost, stream->packets};
	put(head, &used, context, sizeof context);
	put(head, &used, program, program_bytes);
	head[used++] = '\0';
	put(head, &used, stream->thread_name, name_bytes + 1);
	write_packet(ctf, stream, head, used);
	stream->packets++;
	stream->used = 0;
}

/* Removes the files that a trace of ours can have. False: something else is there, or cannot be removed. */
static bool remove_trace(int folder, const char *path)
{
	DIR *list = fdopendir(dup(folder));
	struct dirent *entry;
	bool is_ours = list != NULL;
	while (is_ours && (entry = readdir(list)) != NULL)
		is_ours = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			  strcmp(entry->d_name, "metadata") == 0 || strncmp(entry->d_name, "stream_", 7) == 0;
	if (is_ours)
		rewinddir(list);
	while (is_ours && (entry = readdir(list)) != NULL)
		if (entry->d_name[0] != '.')
			is_ours = unlinkat(folder, entry->d_name, 0) == 0;
	if (list)
		closedir(list);
	return is_ours && rmdir(path) == 0;
}

static bool has_trace(int folder)
{
	char line[sizeof FIRST_LINE] = "";
	int fd = openat(folder, "metadata", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is_read = fd >= 0 && read(fd, line, sizeof line - 1) == (ssize_t)sizeof line - 1;
	if (fd >= 0)
		close(fd);
	return is_read && strcmp(line, FIRST_LINE) == 0;
}

static int open_folder(struct ctf *ctf, bool is_forced)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	if (strcmp(ctf->path, "-") == 0)
		return tw_fail("a trace of CTF is a folder: it cannot be written to standard output.");
	if (mkdir(ctf->path, 0777) && errno == EEXIST) {
		int old = open(ctf->path, flags);
		bool is_trace = old >= 0 && has_trace(old);
		bool is_gone = is_forced && is_trace && remove_trace(old, ctf->path);
		if (old >= 0)
			close(old);
		if (!is_gone)
			return tw_fail(is_forced ? "'%s' exists; --force replaces a trace of CTF, and nothing else."
						 : "'%s' exists; --force replaces it.",
				       ctf->path);
		if (mkdir(ctf->path, 0777))
			return tw_fail("'%s' cannot be made: %s.", ctf->path, strerror(errno));
	}
	ctf->folder = open(ctf->path, flags);
	return ctf->folder >= 0 ? TW_EXIT_OK : tw_fail("'%s' cannot be made: %s.", ctf->path, strerror(errno));
}

/* ---- the text ---- */

/* A string of TSDL: as people see the name, with the two characters escaped that end or change it. */
static void put_quoted(struct tw_out *out, const char *name, size_t bytes)
{
	static char clean[TW_NAME_TEXT_BYTES];
	size_t used = tw_clean(name, bytes, clean, sizeof clean);
	tw_out_text(out, "\"");
	for (size_t i = 0; i < used; i++) {
		if (clean[i] == '"' || clean[i] == '\\')
			tw_out_text(out, "\\");
		tw_out_bytes(out, &clean[i], 1);
	}
	tw_out_text(out, "\"");
}

static void put_uuid(const struct ctf *ctf, struct tw_out *out)
{
	tw_out_text(out, "\"");
	for (unsigned i = 0; i < sizeof ctf->uuid; i++)
		tw_out_format(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", ctf->uuid[i]);
	tw_out_text(out, "\"");
}

static void put_trace(const struct ctf *ctf, struct tw_out *out)
{
	struct tw_capture_info info;
	const struct tw_capture_image *image = tw_capture_image(ctf->printer.capture, 0);
	tw_capture_info(ctf->printer.capture, &info);
	/* Times are those of the capture's clock; behind 0 of it lies this time of day. */
	int64_t offset = (int64_t)(info.start_wall_ns - info.start_ns), seconds = offset / 1000000000;
	if (offset < seconds * 1000000000)
		seconds--;
	tw_out_text(out, FIRST_LINE "\n"
				    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
				    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
				    "typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
				    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
				    "\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = ");
	put_uuid(ctf, out);
	tw_out_text(out, ";\n\tbyte_order = le;\n\tpacket.header := struct {\n\t\tuint32_t magic;\n"
			 "\t\tuint8_t uuid[16];\n\t\tuint32_t stream_id;\n\t\tuint64_t stream_instance_id;\n\t};\n};\n"
			 "\nenv {\n\thostname = ");
	put_quoted(out, image ? image->host : "", image ? strlen(image->host) : 0);
	tw_out_format(
		out,
		";\n\tdomain = \"ust\";\n\ttracer_name = \"tracewheel\";\n\ttracer_version = \"%s\";\n};\n"
		"\nclock {\n\tname = \"monotonic\";\n\tdescription = \"CLOCK_MONOTONIC\";\n"
		"\tfreq = 1000000000;\n\tabsolute = true;\n\toffset_s = %lld;\n\toffset = %lld;\n};\n"
		"typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := time_t;\n"
		"typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := long_time_t;\n",
		TW_VERSION, (long long)seconds, (long long)(offset - seconds * 1000000000));
}

static void put_functions(const struct ctf *ctf, struct tw_out *out)
{
	tw_out_text(out, "\ntypealias enum : uint32_t {\n");
	for (uint32_t i = 0; i < ctf->places.function_count; i++) {
		tw_out_text(out, "\t");
		put_quoted(out, ctf->places.names[i].text, ctf->places.names[i].bytes);
		tw_out_format(out, " = %u,\n", i);
	}
	tw_out_text(out, "} := function_t;\n");
}

/* The name of an event's text. */
static const char *text_name(unsigned kind)
{
	return kind == TW_CAPTURE_CALL		   ? "arguments"
	       : kind == TW_CAPTURE_RETURN_FROM	   ? "result"
	       : kind == TW_CAPTURE_EXCEPTION_FROM ? "exception"
						   : "what";
}

static void put_event_class(struct tw_out *out, unsigned stream, unsigned kind, const char *name)
{
	tw_out_format(out, "event {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = %u;\n\tfields := struct {\n", name,
		      kind, stream);
	if (tw_print_has_place(kind))
		tw_out_text(out, "\t\tfunction_t function;\n");
	tw_out_format(out, "\t\tstring %s;\n\t};\n};\n", text_name(kind));
}

static void put_stream_class(const struct ctf *ctf, struct tw_out *out, unsigned stream)
{
	tw_out_format(
		out,
		"\nstream {\n\tid = %u;\n\tevent.header := struct {\n\t\tuint8_t id;\n\t\ttime_t timestamp;\n\t};\n"
		"\tpacket.context := struct {\n\t\tlong_time_t timestamp_begin;\n\t\tlong_time_t timestamp_end;\n"
		"\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n\t\tuint64_t events_discarded;\n"
		"\t\tuint64_t packet_seq_num;\n\t\tstring program;\n\t\tstring procname;\n\t};\n"
		"\tevent.context := struct {\n\t\tint32_t vpid;\n\t\tint32_t vtid;\n%s\t};\n};\n",
		stream, stream == OF_PROCESSES ? "\t\tstring pid;\n" : "");
	for (unsigned kind = 0; kind < 64; kind++) {
		const struct tw_print_kind *known = tw_print_kind(kind);
		if (known && kind != TW_CAPTURE_LOSS && kind != TW_CAPTURE_OWN_TIME && ctf->places.kinds[kind])
			put_event_class(out, stream, kind, known->word);
	}
	put_event_class(out, stream, UNKNOWN_KIND, "event");
}

static void write_metadata(struct ctf *ctf)
{
	static struct tw_out out;
	int fd = openat(ctf->folder, "metadata", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		ctf->failed = errno;
		return;
	}
	tw_out_init(&out, fd);
	put_trace(ctf, &out);
	put_functions(ctf, &out);
	for (unsigned kind = 0; kind < STREAM_KINDS; kind++)
		put_stream_class(ctf, &out, kind);
	ctf->failed = tw_out_flush(&out);
	if (close(fd) && !ctf->failed)
		ctf->failed = errno;
}

/* ---- events ---- */

/* NULL: no memory. */
static struct ctf_stream *stream_of(struct ctf *ctf, const struct tw_capture_event *event, uint32_t kind)
{
	const struct tw_capture_stream *from = tw_capture_stream(ctf->printer.capture, event->stream);
	/* Losses of threads without a ring have no stream, but a process. */
	uint64_t key = (from ? (uint64_t)event->stream : UINT64_C(0x80000000) | event->image) << 1 | kind;
	uint32_t index = tw_map_get(&ctf->by_key, key);
	if (index != TW_MAP_NONE)
		return &ctf->streams[index];
	index = ctf->count;
	if (!tw_grow_to(ctf->streams, ctf->capacity, index) || !tw_map_add(&ctf->by_key, key, index))
		return NULL;
	struct ctf_stream *stream = &ctf->streams[ctf->count++];
	stream->number = index;
	stream->image = event->image;
	stream->kind = kind;
	stream->thread_id = from ? from->thread_id : 0;
	if (from)
		memcpy(stream->thread_name, from->thread_name, sizeof stream->thread_name);
	stream->from_ns = stream->to_ns = event->time_ns;
	return stream;
}

static void put_loss(struct ctf *ctf, const struct tw_capture_event *event)
{
	struct ctf_stream *stream = stream_of(ctf, event, OF_THREADS);
	struct tw_missing_loss loss;
	if (!stream) {
		ctf->error = TW_ENOMEM;
		return;
	}
	tw_missing_loss(ctf->printer.capture, event, &loss);
	if (!loss.sum)
		return;
	/* Readers take the difference to the packet before. */
	if (stream->used || !stream->packets)
		end_packet(ctf, stream);
	stream->lost += loss.sum;
	stream->from_ns = stream->to_ns;
	if (event->time_ns > stream->to_ns)
		stream->to_ns = event->time_ns;
	end_packet(ctf, stream);
	stream->from_ns = stream->to_ns;
}

/* A packet's events have the lower half of their times: none is 4.29 s or more behind the one before it. */
static bool make_room(struct ctf *ctf, struct ctf_stream *stream, uint64_t ns, size_t bytes)
{
	if (stream->used && (stream->used + bytes > PACKET_BYTES || ns - stream->to_ns > UINT32_MAX / 2))
		end_packet(ctf, stream);
	if (!stream->used)
		stream->from_ns = ns;
	stream->to_ns = ns;
	return tw_grow_by(stream->data, stream->used, stream->capacity, bytes);
}

/* The process of an event is none of the kernel's threads: it is shown by its pid. */
static bool is_of_process(const struct ctf *ctf, const struct tw_capture_event *event)
{
	return ctf->printer.has_pids && !tw_process_thread(ctf->printer.capture, event->image, event->tracee_id);
}

/* Into `text`: the pid, and the values of the event, each with a zero byte behind it. Returns the bytes. */
static size_t make_text(struct ctf *ctf, const struct tw_capture_event *event, bool has_pid)
{
	text.used = 0;
	if (has_pid) {
		tw_print_pid(&ctf->printer, event);
		tw_put_char(&text, '\0');
	}
	size_t from = text.used;
	if (event->payload_words || event->flags) {
		tw_print_text_payload(&ctf->printer, event);
		if (text.used > TEXT_BYTES) {
			text.used = tw_utf8_part(text.data, TEXT_BYTES);
			tw_out_text(&text, "...");
		}
	}
	size_t skipped = from;
	while (skipped < text.used && text.data[skipped] == ' ')
		skipped++;
	if (text.used - skipped > 3 && memcmp(text.data + skipped, "-> ", 3) == 0)
		skipped += 3;
	memmove(text.data + from, text.data + skipped, text.used - skipped);
	text.used -= skipped - from;
	for (size_t i = from; i < text.used; i++)
		if (!text.data[i])
			text.data[i] = ' ';
	text.data[text.used++] = '\0';
	return text.used;
}

static void put_event(struct ctf *ctf, const struct tw_capture_event *event)
{
	bool has_pid = is_of_process(ctf, event);
	struct ctf_stream *stream = stream_of(ctf, event, has_pid ? OF_PROCESSES : OF_THREADS);
	const struct tw_capture_image *image = tw_capture_image(ctf->printer.capture, event->image);
	size_t bytes = 1 + 4 + 4 + 4 + 4 + make_text(ctf, event, has_pid);
	/* Processors' clocks may differ by some ns, where a thread migrates. */
	uint64_t ns = stream && event->time_ns < stream->to_ns ? stream->to_ns : event->time_ns;
	if (!stream || !make_room(ctf, stream, ns, bytes)) {
		ctf->error = TW_ENOMEM;
		return;
	}
	const uint8_t id = tw_print_kind(event->kind) ? (uint8_t)event->kind : UNKNOWN_KIND;
	const uint32_t low_ns = (uint32_t)ns;
	const uint32_t function = tw_places_function(&ctf->places, event->image, event->id);
	const int32_t process_id = image ? image->process_id : 0;
	size_t used = stream->used, pid_bytes = has_pid ? strlen(text.data) + 1 : 0;
	put(stream->data, &used, &id, 1);
	put(stream->data, &used, &low_ns, 4);
	put(stream->data, &used, &process_id, 4);
	put(stream->data, &used, &stream->thread_id, 4);
	put(stream->data, &used, text.data, pid_bytes);
	if (id != UNKNOWN_KIND && tw_print_has_place(event->kind))
		put(stream->data, &used, &function, 4);
	put(stream->data, &used, text.data + pid_bytes, text.used - pid_bytes);
	stream->used = (uint32_t)used;
	ctf->printer.shown++;
}

static int see(void *self, const struct tw_capture_event *event)
{
	struct ctf *ctf = self;
	if (event->kind == TW_CAPTURE_LOSS)
		put_loss(ctf, event);
	else
		put_event(ctf, event);
	return ctf->error ? ctf->error : ctf->failed ? TW_FOLD_DONE : 0;
}

/* ---- all ---- */

/* Readers tell traces apart by it: the recording's own number, and the kernel it ran on. */
static void make_uuid(struct ctf *ctf)
{
	const struct tw_capture_image *image = tw_capture_image(ctf->printer.capture, 0);
	uint64_t half = tw_hash_bytes(&ctf->printer.start_ns, sizeof ctf->printer.start_ns, 0);
	memcpy(ctf->uuid + 8, image ? &image->capture_id : &half, 8);
	if (image)
		half = tw_hash_bytes(image->boot_id, sizeof image->boot_id, half);
	memcpy(ctf->uuid, &half, 8);
}

static int write_all(struct ctf *ctf)
{
	struct tw_capture *capture = (struct tw_capture *)ctf->printer.capture;
	const struct tw_capture_filter all = {0};
	struct tw_fold fold = {.self = ctf, .see = see};
	int error = tw_places_make(&ctf->places, capture, &all);
	if (error)
		return error;
	write_metadata(ctf);
	if (!ctf->failed)
		error = tw_pass_one(capture, &fold, "converting");
	for (uint32_t i = 0; !error && !ctf->failed && i < ctf->count; i++)
		if (ctf->streams[i].used)
			end_packet(ctf, &ctf->streams[i]);
	return error;
}

int tw_tool_write_ctf(const char *path, bool is_forced, struct tw_capture *capture, uint64_t *events)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	struct ctf ctf = {.path = path,
			  .printer = {.out = &text,
				      .capture = capture,
				      .start_ns = info.zero_ns,
				      .pid_tracee = UINT32_MAX,
				      .process_tracee = UINT32_MAX,
				      .stamp = -1,
				      .has_pids = tw_processes_are_declared(capture)}};
	int code = open_folder(&ctf, is_forced);
	if (code)
		return code;
	tw_out_init(&text, -1);
	make_uuid(&ctf);
	int error = write_all(&ctf);
	if (error)
		code = tw_fail("the capture cannot be read: %s", tw_strerror(error));
	else if (ctf.failed)
		code = tw_fail("'%s' was not written to its end, and is removed: %s.", path, strerror(ctf.failed));
	if (code)
		remove_trace(ctf.folder, path);
	*events = ctf.printer.shown;
	close(ctf.folder);
	for (uint32_t i = 0; i < ctf.count; i++)
		free(ctf.streams[i].data);
	free(ctf.streams);
	tw_map_fini(&ctf.by_key);
	tw_places_free(&ctf.places);
	return code;
}
