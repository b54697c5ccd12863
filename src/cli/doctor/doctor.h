/* Examinations of ptcp doctor. Each adds findings to a list, and skips facts that cannot be observed. The
 * advice follows ESnet (fasterdata.es.net, host tuning) for hosts of 10 Gbit/s and paths of 100 ms, used with
 * parallel streams. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <ptcp/ptcp.h>
#include <stdbool.h>
#include <stdint.h>

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_BAD };
/* "ok", "warn", "bad" */
const char *verdict_name(enum verdict v);

struct finding {
	const char *name;    /* static, one word */
	enum verdict verdict;
	char found[200];     /* text for people */
	double value;        /* the number behind the text has this `unit` */
	const char *unit;    /* "bytes", "bps", "s", "count", static; NULL: no number */
	char fix[240];       /* command, or advice; "" for VERDICT_OK */
};

#define FINDINGS_MAX 40
struct doctor {
	const char *root;    /* prefix of /proc and /sys: "", except in tests */
	struct finding of[FINDINGS_MAX];
	size_t n;
};

/* Appends a finding without a fix. */
struct finding *doctor_add(struct doctor *d, const char *name, enum verdict v, double value,
    const char *unit, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
void doctor_fix(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Reads the first line of a file below the root; false if the file does not exist. */
bool doctor_read(const struct doctor *d, char *out, size_t cap, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* first.c */

/* Whether a server runs here, reachable from other hosts, and admits anybody. */
void doctor_server(struct doctor *d);
/* Free space in `dir`. */
void doctor_room(struct doctor *d, const char *dir);
/* What the file system of `dir` keeps of files. */
void doctor_file_system(struct doctor *d, const char *dir);

/* host.c */

/* Maximum buffer of a stream by net.ipv4.NAME, tcp_rmem or tcp_wmem; 0 if unknown. */
uint64_t doctor_max_buffer(const struct doctor *d, const char *sysctl);
/* Kernel settings, clock, descriptors, processor. */
void doctor_host(struct doctor *d);
/* Speed of ciphers and hash. */
int doctor_speed(struct doctor *d, struct ptcp_err *e);
/* The fix for slow reading: more read-ahead of the device with `dir`, if there is one. */
void doctor_fix_reading(const struct doctor *d, struct finding *f, const char *dir);
/* Writes and reads a temporary file in `dir`, limited in time, in size, and to an eighth of the free space. */
int doctor_disk(struct doctor *d, const char *dir, struct ptcp_err *e);

/* path.c */

/* The interface toward `target` ("HOST[:PORT]", "ptcp://.."), or, if NULL, of the default route; and the path
 * to the target. `rate_bps` is the desired rate; 0: the speed of the interface. PTCP_ECONNECT: no response
 * from the target. */
int doctor_path(struct doctor *d, const char *target, double rate_bps, const struct ptcp_transfer_opts *o,
    struct ptcp_err *e);
/* Whether the server at the target is known, by a fingerprint in `o` or by known_hosts, and authorizes this client; of
 * targets on other ports only with a fingerprint or "ptcp://". PTCP_ECANCELED. */
int doctor_identity(struct doctor *d, const char *target, const struct ptcp_transfer_opts *o, struct ptcp_err *e);
/* The interface `name`; *speed_bps is 0 if unknown. */
void doctor_interface(struct doctor *d, const char *name, double *speed_bps);

/* mover_hosts.c */

struct doctor_movers {
	const char *command;     /* starts movers, as --movers of ptcp send */
	const char *const *host; /* the command names these hosts at {host} */
	size_t n_hosts;
	const char *ptcp;        /* path of ptcp on the hosts of the movers */
};

/* Whether the hosts on which the command starts movers see the files in `dir` as this host does. PTCP_ECANCELED. */
int doctor_movers(struct doctor *d, const struct doctor_movers *o, const char *dir, struct ptcp_err *e);
/* On such a host: prints what it sees in the folder of doctor_movers(). */
void doctor_probe(const char *folder);

/* cmd_doctor.c: print the findings on stdout. */
void doctor_text(const struct doctor *d);
int doctor_json(const struct doctor *d, struct ptcp_err *e);

#endif
