/* The streams of a party: how many are in use, and how they come and go. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"
#include "session/session_impl.h"
#include "store/fd_budget.h"

/* ---- How many are in use ---- */

unsigned session_in_use(const struct session *sess)
{
	unsigned i, n = 0;

	if (sess->probe != NULL)
		return sess->n_up;
	for (i = 0; i < sess->n_wanted; i++)
		n += sess->stream[i] != NULL;
	return n;
}

/* Whether more of those wanted are on their way; only who makes them knows. */
static bool more_to_come(const struct session *sess)
{
	unsigned i;

	for (i = 0; i < sess->n_wanted; i++)
		if (sess->stream[i] == NULL && (sess->connecting[i] != NULL || (sess->o.connects && sess->retries[i] == 0)))
			return true;
	return false;
}

/* How many are in use now: once for a change, not for each stream that joins. */
static void tell_streams(struct session *sess, const char *why)
{
	unsigned from = sess->n_told;

	sess->n_told = session_in_use(sess);
	if (sess->n_told != from)
		sess->o.ops->streams(sess->o.arg, from, sess->n_told, why);
}

void session_tell_joined(struct session *sess)
{
	if (sess->probe == NULL && more_to_come(sess))
		return;
	tell_streams(sess, sess->wanted_why != NULL ? sess->wanted_why : "connected");
	sess->wanted_why = NULL;
}

/* Descriptors for so many streams, whether they are there yet or not. */
static void count_fds(struct session *sess, unsigned streams)
{
	unsigned need = streams * (sess->tapped ? 2 : 1);

	if (need > sess->n_counted) {
		fd_budget_count((int)(need - sess->n_counted));
		sess->n_counted = need;
	}
}

/* What is up of those wanted is in use at once. */
void session_want(struct session *sess, unsigned streams, const char *why)
{
	unsigned before = session_in_use(sess), after;

	sess->n_wanted = streams;
	sess->wanted_why = sess->stream_count != NULL ? why : NULL; /* of those yet to join */
	count_fds(sess, streams);
	if (before == 0)
		sess->none_since = mono_now();
	after = session_in_use(sess);
	if (after > sess->n_most)
		sess->n_most = after;
	if (sess->probe == NULL && after < before)
		tell_streams(sess, why);
	else if (sess->probe == NULL)
		session_tell_joined(sess);
}

bool session_look(const struct session *sess, unsigned number, struct tcpinfo *out)
{
	return sess->tap[number] >= 0 && tcpinfo_read(out, sess->tap[number]) == 0;
}

void session_close_tap(struct session *sess, unsigned number)
{
	if (sess->tap[number] >= 0)
		close(sess->tap[number]);
	sess->tap[number] = -1;
}

/* ---- Streams come and go ---- */

/* A frame that TLS has let through is the peer's own: joining again would only repeat it. In clear it may
 * have been the path, as with records that TLS does not let through. */
static void on_lost(void *arg, struct stream *s, const struct ptcp_err *why)
{
	struct session *sess = arg;

	if (why->code == PTCP_EPROTO && sess->cipher != PTCP_CIPHER_NONE && !sess->over)
		session_fail(sess, why);
	session_stream_lost(sess, s, why);
}

static void on_gone(void *arg, struct stream *s)
{
	struct session *sess = arg;
	unsigned number = stream_number(s);

	if (sess->stream[number] == s) { /* stopped with the session, not lost */
		sess->stream[number] = NULL;
		sess->n_up--;
	} else {
		sess->n_ending--;
	}
	sess->retransmits += stream_retransmits(s);
	stream_free(s);
	session_pump(sess);
}

static void on_idle(void *arg, struct stream *s)
{
	(void)s;
	session_pump(arg);
}

static const struct stream_ops stream_ops = {
	send_sent, on_idle, receive_received, receive_held, on_lost, on_gone
};

void session_stream_lost(struct session *sess, struct stream *s, const struct ptcp_err *why)
{
	unsigned number = stream_number(s), before = session_in_use(sess);

	if (sess->stream[number] != s)
		return;
	sess->stream[number] = NULL;
	sess->n_up--;
	sess->n_ending++;
	if (sess->send != NULL && engine_snd(sess->engine) != NULL)
		snd_stream_lost(engine_snd(sess->engine), number);
	if (sess->probe != NULL)
		probe_session_stream_lost(sess, s, why);
	session_close_tap(sess, number); /* or the connection would not close with the stream */
	stream_stop(s);
	if (sess->n_up == 0)
		sess->none_since = mono_now();
	if (sess->o.one_channel && !sess->over)
		session_fail(sess, why);
	if (!sess->over) {
		sess->join_why = *why;
		log_at(&sess->o.host->log, LOG_INFO, "stream", "stream=%u event=lost why=\"%s\"", number, why->msg);
		if (session_in_use(sess) < before)
			tell_streams(sess, why->msg);
		stream_connect_again(sess, number);
	}
	session_pump(sess);
}

static bool takes_stream(const struct session *sess, unsigned number)
{
	/* Who probes takes only those of the level under way. */
	return sess->running && !sess->over &&
	    number < (sess->probe != NULL && sess->probe->ops != NULL ? sess->n_wanted : sess->n_granted);
}

bool session_knows(const struct session *sess, struct chan *c, const struct wire_join *j)
{
	uint8_t exporter[32], mac[32];
	struct ptcp_err why;
	bool known;

	known = sess != NULL && strcmp(chan_fingerprint(c), sess->fingerprint) == 0 &&
	    memcmp(sess->id, j->session, sizeof sess->id) == 0 &&
	    chan_export(c, exporter, &why) == 0 &&
	    tls_join_mac(mac, sess->key, exporter, j->session, j->stream) == 0 &&
	    tls_mac_equal(mac, j->mac) &&
	    (j->stream == WIRE_JOIN_CONTROL ? control_replay_may(sess) : takes_stream(sess, j->stream));
	explicit_bzero(exporter, sizeof exporter);
	explicit_bzero(mac, sizeof mac);
	return known;
}

void session_add_stream(struct session *sess, unsigned number, struct chan *c)
{
	struct stream_opts o = {
		.host = sess->o.host, .number = number, .chan = c, .pacer = &sess->path_rates.all,
		.path = sess->o.paths != NULL ? paths_of_stream(sess->o.paths, number) : 0,
		.worker = sess->id[0] + number, /* so that not all sessions of a server start at the same */
		.verify = (engine_open(sess->engine)->flags & WIRE_OPEN_VERIFY) != 0,
		.intake = sess->receive != NULL ? &sess->receive->intake : NULL, .ops = &stream_ops, .arg = sess
	};
	int fd = chan_fd(c);
	unsigned before;
	struct ptcp_err e;

	if (number == WIRE_JOIN_CONTROL) {
		control_replay_take(sess, c);
		return;
	}
	if (!takes_stream(sess, number)) {
		chan_free(c);
		return;
	}
	if (sess->stream[number] != NULL) { /* it died without our noticing */
		err_set(&e, PTCP_EPEER, "replaced by the peer");
		session_stream_lost(sess, sess->stream[number], &e);
	}
	if (sess->probe != NULL)
		probe_session_stream_opts(sess, &o);
	count_fds(sess, number + 1); /* not every peer joins only what is wanted */
	before = session_in_use(sess);
	if (engine_spooled(sess->engine))
		sock_no_user_timeout(fd);
	if (sess->tapped)
		sess->tap[number] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (stream_new(&sess->stream[number], &o, &e) < 0) {
		sess->stream[number] = NULL;
		session_close_tap(sess, number);
		return; /* the peer will notice and come again */
	}
	sess->life[number] = (struct life){ 0, mono_now() };
	sess->n_up++;
	sess->ever_up = true;
	if (session_in_use(sess) > sess->n_most)
		sess->n_most = session_in_use(sess);
	if (sess->send != NULL)
		snd_stream_up(engine_snd(sess->engine), number, mono_now());
	path_rates_stream_up(sess, number);
	if (sess->probe != NULL) {
		probe_session_stream_up(sess, number);
		sess->n_told = before; /* rounds end without a word */
	}
	if (session_in_use(sess) != before)
		session_tell_joined(sess);
	session_pump(sess);
}

uint64_t session_retransmits(struct session *sess)
{
	uint64_t n = sess->retransmits;
	unsigned i;

	for (i = 0; i < PTCP_STREAMS_MAX; i++)
		if (sess->stream[i] != NULL)
			n += stream_retransmits(sess->stream[i]);
	return n;
}
