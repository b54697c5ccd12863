/* Data connections: made and joined by the TLS client, replaced when they die. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bytes.h"
#include "core/err.h"
#include "core/units.h"
#include "lib/party_impl.h"
#include "store/fds.h"

#define RETRY_FIRST_NS (100 * NS_PER_MS)
#define RETRY_MOST_NS (2 * NS_PER_S)
#define PATH_NS (5 * NS_PER_S)

/* A connection on its way to become a stream: its path, TLS, JOIN, its answer, leaving TLS for `none`. */
struct joiner {
	struct party *party;
	unsigned number;
	struct way *way;
	struct chan *chan;
	struct mono deadline;
	bool asked, leaving, refused;
	uint8_t answer[WIRE_HEADER_BYTES];
	size_t got;
};

static void joiner_free(struct joiner *j)
{
	if (j == NULL)
		return;
	way_cancel(j->way);
	chan_free(j->chan);
	j->party->joiner[j->number] = NULL;
	free(j);
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

static void tell_joined(struct party *p)
{
	if (p->prb == NULL && more_to_come(p))
		return;
	tell_streams(p, p->wanted_why != NULL ? p->wanted_why : "connected");
	p->wanted_why = NULL;
}

static void try_again_later(struct party *p, unsigned number)
{
	uint64_t wait = RETRY_FIRST_NS << (p->retries[number] < 5 ? p->retries[number] : 5);

	p->retries[number]++;
	p->retry_at[number] = mono_add_ns(mono_now(), wait < RETRY_MOST_NS ? wait : RETRY_MOST_NS);
}

static void join_failed(struct joiner *j, const struct ptcp_err *cause)
{
	struct party *p = j->party;
	struct ptcp_err why = *cause; /* it may go with the channel */
	bool control = j->number == JOINER_CONTROL, refused = j->refused;

	log_at(&p->o.host->log, LOG_INFO, "stream", "stream=%u event=join-failed why=\"%s\"", j->number,
	    why.msg);
	try_again_later(p, j->number);
	joiner_free(j);
	if (control) {
		returning_failed(p, &why, refused);
	} else {
		p->join_why = why;
		tell_joined(p);
	}
	party_pump(p);
}

static void joined(struct joiner *j)
{
	struct party *p = j->party;
	struct chan *c = j->chan;
	unsigned number = j->number;

	j->chan = NULL;
	joiner_free(j);
	if (number == JOINER_CONTROL) {
		returning_take(p, c);
		return;
	}
	p->retries[number] = 0;
	party_add_stream(p, number, c);
}

static int ask(struct joiner *j, struct ptcp_err *e)
{
	struct party *p = j->party;
	struct wire_join f = { .stream = j->number == JOINER_CONTROL ? WIRE_JOIN_CONTROL : (uint16_t)j->number };
	uint8_t exporter[32], frame[WIRE_JOIN_MAX_BYTES];
	int r;

	if (strcmp(chan_fingerprint(j->chan), p->fingerprint) != 0)
		return err_set(e, PTCP_EREFUSED, "another host answered on the data connection");
	memcpy(f.session, p->id, sizeof f.session);
	if ((r = chan_export(j->chan, exporter, e)) == 0)
		r = tls_join_mac(f.mac, p->key, exporter, p->id, f.stream);
	explicit_bzero(exporter, sizeof exporter);
	if (r < 0)
		return r;
	chan_write(j->chan, frame, wire_join_encode(frame, &f));
	chan_flush(j->chan);
	j->asked = true;
	return 0;
}

static void on_opened(void *arg)
{
	struct joiner *j = arg;
	struct ptcp_err why;

	if (j->leaving)
		joined(j);
	else if (ask(j, &why) < 0)
		join_failed(j, &why);
}

/* The answer is JOINED, or a reason. */
static void on_readable(void *arg)
{
	struct joiner *j = arg;
	struct wire_header h;
	struct ptcp_err why;

	if (!j->asked || j->leaving)
		return;
	j->got += chan_read(j->chan, j->answer + j->got, sizeof j->answer - j->got);
	if (j->got < sizeof j->answer)
		return;
	if (wire_header_decode(&h, j->answer, &why) < 0) {
		join_failed(j, &why);
	} else if (h.type != WIRE_JOINED || h.length != 0) {
		err_set(&why, PTCP_EPEER, "the peer refused a data connection");
		j->refused = h.type == WIRE_ERROR;
		join_failed(j, &why);
	} else if (j->party->cipher == PTCP_CIPHER_NONE && j->number != JOINER_CONTROL) {
		j->leaving = true;
		chan_hand_over(j->chan);
	} else {
		joined(j);
	}
}

static void on_writable(void *arg)
{
	(void)arg;
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct ptcp_err closed;

	err_set(&closed, PTCP_EPEER, "the peer closed a data connection");
	join_failed(arg, why != NULL ? why : &closed);
}

static const struct chan_ops join_ops = { on_opened, on_readable, on_writable, on_closed };

static void on_arrived(void *arg, int fd, const char *address, const struct ptcp_err *why)
{
	struct joiner *j = arg;
	struct party *p = j->party;
	struct chan_opts o = { .fd = fd, .alpn = ALPN_DATA, .ops = &join_ops, .arg = j,
		.one_cipher = p->cipher != PTCP_CIPHER_NONE && j->number != JOINER_CONTROL, .cipher = p->cipher };
	struct ptcp_err e;

	(void)address;
	j->way = NULL;
	if (fd < 0)
		join_failed(j, why);
	else if (chan_new(&j->chan, p->o.host->control, p->o.host->client, &o, &e) < 0)
		join_failed(j, &e);
}

/* NULL: directly. */
static const struct path *path_of(const struct party *p, unsigned number)
{
	if (p->o.paths == NULL)
		return NULL;
	return &p->o.paths->at[number == JOINER_CONTROL ? p->returning.path : paths_of_stream(p->o.paths, number)];
}

/* Where there are several paths they come and go: a connection under way when its path was cut would be slow to
 * notice that it is back. */
static uint64_t patience_ns(const struct party *p)
{
	return p->o.paths != NULL && p->o.paths->n > 1 && p->o.timeout_ns > PATH_NS ? PATH_NS : p->o.timeout_ns;
}

static int check_relay(void *arg, const struct way_hop *relay, const char *fingerprint, struct ptcp_err *e)
{
	struct party *p = ((struct joiner *)arg)->party;

	return p->o.ops->relay(p->o.arg, relay, fingerprint, e);
}

static void start(struct party *p, unsigned number)
{
	struct joiner *j = calloc(1, sizeof *j);
	struct way_opts o = { .host = p->o.host, .to = p->address, .port = p->o.port, .sock = p->o.sock,
		.check = check_relay, .done = on_arrived, .arg = j };
	const struct path *path = path_of(p, number);
	struct ptcp_err e;

	if (j == NULL) {
		try_again_later(p, number);
		return;
	}
	j->party = p;
	j->number = number;
	j->deadline = mono_add_ns(mono_now(), patience_ns(p));
	p->joiner[number] = j;
	if (path != NULL && path->n_relays > 0) {
		o.relay = path->relay;
		o.n_relays = path->n_relays;
		o.to = p->o.paths->host;
		o.port = p->o.paths->port;
		if (session_held(p->session) && number != JOINER_CONTROL)
			o.hold_bytes = paths_stream_hold(p->o.paths, number, p->n_wanted);
	}
	if (way_start(&j->way, &o, &e) < 0) {
		p->join_why = e;
		try_again_later(p, number);
		joiner_free(j);
	}
}

/* The only stream there will be. */
static void open_one_channel(struct party *p)
{
	struct ptcp_err why;
	struct chan *c;

	if (mux_open(p->mux, &c, &why) < 0)
		party_fail(p, &why);
	else
		party_add_stream(p, 0, c);
}

static void give_up_late(struct party *p, unsigned number, struct mono now)
{
	if (p->joiner[number] == NULL || p->joiner[number]->deadline.ns > now.ns)
		return;
	try_again_later(p, number);
	joiner_free(p->joiner[number]);
	tell_joined(p);
}

void joining_control(struct party *p, struct mono now)
{
	struct ptcp_err late;

	if (p->joiner[JOINER_CONTROL] != NULL && p->joiner[JOINER_CONTROL]->deadline.ns <= now.ns) {
		give_up_late(p, JOINER_CONTROL, now);
		err_set(&late, PTCP_ETIMEOUT, "no answer");
		returning_failed(p, &late, false);
	}
	if (p->joiner[JOINER_CONTROL] == NULL && p->retry_at[JOINER_CONTROL].ns <= now.ns)
		start(p, JOINER_CONTROL);
}

void joining_stop_control(struct party *p)
{
	joiner_free(p->joiner[JOINER_CONTROL]);
}

static bool is_missing(const struct party *p, unsigned number)
{
	return p->stream[number] == NULL && rates_joins(p, number);
}

/* None of those that should be there is. */
static bool lacks_all(const struct party *p)
{
	unsigned i;

	for (i = 0; i < p->n_wanted && p->n_up == 0; i++)
		if (rates_joins(p, i))
			return true;
	return false;
}

void joining_pump(struct party *p, struct mono now)
{
	struct ptcp_err why;
	unsigned i;

	if (p->o.one_channel && !p->ever_up)
		open_one_channel(p);
	if (!p->o.connects)
		return;
	for (i = 0; i < p->n_wanted; i++) {
		give_up_late(p, i, now);
		if (is_missing(p, i) && p->joiner[i] == NULL && p->retry_at[i].ns <= now.ns)
			start(p, i);
	}
	if (lacks_all(p) && mono_diff_ns(now, p->none_since) >= p->o.timeout_ns) {
		err_set(&why, p->ever_up ? PTCP_ETIMEOUT : PTCP_ECONNECT,
		    "data connections: none could be had for %.3g s: %s", (double)p->o.timeout_ns / 1e9,
		    p->join_why.code != 0 ? p->join_why.msg : "no answer");
		party_fail(p, &why);
	}
}

/* Of the control connection's, if one is due. */
static struct mono control_deadline(const struct party *p)
{
	const struct joiner *j = p->joiner[JOINER_CONTROL];

	if (p->control != NULL || p->returning.chan != NULL || !returning_may(p))
		return MONO_NEVER;
	return j != NULL ? j->deadline : p->retry_at[JOINER_CONTROL];
}

struct mono joining_deadline(const struct party *p)
{
	struct mono at = control_deadline(p);
	unsigned i;

	if (!p->o.connects || !p->running)
		return MONO_NEVER;
	if (p->over)
		return at;
	for (i = 0; i < p->n_wanted; i++) {
		if (p->joiner[i] != NULL && p->joiner[i]->deadline.ns < at.ns)
			at = p->joiner[i]->deadline;
		if (p->joiner[i] == NULL && is_missing(p, i) && p->retry_at[i].ns < at.ns)
			at = p->retry_at[i];
	}
	if (lacks_all(p) && p->none_since.ns + p->o.timeout_ns < at.ns)
		at = mono_add_ns(p->none_since, p->o.timeout_ns);
	return at;
}

void joining_move(struct party *p, unsigned place, const struct ptcp_err *why)
{
	unsigned i;

	for (i = 0; i < p->n_granted; i++) {
		if (p->o.paths->dealt[i] != place)
			continue;
		joiner_free(p->joiner[i]);
		if (p->stream[i] != NULL)
			party_stream_lost(p, p->stream[i], why);
		p->retries[i] = 0;
		p->retry_at[i] = mono_now();
	}
}

void joining_stop(struct party *p)
{
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++) /* but for who joins as the control connection */
		joiner_free(p->joiner[i]);
}

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
		tell_joined(p);
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
		try_again_later(p, number);
	}
	party_pump(p);
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
	    (j->stream == WIRE_JOIN_CONTROL ? returning_may(p) : party_takes_stream(p, j->stream));
	explicit_bzero(exporter, sizeof exporter);
	explicit_bzero(mac, sizeof mac);
	return known;
}

bool party_takes_stream(const struct party *p, unsigned number)
{
	/* Who probes takes only those of the level under way. */
	return p->running && !p->over &&
	    number < (p->prb != NULL && p->prb->ops != NULL ? p->n_wanted : p->n_granted);
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
	if (!party_takes_stream(p, number)) {
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
		tell_joined(p);
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
