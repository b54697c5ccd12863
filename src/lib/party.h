/* One end of a session at work: the engine joined with its control channel, its data streams and the
 * store. Belongs to the control thread. Used by client and server alike; what differs (who connects,
 * who decides) comes through the options. */
#ifndef LIB_PARTY_H
#define LIB_PARTY_H

#include "lib/host.h"
#include "lib/paths.h"
#include "store/place.h"
#include "net/sock.h"
#include "xfer/session.h"

struct filter;
struct party;
struct stream;

struct party_ops {
	/* Acceptor: judge what is asked for; call party_send_from(), or party_receive_into(),
	 * then party_accept(); or session_fail(party_session()). */
	void (*open)(void *arg, struct party *p, const struct wire_open *o);
	/* Agreed. */
	void (*running)(void *arg, struct party *p);
	/* A file or link is over; `path` in raw bytes. Also for directories that failed. */
	void (*file)(void *arg, const char *path, enum ptcp_file_status status,
	    const struct ptcp_err *why);
	/* A sentence about a path (NULL: none). */
	void (*warning)(void *arg, const char *path, const char *text);
	void (*streams)(void *arg, unsigned from, unsigned to, const char *why);
	/* Receiver: a file's part, that inode, is held by another session. True: it may be one of the same client's,
	 * which is being ended or may be done with it in a moment: look again. NULL: none is. */
	bool (*contended)(void *arg, struct party *p, uint64_t dev, uint64_t ino);
	/* Others of paths->place are in use now. */
	void (*paths)(void *arg, const char *why);
	/* Is this the relay it should be? As way_opts has it; where there are paths. */
	int (*relay)(void *arg, const struct way_hop *relay, const char *fingerprint, struct ptcp_err *e);
	/* All is over, and everything of it freed but the party itself, which party_free() does.
	 * `why` NULL: done. */
	void (*gone)(void *arg, struct party *p, const struct ptcp_err *why);
};

struct party_opts {
	struct host *host;
	struct chan *control;         /* opened, peer's fingerprint accepted; taken, also on failure */
	bool connects;                /* we make the data connections (the TLS client) */
	bool one_channel;             /* nobody does: blocks travel on the control connection */
	const char *address;          /* where to, as reached; copied */
	unsigned port;
	bool once;                    /* the peer serves nothing but this session, and ends with it */
	struct paths *paths;          /* several, or one with relays; outlives the party. NULL: to `address` */
	unsigned path;                /* of these, the control connection's */
	struct sock_opts sock;        /* copied; congestion outlives the party */
	const struct wire_open *open; /* starter: what to ask for; NULL: acceptor */
	uint16_t max_streams;
	uint16_t fixed_streams;       /* as session_opts has it */
	uint64_t timeout_ns;
	const struct party_ops *ops;
	void *arg;
};

int party_new(struct party **out, const struct party_opts *o, struct ptcp_err *e);
void party_free(struct party *p); /* only after ops.gone; NULL is fine */
struct session *party_session(struct party *p);
int party_control_fd(const struct party *p); /* -1 once it is closed */

/* Starter: from now on the path, of those in o.paths, carries no more than that: bit/s; 0: no limit, PTCP_PATH_IDLE:
 * nothing new. */
void party_set_path_rate(struct party *p, unsigned path, uint64_t bps);

/* Interrupts: the peer is told why. */
void party_cancel(struct party *p, const struct ptcp_err *why);

/* It is ending: what it holds it lets go of. */
bool party_over(const struct party *p);
/* Ends at once for a newer session of the same client. */
void party_yield(struct party *p);
/* Whether it receives into that part file. */
bool party_holds(const struct party *p, uint64_t dev, uint64_t ino);

/* ---- What to send, where to receive: before running ---- */

/* A source; `name` NULL: the contents of dir. Holds dir. */
int party_send_from(struct party *p, struct dir *dir, const char *name, struct ptcp_err *e);
/* Leave out what `f` does not keep; of all sources. Borrowed as long as the party lives. */
int party_send_filtered(struct party *p, const struct filter *f, struct ptcp_err *e);
/* A source that is not there: reported, counted and told to the receiver once running. */
int party_send_missing(struct party *p, const char *path, const struct ptcp_err *why);
/* Entries land there. Takes what is in `place`, also on failure. */
int party_receive_into(struct party *p, struct place *place, struct ptcp_err *e);
/* Acceptor that sends in a session that is steered: the starter is told what its kernel sees of the streams. */
int party_tell_seen(struct party *p, struct ptcp_err *e);
/* Acceptor: agrees, with so many streams. */
void party_accept(struct party *p, unsigned streams, enum ptcp_cipher cipher);

/* ---- Data connections ---- */

const uint8_t *party_id(const struct party *p);
enum ptcp_cipher party_cipher(const struct party *p); /* once running */
/* Whether who has sent this JOIN on this connection belongs to the party (NULL: to none). */
bool party_knows(const struct party *p, struct chan *c, const struct wire_join *j);
/* A joined channel (raw where the cipher is none), of a stream or WIRE_JOIN_CONTROL; taken. */
void party_add_stream(struct party *p, unsigned number, struct chan *c);

struct party_progress {
	uint64_t bytes, total_bytes, files, total_files, failed;
	uint64_t others; /* links and directories done */
	uint64_t wire_bytes, resumed_bytes, file_bytes;
	bool total_known;
	unsigned streams, streams_most;
	enum ptcp_activity activity;
};
struct party_progress party_progress(const struct party *p);
/* Segments that its data connections have sent again; of those that are up, as of the last call. */
uint64_t party_retransmits(struct party *p);

/* Of one path: file data it has carried, and its streams now. */
struct party_path {
	uint64_t bytes;
	unsigned streams;
};
struct party_path party_path(const struct party *p, unsigned path);

#endif
