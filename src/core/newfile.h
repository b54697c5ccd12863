/* A file that is there whole at any time, as it was or as it is to be: written under another name beside it,
 * then given its own. Any thread. */
#ifndef CORE_NEWFILE_H
#define CORE_NEWFILE_H

#include <stdbool.h>
#include <stdio.h>

struct newfile {
	FILE *f;           /* to write to; mode 0600 until the caller changes that */
	const char *path;  /* borrowed */
	char *temp;
};

/* False: nothing is open, see errno. */
bool newfile_begin(struct newfile *n, const char *path);
/* Closes it; `keep`: and puts it in place of what is there, when all could be written, and synced to disk with
 * `sync`. False, with errno: what was there is untouched. Not to be kept: it is removed, and true. */
bool newfile_end(struct newfile *n, bool keep, bool sync);

#endif
