/* What ptcp doctor looks at. Each look adds findings to a list; what cannot be seen here adds none, or one
 * that says so. The advice is that of ESnet (fasterdata.es.net, host tuning) for hosts of 10 Gbit/s and
 * paths of 100 ms, used with parallel streams. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/connect.h"

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_BAD };
/* "ok", "warn", "bad" */
const char *verdict_name(enum verdict v);

struct finding {
	const char *name;    /* static, one word */
	enum verdict verdict;
	char found[200];     /* for people */
	double value;        /* the number behind it, in `unit`; */
	const char *unit;    /* "bytes", "bps", "s", "count", static; NULL: there is none */
	char mend[240];      /* a command, or what to do; "" when it is well */
};

#define FINDINGS_MAX 40
struct doctor {
	const char *root;    /* before /proc and /sys: "" but in tests */
	struct finding of[FINDINGS_MAX];
	size_t n;
};

/* Adds one. NULL for `unit`: no number. The caller writes `mend`; `found` by the format. */
struct finding *doctor_add(struct doctor *d, const char *name, enum verdict v, double value,
    const char *unit, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
void doctor_mend(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The first line of a file below the root, in the `cap` bytes of `out`; false if there is none. */
bool doctor_read(const struct doctor *d, char *out, size_t cap, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* doctor_host.c: kernel settings, clock, descriptors, processor. */
void doctor_host(struct doctor *d);
/* doctor_speed.c: ciphers and hash; writing and reading a temporary file in `dir`, which is bounded by time,
 * by size and by an eighth of what is free. */
int doctor_speed(struct doctor *d, struct ptcp_err *e);
int doctor_disk(struct doctor *d, const char *dir, struct ptcp_err *e);
/* doctor_path.c: the interface through which `target` ("HOST[:PORT]", "ptcp://..") is reached, or without one
 * (NULL) what is not near; the way to the target. PTCP_ECONNECT when that does not answer. `rate_bps` is what
 * the way is hoped to carry; 0: what the interface does. */
int doctor_path(struct doctor *d, const char *target, double rate_bps, const struct connect_args *a, struct ptcp_err *e);
/* doctor_identity.c: with fingerprints, whether the daemon there has one of them and lets this client in.
 * PTCP_ECANCELED when interrupted. */
int doctor_identity(struct doctor *d, const char *target, const struct connect_args *a, struct ptcp_err *e);
/* doctor_link.c: the interface `name`. *speed_bps: of it, or 0. */
void doctor_link(struct doctor *d, const char *name, double *speed_bps);

/* Text or JSON on stdout. */
void doctor_text(const struct doctor *d);
int doctor_json(const struct doctor *d, struct ptcp_err *e);

#endif
