/* Which mover carries which stream. Pure. */
#ifndef MOVER_DEAL_H
#define MOVER_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#define DEAL_USERS_MAX 128

/* Deals `n` streams to the movers with the given ids (not 0), at most DEAL_USERS_MAX: place[i] is the mover of stream
 * i, or 0. As few streams as possible move until the numbers of streams per mover differ by at most one. path[i] is
 * the path of stream i (NULL: one path): as far as possible each mover has streams of every path, so that the loss of
 * a path idles no mover. Returns true if a place has changed. Without movers every place becomes 0. */
bool deal_streams(uint32_t *place, unsigned n, const uint8_t *path, const uint32_t *mover, unsigned n_movers);

/* Divides `total_bps` (0: no limit, every share is 0) among n users, with the use used_bps[] of the previous share[].
 * A user below four fifths of its share gets a quarter more than used, or a tenth of an even share; the other users
 * divide the rest evenly. A new total begins with even shares. The shares sum to the total, up to rounding. */
void deal_rate(uint64_t *share, const uint64_t *used_bps, unsigned n, uint64_t total_bps);

#endif
