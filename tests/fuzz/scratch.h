/* A directory of this process's own in memory, removed when it ends; for targets whose code reads files. */
#ifndef TESTS_FUZZ_SCRATCH_H
#define TESTS_FUZZ_SCRATCH_H

#include "fuzz.h"

/* Its path; made on first use. */
const char *scratch(void);
/* The path of a file in it; valid until the next call. */
const char *scratch_path(const char *name);
/* Writes that file anew, mode 0600. */
void scratch_write(const char *name, struct input content);
/* Removes all that is in it. */
void scratch_empty(void);

#endif
