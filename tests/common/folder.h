/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - removes a folder of files. */
#ifndef TW_TESTS_FOLDER_H
#define TW_TESTS_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

/* A folder that is not there, or has folders in it, stays as it is. */
static inline void remove_folder(const char *path)
{
	DIR *opened = opendir(path);
	const struct dirent *entry;

	if (!opened)
		return;
	while ((entry = readdir(opened)) != NULL)
		unlinkat(dirfd(opened), entry->d_name, 0);
	closedir(opened);
	rmdir(path);
}

#endif
