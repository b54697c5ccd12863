/* Errands of a daemon: transfers to or from a third host, and measurements of the way there, for clients that may
 * have that done here and hold that host's permission (PROTOCOL.md, section 13). Each is a session of this host with
 * the third one, started by virtue of a grant. Who has asked for it hears of it through its caller, as long as that is there; it goes on without
 * one only if that was asked for, and is remembered for a day then. Control thread. */
#ifndef LIB_ERRAND_H
#define LIB_ERRAND_H

#include "core/list.h"
#include "lib/party.h"
#include "net/nexthops.h"
#include "net/trust.h"
#include "wire/errand.h"
#include "wire/grant.h"

struct caller;
struct errand;
struct told;

struct errand_set {
	struct list errands, callers;
	unsigned n_running, n_kept, n_callers;
	struct host *host;
	const char *root;                 /* NULL: none */
	const char *const *roots;         /* no others are opened; ended by NULL. NULL: any may be */
	const struct ptcp_server_opts *o;
	const struct nexthops *nexthops;  /* where to; NULL: nowhere */
	struct told *told;                /* of the ways there, for who asks */
	void (*gone)(void *arg);          /* an errand or a caller has ended */
	void *arg;
};

/* All is borrowed until errand_set_fini(); `roots` and `told` are for the owner to fill in. `gone` is called when it may have
 * become idle, in the middle of what ended: look later. */
void errand_set_init(struct errand_set *t, struct host *host, const char *root,
    const struct ptcp_server_opts *o, const struct nexthops *nexthops, void (*gone)(void *arg), void *arg);
/* Nothing runs and nobody asks. */
bool errand_set_idle(const struct errand_set *t);
/* Ends all that runs, for that reason; it is idle some time later. */
void errand_set_cancel(struct errand_set *t, const struct ptcp_err *why);
void errand_set_fini(struct errand_set *t); /* once idle */
/* Ends those whose clients may have them done no more. */
void errand_judge_again(struct errand_set *t, trust_admits_fn *admits, void *arg);

/* What was asked for, by whom; borrowed. */
struct errand_order {
	struct caller *caller;
	const char *client, *address;     /* its fingerprint and, for logs, address */
	const struct authorization *auth;
	struct wire_errand errand;
	struct wire_grant grant;
	struct span grant_frame;          /* the same as it came */
	struct wire_open open;            /* as if the client were the third host, */
	unsigned messages;                /* or role DROP: so many are to be timed, over streams of that cipher */
};

/* Takes it on: it ends by itself, and tells its caller. Else nothing is kept and `e` is a sentence for the client:
 * PTCP_EREFUSED, PTCP_EPROTO, PTCP_ENOMEM. */
int errand_new(struct errand **out, struct errand_set *t, const struct errand_order *o, struct ptcp_err *e);
/* The caller is gone: it ends as well, unless it was asked to stay. */
void errand_leave(struct errand *r);
/* Ends it, for that reason, now or some time later; no matter if it is over. */
void errand_cancel(struct errand *r, const struct ptcp_err *why);

/* That client's errand of this id, 0: its first after `after` (NULL: of all); NULL: none. */
struct errand *errand_find(struct errand_set *t, const char *client, uint64_t id, struct errand *after);
/* Whether it is that client's, and has that id. */
bool errand_is(const struct errand *r, const char *client, uint64_t id);
bool errand_is_over(const struct errand *r);
/* Points into the errand. */
void errand_state(const struct errand *r, struct wire_state *out);

#endif
