/* The inside of a transfer between two other hosts, for client_third.c and client_status.c. */
#ifndef LIB_THIRD_IMPL_H
#define LIB_THIRD_IMPL_H

#include "lib/client_impl.h"
#include "wire/errand.h"

/* Only asks how one is doing. */
struct third_asks {
	struct wire_status status;
	int (*heard)(struct ptcp_transfer *t, struct span in, struct ptcp_err *e); /* a STATE */
};

struct third {
	struct third_asks *asks;        /* NULL: it is a transfer, */
	struct target from, to;         /* so and so, */
	char audience[PTCP_FINGERPRINT_BYTES]; /* to that identity; "": not known yet */
	bool asked;
	struct buf in;
	struct outbox out;
	struct wire_progress progress;
};

#define THIRD_ID_DIGITS 16
#define THIRD_NAME_BYTES (THIRD_ID_DIGITS + 1 + TARGET_USER_BYTES + SOCK_HOST_BYTES)
/* "ID@HOST:PORT" of the errand with this id at t->target. */
void third_name(const struct ptcp_transfer *t, uint64_t id, char out[THIRD_NAME_BYTES]);
/* What a code and sentence about an errand mean here. */
void third_reason(struct ptcp_err *out, uint16_t code, struct span text);
struct party_progress third_progress(const struct wire_progress *f);

#endif
