/* A file that is there whole at any time, as it was or as it is to be: written under another name beside it,
 * then given its own. Any thread. */
#ifndef CORE_ATOMIC_FILE_H
#define CORE_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct atomic_file {
	FILE *f;           /* to write to; mode 0600 until the caller changes that */
	const char *path;  /* borrowed */
	char *temp;
};

/* False: nothing is open, see errno. */
bool atomic_file_begin(struct atomic_file *n, const char *path);
/* Closes it; `keep`: and puts it in place of what is there, when all could be written, and synced to disk with
 * `sync`. False, with errno: what was there is untouched. Not to be kept: it is removed, and true. */
bool atomic_file_end(struct atomic_file *n, bool keep, bool sync);

#endif
