/* Data connections on their way: made and joined by the TLS client, again when they die. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "lib/party_impl.h"

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

void joining_again(struct party *p, unsigned number)
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
	joining_again(p, j->number);
	joiner_free(j);
	if (control) {
		returning_failed(p, &why, refused);
	} else {
		p->join_why = why;
		party_tell_joined(p);
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
		joining_again(p, number);
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
		joining_again(p, number);
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
	joining_again(p, number);
	joiner_free(p->joiner[number]);
	party_tell_joined(p);
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
	return p->stream[number] == NULL && rates_joins(p, number) && !(p->prb != NULL && p->prb->early[number].is);
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
		    "data connections: none could be had for %.3g s: %s (ptcp doctor looks at the path)", (double)p->o.timeout_ns / 1e9,
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
		if (p->joiner[i] != NULL)
			at = mono_min(at, p->joiner[i]->deadline);
		else if (is_missing(p, i))
			at = mono_min(at, p->retry_at[i]);
	}
	return lacks_all(p) ? mono_min(at, mono_add_ns(p->none_since, p->o.timeout_ns)) : at;
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
