/* The inside of a transfer from the client's side, for client_new.c (what was asked for),
 * client_trust.c (who answers), client_connect.c (the way to the other side), client_work.c (what a party does for it),
 * client_probe.c (those that measure) and client.c (running it). */
#ifndef LIB_CLIENT_IMPL_H
#define LIB_CLIENT_IMPL_H

#include <ptcp/ptcp.h>
#include <stdatomic.h>

#include "core/filter.h"
#include "lib/far.h"
#include "lib/paths.h"
#include "lib/prober.h"
#include "lib/target.h"

#define STREAMS_DEFAULT 4
#define RATE_SAMPLES 16

/* An identity that has been accepted in this run. */
struct met {
	bool relay;                     /* else the other side */
	char name[SOCK_HOST_BYTES + 10], fingerprint[PTCP_FINGERPRINT_BYTES];
};
#define MET_MAX (PTCP_PATHS_MAX * WAY_RELAYS_MAX + 1)

struct ptcp_transfer {
	struct ptcp_transfer_opts o;
	bool sends, ran, running;
	char **local, **pins;
	size_t n_local, n_pins;
	struct filter *filter;          /* NULL: no rules */
	char *config_dir, *congestion;
	struct timetable rate;
	struct target target;           /* the other side, without paths */
	char known_as[TARGET_USER_BYTES + SOCK_HOST_BYTES];
	char *ssh, *remote_ptcp;
	char **vias;                    /* o.n_vias of them */
	struct paths ways;
	struct met met[MET_MAX];
	unsigned n_met;
	uint8_t *paths;                 /* encoded, for OPEN */
	size_t paths_bytes;
	uint16_t n_paths;
	size_t n_remote;                /* of the paths; the others are rules */
	struct prober *prober;          /* it measures, and has no paths; or NULL */
	/* while it runs */
	struct host host;
	struct loop *loop;              /* as long as the handle, so that cancel finds it */
	atomic_bool cancelled;
	struct far *far;                /* through ssh; else: */
	struct way *way;
	unsigned path;                  /* the one that is tried, then the control connection's */
	unsigned n_tried;
	struct ptcp_err path_why;       /* of the first that led nowhere */
	struct chan *chan;
	struct party *party;
	struct timer *timer;
	struct mono started, deadline;
	bool over, announced;
	int result;
	struct ptcp_err why;
	char peer[TARGET_USER_BYTES + SOCK_HOST_BYTES], fingerprint[PTCP_FINGERPRINT_BYTES];
	bool unknown;                   /* a host is not known: ask, then connect again */
	char asked_name[SOCK_HOST_BYTES + 10], asked_fingerprint[PTCP_FINGERPRINT_BYTES];
	uint64_t warnings;
	struct { struct mono at; uint64_t bytes, resumed_bytes; } sample[RATE_SAMPLES];
	unsigned n_samples;
	struct party_progress last;
	double seconds;
};

/* Seconds without progress from the peer after which it is given up. */
static inline uint64_t client_timeout_ns(const struct ptcp_transfer *t)
{
	return (uint64_t)(t->o.timeout_s * 1e9);
}

/* The transfer is over, for this attempt; the first outcome counts. `why` NULL: done. */
void client_finish(struct ptcp_transfer *t, const struct ptcp_err *why);

/* ---- client_new.c ---- */

/* One that knows its options, but not yet where to and what. */
int client_new(struct ptcp_transfer **out, const struct ptcp_transfer_opts *o, struct ptcp_err *e);
/* Once `target` is known: its name, and the paths to it. */
int client_name_target(struct ptcp_transfer *t, struct ptcp_err *e);
/* Frees it; it is not at work. */
void client_fini(struct ptcp_transfer *t);

/* ---- client_trust.c ---- */

/* Is this the host it should be, and has its identity no other part in this run? 0; PTCP_EREFUSED: not, and
 * with t->unknown the user may be asked. */
int client_trust(struct ptcp_transfer *t, const char *host, unsigned port, bool relay, const char *fingerprint,
    struct ptcp_err *e);
/* As way_opts has it. */
int client_trust_relay(void *arg, const struct way_hop *relay, const char *fingerprint, struct ptcp_err *e);

/* ---- client_connect.c ---- */

/* Starts connecting; ends in a party, or in client_finish(). */
int client_connect(struct ptcp_transfer *t, struct ptcp_err *e);
/* Lets go of what connecting has left. */
void client_disconnect(struct ptcp_transfer *t);

/* ---- client_work.c ---- */

extern const struct party_ops client_party_ops;
void client_warn(struct ptcp_transfer *t, const char *text);
void client_show_progress(struct ptcp_transfer *t);

#endif
