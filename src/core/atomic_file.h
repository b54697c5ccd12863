/* Atomic replacement of a file: readers see the old or the new content, never a part. The content is written
 * to a temporary file in the same directory, which is then renamed. Any thread. */
#ifndef CORE_ATOMIC_FILE_H
#define CORE_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct atomic_file {
	FILE *f;           /* stream for the new content; mode 0600 unless the caller changes the mode */
	const char *path;  /* borrowed */
	char *temp;
};

/* On failure returns false with errno, and no file is open. */
bool atomic_file_begin(struct atomic_file *n, const char *path);
/* Closes the file. With `keep` the new content replaces `path` if every write succeeded (with `sync` the
 * content is synced to disk before, and its name afterwards); false with errno: `path` is unchanged, or only its name
 * could not be synced. Without `keep` the new content is dropped and the result is true. */
bool atomic_file_end(struct atomic_file *n, bool keep, bool sync);

/* Syncs the directory of `path`: a power cut does not undo a change of the name. True also if the file system cannot
 * sync directories, or the user may not read the directory; false with errno. */
bool atomic_file_sync_name(const char *path);

#endif
