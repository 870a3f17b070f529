/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    Functions of an object are found by its call frame information, named or not, and nothing else is taken for
 *         one: cold parts, stubs, _start, signal trampolines and resolvers have their kinds.  A damaged file gives an
 *         error or fewer functions.
 * Method  Reads this executable, whose functions are known, also without its symbols and sections; libc; and copies of
 *         this executable with bytes changed at random places of its call frame information.
 */
#include "symbols/entries.h"

#include "symbols/file.h"
#include "symbols/sections.h"
#include "tracewheel/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int global_function(int x);
int other_name(int x) __attribute__((alias("global_function")));
int indirect_function(int x) __attribute__((ifunc("choose_indirect")));
void rarely(void);

__attribute__((noinline)) int global_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + 1;
}

static __attribute__((noinline)) int local_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 5 + 2;
}

static __typeof__(&global_function) choose_indirect(void)
{
	return global_function;
}

/* A part that begins without a frame of its own, as compilers move them away: in the middle of a frame of 24 bytes. */
__asm__(".pushsection .text\n"
	".type hand_made, @function\n"
	"hand_made:\n"
	".cfi_startproc\n"
	"	sub $16, %rsp\n"
	".cfi_def_cfa_offset 24\n"
	"	test %edi, %edi\n"
	"	jne hand_made.cold\n"
	"	add $16, %rsp\n"
	".cfi_def_cfa_offset 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size hand_made, .-hand_made\n"
	"moved:\n"
	"hand_made.cold:\n"
	".cfi_startproc\n"
	".cfi_def_cfa_offset 24\n"
	"	add $16, %rsp\n"
	".cfi_def_cfa_offset 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".popsection\n");
extern char hand_made[], moved[];

struct object {
	struct tw_elf_file *file;
	struct tw_sym_entries entries;
	uint64_t base; /* of the loaded object, to find values of addresses */
};

static void read_object(struct object *object, const char *path, const void *address)
{
	Dl_info info;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_not_equal(dladdr(address, &info), 0);
	object->base = (uintptr_t)info.dli_fbase;
	assert_int_equal(tw_elf_file_open(path, &object->file), 0);
	assert_int_equal(tw_sym_entries_read(&object->file->elf, &object->file->header, fd, NULL, &object->entries), 0);
	close(fd);
}

static void close_object(struct object *object)
{
	tw_sym_entries_fini(&object->entries);
	tw_elf_file_close(object->file);
}

static const struct tw_sym_entry *entry_at(const struct object *object, const void *address)
{
	uint64_t value = (uintptr_t)address - object->base;

	for (size_t i = 0; i < object->entries.count; i++)
		if (object->entries.entries[i].value == value)
			return &object->entries.entries[i];
	return NULL;
}

static bool has_name(const struct object *object, const struct tw_sym_entry *entry, const char *name)
{
	for (size_t i = 0; i < entry->name_count; i++)
		if (!strcmp(object->entries.names[entry->first_name + i], name))
			return true;
	return false;
}

static const struct tw_sym_entry *entry_named(const struct object *object, const char *name)
{
	for (size_t i = 0; i < object->entries.count; i++)
		if (has_name(object, &object->entries.entries[i], name))
			return &object->entries.entries[i];
	return NULL;
}

static void functions_have_entries_and_names(void **state)
{
	const struct tw_sym_entry *entry;
	struct object own;

	(void)state;
	read_object(&own, "/proc/self/exe", (void *)global_function);
	entry = entry_at(&own, (void *)global_function);
	assert_non_null(entry);
	assert_int_equal(entry->kind, TW_SYM_ENTRY_FUNCTION);
	assert_true(has_name(&own, entry, "global_function"));
	assert_true(has_name(&own, entry, "other_name"));
	entry = entry_at(&own, (void *)local_function);
	assert_non_null(entry);
	assert_int_equal(entry->kind, TW_SYM_ENTRY_FUNCTION);
	assert_true(has_name(&own, entry, "local_function"));
	assert_int_equal(own.entries.frames.damaged_count, 0);
	/* By value, without overlap. */
	for (size_t i = 1; i < own.entries.count; i++)
		assert_true(own.entries.entries[i - 1].value + own.entries.entries[i - 1].bytes <=
			    own.entries.entries[i].value);
	close_object(&own);
}

static void other_code_is_no_function(void **state)
{
	const struct tw_sym_entry *entry;
	struct object own, libc;

	(void)state;
	read_object(&own, "/proc/self/exe", (void *)global_function);
	assert_int_equal(entry_at(&own, hand_made)->kind, TW_SYM_ENTRY_FUNCTION);
	assert_int_equal(entry_at(&own, moved)->kind, TW_SYM_ENTRY_PART);
	assert_int_equal(indirect_function(1), 4);
	assert_int_equal(entry_at(&own, (void *)choose_indirect)->kind, TW_SYM_ENTRY_RESOLVER);
	entry = entry_named(&own, "_start");
	assert_non_null(entry);
	assert_int_equal(entry->kind, TW_SYM_ENTRY_NO_CALLER);
	assert_int_equal(entry->value, own.file->header.e_entry);
	close_object(&own);

	/* libc: the code that handlers of signals return to, stubs, and resolvers of memcpy() and its like. */
	Dl_info info;
	size_t kinds[TW_SYM_ENTRY_RESOLVER + 1] = {0};

	assert_int_not_equal(dladdr((void *)(uintptr_t)abort, &info), 0);
	read_object(&libc, info.dli_fname, (void *)(uintptr_t)abort);
	for (size_t i = 0; i < libc.entries.count; i++)
		kinds[libc.entries.entries[i].kind]++;
	assert_int_equal(kinds[TW_SYM_ENTRY_SIGNAL], 1);
	assert_in_range(kinds[TW_SYM_ENTRY_PLT], 1, 4);
	assert_true(kinds[TW_SYM_ENTRY_RESOLVER] > 10);
	assert_true(kinds[TW_SYM_ENTRY_FUNCTION] > 2000);
	assert_int_equal(entry_named(&libc, "malloc")->kind, TW_SYM_ENTRY_FUNCTION);
	close_object(&libc);
}

/* A copy of this executable in memory, to be changed. */
static int copy_own(const char **path, size_t *bytes)
{
	static char name[64];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = memfd_create("entries", MFD_CLOEXEC);
	char buffer[65536];
	ssize_t got;

	assert_true(from >= 0 && to >= 0);
	*bytes = 0;
	while ((got = read(from, buffer, sizeof buffer)) > 0) {
		assert_int_equal(write(to, buffer, (size_t)got), got);
		*bytes += (size_t)got;
	}
	close(from);
	snprintf(name, sizeof name, "/proc/self/fd/%d", to);
	*path = name;
	return to;
}

static void a_file_without_sections_has_the_same_functions(void **state)
{
	struct tw_sym_entries entries, bare;
	struct tw_elf_file *file;
	const char *path;
	size_t bytes;
	int fd = copy_own(&path, &bytes);
	ElfW(Ehdr) header;

	(void)state;
	assert_int_equal(tw_elf_file_open(path, &file), 0);
	assert_int_equal(tw_sym_entries_read(&file->elf, &file->header, fd, NULL, &entries), 0);
	header = file->header;
	header.e_shoff = 0;
	header.e_shnum = 0;
	assert_int_equal(tw_sym_entries_read(&file->elf, &header, fd, NULL, &bare), 0);
	assert_int_equal(bare.count, entries.count);
	for (size_t i = 0; i < bare.count; i++) {
		assert_int_equal(bare.entries[i].value, entries.entries[i].value);
		/* Stubs may be parts there. */
		assert_int_equal(bare.entries[i].kind == TW_SYM_ENTRY_FUNCTION,
				 entries.entries[i].kind == TW_SYM_ENTRY_FUNCTION);
	}
	tw_sym_entries_fini(&bare);
	tw_sym_entries_fini(&entries);
	tw_elf_file_close(file);
	close(fd);
}

/* Callers look for a section also where the reading of them failed. */
static void no_section_is_found_where_none_was_read(void **state)
{
	struct tw_elf_sections sections;
	struct tw_elf_file *file;
	const char *path;
	size_t bytes;
	int fd = copy_own(&path, &bytes);
	ElfW(Ehdr) header;
	ElfW(Shdr) names;
	off_t at;

	(void)state;
	assert_int_equal(tw_elf_file_open(path, &file), 0);
	header = file->header;
	at = (off_t)(header.e_shoff + header.e_shstrndx * sizeof names);
	header.e_shoff = 0;
	assert_int_equal(tw_elf_sections_read(&sections, &header, fd), TW_ENOENT);
	assert_null(tw_elf_sections_find(&sections, ".text", NULL));
	tw_elf_sections_fini(&sections);

	assert_int_equal(tw_elf_sections_read(&sections, &file->header, fd), 0);
	assert_non_null(tw_elf_sections_find(&sections, ".text", NULL));
	tw_elf_sections_fini(&sections);

	/* The names lie beyond the end of the file. */
	assert_int_equal(pread(fd, &names, sizeof names, at), sizeof names);
	names.sh_offset = bytes;
	assert_int_equal(pwrite(fd, &names, sizeof names, at), sizeof names);
	assert_true(tw_elf_sections_read(&sections, &file->header, fd) < 0);
	assert_null(tw_elf_sections_find(&sections, ".text", NULL));
	tw_elf_sections_fini(&sections);
	tw_elf_file_close(file);
	close(fd);
}

static bool count_pad(uint64_t value, void *arg)
{
	(void)value;
	++*(size_t *)arg;
	return true;
}

/* Reads everything; the result is not compared: the sanitizers and the limits are what judges. */
static void read_all(const struct tw_elf_file *file, int fd)
{
	struct tw_sym_entries entries;
	size_t pads = 0, bytes = 0;

	if (tw_sym_entries_read(&file->elf, &file->header, fd, NULL, &entries) == 0)
		for (size_t i = 0; i < entries.count; i++) {
			const struct tw_sym_entry *entry = &entries.entries[i];

			tw_elf_frame_landing_pads(&file->elf, entry->frame, count_pad, &pads);
			for (size_t k = 0; k < entry->name_count; k++)
				bytes += strlen(entries.names[entry->first_name + k]);
			assert_non_null(tw_elf_frame_at(&entries.frames, entry->value));
		}
	assert_true(pads + bytes + 1 > 0);
	tw_sym_entries_fini(&entries);
}

static void damage_is_an_error_or_fewer_functions(void **state)
{
	struct tw_elf_file *file;
	const char *path;
	size_t bytes;
	uint32_t seed = 1;
	int fd = copy_own(&path, &bytes);

	(void)state;
	assert_int_equal(tw_elf_file_open(path, &file), 0);
	uint8_t *table = (uint8_t *)file->elf.frame_table;
	size_t capacity = file->elf.image.high - file->elf.frame_table;

	/* The table, the descriptions behind it and the exceptions behind them. */
	for (unsigned i = 0; i < 1000; i++) {
		uint8_t *at, old;

		seed = seed * 1664525u + 1013904223u;
		at = table + (seed >> 8) % (i % 2 ? capacity : capacity < 64 ? capacity : 64);
		old = *at;
		*at ^= (uint8_t)(1u << (seed >> 4) % 8);
		if (i % 3 == 0)
			*at = (uint8_t)(i % 2 ? 0xff : 0);
		read_all(file, fd);
		if (i % 50 != 49)
			*at = old; /* some damage stays */
	}
	tw_elf_file_close(file);
	close(fd);
}

static void a_nameless_function_is_named_by_its_address(void **state)
{
	char name[TW_SYM_NAMELESS_BYTES];

	(void)state;
	tw_sym_nameless(0xa8ba0, name);
	assert_string_equal(name, "sub_a8ba0");
	tw_sym_nameless(UINT64_MAX, name);
	assert_string_equal(name, "sub_ffffffffffffffff");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_entries_and_names),
		cmocka_unit_test(other_code_is_no_function),
		cmocka_unit_test(a_file_without_sections_has_the_same_functions),
		cmocka_unit_test(no_section_is_found_where_none_was_read),
		cmocka_unit_test(damage_is_an_error_or_fewer_functions),
		cmocka_unit_test(a_nameless_function_is_named_by_its_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
