/* Data connections on their way: made and joined by the TLS client, again when they die. */
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"
#include "session/session_impl.h"

#define RETRY_FIRST_NS (100 * NS_PER_MS)
#define RETRY_MOST_NS (2 * NS_PER_S)
#define PATH_NS (5 * NS_PER_S)

/* A connection on its way to become a stream: its path, TLS, JOIN, its answer, leaving TLS for `none`. */
struct stream_connect {
	struct session *session;
	unsigned number;
	struct route *way;
	struct chan *chan;
	struct mono deadline;
	bool asked, leaving, refused;
	uint8_t answer[WIRE_HEADER_BYTES];
	size_t got;
};

static void stream_connect_free(struct stream_connect *j)
{
	if (j == NULL)
		return;
	route_cancel(j->way);
	chan_free(j->chan);
	j->session->connecting[j->number] = NULL;
	free(j);
}

void stream_connect_again(struct session *sess, unsigned number)
{
	uint64_t wait = RETRY_FIRST_NS << (sess->retries[number] < 5 ? sess->retries[number] : 5);

	sess->retries[number]++;
	sess->retry_at[number] = mono_add_ns(mono_now(), wait < RETRY_MOST_NS ? wait : RETRY_MOST_NS);
}

static void join_failed(struct stream_connect *j, const struct ptcp_err *cause)
{
	struct session *sess = j->session;
	struct ptcp_err why = *cause; /* it may go with the channel */
	bool control = j->number == STREAM_CONNECT_CONTROL, refused = j->refused;

	log_at(&sess->o.host->log, LOG_INFO, "stream", "stream=%u event=join-failed why=\"%s\"", j->number,
	    why.msg);
	stream_connect_again(sess, j->number);
	stream_connect_free(j);
	if (control) {
		control_replay_failed(sess, &why, refused);
	} else {
		sess->join_why = why;
		session_tell_joined(sess);
	}
	session_pump(sess);
}

static void joined(struct stream_connect *j)
{
	struct session *sess = j->session;
	struct chan *c = j->chan;
	unsigned number = j->number;

	j->chan = NULL;
	stream_connect_free(j);
	if (number == STREAM_CONNECT_CONTROL) {
		control_replay_take(sess, c);
		return;
	}
	sess->retries[number] = 0;
	session_add_stream(sess, number, c);
}

static int ask(struct stream_connect *j, struct ptcp_err *e)
{
	struct session *sess = j->session;
	struct wire_join f = { .stream = j->number == STREAM_CONNECT_CONTROL ? WIRE_JOIN_CONTROL : (uint16_t)j->number };
	uint8_t exporter[32], frame[WIRE_JOIN_MAX_BYTES];
	int r;

	if (strcmp(chan_fingerprint(j->chan), sess->fingerprint) != 0)
		return err_set(e, PTCP_EREFUSED, "another host answered on the data connection");
	memcpy(f.session, sess->id, sizeof f.session);
	if ((r = chan_export(j->chan, exporter, e)) == 0)
		r = tls_join_mac(f.mac, sess->key, exporter, sess->id, f.stream);
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
	struct stream_connect *j = arg;
	struct ptcp_err why;

	if (j->leaving)
		joined(j);
	else if (ask(j, &why) < 0)
		join_failed(j, &why);
}

/* The answer is JOINED, or a reason. */
static void on_readable(void *arg)
{
	struct stream_connect *j = arg;
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
	} else if (j->session->cipher == PTCP_CIPHER_NONE && j->number != STREAM_CONNECT_CONTROL) {
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
	struct stream_connect *j = arg;
	struct session *sess = j->session;
	struct chan_opts o = { .fd = fd, .alpn = ALPN_DATA, .ops = &join_ops, .arg = j,
		.one_cipher = sess->cipher != PTCP_CIPHER_NONE && j->number != STREAM_CONNECT_CONTROL, .cipher = sess->cipher };
	struct ptcp_err e;

	(void)address;
	j->way = NULL;
	if (fd < 0)
		join_failed(j, why);
	else if (chan_new(&j->chan, sess->o.host->control, sess->o.host->client, &o, &e) < 0)
		join_failed(j, &e);
}

/* NULL: directly. */
static const struct path *path_of(const struct session *sess, unsigned number)
{
	if (sess->o.paths == NULL)
		return NULL;
	return &sess->o.paths->at[number == STREAM_CONNECT_CONTROL ? sess->control_replay.path : paths_of_stream(sess->o.paths, number)];
}

/* Where there are several paths they come and go: a connection under way when its path was cut would be slow to
 * notice that it is back. */
static uint64_t patience_ns(const struct session *sess)
{
	return sess->o.paths != NULL && sess->o.paths->n > 1 && sess->o.timeout_ns > PATH_NS ? PATH_NS : sess->o.timeout_ns;
}

static int check_relay(void *arg, const struct route_hop *relay, const char *fingerprint, struct ptcp_err *e)
{
	struct session *sess = ((struct stream_connect *)arg)->session;

	return sess->o.ops->relay(sess->o.arg, relay, fingerprint, e);
}

static void start(struct session *sess, unsigned number)
{
	struct stream_connect *j = calloc(1, sizeof *j);
	struct route_opts o = { .host = sess->o.host, .to = sess->address, .port = sess->o.port, .sock = sess->o.sock,
		.check = check_relay, .done = on_arrived, .arg = j };
	const struct path *path = path_of(sess, number);
	struct ptcp_err e;

	if (j == NULL) {
		stream_connect_again(sess, number);
		return;
	}
	j->session = sess;
	j->number = number;
	j->deadline = mono_add_ns(mono_now(), patience_ns(sess));
	sess->connecting[number] = j;
	if (path != NULL && path->n_relays > 0) {
		o.relay = path->relay;
		o.n_relays = path->n_relays;
		o.to = sess->o.paths->host;
		o.port = sess->o.paths->port;
		if (engine_held(sess->engine) && number != STREAM_CONNECT_CONTROL)
			o.hold_bytes = paths_stream_hold(sess->o.paths, number, sess->n_wanted);
	}
	if (route_start(&j->way, &o, &e) < 0) {
		sess->join_why = e;
		stream_connect_again(sess, number);
		stream_connect_free(j);
	}
}

/* The only stream there will be. */
static void open_one_channel(struct session *sess)
{
	struct ptcp_err why;
	struct chan *c;

	if (mux_open(sess->mux, &c, &why) < 0)
		session_fail(sess, &why);
	else
		session_add_stream(sess, 0, c);
}

static void give_up_late(struct session *sess, unsigned number, struct mono now)
{
	if (sess->connecting[number] == NULL || sess->connecting[number]->deadline.ns > now.ns)
		return;
	stream_connect_again(sess, number);
	stream_connect_free(sess->connecting[number]);
	session_tell_joined(sess);
}

void stream_connect_control(struct session *sess, struct mono now)
{
	struct ptcp_err late;

	if (sess->connecting[STREAM_CONNECT_CONTROL] != NULL && sess->connecting[STREAM_CONNECT_CONTROL]->deadline.ns <= now.ns) {
		give_up_late(sess, STREAM_CONNECT_CONTROL, now);
		err_set(&late, PTCP_ETIMEOUT, "no answer");
		control_replay_failed(sess, &late, false);
	}
	if (sess->connecting[STREAM_CONNECT_CONTROL] == NULL && sess->retry_at[STREAM_CONNECT_CONTROL].ns <= now.ns)
		start(sess, STREAM_CONNECT_CONTROL);
}

void stream_connect_stop_control(struct session *sess)
{
	stream_connect_free(sess->connecting[STREAM_CONNECT_CONTROL]);
}

static bool is_missing(const struct session *sess, unsigned number)
{
	return sess->stream[number] == NULL && path_rates_joins(sess, number) && !probe_session_has_ended(sess, number);
}

/* None of those that should be there is. */
static bool lacks_all(const struct session *sess)
{
	unsigned i;

	for (i = 0; i < sess->n_wanted && sess->n_up == 0; i++)
		if (path_rates_joins(sess, i))
			return true;
	return false;
}

void stream_connect_pump(struct session *sess, struct mono now)
{
	struct ptcp_err why;
	unsigned i;

	if (sess->o.one_channel && !sess->ever_up)
		open_one_channel(sess);
	if (!sess->o.connects)
		return;
	for (i = 0; i < sess->n_wanted; i++) {
		give_up_late(sess, i, now);
		if (is_missing(sess, i) && sess->connecting[i] == NULL && sess->retry_at[i].ns <= now.ns)
			start(sess, i);
	}
	if (lacks_all(sess) && mono_diff_ns(now, sess->none_since) >= sess->o.timeout_ns) {
		err_set(&why, sess->ever_up ? PTCP_ETIMEOUT : PTCP_ECONNECT,
		    "data connections: none could be had for %.3g s: %s (ptcp doctor looks at the path)", (double)sess->o.timeout_ns / 1e9,
		    sess->join_why.code != 0 ? sess->join_why.msg : "no answer");
		session_fail(sess, &why);
	}
}

/* Of the control connection's, if one is due. */
static struct mono control_deadline(const struct session *sess)
{
	const struct stream_connect *j = sess->connecting[STREAM_CONNECT_CONTROL];

	if (sess->control != NULL || sess->control_replay.chan != NULL || !control_replay_may(sess))
		return MONO_NEVER;
	return j != NULL ? j->deadline : sess->retry_at[STREAM_CONNECT_CONTROL];
}

struct mono stream_connect_deadline(const struct session *sess)
{
	struct mono at = control_deadline(sess);
	unsigned i;

	if (!sess->o.connects || !sess->running)
		return MONO_NEVER;
	if (sess->over)
		return at;
	for (i = 0; i < sess->n_wanted; i++) {
		if (sess->connecting[i] != NULL)
			at = mono_min(at, sess->connecting[i]->deadline);
		else if (is_missing(sess, i))
			at = mono_min(at, sess->retry_at[i]);
	}
	return lacks_all(sess) ? mono_min(at, mono_add_ns(sess->none_since, sess->o.timeout_ns)) : at;
}

void stream_connect_move(struct session *sess, unsigned place, const struct ptcp_err *why)
{
	unsigned i;

	for (i = 0; i < sess->n_granted; i++) {
		if (sess->o.paths->dealt[i] != place)
			continue;
		stream_connect_free(sess->connecting[i]);
		if (sess->stream[i] != NULL)
			session_stream_lost(sess, sess->stream[i], why);
		sess->retries[i] = 0;
		sess->retry_at[i] = mono_now();
	}
}

void stream_connect_stop(struct session *sess)
{
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++) /* but for who joins as the control connection */
		stream_connect_free(sess->connecting[i]);
}
