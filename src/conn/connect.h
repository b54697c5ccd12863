/* Connects to a host, directly or through relays: TCP, TLS, each peer's identity, the relay protocol, and optionally a
 * first frame and its answer, all within one deadline. Control thread. */
#ifndef CONN_CONNECT_H
#define CONN_CONNECT_H

#include "conn/context.h"
#include "net/resolve.h"
#include "wire/frame.h"

#define CONNECT_RELAYS_MAX 8

/* A relay, or the host at the end of the path. */
struct connect_hop {
	char host[SOCK_HOST_BYTES];
	unsigned port;
};

/* What a relay or host presents. */
struct connect_peer {
	const char *fingerprint;
	struct certificates certificates; /* unexamined */
};

enum connect_cause {
	CONNECT_CLOSED,      /* the host or a relay closed the connection during the handshake: it may be busy */
	CONNECT_UNREACHABLE, /* no TCP connection, no TLS, or not ptcp */
	CONNECT_REFUSED,     /* the host answered ERROR, or has no permitted address */
	CONNECT_TIMED_OUT,   /* no TCP connection in time, or a relay had none to the next hop */
	CONNECT_SLOW,        /* the host or a relay has the connection, and did not answer in time:
	                        it may be overloaded */
	CONNECT_IDENTITY,    /* the peer is not the expected host or relay */
	CONNECT_RELAY        /* a relay refused or failed */
};

struct connect_result {
	struct chan *chan;      /* opened, owned by the caller, attached to no loop (see chan_attach()); NULL: failed */
	enum connect_cause cause;
	struct ptcp_err why;    /* PTCP_ECONNECT, PTCP_EREFUSED, PTCP_EPROTO.., a sentence that
	                           names the host or relay */
	unsigned hop;           /* failed: the hop without a connection, relay[hop]; n_relays: the host */
	const char *address;    /* connected to; through relays, HOST:PORT of the host */
	struct connect *spare;  /* a connection to adopt or cancel, if `chan` is set; see connect_opts.spare */
};

struct connect_opts {
	struct context *context;
	const char *host;       /* copied */
	unsigned port;
	const struct connect_hop *relay; /* n_relays, in order; borrowed until `done` */
	unsigned n_relays;
	uint64_t spool_bytes;    /* bytes that each relay may spool */
	uint64_t route_session; /* random number of all connections of a session through relays; 0: no session */
	bool route_control;     /* the session's control connection */
	uint64_t timeout_ns;    /* limit from connect_start() to `done` */
	struct sock_opts sock;  /* options of the established connection */
	const char *alpn;
	const char *label;      /* label of the host's shared port (client_hello.h), borrowed until
	                           `done`; NULL: none */
	bool one_cipher;        /* one cipher is offered, see chan_opts */
	enum ptcp_cipher cipher;
	bool plaintext;         /* leave TLS after the answer */
	enum wire_type answer;  /* frame without payload that answers `first`; ERROR may come instead; 0: no answer */
	/* With a direct path: also begin a data connection with this cipher, to the same address, as soon as TCP is
	 * connected. NULL: no. */
	const enum ptcp_cipher *spare;
	const char *hint;       /* remedy in errors of the host; NULL: "is it a ptcp server?" */
	const char *client;     /* client that lookups are counted for, see dial_opts; borrowed until `done` */
	/* Addresses of the host that may be connected to, as dial_opts has it. */
	bool (*permits)(void *arg, const struct addrinfo *all, const struct sockaddr *sa);
	/* The host's fingerprint; NULL: `check` decides. */
	const char *fingerprint;
	/* Whether the relay or host that presents this is trusted. Negative with `e`: no. */
	int (*check)(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *peer,
	    struct ptcp_err *e);
	/* In place of `check`, at relay[hop]: asks another process, and later calls connect_pass() or connect_cancel();
	 * or NULL. */
	void (*ask)(void *arg, unsigned hop, const struct connect_peer *peer);
	/* Writes the first frame to the authenticated host; NULL: no frame. Negative with `e`: give up. */
	int (*first)(void *arg, struct chan *c, struct ptcp_err *e);
	/* Once, from the loop. */
	void (*done)(void *arg, const struct connect_result *r);
	void *arg;
};

struct connect;
int connect_start(struct connect **out, const struct connect_opts *o, struct ptcp_err *e);
/* The same over a connected socket, which is taken, also on failure. */
int connect_over(struct connect **out, int *fd, const struct connect_opts *o, struct ptcp_err *e);
/* A spare connection, with or without finished TLS, continues as if connect_start() with these options had begun it.
 * False: it has failed, and is still the caller's. */
bool connect_adopt(struct connect *spare, const struct connect_opts *o);
/* After connect_opts.ask: the relay is trusted. Sends the grant, n bytes, ahead of ROUTE. */
void connect_pass(struct connect *c, const uint8_t *grant, size_t n);
/* Before `done`, and instead of it. NULL is fine. */
void connect_cancel(struct connect *c);

#endif
