#include "net/admission.h"

#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "net/sock.h"

#define KEY_BYTES 9
/* Sources that are remembered for their debts alone, at least. */
#define REMEMBERED 1024

struct source {
	uint8_t key[KEY_BYTES];
	unsigned waiting, sessions;
	struct mono since;    /* something waits, without a pause */
	struct mono clear;    /* out of debt from then on */
};

struct admission {
	unsigned most, streams;
	unsigned strangers;   /* that wait: those of sources without a session */
	unsigned n_sources;
	struct source source[];
};

int admission_new(struct admission **out, unsigned waiting, unsigned sessions, unsigned streams, struct ptcp_err *e)
{
	/* Who waits and who runs never fill it, see find(). */
	unsigned n = waiting + 2 * sessions + REMEMBERED;
	struct admission *d = calloc(1, sizeof *d + n * sizeof d->source[0]);

	if (d == NULL)
		return err_nomem(e);
	d->most = waiting;
	d->streams = streams;
	d->n_sources = n;
	*out = d;
	return 0;
}

void admission_free(struct admission *d)
{
	free(d);
}

/* An IPv4 address within IPv6 is one of IPv4; whoever has an IPv6 address has 2^64 of them. */
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
	} else if (inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_V4MAPPED(&six)) {
		key[0] = 4;
		memcpy(key + 1, six.s6_addr + 12, 4);
	} else if (inet_pton(AF_INET6, host, &six) == 1) {
		key[0] = 6;
		memcpy(key + 1, six.s6_addr, 8);
	}
}

/* The source of that key; else one that nobody needs, with the least debt. */
static struct source *find(struct admission *d, const uint8_t key[KEY_BYTES])
{
	struct source *s, *free_one = NULL;

	for (s = d->source; s < d->source + d->n_sources; s++) {
		if (memcmp(s->key, key, KEY_BYTES) == 0)
			return s;
		if (s->waiting == 0 && s->sessions == 0 && (free_one == NULL || s->clear.ns < free_one->clear.ns))
			free_one = s;
	}
	if (free_one != NULL) {
		*free_one = (struct source){ .waiting = 0 };
		memcpy(free_one->key, key, KEY_BYTES);
	}
	return free_one;
}

struct source *admission_knock(struct admission *d, const char *address, struct mono now)
{
	uint8_t key[KEY_BYTES];
	struct source *s;

	key_of(key, address);
	if ((s = find(d, key)) == NULL)
		return NULL;
	if (s->sessions == 0 && mono_diff_ns(s->clear, now) >= ADMISSION_CREDIT_NS)
		return NULL;
	if (s->clear.ns < now.ns)
		s->clear = now;
	s->clear = mono_add_ns(s->clear, ADMISSION_COST_NS);
	if (s->waiting++ == 0)
		s->since = now;
	if (s->sessions == 0)
		d->strangers++;
	return s;
}

struct source *admission_crowded(struct admission *d, struct source *newcomer)
{
	struct source *s, *most = NULL;

	if (newcomer->sessions > 0)
		return newcomer->waiting > (newcomer->sessions + 1) * d->streams ? newcomer : NULL;
	if (d->strangers <= d->most)
		return NULL;
	for (s = d->source; s < d->source + d->n_sources; s++)
		if (s->waiting > 0 && s->sessions == 0 && (most == NULL || s->waiting > most->waiting ||
		    (s->waiting == most->waiting && s->since.ns < most->since.ns)))
			most = s;
	return most;
}

void admission_leave(struct admission *d, struct source *s, enum admission_end how)
{
	s->waiting--;
	if (s->sessions == 0)
		d->strangers--;
	if (how == ADMISSION_GOOD)
		s->clear.ns -= ADMISSION_COST_NS;
	else if (how == ADMISSION_BAD)
		s->clear = mono_add_ns(s->clear, ADMISSION_BAD_COST_NS);
}

void admission_session(struct admission *d, struct source *s, bool begins)
{
	if (s == NULL)
		return;
	if (s->sessions == 0)
		d->strangers -= s->waiting;
	s->sessions += begins ? 1 : -1u;
	if (s->sessions == 0)
		d->strangers += s->waiting;
}
