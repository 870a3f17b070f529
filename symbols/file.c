/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - opens an ELF file and lays its segments out in private memory.
 *
 * The memory is bounded by what the file has on disk (base/file.h), whatever its headers say.
 *
 * Read by pread, or mapped in processes that take SIGBUS for it: a file that shrinks meanwhile gives an error.  A file that others may
 * write is always read, so that nothing changes that was checked.  A page of zeroes follows the last segment, so that every string in the
 * image ends.
 */
#include "symbols/file.h"
#include "symbols/sleds.h"

#include "base/atomic.h"
#include "base/error.h"
#include "base/export.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/limits.h"
#include "base/sys.h"
#include "tracewheel/error.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HEADERS_MAX 256
#define PAGE	    UINT64_C(4096)
/* Less is read: a mapping costs as much as some pages. */
#define MAPPED_BYTES_MIN (32 * PAGE)
/* Of one process at a time; further files are read. */
#define MAPPED_MAX 1024

/* An image with pages of its file.  Read by the handler of SIGBUS. */
struct tw_elf_mapped {
	_Atomic uintptr_t low; /* 0: free */
	_Atomic uintptr_t high;
	_Atomic bool is_cut; /* a page was not there any more */
};

static struct tw_elf_mapped *mapped_files; /* NULL: files are read */

static int check_header(const ElfW(Ehdr) *header)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG))
		return TW_EFORMAT;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_machine != EM_X86_64)
		return TW_ENOTSUP;
	if ((header->e_type != ET_EXEC && header->e_type != ET_DYN) || header->e_phentsize != sizeof(ElfW(Phdr)) ||
	    !header->e_phnum || header->e_phnum > HEADERS_MAX)
		return TW_EFORMAT;
	return 0;
}

/* The span of all segments, in whole pages. */
static int measure(const ElfW(Phdr) *headers, size_t count, uint64_t *low, uint64_t *high)
{
	*low = UINT64_MAX;
	*high = 0;
	for (size_t i = 0; i < count; i++) {
		const ElfW(Phdr) *header = &headers[i];

		if (header->p_type != PT_LOAD)
			continue;
		if (header->p_filesz > header->p_memsz || header->p_memsz > UINT64_MAX / 4 ||
		    header->p_vaddr > UINT64_MAX / 2)
			return TW_EFORMAT;
		if (header->p_vaddr < *low)
			*low = header->p_vaddr & ~(PAGE - 1);
		if (header->p_vaddr + header->p_memsz > *high)
			*high = header->p_vaddr + header->p_memsz;
	}
	*high = (*high + PAGE - 1) & ~(PAGE - 1);
	if (*low >= *high)
		return TW_EFORMAT;
	return *high - *low <= TW_ELF_IMAGE_BYTES_MAX ? 0 : TW_ELIMIT;
}

/* Segments may share bytes of the file at their ends, no more: else a small file would be read for hours. */
static bool is_read_once(const struct tw_elf_file *file, const ElfW(Phdr) *headers, size_t count)
{
	uint64_t left = file->identity.bytes + count * PAGE;

	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type != PT_LOAD)
			continue;
		if (headers[i].p_filesz > left)
			return false;
		left -= headers[i].p_filesz;
	}
	return true;
}

/* ---- mapped files ---- */

/* In the handler: the page is empty now. */
static bool replace_page(void *files, uintptr_t at)
{
	struct tw_elf_mapped *mapped = files;

	for (size_t i = 0; i < MAPPED_MAX; i++) {
		/* RELAXED symbols.mapped: of the image that this thread reads. */
		uintptr_t low = tw_load_relaxed(&mapped[i].low), high = tw_load_relaxed(&mapped[i].high);

		if (!low || at < low || at >= high)
			continue;
		/* RELAXED symbols.mapped: as above. */
		tw_store_relaxed(&mapped[i].is_cut, true);
		return tw_sys_map_over((void *)(at & ~(uintptr_t)(PAGE - 1)), PAGE) == 0;
	}
	return false;
}

TW_API void tw_symbols_map_files(void)
{
	struct tw_elf_mapped *files = mapped_files ? NULL : calloc(MAPPED_MAX, sizeof *files);

	if (files && tw_guard_set(TW_GUARDED_FILES, replace_page, files))
		mapped_files = files;
	else
		free(files);
}

static struct tw_elf_mapped *take_mapped(uintptr_t low, uint64_t bytes)
{
	for (size_t i = 0; mapped_files && i < MAPPED_MAX; i++) {
		uintptr_t is_free = 0;

		/* PAIR symbols.mapped: acquire; release in leave_mapped(): its end is 0. */
		if (!tw_cas_acq_rel(&mapped_files[i].low, &is_free, low))
			continue;
		/* RELAXED symbols.mapped: it is read by handlers of the thread that reads the image. */
		tw_store_relaxed(&mapped_files[i].is_cut, false);
		/* RELAXED symbols.mapped: as above. */
		tw_store_relaxed(&mapped_files[i].high, low + bytes);
		return &mapped_files[i];
	}
	return NULL;
}

/* Nothing of the image is read any more.  Its end goes first: the next owner writes its beginning first. */
static void leave_mapped(struct tw_elf_mapped *mapped)
{
	/* RELAXED symbols.mapped: another owner's image lies elsewhere. */
	tw_store_relaxed(&mapped->high, 0);
	/* PAIR symbols.mapped: release; acquire in take_mapped(): the end is 0. */
	tw_store_release(&mapped->low, 0);
}

static bool is_cut(const struct tw_elf_file *file)
{
	/* RELAXED symbols.mapped: set by a handler on this thread. */
	return file->mapped && tw_load_relaxed(&file->mapped->is_cut);
}

/* A segment whose pages lie in the file as they lie in memory, and are all there. */
static bool can_be_mapped(const struct tw_elf_file *file, const ElfW(Phdr) *header)
{
	return file->mapped && header->p_filesz >= MAPPED_BYTES_MIN &&
	       !((header->p_vaddr ^ header->p_offset) & (PAGE - 1)) && header->p_offset <= file->identity.bytes &&
	       header->p_filesz <= file->identity.bytes - header->p_offset;
}

/* Whole pages are mapped; other segments may have the rest of those at both ends, which are read. */
static int fill(struct tw_elf_file *file, int fd, uint8_t *at, const ElfW(Phdr) *header)
{
	uint64_t first = -header->p_vaddr & (PAGE - 1), whole = (header->p_filesz - first) & ~(PAGE - 1);
	int error;

	if (!can_be_mapped(file, header))
		return tw_file_read_at(fd, at, header->p_filesz, header->p_offset);
	if (mmap(at + first, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
		 (off_t)(header->p_offset + first)) == MAP_FAILED)
		return TW_ENOMEM;
	error = tw_file_read_at(fd, at, first, header->p_offset);
	return error ? error
		     : tw_file_read_at(fd, at + first + whole, header->p_filesz - first - whole,
				       header->p_offset + first + whole);
}

/* ---- opening ---- */

static int lay_out(struct tw_elf_file *file, int fd, bool may_map, const ElfW(Phdr) *headers, size_t count)
{
	uint64_t low, high;
	int error = measure(headers, count, &low, &high);
	uint8_t *image;

	if (!error && !is_read_once(file, headers, count))
		error = TW_EFORMAT;
	if (error)
		return error;
	file->image_bytes = high - low + PAGE;
	image = mmap(NULL, file->image_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		     0);
	if (image == MAP_FAILED)
		return TW_ENOMEM;
	file->image = image;
	file->mapped = may_map ? take_mapped((uintptr_t)image, file->image_bytes) : NULL;
	for (size_t i = 0; i < count && !error; i++)
		if (headers[i].p_type == PT_LOAD && headers[i].p_filesz)
			error = fill(file, fd, image + (headers[i].p_vaddr - low), &headers[i]);
	if (!error)
		tw_elf_init(&file->elf, (uintptr_t)image - low, headers, count);
	return error;
}

static int read_file(struct tw_elf_file *file, int fd, bool may_map)
{
	ElfW(Phdr) headers[HEADERS_MAX];
	int error;

	file->has_capabilities = fgetxattr(fd, "security.capability", NULL, 0) > 0;
	error = tw_file_read_at(fd, &file->header, sizeof file->header, 0);
	if (!error)
		error = check_header(&file->header);
	if (!error)
		error = tw_file_read_at(fd, headers, file->header.e_phnum * sizeof *headers, file->header.e_phoff);
	if (!error)
		error = lay_out(file, fd, may_map, headers, file->header.e_phnum);
	if (!error)
		error = tw_elf_sleds_read(&file->sleds, &file->elf, &file->header, fd, false);
	return error ? error : is_cut(file) ? TW_EIO : 0;
}

/* Does not take the descriptor. */
static int make_file(int fd, const struct stat *status, const char *path, struct tw_elf_file **out)
{
	struct tw_elf_file *file = calloc(1, sizeof *file);
	bool may_map = tw_file_is_trusted(status) && !tw_file_is_synthetic(fd);
	int error = TW_ENOMEM;

	if (!file)
		return TW_ENOMEM;
	tw_file_identify(status, &file->identity);
	file->fd = -1;
	file->mode = status->st_mode;
	file->owner = status->st_uid;
	file->group = status->st_gid;
	file->may_be_kept = may_map && tw_file_is_settled(&file->identity);
	file->path = strdup(path);
	if (file->path)
		error = read_file(file, fd, may_map);
	if (error)
		tw_elf_file_close(file);
	else
		*out = file;
	return error;
}

int tw_elf_file_open(const char *path, struct tw_elf_file **out)
{
	struct stat status;
	int fd = tw_file_open(path, &status), error;

	if (fd < 0)
		return fd;
	error = make_file(fd, &status, path, out);
	close(fd);
	return error;
}

int tw_elf_file_take(int fd, const struct stat *status, const char *path, struct tw_elf_file **out)
{
	int error = make_file(fd, status, path, out);

	if (error)
		close(fd);
	else
		(*out)->fd = fd;
	return error;
}

int tw_elf_file_reopen(const struct tw_elf_file *file)
{
	struct tw_file_identity identity;
	struct stat status;
	int fd = file->fd < 0 ? tw_file_open(file->path, &status) : fcntl(file->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0 || (file->fd >= 0 && fstat(fd, &status)))
		status = (struct stat){0};
	tw_file_identify(&status, &identity);
	if (fd >= 0 && !memcmp(&identity, &file->identity, sizeof identity))
		return fd;
	if (fd >= 0)
		close(fd);
	return TW_EIO;
}

void tw_elf_file_close(struct tw_elf_file *file)
{
	if (!file)
		return;
	if (file->mapped)
		leave_mapped(file->mapped);
	if (file->image)
		munmap(file->image, file->image_bytes);
	if (file->fd >= 0)
		close(file->fd);
	tw_sym_sleds_fini(&file->sleds);
	free(file->path);
	free(file);
}
