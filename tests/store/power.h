/* A disk that loses power. System calls work on a real directory; beside it the model keeps what
 * of all that is durable: data of a file since its fsync or fdatasync, its mode and times since
 * its fsync, names of a directory since the directory's fsync, all since a syncfs. When the
 * power is cut, what is not durable may be there or not: of data any sector, part of a sector at
 * the seam, and any length between; of names all, none, the first few, or any of them. One
 * thread. */
#ifndef TESTS_STORE_POWER_H
#define TESTS_STORE_POWER_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/sys.h"

extern const struct sys power_sys;

/* The disk holds the tree at `path`, all of it durable. The cut comes instead of one of the
 * first `calls` calls that change or sync something, which one is for the seed to say; from then
 * on all of these fail. */
void power_on(const char *path, uint64_t seed, uint32_t calls);
bool power_is_off(void);
/* Cuts the power if it is still on, makes `path` (an empty directory) what is found on the disk
 * afterwards, and forgets all. */
void power_cut(const char *path);

/* A number below n, of a sequence that the seed decides. */
uint32_t power_random(uint32_t n);

#endif
