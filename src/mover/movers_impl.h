/* Inside movers.c (set, joins, launchers, rates) and remote.c (streams of a mover). */
#ifndef MOVER_MOVERS_IMPL_H
#define MOVER_MOVERS_IMPL_H

#include "conn/inbound.h"
#include "core/list.h"
#include "mover/deal.h"
#include "mover/invitation.h"
#include "mover/link.h"
#include "mover/movers.h"
#include "net/child.h"
#include "net/line_reader.h"
#include "net/listen.h"

#define MOVER_HANDLES 1024 /* of a mover at once */

/* A stream of a mover, from remote_connect() to GONE. */
struct remote {
	struct mover *mover;     /* NULL: lost */
	uint32_t handle;
	enum { REMOTE_CONNECTING, REMOTE_CONNECTED, REMOTE_STREAM, REMOTE_STOPPING, REMOTE_ORPHAN } state;
	struct stream *stream;
	void (*done)(void *arg, struct remote *r, const struct ptcp_err *why);
	void *arg;
};

struct mover {
	struct list in_list;
	struct movers *set;
	struct mover_link *link;
	uint32_t id;
	bool joined;             /* has sent MOVER */
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	char host[WIRE_HOST_MAX + 1], address[SOCK_TEXT_BYTES];
	uint64_t *known;         /* by slot: id of the file known to the mover; 0: none */
	struct list closing;     /* files whose CLOSED is yet to come */
	struct remote *remote[MOVER_HANDLES]; /* by handle modulo MOVER_HANDLES */
	uint32_t next_handle;
	unsigned n_streams;
	uint64_t bytes, bytes_before;
	double rate_bps;
	uint64_t share_bps;
};

struct closing {
	struct list in_list;
	uint64_t id;
};

struct launcher {
	struct list in_list;
	struct movers *set;
	struct child *child;
	struct line_reader *lines;
	bool ended;
	int status, signal;
	char last[200];          /* line of its output */
};

struct movers {
	struct movers_opts o;
	struct movers_base *base;
	struct context host;     /* loop, log, identity and TLS context of the listener only */
	struct pending pending;
	struct listener *listener;
	struct invitation invitation;
	char *file, *text;
	int file_fd;             /* with `file`: locked, see invitation_write() */
	struct timer *timer;
	struct list movers, launchers;
	unsigned n;              /* movers that have joined */
	uint32_t last_id;
	struct mono none_since;
	bool ever;               /* a mover has joined */
	struct ptcp_err why;     /* of the last loss */
	uint64_t rate_bps;
	char congestion[WIRE_CONGESTION_MAX + 1];
	struct mono metered;
	void (*changed)(void *arg);
	void *changed_arg;
	struct movers_base into; /* the base of the last target */
	const struct movers_target_ops *target_ops;
	void *target_arg;
};

/* launch.c: true if all launchers, at least one, have ended; *one: a launcher. */
bool launchers_ended(const struct movers *m, const struct launcher **one);
void launchers_free(struct movers *m);

/* movers.c: the user of the set is to look again. */
void movers_changed(const struct movers *m);

/* remote.c: frames of a mover; and its end, for its streams. */
int remote_frame(struct mover *m, const struct frame *f, struct ptcp_err *e);
void remote_end_all(struct mover *m, const struct ptcp_err *why);
struct remote *remote_find(const struct mover *m, uint32_t handle);
int remote_no_such(struct ptcp_err *e);
/* What a mover says why something failed. */
void remote_reason(struct ptcp_err *why, const struct mover *m, uint16_t code, struct span text);
/* The path below a root of the invitation, in `path`; NULL: below none. */
const char *remote_below_root(const struct movers *set, const char *path, uint16_t *root);

/* remote_receive.c */
int remote_on_want(struct mover *m, const struct wire_want *f, struct ptcp_err *e);
int remote_on_wrote(struct mover *m, const struct wire_wrote *f, struct ptcp_err *e);
int remote_on_unwritten(struct mover *m, const struct wire_unwritten *f, struct ptcp_err *e);
int remote_on_closed(struct mover *m, const struct wire_closed *f, struct ptcp_err *e);
/* A mover that has left the list writes no more. */
void remote_targets_end(struct movers *set, struct mover *gone);

#endif
