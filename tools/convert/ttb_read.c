/* SPDX-License-Identifier: Apache-2.0 */
/* ttb_read.c - records of trace files. */
#include "tools/convert/convert.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

void tw_ttb_open(struct tw_ttb_reader *reader, const char *const *paths, uint32_t count)
{
	*reader = (struct tw_ttb_reader){.paths = paths, .path_count = count};
}

const char *tw_ttb_path(const struct tw_ttb_reader *reader)
{
	return reader->paths[reader->path < reader->path_count ? reader->path : reader->path_count - 1];
}

void tw_ttb_close(struct tw_ttb_reader *reader)
{
	if (reader->file)
		fclose(reader->file);
	reader->file = NULL;
	free(reader->term);
	reader->term = NULL;
	reader->capacity = 0;
}

static bool open_file(struct tw_ttb_reader *reader)
{
	struct stat st;
	reader->file = fopen(tw_ttb_path(reader), "rbe");
	if (!reader->file)
		return false;
	if (fstat(fileno(reader->file), &st))
		return false;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return false;
	}
	reader->left = (uint64_t)st.st_size;
	return true;
}

static void next_file(struct tw_ttb_reader *reader)
{
	fclose(reader->file);
	reader->file = NULL;
	reader->path++;
}

/* The size was checked against what the file has left. */
static enum tw_ttb_answer read_term(struct tw_ttb_reader *reader)
{
	if (!tw_grow_by(reader->term, 0, reader->capacity, reader->size)) {
		errno = ENOMEM;
		return TW_TTB_UNREADABLE;
	}
	if (fread(reader->term, 1, reader->size, reader->file) != reader->size)
		return ferror(reader->file) ? TW_TTB_UNREADABLE : TW_TTB_CUT;
	reader->left -= reader->size;
	return TW_TTB_RECORD;
}

static enum tw_ttb_answer read_record(struct tw_ttb_reader *reader)
{
	uint8_t head[TW_TTB_HEAD_BYTES];
	if (reader->left < sizeof head)
		return TW_TTB_CUT;
	if (fread(head, 1, sizeof head, reader->file) != sizeof head)
		return ferror(reader->file) ? TW_TTB_UNREADABLE : TW_TTB_CUT;
	reader->left -= sizeof head;
	reader->op = head[0];
	reader->size = (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 | head[4];
	if (reader->op > TW_TTB_DROPPED)
		return TW_TTB_MALFORMED;
	if (reader->op == TW_TTB_DROPPED)
		return TW_TTB_RECORD;
	return reader->size > reader->left ? TW_TTB_CUT : read_term(reader);
}

enum tw_ttb_answer tw_ttb_next(struct tw_ttb_reader *reader)
{
	while (reader->path < reader->path_count) {
		if (!reader->file && !open_file(reader))
			return TW_TTB_UNREADABLE;
		if (!reader->left) {
			next_file(reader);
			continue;
		}
		enum tw_ttb_answer answer = read_record(reader);
		reader->records += answer == TW_TTB_RECORD;
		if (answer == TW_TTB_CUT)
			reader->left = 0;
		return answer;
	}
	return TW_TTB_END;
}
