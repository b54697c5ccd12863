/* What a record of a session does not tell. Names and texts become letters of the same length, equal names the same
 * ones; hashes of contents are multiplied by a secret number, so that sums still agree; identities and the values of
 * extended attributes become zeros. The secrets are drawn for each record, and are not in it. No I/O; any thread. */
#ifndef ENGINE_TAPE_MASK_H
#define ENGINE_TAPE_MASK_H

#include "core/digest.h"
#include "wire/frame.h"

struct tape_mask {
	uint64_t key;
	struct digest factor; /* odd */
};

void tape_mask_init(struct tape_mask *m, uint64_t a, uint64_t b);
struct digest tape_mask_digest(const struct tape_mask *m, struct digest d);
/* A whole frame, in place. One that cannot be decoded keeps its header only: the rest becomes zeros. */
void tape_mask_frame(const struct tape_mask *m, uint8_t *frame, size_t n);

#endif
