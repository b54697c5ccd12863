#include "net/admission.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "net/sock.h"

#define KEY_BYTES 9
/* Minimum number of addresses stored for their debt alone. */
#define SPARE_ADDRESSES 1024

unsigned admission_patience_parse(const char *text)
{
	size_t n = text != NULL ? strlen(text) : 0;
	long factor = n >= 1 && n <= 2 && strspn(text, "0123456789") == n ? atol(text) : 1;

	return factor >= 1 && factor <= ADMISSION_PATIENCE_MAX ? (unsigned)factor : 1;
}

unsigned admission_patience(void) { return admission_patience_parse(secure_getenv(ADMISSION_PATIENCE)); }

struct peer_address {
	uint8_t key[KEY_BYTES];
	unsigned waiting, sessions;
	struct mono since;      /* has had a waiting connection since then */
	struct mono debt_until;
};

struct admission {
	unsigned max_waiting, streams;
	unsigned unauthenticated;   /* waiting connections of addresses without a session */
	unsigned n_addresses;
	struct peer_address address[];
};

int admission_new(struct admission **out, unsigned waiting, unsigned sessions, unsigned streams, struct ptcp_err *e)
{
	/* Waiting connections and sessions never fill the table, see find_address(). */
	unsigned n = waiting + 2 * sessions + SPARE_ADDRESSES;
	struct admission *d = calloc(1, sizeof *d + n * sizeof d->address[0]);

	if (d == NULL)
		return err_nomem(e);
	d->max_waiting = waiting;
	d->streams = streams;
	d->n_addresses = n;
	*out = d;
	return 0;
}

void admission_free(struct admission *d) { free(d); }

/* IPv4-mapped IPv6 addresses count as IPv4; a host with an IPv6 address has 2^64, so only the first half
 * counts. */
static void key_of(uint8_t key[KEY_BYTES], const char *address)
{
	char host[SOCK_HOST_BYTES] = "";
	struct in6_addr six;
	struct in_addr four;
	unsigned port;

	memset(key, 0, KEY_BYTES);
	if (sock_split(address, host, &port, 0, NULL) < 0)
		return;
	host[strcspn(host, "%")] = '\0'; /* a scope */
	if (inet_pton(AF_INET, host, &four) == 1) {
		key[0] = 4;
		memcpy(key + 1, &four, 4);
	} else if (inet_pton(AF_INET6, host, &six) == 1) {
		key[0] = IN6_IS_ADDR_V4MAPPED(&six) ? 4 : 6;
		memcpy(key + 1, six.s6_addr + (key[0] == 4 ? 12 : 0), key[0] == 4 ? 4 : 8);
	}
}

/* The entry with `key`; else a new one in place of the idle entry with the least debt. */
static struct peer_address *find_address(struct admission *d, const uint8_t key[KEY_BYTES])
{
	struct peer_address *s, *free_one = NULL;

	for (s = d->address; s < d->address + d->n_addresses; s++) {
		if (memcmp(s->key, key, KEY_BYTES) == 0)
			return s;
		if (s->waiting == 0 && s->sessions == 0 &&
		    (free_one == NULL || s->debt_until.ns < free_one->debt_until.ns))
			free_one = s;
	}
	if (free_one != NULL) {
		*free_one = (struct peer_address){ .waiting = 0 };
		memcpy(free_one->key, key, KEY_BYTES);
	}
	return free_one;
}

struct peer_address *admission_begin(struct admission *d, const char *address, struct mono now)
{
	uint8_t key[KEY_BYTES];
	struct peer_address *s;

	key_of(key, address);
	if ((s = find_address(d, key)) == NULL)
		return NULL;
	if (s->sessions == 0 && mono_diff_ns(s->debt_until, now) >= ADMISSION_CREDIT_NS)
		return NULL;
	if (s->debt_until.ns < now.ns)
		s->debt_until = now;
	s->debt_until = mono_add_ns(s->debt_until, ADMISSION_COST_NS);
	if (s->waiting++ == 0)
		s->since = now;
	if (s->sessions == 0)
		d->unauthenticated++;
	return s;
}

struct peer_address *admission_excess(struct admission *d, struct peer_address *newcomer)
{
	struct peer_address *s, *worst = NULL;

	if (newcomer->sessions > 0)
		return newcomer->waiting > (newcomer->sessions + 1) * d->streams ? newcomer : NULL;
	if (d->unauthenticated <= d->max_waiting)
		return NULL;
	for (s = d->address; s < d->address + d->n_addresses; s++)
		if (s->waiting > 0 && s->sessions == 0 && (worst == NULL || s->waiting > worst->waiting ||
		    (s->waiting == worst->waiting && s->since.ns < worst->since.ns)))
			worst = s;
	return worst;
}

void admission_leave(struct admission *d, struct peer_address *s, enum admission_end how)
{
	s->waiting--;
	if (s->sessions == 0)
		d->unauthenticated--;
	if (how == ADMISSION_GOOD)
		s->debt_until.ns -= ADMISSION_COST_NS;
	else if (how == ADMISSION_BAD)
		s->debt_until = mono_add_ns(s->debt_until, ADMISSION_BAD_COST_NS);
}

bool admission_has_session(const struct peer_address *s) { return s->sessions > 0; }

void admission_session(struct admission *d, struct peer_address *s, bool begins)
{
	if (s == NULL)
		return;
	if (s->sessions == 0)
		d->unauthenticated -= s->waiting;
	s->sessions += begins ? 1 : -1u;
	if (s->sessions == 0)
		d->unauthenticated += s->waiting;
}
