/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: captures of every version of the format, valid and broken, are read with the same result as before.
 *
 * Method: tests/golden/NAME.tw is read and compared with tests/golden/NAME.txt, line by line.
 * `capture_golden_test make DIRECTORY` writes captures and texts there; a new version adds cases, and
 * keeps the files of the old ones.  `capture_golden_test seeds DIRECTORY` writes their segments as
 * seeds of the fuzzer.
 */
#include "capture_help.h"

struct golden {
	const char *name;
	void (*make)(void);
};

/* ---- making ---- */

static void put_definition(uint8_t *to, uint32_t *at, uint32_t type, const void *fixed, size_t bytes, const char *text)
{
	const struct tw_definition_head head = {type, (uint32_t)(bytes + strlen(text))};

	memcpy(to + *at, &head, sizeof(head));
	memcpy(to + *at + sizeof(head), fixed, bytes);
	memcpy(to + *at + sizeof(head) + bytes, text, strlen(text));
	*at += (uint32_t)(sizeof(head) + head.payload_bytes + 7) / 8 * 8;
}

static void put_definitions(struct maker *maker)
{
	const struct tw_def_image image = {.process_id = 1001, .program_bytes = 8, .command_bytes = 6, .host_bytes = 4};
	const struct tw_def_module module = {.module_id = 1,
					     .base_address = 0x1000,
					     .end_address = 0x2000,
					     .name_bytes = 3,
					     .path_bytes = 7,
					     .soname_bytes = 5,
					     .build_id_bytes = 2};
	const struct tw_def_atom atom = {.atom_id = 5, .text_bytes = 2};
	const struct tw_def_tracee tracee = {.tracee_id = 1, .thread_id = 101, .pid_number = 44, .name_bytes = 5};
	const struct tw_def_session session = {.session_id = 9, .name_bytes = 7};
	const struct tw_def_note note = {.text_bytes = 5};
	uint8_t bytes[1024] = {0};
	uint32_t at = 0;

	put_definition(bytes, &at, TW_DEF_IMAGE, &image, sizeof(image), "/bin/appapp -xhost");
	put_definition(bytes, &at, TW_DEF_MODULE, &module, sizeof(module), "foofoo.so.libfo..");
	for (uint32_t i = 0; i < 4; i++) {
		const struct tw_def_function function = {.function_id = i, .module_id = 1, .arity = i, .name_bytes = 2};
		const struct tw_def_place place = {.place_id = i,
						   .function_id = i,
						   .kind = TW_PLACE_SLOT,
						   .caller_module_id = 1};
		const char name[3] = {'f', (char)('0' + i), 0};

		put_definition(bytes, &at, TW_DEF_FUNCTION, &function, sizeof(function), name);
		put_definition(bytes, &at, TW_DEF_PLACE, &place, sizeof(place), "");
	}
	put_definition(bytes, &at, TW_DEF_ATOM, &atom, sizeof(atom), "ok");
	put_definition(bytes, &at, TW_DEF_TRACEE, &tracee, sizeof(tracee), "actor");
	put_definition(bytes, &at, TW_DEF_SESSION, &session, sizeof(session), "default");
	put_definition(bytes, &at, TW_DEF_NOTE, &note, sizeof(note), "hello");
	/* A type unknown to this version. */
	put_definition(bytes, &at, 77, &note, sizeof(note), "later");
	maker_definitions(maker, bytes, at, 0);
}

static void put_values(struct maker *maker, uint32_t stream, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		maker_call(maker, stream, 2000 + i * 10 + stream, i, i * 0x1234567 & 0xffffffff);
}

static void make_values(void)
{
	struct maker *maker = begin_maker();

	put_definitions(maker);
	put_values(maker, 0, 0, 20);
	put_values(maker, 1, 0, 20);
	end_maker(maker, true);
}

static void make_calls(void)
{
	struct maker *maker = begin_maker();

	put_definitions(maker);
	for (uint64_t i = 0; i < 8; i++) {
		const uint64_t result = i * 3;

		maker_record(maker, 0, 2000 + i * 100, TW_EVENT_CALL, 1, NULL, 0);
		maker_record(maker, 0, 2010 + i * 100, TW_EVENT_CALL, 2, NULL, 0);
		maker_record(maker, 0, 2020 + i * 100, TW_EVENT_RETURN_FROM, 2, NULL, 0);
		maker_record(maker, 0, 2700 + i * 100, i == 5 ? TW_EVENT_EXCEPTION_FROM : TW_EVENT_RETURN_FROM, 1,
			     &result, i % 2);
	}
	end_maker(maker, true);
}

static void make_mixed(void)
{
	struct maker *maker = begin_maker();
	const uint64_t lost[6] = {2150, 10, 0, 3, 0, 0}, run = 1, next = 2;
	uint64_t term[40];

	put_definitions(maker);
	for (uint64_t i = 0; i < 40; i++)
		term[i] = i * i;
	maker_record(maker, 0, 2100, TW_EVENT_SWITCH, 1, &run, 1);
	maker_record(maker, 0, 2110, TW_EVENT_TERM_FIRST, 5, term, 40);
	maker_record(maker, 0, 2200, TW_EVENT_LOSS, 0, lost, 6);
	maker_record(maker, 0, 2210, 99, 5, term, 3);
	/* The same tracee on another thread, whose clock is behind. */
	maker_record(maker, 1, 2190, TW_EVENT_SWITCH, 1, &next, 1);
	maker_record(maker, 1, 2195, TW_EVENT_RETURN_TO, 2, NULL, 0);
	end_maker(maker, true);
}

static void make_cut(void)
{
	struct maker *maker = begin_maker();

	put_definitions(maker);
	put_values(maker, 0, 0, 20);
	maker_flush(maker, 0);
	put_values(maker, 0, 20, 20);
	end_maker(maker, false);
}

/* Changes a byte of the only segment, counted from the end if negative. */
static void damage(const char *suffix, off_t offset)
{
	char path[400];
	uint8_t byte = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/segment-000001.tws%s", capture_path, suffix);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	if (offset < 0)
		offset += lseek(fd, 0, SEEK_END);
	assert_int_equal(pread(fd, &byte, 1, offset), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
	close(fd);
}

static void make_broken_block(void)
{
	make_cut();
	damage(".part", -100);
}

static void make_broken_header(void)
{
	make_cut();
	/* In the header of the definitions. */
	damage(".part", sizeof(struct tw_segment_header) + 40);
}

static void make_broken_index(void)
{
	make_values();
	damage("", -60);
}

static void make_torn(void)
{
	char path[400];
	struct stat st;

	make_cut();
	snprintf(path, sizeof(path), "%s/segment-000001.tws.part", capture_path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 50), 0);
}

/* Two images, the second of which lost events for lack of rings, and a stretch that is stored twice. */
static void make_two_images(void)
{
	struct maker *maker = begin_maker();
	struct tw_block_header header = {.type = TW_BLOCK_LOSS,
					 .first_ticks = 2050,
					 .last_ticks = 2095,
					 .clock = {1000, 1000, 5000, 1000},
					 .lost = {0, 0, 0, 17}};
	struct maker_stream saved;
	const uint8_t *stored;

	put_definitions(maker);
	put_values(maker, 0, 0, 5);
	saved = maker->streams[0];
	maker_flush(maker, 0);
	maker->streams[0] = saved;
	put_values(maker, 0, 5, 5);
	maker_flush(maker, 0);
	assert_int_equal(tw_store_close_segment(&maker->store, &maker->image, TW_SEGMENT_LAST), 0);
	maker_segment(maker, 2);
	put_values(maker, 1, 0, 5);
	tw_block_encode_bytes(maker->store.encoder, &header, NULL, 0, &stored);
	assert_int_equal(tw_store_append(&maker->store, &maker->image, &header, stored), 0);
	end_maker(maker, true);
}

/* Waits, set-up, losses around them; two threads that had one number in turn. */
static void make_own(void)
{
	struct maker *maker = begin_maker();
	const uint64_t wait = 150, setup = 30, lost[6] = {2300, 0, 0, 2, 0, 0};

	put_definitions(maker);
	for (uint32_t i = 0; i < 2; i++) {
		maker->streams[i].thread_id = 77;
		maker->streams[i].thread_start = 900 + i;
	}
	maker_record(maker, 0, 2000, TW_EVENT_OWN_TIME, TW_OWN_TIME_SETUP, &setup, 1);
	maker_record(maker, 0, 2000, TW_EVENT_CALL, 1, NULL, 0);
	maker_record(maker, 0, 2100, TW_EVENT_OWN_TIME, TW_OWN_TIME_WAIT, &wait, 1);
	maker_record(maker, 0, 2100, TW_EVENT_CALL, 2, NULL, 0);
	maker_record(maker, 0, 2310, TW_EVENT_LOSS, 0, lost, 6);
	maker_record(maker, 0, 2320, TW_EVENT_RETURN_FROM, 2, NULL, 0);
	maker_record(maker, 1, 2330, TW_EVENT_CALL, 3, NULL, 0);
	end_maker(maker, true);
}

/* The last two of four segments; the third counts the earlier ones; and events that the recorder could not store. */
static void make_kept(void)
{
	struct maker *maker = begin_maker();
	char path[400];

	maker->store.segments_kept = 2;
	maker->store.account[TW_ACCOUNT_DAMAGED_RINGS] = 1;
	maker->store.account[TW_ACCOUNT_UNSTORED] = 4;
	for (uint32_t segment = 0; segment < 4; segment++) {
		put_definitions(maker);
		put_values(maker, 0, segment * 10, 10);
		maker_flush(maker, 0);
		if (segment == 3)
			break;
		assert_int_equal(tw_store_close_segment(&maker->store, &maker->image, 0), 0);
		assert_int_equal(tw_store_open_segment(&maker->store, &maker->image), 1);
	}
	end_maker(maker, true);
	snprintf(path, sizeof(path), "%s/segment-000002.tws", capture_path);
	unlink(path);
	snprintf(path, sizeof(path), "%s/segment-000001.tws", capture_path);
	unlink(path);
}

/* More functions than one column has, names that share beginnings, and records among them that have no columns. */
static void make_definitions(void)
{
	const char *stems[] = {"_ZN6engine6Parser", "_ZN6engine", "x", "main_loop_of_the_engine"};
	struct maker *maker = begin_maker();
	uint8_t bytes[1 << 16] = {0};
	uint32_t at = 0;

	put_definitions(maker);
	for (uint32_t i = 10; i < 400; i++) {
		const struct tw_def_place place = {.place_id = i,
						   .function_id = i * 3,
						   .kind = TW_PLACE_SLED | (i % 50 ? 0 : TW_PLACE_HAS_NO_END),
						   .caller_module_id = i % 3 == 0,
						   .address = 0x401000 + i * 48};
		struct tw_def_function function = {.function_id = i * 3,
						   .module_id = 1,
						   .arity = i % 5 ? i % 5 : TW_DEF_ARITY_UNKNOWN,
						   .address = 0x7f0000000000 - i * 4096};
		struct tw_def_layout layout = {.function_id = i * 3, .text_bytes = 5};
		char name[64];

		function.name_bytes = (uint16_t)snprintf(name, sizeof(name), "%s%u", stems[i / 7 % 4], i);
		put_definition(bytes, &at, TW_DEF_FUNCTION, &function, sizeof(function), name);
		if (i % 20 == 0)
			put_definition(bytes, &at, TW_DEF_LAYOUT, &layout, sizeof(layout), "later");
		put_definition(bytes, &at, TW_DEF_PLACE, &place, sizeof(place), "");
	}
	maker_definitions(maker, bytes, at, 100000);
	put_values(maker, 0, 0, 5);
	end_maker(maker, true);
}

/* Stacks of several depths, known and new ones, empty ones, deeper ones than a record of words; arguments and results of one function. */
static void make_stacks(void)
{
	struct maker *maker = begin_maker();
	uint64_t callers[40];

	put_definitions(maker);
	for (uint64_t i = 0; i < 60; i++) {
		const uint64_t size = 64 + i % 3 * 16, result = 0x5500000000 + i % 7 * 64;
		uint32_t depth = i == 30 ? 40 : i % 4 * 3, function = i % 3;

		for (uint32_t j = 0; j < depth; j++)
			callers[j] = 0x1000 + (depth - j) * 0x40 + (j ? 0 : i % 5 * 4);
		maker_record(maker, 0, 2000 + i * 10, TW_EVENT_CALL, function, &size, 1);
		maker_record(maker, 0, 2000 + i * 10, TW_EVENT_STACK, function, callers, depth);
		maker_record(maker, 0, 2005 + i * 10, TW_EVENT_RETURN_FROM, function, &result, 1);
	}
	end_maker(maker, true);
}

static const struct golden goldens[] = {
	{"v1-values", make_values},
	{"v1-calls", make_calls},
	{"v1-mixed", make_mixed},
	{"v1-two-images", make_two_images},
	{"v1-cut", make_cut},
	{"v1-torn", make_torn},
	{"v1-broken-block", make_broken_block},
	{"v1-broken-header", make_broken_header},
	{"v1-broken-index", make_broken_index},
	{"v2-own", make_own},
	{"v2-kept", make_kept},
	{"v3-definitions", make_definitions},
	{"v4-stacks", make_stacks},
};

/* ---- reading ---- */

static void print_definitions(const struct tw_capture *capture, uint32_t image, FILE *out)
{
	const struct tw_capture_place *place;
	const struct tw_capture_tracee *tracee;
	const struct tw_capture_session *session;
	const char *note;
	uint32_t at = 0;

	while ((place = tw_capture_place_next(capture, image, &at)) != NULL) {
		const struct tw_capture_function *function = place->function;
		const struct tw_capture_module *module = function ? function->module : NULL;

		fprintf(out, "place %u: %s:%s/%u of %s, %s, build id of %zu bytes\n", place->place_id,
			module ? module->name : "?", function ? function->name : "?", function ? function->arity : 0,
			module ? module->path : "?", module ? module->soname : "?",
			module ? module->build_id_bytes : 0);
	}
	for (at = 0; (tracee = tw_capture_tracee_next(capture, image, &at)) != NULL;)
		fprintf(out, "tracee %u: <0.%u.%u> %s\n", tracee->tracee_id, tracee->pid_number, tracee->pid_serial,
			tracee->name);
	for (at = 0; (session = tw_capture_session_next(capture, image, &at)) != NULL;)
		fprintf(out, "session %u: %s\n", session->session_index, session->name);
	for (at = 0; (note = tw_capture_note_next(capture, image, &at)) != NULL;)
		fprintf(out, "note: %s\n", note);
}

static void print_events(struct tw_capture *capture, FILE *out)
{
	const struct tw_capture_filter filter = {.kinds = UINT64_MAX, .wants_own_time = true};
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	int64_t count;

	assert_int_equal(tw_capture_events_create(capture, &filter, &events), 0);
	while ((count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < count; i++) {
			fprintf(out, "%llu image %u stream %d tracee %u sequence %llu kind %u id %u:",
				(unsigned long long)batch[i].time_ns, batch[i].image, (int)batch[i].stream,
				batch[i].tracee_id, (unsigned long long)batch[i].sequence, batch[i].kind, batch[i].id);
			for (uint32_t j = 0; j < batch[i].payload_words; j++)
				fprintf(out, " %llx", (unsigned long long)batch[i].payload[j]);
			fprintf(out, "\n");
		}
	}
	assert_int_equal(count, 0);
	tw_capture_events_destroy(events);
}

/* From version 2 on: missing events, and threads with time spent by the tracer. */
static void print_account(const struct tw_capture *capture, FILE *out)
{
	struct tw_capture_account account;

	tw_capture_account(capture, &account);
	for (unsigned cause = 0; cause < TW_MISSING_CAUSES; cause++) {
		const struct tw_capture_missing *missing = &account.missing[cause];

		if (missing->events || missing->places || missing->has_more)
			fprintf(out, "missing %s: %llu events, %llu places%s\n", tw_missing_cause_name(cause),
				(unsigned long long)missing->events, (unsigned long long)missing->places,
				missing->has_more ? ", and more" : "");
	}
	fprintf(out, "waits %llu, %llu ns; setups %llu, %llu ns\n", (unsigned long long)account.waits.count,
		(unsigned long long)account.waits.ns, (unsigned long long)account.setups.count,
		(unsigned long long)account.setups.ns);
}

static void print_capture(const char *path, FILE *out, bool has_account)
{
	const struct tw_capture_damage *damaged;
	struct tw_capture *capture;
	struct tw_capture_info info;
	const struct tw_capture_image *image;

	assert_int_equal(tw_capture_open(path, NULL, &capture), 0);
	for (uint32_t i = 0; (image = tw_capture_image(capture, i)) != NULL; i++) {
		fprintf(out, "image %u: process %d, %s on %s, %s\n", i, image->process_id, image->program, image->host,
			image->is_final ? "ended" : "not known to have ended");
		print_definitions(capture, i, out);
	}
	print_events(capture, out);
	tw_capture_info(capture, &info);
	fprintf(out, "events %llu lost %llu %llu %llu %llu damaged %llu duplicates %llu complete %d\n",
		(unsigned long long)info.events, (unsigned long long)info.lost[0], (unsigned long long)info.lost[1],
		(unsigned long long)info.lost[2], (unsigned long long)info.lost[3],
		(unsigned long long)info.damaged_records, (unsigned long long)info.duplicate_blocks, info.is_complete);
	fprintf(out, "from %llu to %llu, wall %llu; %u segments %u blocks %u images %u threads\n",
		(unsigned long long)info.start_ns, (unsigned long long)info.end_ns,
		(unsigned long long)info.start_wall_ns, info.segments, info.blocks, info.images, info.threads);
	for (uint32_t i = 0; (damaged = tw_capture_damage(capture, i)) != NULL; i++)
		fprintf(out, "damage in %s at %llu, %llu bytes: %s\n", damaged->file,
			(unsigned long long)damaged->offset, (unsigned long long)damaged->bytes, damaged->reason);
	if (has_account)
		print_account(capture, out);
	tw_capture_close(capture);
}

static void atoms_and_clocks(void **state)
{
	struct tw_capture *capture;
	struct tw_capture_info info;
	size_t bytes = 0;

	assert_int_equal(tw_capture_open(TW_TEST_DATA "/golden/v1-values.tw", NULL, &capture), 0);
	assert_string_equal(tw_capture_atom(capture, 0, 5, &bytes), "ok");
	assert_int_equal(bytes, 2);
	assert_null(tw_capture_atom(capture, 0, 6, &bytes));
	tw_capture_info(capture, &info);
	/* The maker's readings: CLOCK_BOOTTIME equals CLOCK_MONOTONIC, and CLOCK_REALTIME is 4000 ns ahead. */
	assert_int_equal(tw_capture_boot_ns(capture, info.start_ns), info.start_ns);
	assert_int_equal(tw_capture_wall_ns(capture, info.start_ns), info.start_ns + 4000);
	tw_capture_close(capture);
}

static int version_of(const struct golden *golden)
{
	return golden->name[1] - '0';
}

static void goldens_read_as_ever(void **state)
{
	for (size_t i = 0; i < TW_COUNT_OF(goldens); i++) {
		char path[400], expected[1 << 16] = "", *text = NULL;
		size_t bytes = 0;
		FILE *out = open_memstream(&text, &bytes), *in;

		snprintf(path, sizeof(path), TW_TEST_DATA "/golden/%s.tw", goldens[i].name);
		print_capture(path, out, version_of(&goldens[i]) > 1);
		fclose(out);
		snprintf(path, sizeof(path), TW_TEST_DATA "/golden/%s.txt", goldens[i].name);
		in = fopen(path, "r");
		assert_non_null(in);
		assert_true(fread(expected, 1, sizeof(expected) - 1, in) > 0);
		fclose(in);
		assert_string_equal(text, expected);
		free(text);
	}
}

/* ---- writing them ---- */

static void copy_file(const char *from, const char *to, const char *first)
{
	static uint8_t bytes[1 << 20];
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	size_t count;

	assert_true(in && out);
	count = fread(bytes, 1, sizeof(bytes), in);
	fputs(first, out);
	fwrite(bytes, 1, count, out);
	fclose(in);
	fclose(out);
}

static void write_golden(const struct golden *golden, const char *to, bool is_seed)
{
	char text[400], from[700], file[700];
	const struct dirent *entry;
	DIR *made;
	FILE *out;

	golden->make();
	snprintf(text, sizeof(text), "%s/%s.tw", to, golden->name);
	if (!is_seed)
		mkdir(text, 0755);
	made = opendir(capture_path);
	assert_non_null(made);
	while ((entry = readdir(made)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(from, sizeof(from), "%s/%s", capture_path, entry->d_name);
		if (is_seed)
			snprintf(file, sizeof(file), "%s/%s-%c", to, golden->name, entry->d_name[13]);
		else
			snprintf(file, sizeof(file), "%s/%s", text, entry->d_name);
		copy_file(from, file, is_seed ? "\2" : "");
	}
	closedir(made);
	if (!is_seed) {
		snprintf(text, sizeof(text), "%s/%s.txt", to, golden->name);
		out = fopen(text, "w");
		assert_non_null(out);
		print_capture(capture_path, out, true);
		fclose(out);
	}
	remove_folder(capture_path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goldens_read_as_ever),
		cmocka_unit_test(atoms_and_clocks),
	};

	if (argc != 3)
		return cmocka_run_group_tests(tests, NULL, NULL);
	begin_directory();
	for (size_t i = 0; i < TW_COUNT_OF(goldens); i++) {
		/* Files of an older version were written when it was current. */
		if (strcmp(argv[1], "seeds") == 0 || version_of(&goldens[i]) == TW_FORMAT_VERSION)
			write_golden(&goldens[i], argv[2], strcmp(argv[1], "seeds") == 0);
	}
	end_directory();
	return 0;
}
