/* Connecting: relays and hosts are played on one socket, hop by hop, each with an identity of its own. */
#include "conn/connect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "net/fixture.h"
#include "net/listen.h"
#include "patience.h"
#include "wire/outbox.h"

#define HOPS 3
#define SOON (5000 * NS_PER_MS)

enum act {
	FORWARD,    /* relay: ROUTED, leaves TLS; the next hop follows */
	FORWARD_EARLY, /* as FORWARD, with a byte ahead of the end of TLS */
	WELCOME,    /* host: JOINED, and bytes behind it */
	LEAVE_TLS,  /* host: JOINED, leaves TLS, and bytes behind that */
	LISTEN,     /* host: expects no answer */
	REFUSE,     /* ERROR */
	GARBAGE,
	WRONG,      /* a frame that does not belong here */
	FILLED,     /* JOINED with content */
	HUGE,       /* ERROR longer than any */
	UNREADABLE, /* ERROR without its fields */
	SILENT,
	CLOSE
};

static struct identity id[HOPS + 1]; /* the last is the client's */
static SSL_CTX *server_tls[HOPS];
static struct context us;

/* The peer's side: one hop after the other on one connection. */
static struct {
	enum act act[HOPS];
	unsigned identity[HOPS], at;
	bool left;              /* TLS of this hop */
	struct listener *listener;
	struct chan *chan;
	uint8_t in[600];
	char granted[HOPS][20]; /* what came ahead of ROUTE */
	size_t n;
	char routed[HOPS][100];
	uint64_t spool_bytes, session;
	uint8_t control;
	unsigned accepted;
	struct chan *second;    /* of a connection made beside `chan` */
	uint8_t second_in[100];
	size_t second_n;
	bool second_opened, second_has_frame, speaks_first, refuses_second;
} peer;

static struct {
	bool came;
	unsigned n, checks, n_first;
	enum connect_cause cause;
	struct ptcp_err why;
	struct chan *chan;
	struct connect *spare;
	char address[300], checked[200];
	bool refuse, fail_first;
} out;

/* ---- The peer ---- */

static void begin(int *fd);

static void write_header(uint8_t type, uint32_t length)
{
	const struct wire_header h = { .type = type, .flags = WIRE_CRITICAL, .length = length };
	uint8_t frame[WIRE_HEADER_BYTES + WIRE_ERROR_MAX_BYTES] = { 0 };

	wire_header_encode(frame, &h);
	chan_write(peer.chan, frame, WIRE_HEADER_BYTES + length);
}

static void answer(void)
{
	struct outbox box = { BUF_INIT, false };
	uint8_t frame[WIRE_ERROR_MAX_BYTES];
	struct ptcp_err why;

	switch (peer.act[peer.at]) {
	case FORWARD:
	case FORWARD_EARLY:
		chan_write(peer.chan, frame, wire_routed_encode(frame));
		if (peer.act[peer.at] == FORWARD_EARLY)
			chan_write(peer.chan, "x", 1);
		chan_leave_tls(peer.chan);
		peer.left = true;
		break;
	case WELCOME:
		chan_write(peer.chan, frame, wire_joined_encode(frame));
		chan_write(peer.chan, "behind", 6);
		break;
	case LEAVE_TLS:
		chan_write(peer.chan, frame, wire_joined_encode(frame));
		chan_leave_tls(peer.chan);
		peer.left = true;
		break;
	case REFUSE:
		err_set(&why, PTCP_EREFUSED, "no\033room (come back)");
		outbox_put_error(&box, &why);
		chan_write(peer.chan, buf_head(&box.b), buf_len(&box.b));
		buf_fini(&box.b);
		break;
	case GARBAGE: chan_write(peer.chan, "\377\377\377\377\377\377\377\377", 8); break;
	case FILLED: write_header(WIRE_JOINED, 1); break;
	case HUGE: write_header(WIRE_ERROR, WIRE_ERROR_MAX_BYTES - WIRE_HEADER_BYTES + 1); break;
	case UNREADABLE: write_header(WIRE_ERROR, 0); break;
	case WRONG: chan_write(peer.chan, frame, wire_joined_encode(frame)); break;
	case LISTEN:
	case SILENT:
	case CLOSE: break;
	}
	chan_flush(peer.chan);
}

static void peer_readable(void *arg)
{
	struct wire_header h;
	struct wire_header first;
	struct wire_route f;
	struct span in;
	size_t at = 0;

	(void)arg;
	peer.n += chan_read(peer.chan, peer.in + peer.n, sizeof peer.in - peer.n);
	if (peer.n >= WIRE_HEADER_BYTES && peer.in[0] == WIRE_GRANT && wire_header_decode(&first, peer.in, NULL) == 0) {
		at = WIRE_HEADER_BYTES + first.length;
		snprintf(peer.granted[peer.at], sizeof peer.granted[0], "%.*s", (int)first.length,
		    peer.in + WIRE_HEADER_BYTES);
	}
	if (peer.n < at || wire_frame_next(&h, &in, (struct span){ peer.in + at, peer.n - at }, NULL) <= 0)
		return;
	if (h.type == WIRE_ROUTE) {
		assert_int_equal(wire_route_decode(&f, in, NULL), 0);
		snprintf(peer.routed[peer.at], sizeof peer.routed[0], "%.*s:%u", (int)f.host.n,
		    (const char *)f.host.p, f.port);
		peer.spool_bytes = f.spool_bytes;
		peer.session = f.session;
		peer.control = f.control;
	}
	if (peer.act[peer.at] != LISTEN)
		peer.n = 0;
	answer();
}

static void peer_opened(void *arg)
{
	int fd;

	(void)arg;
	if (peer.act[peer.at] == CLOSE) {
		chan_free(peer.chan);
		peer.chan = NULL;
	} else if (peer.left && peer.act[peer.at] == LEAVE_TLS) {
		chan_write(peer.chan, "behind", 6);
		chan_flush(peer.chan);
	} else if (peer.left) {
		fd = chan_take_fd(peer.chan);
		chan_free(peer.chan);
		peer.at++;
		begin(&fd);
	}
}

static const struct chan_ops peer_ops = { .opened = peer_opened, .readable = peer_readable };

static void begin(int *fd)
{
	struct chan_opts o = { .server = true, .ops = &peer_ops };

	peer.left = false;
	peer.n = 0;
	assert_int_equal(chan_new(&peer.chan, us.control, server_tls[peer.identity[peer.at]], fd, &o, NULL), 0);
}

static void second_opened(void *arg)
{
	(void)arg;
	peer.second_opened = true;
	if (peer.speaks_first) {
		chan_write(peer.second, "x", 1);
		chan_flush(peer.second);
	}
}

static void second_readable(void *arg)
{
	uint8_t frame[WIRE_JOINED_MAX_BYTES];

	(void)arg;
	peer.second_n += chan_read(peer.second, peer.second_in + peer.second_n, sizeof peer.second_in - peer.second_n);
	if (peer.second_n < WIRE_HEADER_BYTES || peer.second_has_frame)
		return;
	peer.second_has_frame = true;
	chan_write(peer.second, frame, wire_joined_encode(frame));
	chan_write(peer.second, "behind", 6);
	chan_flush(peer.second);
}

static const struct chan_ops second_ops = { .opened = second_opened, .readable = second_readable };

static void begin_second(int *fd)
{
	struct chan_opts o = { .server = true, .ops = &second_ops };

	assert_int_equal(chan_new(&peer.second, us.control, server_tls[peer.identity[0]], fd, &o, NULL), 0);
}

static void on_accepted(void *arg, int *fd, const char *address)
{
	(void)arg;
	(void)address;
	if (peer.accepted++ > 0 && peer.refuses_second)
		fd_close(fd);
	else if (peer.accepted > 1)
		begin_second(fd);
	else
		begin(fd);
}

/* ---- Our side ---- */

static void on_done(void *arg, const struct connect_result *r)
{
	assert_ptr_equal(arg, &out);
	out.came = true;
	out.n++;
	out.chan = r->chan;
	out.spare = r->spare;
	out.cause = r->cause;
	out.why = r->why;
	snprintf(out.address, sizeof out.address, "%s", r->address);
}

static int check(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *by,
    struct ptcp_err *e)
{
	size_t n = strlen(out.checked);

	assert_ptr_equal(arg, &out);
	snprintf(out.checked + n, sizeof out.checked - n, "%s%s ", relay ? "relay " : "", hop->host);
	assert_string_equal(by->fingerprint, id[peer.identity[out.checks]].fingerprint);
	out.checks++;
	return out.refuse ? err_set(e, PTCP_EREFUSED, "a stranger") : 0;
}

static int first(void *arg, struct chan *c, struct ptcp_err *e)
{
	uint8_t frame[WIRE_ROUTED_MAX_BYTES];

	assert_ptr_equal(arg, &out);
	out.n_first++;
	if (out.fail_first)
		return err_set(e, PTCP_EIO, "no frame");
	chan_write(c, frame, wire_routed_encode(frame)); /* any */
	return 0;
}

static bool none(void *arg, const struct addrinfo *all, const struct sockaddr *sa)
{
	(void)arg;
	(void)all;
	(void)sa;
	return false;
}

static const struct connect_hop relays[HOPS - 1] = { { "127.0.0.1", 0 }, { "second.test", 702 } };
static struct connect_hop relay[HOPS - 1]; /* of these, with the peer's port */

static struct connect_opts opts(enum act a, enum act b, enum act c, unsigned n_relays)
{
	struct connect_opts o = { .context = &us, .relay = relay, .n_relays = n_relays, .timeout_ns = SOON,
		.sock = { .timeout_ns = SOON }, .alpn = ALPN_DATA, .answer = WIRE_JOINED,
		.check = check, .first = first, .done = on_done, .arg = &out };
	unsigned i;

	memset(&out, 0, sizeof out);
	memset(&peer, 0, sizeof peer);
	memcpy(relay, relays, sizeof relay);
	peer.act[0] = a;
	peer.act[1] = b;
	peer.act[2] = c;
	for (i = 0; i < HOPS; i++)
		peer.identity[i] = i;
	assert_int_equal(listener_new(&peer.listener, us.control, "127.0.0.1:0", 0, on_accepted, NULL, NULL), 0);
	relay[0].port = listener_port(peer.listener);
	o.host = n_relays > 0 ? "host.test" : "127.0.0.1";
	o.port = n_relays > 0 ? 703 : relay[0].port;
	return o;
}

static void over(void)
{
	chan_free(out.chan);
	out.chan = NULL;
	connect_cancel(out.spare);
	out.spare = NULL;
	chan_free(peer.chan);
	peer.chan = NULL;
	chan_free(peer.second);
	peer.second = NULL;
	listener_free(peer.listener);
	peer.listener = NULL;
	nf_run_for(us.control, 2);
}

static void run(const struct connect_opts *o)
{
	struct connect *c;

	assert_int_equal(connect_start(&c, o, NULL), 0);
	assert_false(out.came); /* never from within */
	assert_true(nf_run_until(us.control, &out.came, 10000));
	nf_run_for(us.control, 2);
	assert_int_equal(out.n, 1);
}

/* Fails like that; the sentence has both texts. */
static void fails(const struct connect_opts *o, enum connect_cause cause, int code, const char *text, const char *too)
{
	run(o);
	assert_null(out.chan);
	assert_int_equal(out.cause, cause);
	assert_int_equal(out.why.code, code);
	if (strstr(out.why.msg, text) == NULL || strstr(out.why.msg, too) == NULL)
		fail_msg("%s", out.why.msg);
	over();
}

static const char *at_port(void)
{
	static char text[40];

	snprintf(text, sizeof text, "127.0.0.1:%u: ", relay[0].port);
	return text;
}

struct reader {
	struct chan *c;
	char got[20];
	size_t n;
	bool all;
};

static void read_behind(void *arg)
{
	struct reader *r = arg;

	r->n += chan_read(r->c, r->got + r->n, sizeof r->got - 1 - r->n);
	r->all = r->n >= 6;
}

/* What follows the answer is the caller's. */
static void behind_is_there(void)
{
	static const struct chan_ops ops = { .readable = read_behind };
	struct reader r = { .c = out.chan };

	assert_non_null(out.chan);
	assert_int_equal(chan_attach(out.chan, us.control, &ops, &r, NULL), 0);
	assert_true(nf_run_until(us.control, &r.all, 5000));
	assert_string_equal(r.got, "behind");
}

/* ---- Cases ---- */

static bool has_first_frame(void *arg)
{
	(void)arg;
	return peer.n > 0;
}

static void opens_directly(void **state)
{
	struct connect_opts o = opts(LISTEN, LISTEN, LISTEN, 0);

	(void)state;
	o.answer = 0;
	run(&o);
	assert_non_null(out.chan);
	assert_string_equal(chan_fingerprint(out.chan), id[0].fingerprint);
	assert_int_equal(strncmp(out.address, at_port(), strlen(out.address)), 0);
	assert_string_equal(out.checked, "127.0.0.1 ");
	assert_true(nf_await(us.control, has_first_frame, NULL));
	assert_int_equal(peer.n, WIRE_HEADER_BYTES); /* the first frame */
	over();
	o = opts(LISTEN, LISTEN, LISTEN, 0);
	o.answer = 0;
	o.first = NULL;
	o.fingerprint = id[0].fingerprint;
	run(&o);
	assert_non_null(out.chan);
	assert_int_equal(out.checks, 0);
	over();
}

static void takes_no_byte_behind_the_answer(void **state)
{
	struct connect_opts o = opts(WELCOME, 0, 0, 0);

	(void)state;
	run(&o);
	behind_is_there();
	over();
	o = opts(LEAVE_TLS, 0, 0, 0);
	o.plaintext = true;
	run(&o);
	behind_is_there();
	over();
}

static void passes_relays(void **state)
{
	struct connect_opts o = opts(FORWARD, FORWARD, WELCOME, 2);

	(void)state;
	o.spool_bytes = 1 << 20;
	o.route_session = 77;
	o.route_control = true;
	run(&o);
	assert_non_null(out.chan);
	assert_string_equal(chan_fingerprint(out.chan), id[2].fingerprint);
	assert_string_equal(out.address, "host.test:703");
	assert_string_equal(out.checked, "relay 127.0.0.1 relay second.test host.test ");
	assert_string_equal(peer.routed[0], "second.test:702");
	assert_string_equal(peer.routed[1], "host.test:703");
	assert_int_equal(peer.spool_bytes, 1 << 20);
	assert_true(peer.session == 77 && peer.control == 1);
	assert_int_equal(out.n_first, 1);
	assert_int_equal(peer.accepted, 1);
	behind_is_there();
	over();
}

static struct connect *asking;
static bool asked;

static void ask(void *arg, unsigned hop, const struct connect_peer *by)
{
	assert_ptr_equal(arg, &out);
	assert_int_equal(hop, peer.at);
	assert_string_equal(by->fingerprint, id[hop].fingerprint);
	asked = true;
}

static void has_asked(void)
{
	assert_true(nf_run_until(us.control, &asked, 5000));
	asked = false;
	nf_run_for(us.control, 5);
	assert_false(out.came);
	assert_string_equal(peer.routed[peer.at], ""); /* nothing is sent before the answer */
}

/* Another process judges the relays, and grants what is sent to them. */
static void asks_about_relays(void **state)
{
	static const uint8_t grant[] = { WIRE_GRANT, 1, 0, 0, 0, 0, 0, 4, 'p', 'a', 's', 's' };
	struct connect_opts o = opts(FORWARD, FORWARD, WELCOME, 2);

	(void)state;
	o.ask = ask;
	o.check = NULL;
	o.fingerprint = id[2].fingerprint;
	assert_int_equal(connect_start(&asking, &o, NULL), 0);
	has_asked();
	connect_pass(asking, grant, sizeof grant);
	connect_pass(asking, grant, sizeof grant); /* late: ignored */
	has_asked();
	assert_string_equal(peer.granted[0], "pass");
	assert_string_equal(peer.routed[0], "second.test:702");
	connect_pass(asking, grant, sizeof grant);
	assert_true(nf_run_until(us.control, &out.came, 5000));
	assert_string_equal(peer.granted[1], "pass");
	assert_string_equal(peer.routed[1], "host.test:703");
	assert_int_equal(out.checks, 0);
	behind_is_there();
	over();
	/* Refused, or no answer in time. */
	o = opts(FORWARD, WELCOME, 0, 1);
	o.ask = ask;
	assert_int_equal(connect_start(&asking, &o, NULL), 0);
	has_asked();
	connect_cancel(asking);
	over();
	o = opts(FORWARD, WELCOME, 0, 1);
	o.ask = ask;
	o.timeout_ns = 300 * NS_PER_MS;
	fails(&o, CONNECT_TIMED_OUT, PTCP_ECONNECT, at_port(), "no permission within");
	asked = false;
}

static void over_a_socket(void **state)
{
	struct connect_opts o = opts(WELCOME, 0, 0, 0);
	struct connect *c;
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
	o.host = "user@box";
	o.port = 0;
	begin(&fd[1]);
	assert_int_equal(connect_over(&c, &fd[0], &o, NULL), 0);
	assert_true(nf_run_until(us.control, &out.came, 5000));
	assert_string_equal(out.address, "user@box");
	behind_is_there();
	over();
	o = opts(CLOSE, 0, 0, 0);
	o.host = "user@box";
	o.port = 0;
	o.hint = "see ssh";
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
	begin(&fd[1]);
	assert_int_equal(connect_over(&c, &fd[0], &o, NULL), 0);
	assert_true(nf_run_until(us.control, &out.came, 5000));
	assert_null(out.chan);
	assert_non_null(strstr(out.why.msg, "connecting to user@box: "));
	assert_non_null(strstr(out.why.msg, "(see ssh)"));
	over();
}

static void says_no(void **state)
{
	struct connect_opts o = opts(REFUSE, 0, 0, 0);

	(void)state;
	fails(&o, CONNECT_REFUSED, PTCP_EREFUSED, at_port(), ": no\\033room (come back)");
	o = opts(REFUSE, 0, 0, 2);
	fails(&o, CONNECT_RELAY, PTCP_EREFUSED, "relay 127.0.0.1:", "room");
	o = opts(FORWARD, REFUSE, 0, 2);
	fails(&o, CONNECT_RELAY, PTCP_EREFUSED, "relay second.test:702: ", "room");
	o = opts(FORWARD, REFUSE, 0, 1);
	fails(&o, CONNECT_REFUSED, PTCP_EREFUSED, "connecting to host.test:703: ", "room");
	o = opts(WELCOME, 0, 0, 0);
	o.permits = none;
	fails(&o, CONNECT_REFUSED, PTCP_EREFUSED, "127.0.0.1", "");
}

static void is_not_there(void **state)
{
	struct connect_opts o = opts(WELCOME, 0, 0, 0);

	(void)state;
	listener_free(peer.listener);
	peer.listener = NULL;
	nf_run_for(us.control, 2);
	fails(&o, CONNECT_UNREACHABLE, PTCP_ECONNECT, at_port(), "refused");
	o = opts(CLOSE, 0, 0, 0);
	fails(&o, CONNECT_UNREACHABLE, PTCP_ECONNECT, at_port(), "(is it a ptcp server?)");
	o = opts(CLOSE, 0, 0, 1);
	fails(&o, CONNECT_RELAY, PTCP_ECONNECT, "relay 127.0.0.1:", "(is it a ptcp server with --relay-to?)");
	o = opts(WELCOME, 0, 0, 0);
	out.fail_first = true;
	fails(&o, CONNECT_UNREACHABLE, PTCP_EIO, "no frame", "");
}

static void answers_nonsense(void **state)
{
	struct connect_opts o = opts(GARBAGE, 0, 0, 0);

	(void)state;
	fails(&o, CONNECT_UNREACHABLE, PTCP_EPROTO, at_port(), "malformed");
	o = opts(GARBAGE, 0, 0, 1);
	fails(&o, CONNECT_RELAY, PTCP_EPROTO, "relay", "malformed");
	o = opts(WRONG, 0, 0, 1); /* JOINED of a relay */
	fails(&o, CONNECT_RELAY, PTCP_EPROTO, "relay", "malformed");
	o = opts(FORWARD, 0, 0, 0); /* ROUTED of the host */
	fails(&o, CONNECT_UNREACHABLE, PTCP_EPROTO, at_port(), "malformed");
	o = opts(FILLED, 0, 0, 0);
	fails(&o, CONNECT_UNREACHABLE, PTCP_EPROTO, at_port(), "malformed answer");
	o = opts(HUGE, 0, 0, 0);
	fails(&o, CONNECT_UNREACHABLE, PTCP_EPROTO, at_port(), "malformed answer");
	o = opts(UNREADABLE, 0, 0, 0);
	fails(&o, CONNECT_UNREACHABLE, PTCP_EPROTO, at_port(), "malformed ERROR frame");
	o = opts(FORWARD_EARLY, WELCOME, 0, 1);
	fails(&o, CONNECT_RELAY, PTCP_ECONNECT, "relay", "before the end of TLS");
}

static void is_late(void **state)
{
	struct connect_opts o = opts(SILENT, 0, 0, 0);
	const uint64_t late_ns = patience_s(1) * NS_PER_S / 5; /* TLS takes less */
	char text[40];

	(void)state;
	snprintf(text, sizeof text, "no answer within %g s", (double)late_ns / 1e9);
	o.timeout_ns = late_ns;
	fails(&o, CONNECT_SLOW, PTCP_ECONNECT, at_port(), text);
	o = opts(FORWARD, SILENT, 0, 2);
	o.timeout_ns = late_ns;
	fails(&o, CONNECT_TIMED_OUT, PTCP_ECONNECT, "relay second.test:702: ", text);
	o = opts(SILENT, 0, 0, 0);
	listener_free(peer.listener);
	peer.listener = NULL;
	o.port = 0; /* a listener that nobody accepts from */
	{
		struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		socklen_t n = sizeof sa;
		int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		assert_true(bind(s, (struct sockaddr *)&sa, n) == 0 && listen(s, 4) == 0 &&
		    getsockname(s, (struct sockaddr *)&sa, &n) == 0);
		o.port = ntohs(sa.sin_port);
		o.timeout_ns = 200 * NS_PER_MS;
		fails(&o, CONNECT_SLOW, PTCP_ECONNECT, "connecting to 127.0.0.1:", "no TLS handshake within 0.2 s");
		close(s);
	}
}

static void is_another(void **state)
{
	struct connect_opts o = opts(WELCOME, 0, 0, 0);

	(void)state;
	o.fingerprint = id[1].fingerprint;
	fails(&o, CONNECT_IDENTITY, PTCP_EREFUSED, at_port(), id[1].fingerprint);
	assert_int_equal(out.n_first, 0);
	o = opts(WELCOME, 0, 0, 0);
	out.refuse = true;
	fails(&o, CONNECT_IDENTITY, PTCP_EREFUSED, "a stranger", "");
	o = opts(FORWARD, WELCOME, 0, 1);
	out.refuse = true; /* the relay */
	fails(&o, CONNECT_IDENTITY, PTCP_EREFUSED, "a stranger", "");
	assert_string_equal(out.checked, "relay 127.0.0.1 ");
	o = opts(FORWARD, FORWARD, WELCOME, 2);
	peer.identity[1] = 0;
	fails(&o, CONNECT_IDENTITY, PTCP_EREFUSED, "second.test:702: ", "identity of the relay 127.0.0.1:");
	o = opts(FORWARD, FORWARD, WELCOME, 2);
	peer.identity[2] = 0; /* the relay plays the host */
	o.fingerprint = id[0].fingerprint;
	fails(&o, CONNECT_IDENTITY, PTCP_EREFUSED, "host.test:703: ", "identity of the relay");
	assert_int_equal(out.n_first, 0);
}

static const enum ptcp_cipher spare_cipher = PTCP_CIPHER_AES128GCM;

/* A host with a spare data connection. */
static struct connect_opts with_spare(void)
{
	struct connect_opts o = opts(LISTEN, 0, 0, 0);

	o.answer = 0;
	o.spare = &spare_cipher;
	return o;
}

/* The spare connection goes on as if it had just been started, whether TLS has come to its end by then or not. */
static void adopts_a_spare_connection(void **state)
{
	struct connect_opts o;
	struct connect *spare;
	unsigned ready;

	(void)state;
	for (ready = 0; ready < 2; ready++) {
		o = with_spare();
		run(&o);
		assert_non_null(out.spare);
		if (ready) {
			assert_true(nf_run_until(us.control, &peer.second_opened, 5000));
			nf_run_for(us.control, 5);
		}
		assert_int_equal(peer.second_n, 0); /* nothing is said on it before */
		chan_free(out.chan);
		spare = out.spare;
		memset(&out, 0, sizeof out);
		o.spare = NULL;
		o.answer = WIRE_JOINED;
		assert_true(connect_adopt(spare, &o));
		assert_false(out.came);
		assert_true(nf_run_until(us.control, &out.came, 5000));
		assert_int_equal(out.checks, 1);
		assert_int_equal(out.n_first, 1);
		assert_int_equal(peer.accepted, 2);
		behind_is_there();
		over();
	}
}

/* The identity counts when the connection is adopted: an intruder gets no frame. */
static void a_spare_connection_to_another(void **state)
{
	struct connect_opts o = with_spare();
	struct connect *spare;

	(void)state;
	run(&o);
	assert_true(nf_run_until(us.control, &peer.second_opened, 5000));
	chan_free(out.chan);
	spare = out.spare;
	memset(&out, 0, sizeof out);
	o.fingerprint = id[1].fingerprint;
	assert_true(connect_adopt(spare, &o));
	assert_true(nf_run_until(us.control, &out.came, 5000));
	assert_null(out.chan);
	assert_int_equal(out.cause, CONNECT_IDENTITY);
	assert_int_equal(out.n_first, 0);
	over();
}

static bool second_has_acted(void *arg)
{
	(void)arg;
	return peer.refuses_second ? peer.accepted == 2 : peer.second_opened;
}

/* Through a relay there is none; a host that closes it, or speaks first, costs only the connection. */
static void no_spare_connection(void **state)
{
	struct connect_opts o = opts(FORWARD, LISTEN, 0, 1);
	unsigned i;

	(void)state;
	o.answer = 0;
	o.spare = &spare_cipher;
	run(&o);
	assert_true(out.chan != NULL && out.spare == NULL);
	over();
	for (i = 0; i < 2; i++) {
		o = with_spare();
		peer.speaks_first = i == 0;
		peer.refuses_second = i == 1;
		run(&o);
		assert_non_null(out.chan);
		assert_true(nf_await(us.control, second_has_acted, NULL));
		nf_run_for(us.control, 100);
		assert_false(connect_adopt(out.spare, &o));
		over();
	}
	o = with_spare();
	out.refuse = true;
	fails(&o, CONNECT_IDENTITY, PTCP_EREFUSED, "a stranger", "");
	assert_null(out.spare);
}

/* After any number of turns of the loop. */
static void canceled_at_any_point(void **state)
{
	struct connect_opts o;
	struct connect *c;
	unsigned turns, i;
	bool got_there = false;

	(void)state;
	connect_cancel(NULL);
	for (turns = 0; !got_there && turns < 200; turns++) {
		o = opts(FORWARD, WELCOME, 0, 1);
		assert_int_equal(connect_start(&c, &o, NULL), 0);
		for (i = 0; i < turns && !out.came; i++)
			loop_run_once(us.control, true);
		got_there = out.came;
		if (!got_there)
			connect_cancel(c);
		over();
		assert_int_equal(out.n, got_there ? 1 : 0);
	}
	assert_true(got_there);
	assert_true(turns > 3);
}

static int setup(void **state)
{
	const unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM;
	unsigned i;

	(void)state;
	for (i = 0; i <= HOPS; i++)
		if (identity_new(&id[i], NULL) != 0)
			return -1;
	for (i = 0; i < HOPS; i++)
		if (tls_new(&server_tls[i], &id[i], true, ciphers, NULL) != 0)
			return -1;
	return loop_new(&us.control, NULL) | tls_new(&us.client, &id[HOPS], false, ciphers, NULL);
}

static int teardown(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < HOPS; i++)
		SSL_CTX_free(server_tls[i]);
	for (i = 0; i <= HOPS; i++)
		identity_fini(&id[i]);
	SSL_CTX_free(us.client);
	loop_free(us.control);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(opens_directly),
		nf_test(takes_no_byte_behind_the_answer),
		nf_test(passes_relays),
		nf_timed_test(asks_about_relays),
		nf_test(over_a_socket),
		nf_test(says_no),
		nf_test(is_not_there),
		nf_test(answers_nonsense),
		nf_timed_test(is_late),
		nf_test(is_another),
		nf_test(adopts_a_spare_connection),
		nf_test(a_spare_connection_to_another),
		nf_test(no_spare_connection),
		nf_test(canceled_at_any_point),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
