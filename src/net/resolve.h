/* Addresses of hosts. A number needs no resolver. A name is looked up by getaddrinfo(), hence as in all programs of
 * the system (nsswitch.conf, hosts file, search domains, mDNS), in one detached thread per lookup: getaddrinfo()
 * blocks and cannot be interrupted. An abandoned lookup counts until its thread has ended. Loop thread. */
#ifndef NET_RESOLVE_H
#define NET_RESOLVE_H

#include <netdb.h>
#include <stdbool.h>

#include "core/list.h"
#include "net/loop.h"
#include "net/sock.h"

/* Concurrent lookups: in all, for the process itself, for one client. Further lookups wait, and the client with the
 * fewest running lookups is next. */
#define RESOLVE_MAX 64
#define RESOLVE_OWN_MAX 32
#define RESOLVE_CLIENT_MAX 4

/* One of `all` and `error` is 0. Without ports. */
struct resolve_answer {
	struct addrinfo *all;
	int error; /* code of getaddrinfo(), EAI_.. */
	int sys;   /* errno of EAI_SYSTEM */
};
const char *resolve_error_text(const struct resolve_answer *a);

/* Whether `host` is a number (also with a scope, fe80::1%eth0): then fills in `out`, whose list the caller frees with
 * freeaddrinfo(). `family`: 0, 4 or 6; a number of the other family is an error. */
bool resolve_number(struct resolve_answer *out, const char *host, int family);

typedef int resolve_fn(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out);

/* `fn`: getaddrinfo(). */
struct resolver;
int resolver_new(struct resolver **out, struct loop *l, resolve_fn *fn, struct ptcp_err *e);
/* Before loop_free(); all requests must have been canceled. Waits for no lookup. NULL is fine. */
void resolver_free(struct resolver *r);

/* A request, embedded by the caller. */
struct resolve {
	struct list in_list;
	struct lookup *lookup; /* NULL: none */
	void (*done)(struct resolve *q, const struct resolve_answer *a);
};

/* Looks up `host` for a client (NULL: for the process itself). Requests of one client for the same name and family
 * share a lookup. `done` is called once, from the loop, and never within the call; the answer is valid within `done`
 * only. No deadline: the caller cancels. PTCP_ENOMEM. */
int resolve_start(struct resolve *q, struct resolver *r, const char *client, const char *host, int family,
    void (*done)(struct resolve *q, const struct resolve_answer *a), struct ptcp_err *e);
/* Instead of `done`. Zeroed memory is fine. */
void resolve_cancel(struct resolve *q);

#endif
