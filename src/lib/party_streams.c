/* The streams of a party: how many are in use, and how they come and go. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "lib/party_impl.h"
#include "store/fds.h"

/* ---- How many are in use ---- */

unsigned party_in_use(const struct party *p)
{
	unsigned i, n = 0;

	if (p->prb != NULL)
		return p->n_up;
	for (i = 0; i < p->n_wanted; i++)
		n += p->stream[i] != NULL;
	return n;
}

/* Whether more of those wanted are on their way; only who makes them knows. */
static bool more_to_come(const struct party *p)
{
	unsigned i;

	for (i = 0; i < p->n_wanted; i++)
		if (p->stream[i] == NULL && (p->joiner[i] != NULL || (p->o.connects && p->retries[i] == 0)))
			return true;
	return false;
}

/* How many are in use now: once for a change, not for each stream that joins. */
static void tell_streams(struct party *p, const char *why)
{
	unsigned from = p->n_told;

	p->n_told = party_in_use(p);
	if (p->n_told != from)
		p->o.ops->streams(p->o.arg, from, p->n_told, why);
}

void party_tell_joined(struct party *p)
{
	if (p->prb == NULL && more_to_come(p))
		return;
	tell_streams(p, p->wanted_why != NULL ? p->wanted_why : "connected");
	p->wanted_why = NULL;
}

/* Descriptors for so many streams, whether they are there yet or not. */
static void count_fds(struct party *p, unsigned streams)
{
	unsigned need = streams * (p->tapped ? 2 : 1);

	if (need > p->n_counted) {
		fds_count((int)(need - p->n_counted));
		p->n_counted = need;
	}
}

/* What is up of those wanted is in use at once. */
void party_want(struct party *p, unsigned streams, const char *why)
{
	unsigned before = party_in_use(p), after;

	p->n_wanted = streams;
	p->wanted_why = p->str != NULL ? why : NULL; /* of those yet to join */
	count_fds(p, streams);
	if (before == 0)
		p->none_since = mono_now();
	after = party_in_use(p);
	if (after > p->n_most)
		p->n_most = after;
	if (p->prb == NULL && after < before)
		tell_streams(p, why);
	else if (p->prb == NULL)
		party_tell_joined(p);
}

bool party_look(const struct party *p, unsigned number, struct tcpinfo *out)
{
	return p->tap[number] >= 0 && tcpinfo_read(out, p->tap[number]) == 0;
}

void party_close_tap(struct party *p, unsigned number)
{
	if (p->tap[number] >= 0)
		close(p->tap[number]);
	p->tap[number] = -1;
}

/* ---- Streams come and go ---- */

/* A frame that TLS has let through is the peer's own: joining again would only repeat it. In clear it may
 * have been the path, as with records that TLS does not let through. */
static void on_lost(void *arg, struct stream *s, const struct ptcp_err *why)
{
	struct party *p = arg;

	if (why->code == PTCP_EPROTO && p->cipher != PTCP_CIPHER_NONE && !p->over)
		party_fail(p, why);
	party_stream_lost(p, s, why);
}

static void on_gone(void *arg, struct stream *s)
{
	struct party *p = arg;
	unsigned number = stream_number(s);

	if (p->stream[number] == s) { /* stopped with the session, not lost */
		p->stream[number] = NULL;
		p->n_up--;
	} else {
		p->n_ending--;
	}
	p->retransmits += stream_retransmits(s);
	stream_free(s);
	party_pump(p);
}

static void on_idle(void *arg, struct stream *s)
{
	(void)s;
	party_pump(arg);
}

static const struct stream_ops stream_ops = {
	sending_sent, on_idle, receiving_received, receiving_held, on_lost, on_gone
};

void party_stream_lost(struct party *p, struct stream *s, const struct ptcp_err *why)
{
	unsigned number = stream_number(s), before = party_in_use(p);

	if (p->stream[number] != s)
		return;
	p->stream[number] = NULL;
	p->n_up--;
	p->n_ending++;
	if (p->snd != NULL && session_snd(p->session) != NULL)
		snd_stream_lost(session_snd(p->session), number);
	if (p->prb != NULL)
		probing_stream_lost(p, s, why);
	party_close_tap(p, number); /* or the connection would not close with the stream */
	stream_stop(s);
	if (p->n_up == 0)
		p->none_since = mono_now();
	if (p->o.one_channel && !p->over)
		party_fail(p, why);
	if (!p->over) {
		p->join_why = *why;
		log_at(&p->o.host->log, LOG_INFO, "stream", "stream=%u event=lost why=\"%s\"", number, why->msg);
		if (party_in_use(p) < before)
			tell_streams(p, why->msg);
		joining_again(p, number);
	}
	party_pump(p);
}

static bool takes_stream(const struct party *p, unsigned number)
{
	/* Who probes takes only those of the level under way. */
	return p->running && !p->over &&
	    number < (p->prb != NULL && p->prb->ops != NULL ? p->n_wanted : p->n_granted);
}

bool party_knows(const struct party *p, struct chan *c, const struct wire_join *j)
{
	uint8_t exporter[32], mac[32];
	struct ptcp_err why;
	bool known;

	known = p != NULL && strcmp(chan_fingerprint(c), p->fingerprint) == 0 &&
	    memcmp(p->id, j->session, sizeof p->id) == 0 &&
	    chan_export(c, exporter, &why) == 0 &&
	    tls_join_mac(mac, p->key, exporter, j->session, j->stream) == 0 &&
	    tls_mac_equal(mac, j->mac) &&
	    (j->stream == WIRE_JOIN_CONTROL ? returning_may(p) : takes_stream(p, j->stream));
	explicit_bzero(exporter, sizeof exporter);
	explicit_bzero(mac, sizeof mac);
	return known;
}

void party_add_stream(struct party *p, unsigned number, struct chan *c)
{
	struct stream_opts o = {
		.host = p->o.host, .number = number, .chan = c, .pacer = &p->rates.all,
		.path = p->o.paths != NULL ? paths_of_stream(p->o.paths, number) : 0,
		.worker = p->id[0] + number, /* so that not all sessions of a server start at the same */
		.verify = (session_open(p->session)->flags & WIRE_OPEN_VERIFY) != 0,
		.intake = p->rcv != NULL ? &p->rcv->intake : NULL, .ops = &stream_ops, .arg = p
	};
	int fd = chan_fd(c);
	unsigned before;
	struct ptcp_err e;

	if (number == WIRE_JOIN_CONTROL) {
		returning_take(p, c);
		return;
	}
	if (!takes_stream(p, number) || !rates_joins(p, number)) {
		chan_free(c);
		return;
	}
	if (p->stream[number] != NULL) { /* it died without our noticing */
		err_set(&e, PTCP_EPEER, "replaced by the peer");
		party_stream_lost(p, p->stream[number], &e);
	}
	if (p->prb != NULL)
		probing_stream_opts(p, &o);
	count_fds(p, number + 1); /* not every peer joins only what is wanted */
	before = party_in_use(p);
	if (session_held(p->session))
		sock_bear(fd);
	if (p->tapped)
		p->tap[number] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (stream_new(&p->stream[number], &o, &e) < 0) {
		p->stream[number] = NULL;
		party_close_tap(p, number);
		return; /* the peer will notice and come again */
	}
	p->life[number] = (struct life){ 0, mono_now() };
	p->n_up++;
	p->ever_up = true;
	if (party_in_use(p) > p->n_most)
		p->n_most = party_in_use(p);
	if (p->snd != NULL)
		snd_stream_up(session_snd(p->session), number, mono_now());
	rates_stream_up(p, number);
	if (p->prb != NULL) {
		probing_stream_up(p, number);
		p->n_told = before; /* rounds end without a word */
	}
	if (party_in_use(p) != before)
		party_tell_joined(p);
	party_pump(p);
}

uint64_t party_retransmits(struct party *p)
{
	uint64_t n = p->retransmits;
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (p->stream[i] != NULL)
			n += stream_retransmits(p->stream[i]);
	return n;
}
