/* Errands of a daemon: transfers to or from a third host, and measurements of the way there, for clients that may
 * have that done here and hold that host's permission (PROTOCOL.md, section 13). Each is a session of this host with
 * the third one, started by virtue of a grant. Who has asked for it hears of it through its caller, as long as that is there; it goes on without
 * one only if that was asked for, and is remembered for a day then. Control thread. */
#ifndef SERVER_JOB_H
#define SERVER_JOB_H

#include "core/list.h"
#include "net/relay_acl.h"
#include "net/trust.h"
#include "session/session.h"
#include "wire/grant.h"
#include "wire/job.h"

struct job_conn;
struct job;
struct link_table;

struct job_set {
	struct list errands, callers;
	unsigned n_running, n_kept, n_callers;
	struct context *host;
	const char *root;                 /* NULL: none */
	const char *const *roots;         /* no others are opened; ended by NULL. NULL: any may be */
	const struct ptcp_server_opts *o;
	const struct relay_acl *nexthops;  /* where to; NULL: nowhere */
	struct link_table *told;                /* of the ways there, for who asks */
	void (*gone)(void *arg);          /* an errand or a caller has ended */
	void *arg;
};

/* All is borrowed until job_set_fini(); `roots` and `told` are for the owner to fill in. `gone` is called when it may have
 * become idle, in the middle of what ended: look later. */
void job_set_init(struct job_set *t, struct context *host, const char *root,
    const struct ptcp_server_opts *o, const struct relay_acl *nexthops, void (*gone)(void *arg), void *arg);
/* Nothing runs and nobody asks. */
bool job_set_idle(const struct job_set *t);
/* Ends all that runs, for that reason; it is idle some time later. */
void job_set_cancel(struct job_set *t, const struct ptcp_err *why);
void job_set_fini(struct job_set *t); /* once idle */
/* Ends those whose clients may have them done no more. */
void job_judge_again(struct job_set *t, trust_admits_fn *admits, void *arg);

/* What was asked for, by whom; borrowed. */
struct job_order {
	struct job_conn *caller;
	const char *client, *address;     /* its fingerprint and, for logs, address */
	const struct authorization *auth;
	struct wire_job job;
	struct wire_grant grant;
	struct span grant_frame;          /* the same as it came */
	struct wire_open open;            /* as if the client were the third host, */
	unsigned messages;                /* or role DROP: so many are to be timed, over streams of that cipher */
};

/* Takes it on: it ends by itself, and tells its caller. Else nothing is kept and `e` is a sentence for the client:
 * PTCP_EREFUSED, PTCP_EPROTO, PTCP_ENOMEM. */
int job_new(struct job **out, struct job_set *t, const struct job_order *o, struct ptcp_err *e);
/* The caller is gone: it ends as well, unless it was asked to stay. */
void job_leave(struct job *r);
/* Ends it, for that reason, now or some time later; no matter if it is over. */
void job_cancel(struct job *r, const struct ptcp_err *why);

/* That client's errand of this id, 0: its first after `after` (NULL: of all); NULL: none. */
struct job *job_find(struct job_set *t, const char *client, uint64_t id, struct job *after);
/* Whether it is that client's, and has that id. */
bool job_is(const struct job *r, const char *client, uint64_t id);
bool job_is_over(const struct job *r);
/* Points into the errand. */
void job_state(const struct job *r, struct wire_state *out);

#endif
