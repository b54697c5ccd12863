/* against: cpu */
#include "net/chan.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/list.h"
#include "fixture.h"
#include "net/loop_uv.h"
#include "patience.h"

static struct identity ours, theirs;
static SSL_CTX *client_tls, *server_tls;

static int make_identities(void **state)
{
	const unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_CHACHA20;
	char dir[sizeof nf_dir + 8];

	if (nf_setup(state) != 0)
		return -1;
	snprintf(dir, sizeof dir, "%s/us", nf_dir);
	if (identity_load(&ours, dir, false, NULL) != 0)
		return -1;
	snprintf(dir, sizeof dir, "%s/them", nf_dir);
	if (identity_load(&theirs, dir, false, NULL) != 0 || nf_teardown(state) != 0)
		return -1;
	return tls_new(&client_tls, &ours, false, ciphers, NULL) |
	    tls_new(&server_tls, &theirs, true, ciphers, NULL);
}

static int free_identities(void **state)
{
	(void)state;
	SSL_CTX_free(client_tls);
	SSL_CTX_free(server_tls);
	identity_fini(&ours);
	identity_fini(&theirs);
	return 0;
}

/* ---- One end: sends a sequence of bytes, and compares the received bytes with the sequence ---- */

enum when { NEVER, IN_OPENED, IN_READABLE, IN_WRITABLE, IN_CLOSED };

struct end {
	struct chan *c;
	unsigned number;         /* 0 the client, 1 the server */
	uint64_t to_send, sent, got, want;
	size_t write_bytes, read_bytes; /* at a time */
	bool hand_over;          /* after `opened` */
	bool puts;               /* then every second piece by chan_write_by() */
	bool no_read_ahead;
	bool shut;               /* when all has been sent */
	bool shut_back;          /* when closed */
	bool shut_full;          /* when all that is wanted has come */
	enum when frees;
	uint64_t pause_at, move_at;
	bool silent;             /* reads nothing, without having paused: the loop does not settle */
	/* what happened */
	unsigned opened, readable, writable;
	bool told, closed, bad, full;  /* told: readable; full: got all that is wanted */
	bool orderly;
	struct ptcp_err why;
	/* moving */
	struct loop *to;
	struct msg arrive;
};

/* Of the stream that end `n` sends, the byte at `at`. */
static uint8_t byte_at(unsigned n, uint64_t at)
{
	return (uint8_t)(at * 131 + (at >> 8) * 7 + (at >> 16) * 3 + n * 97);
}

/* To be sent by put(). */
struct piece {
	const uint8_t *p;
	size_t n;
	unsigned calls;
};

/* Sends less than it may, and gives up now and then. */
static ssize_t put(void *arg, int sock, size_t n)
{
	struct piece *piece = arg;
	ssize_t sent;

	assert_true(n > 0 && n <= piece->n);
	if (++piece->calls % 5 == 4)
		return -1;
	if ((sent = send(sock, piece->p, n < 30000 ? n : 30000, MSG_NOSIGNAL)) < 0)
		return errno == EAGAIN ? 0 : -1;
	piece->p += sent;
	piece->n -= (size_t)sent;
	return sent;
}

/* As chan_write(); what is not put is written. */
static size_t write_by(struct chan *c, const uint8_t *p, size_t n)
{
	struct piece piece = { p, n, n % 5 };
	ssize_t r = chan_write_by(c, n, put, &piece);
	size_t done = n - piece.n;

	if (r < 0) {
		assert_int_equal(done, 0);
		return chan_write(c, p, n);
	}
	assert_int_equal(done, (size_t)r);
	return done;
}

static void push(struct end *x)
{
	static _Thread_local uint8_t buf[400000];
	size_t n, i, taken;

	while (x->sent < x->to_send) {
		n = x->to_send - x->sent < x->write_bytes ? (size_t)(x->to_send - x->sent) : x->write_bytes;
		for (i = 0; i < n; i++)
			buf[i] = byte_at(x->number, x->sent + i);
		taken = x->puts && chan_is_raw(x->c) && x->sent / x->write_bytes % 2 == 1 ? write_by(x->c, buf, n) :
		    chan_write(x->c, buf, n);
		x->sent += taken;
		if (taken < n)
			return;
	}
	chan_flush(x->c);
	if (x->shut)
		chan_shutdown(x->c);
}

static bool free_now(struct end *x, enum when now)
{
	if (x->frees != now)
		return false;
	chan_free(x->c);
	x->c = NULL;
	return true;
}

static void on_opened(void *arg)
{
	struct end *x = arg;

	x->opened++;
	if (free_now(x, IN_OPENED))
		return;
	if (x->hand_over && x->opened == 1)
		chan_leave_tls(x->c);
	else
		push(x);
}

static void on_arrive(struct msg *m);

static void on_readable(void *arg)
{
	static _Thread_local uint8_t buf[400000];
	struct end *x = arg;
	size_t n, i;

	x->readable++;
	x->told = true;
	if (x->silent)
		return;
	if (free_now(x, IN_READABLE))
		return;
	while ((n = chan_read(x->c, buf, x->read_bytes)) > 0) {
		for (i = 0; i < n; i++)
			x->bad |= buf[i] != byte_at(1 - x->number, x->got + i);
		x->got += n;
		if (x->pause_at != 0 && x->got >= x->pause_at) {
			chan_pause(x->c, true);
			return;
		}
		if (x->move_at != 0 && x->got >= x->move_at) {
			x->move_at = 0;
			chan_detach(x->c);
			x->arrive.run = on_arrive;
			loop_post(x->to, &x->arrive);
			return;
		}
	}
	x->full = x->want > 0 && x->got >= x->want;
	if (x->full && x->shut_full)
		chan_shutdown(x->c);
}

static void on_writable(void *arg)
{
	struct end *x = arg;

	x->writable++;
	if (!free_now(x, IN_WRITABLE))
		push(x);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct end *x = arg;

	x->bad |= x->closed; /* twice */
	x->closed = true;
	if (x->frees == IN_CLOSED)
		free_now(x, IN_CLOSED); /* `why` outlives it */
	x->orderly = why == NULL;
	if (why != NULL)
		x->why = *why;
	if (x->shut_back)
		chan_shutdown(x->c);
}

static const struct chan_ops ops = { on_opened, on_readable, on_writable, on_closed };

static void moved_readable(void *arg);

static const struct chan_ops moved_ops = { on_opened, moved_readable, on_writable, on_closed };

static void on_arrive(struct msg *m)
{
	struct end *x = CONTAINER_OF(m, struct end, arrive);

	if (chan_attach(x->c, x->to, &moved_ops, x, NULL) < 0)
		abort();
}

static void non_blocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

/* Two connected sockets; over TCP, or within the kernel. */
static void socket_pair(int fd[2], bool tcp)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof sa;
	int s;

	if (!tcp) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	} else {
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(s, (struct sockaddr *)&sa, n), 0);
		assert_int_equal(listen(s, 1), 0);
		assert_int_equal(getsockname(s, (struct sockaddr *)&sa, &n), 0);
		fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd[0], (struct sockaddr *)&sa, n), 0);
		fd[1] = accept4(s, NULL, NULL, SOCK_CLOEXEC);
		assert_true(fd[1] >= 0);
		close(s);
	}
	non_blocking(fd[0]);
	non_blocking(fd[1]);
}

static void start_end(struct end *x, struct loop *l, int fd, uint64_t rekey)
{
	struct chan_opts o = { .server = x->number == 1, .alpn = ALPN_DATA, .ops = &ops, .arg = x,
		.rekey_records = rekey };

	if (x->write_bytes == 0)
		x->write_bytes = 65536;
	if (x->read_bytes == 0)
		x->read_bytes = 65536;
	assert_int_equal(chan_new(&x->c, l, o.server ? server_tls : client_tls, &fd, &o, NULL), 0);
	if (x->no_read_ahead)
		chan_read_ahead(x->c, false);
}

struct pair {
	struct loop *l;
	struct end a, b; /* client and server */
};

static void start_pair(struct pair *p, bool tcp)
{
	int fd[2];

	assert_int_equal(loop_new(&p->l, NULL), 0);
	socket_pair(fd, tcp);
	p->a.number = 0;
	p->b.number = 1;
	start_end(&p->a, p->l, fd[0], 0);
	start_end(&p->b, p->l, fd[1], 0);
}

static void end_pair(struct pair *p)
{
	chan_free(p->a.c);
	chan_free(p->b.c);
	loop_free(p->l);
	assert_false(p->a.bad);
	assert_false(p->b.bad);
}

static void count(uv_prepare_t *h)
{
	++*(unsigned *)h->data;
}

static void stop(void *arg)
{
	loop_stop(arg);
}

/* Turns of the loop in so many ms in which nothing should happen. */
static unsigned turns(struct loop *l, unsigned ms)
{
	unsigned n = 0;
	struct timer *t;
	uv_prepare_t p;

	assert_int_equal(timer_new(&t, l, stop, l, NULL), 0);
	uv_prepare_init(loop_uv(l), &p);
	p.data = &n;
	uv_prepare_start(&p, count);
	loop_reset(l);
	timer_set(t, mono_add_ns(mono_now(), ms * NS_PER_MS));
	loop_run(l);
	timer_free(t);
	uv_close((uv_handle_t *)&p, NULL);
	nf_settle(l);
	return n;
}

/* ---- Bytes ---- */

static void bytes_of_many_sizes(void **state)
{
	static const struct {
		size_t write, read;
		uint64_t total;
	} cases[] = {
		{ 1, 1, 5000 }, { 17, 4, 30000 }, { 1000, 70000, 1000000 }, { 16384, 16384, 2000000 },
		{ 16385, 100, 2000000 }, { 65536, 300000, 8000000 }, { 300000, 17, 1000000 },
		{ 390000, 390000, 12000000 }, { 1, 300000, 20000 },
	};
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		for (k = 0; k < 6; k++) { /* TLS or raw (in two ways), over one kind of socket or the other */
			struct pair p = { .a = { .to_send = cases[i].total, .want = cases[i].total / 2,
				.write_bytes = cases[i].write, .read_bytes = cases[i].read, .hand_over = k >= 2,
				.puts = k >= 4, .no_read_ahead = i % 2 == 1 } };

			p.b = p.a;
			p.b.to_send = p.a.want;
			p.b.want = p.a.to_send;
			start_pair(&p, k % 2 == 1);
			assert_true(nf_run_until(p.l, &p.b.full, 20000));
			assert_true(nf_run_until(p.l, &p.a.full, 20000));
			assert_int_equal(p.b.got, p.b.want);
			assert_int_equal(p.a.got, p.a.want);
			assert_int_equal(p.a.opened, k >= 2 ? 2 : 1);
			assert_false(p.a.closed || p.b.closed);
			assert_string_equal(chan_fingerprint(p.a.c), theirs.fingerprint);
			assert_string_equal(chan_fingerprint(p.b.c), ours.fingerprint);
			assert_true(chan_is_alpn(p.b.c, ALPN_DATA) && !chan_is_alpn(p.b.c, ALPN_CONTROL));
			end_pair(&p);
		}
}

static void back_pressure_and_pause(void **state)
{
	int k;

	(void)state;
	for (k = 0; k < 3; k++) {
		struct pair p = { .a = { .to_send = 20000000, .hand_over = k >= 1, .puts = k == 2 },
			.b = { .want = 20000000, .pause_at = 100000, .hand_over = k >= 1 } };
		struct mono limit = mono_add_ns(mono_now(), patience_s(20) * NS_PER_S);
		uint64_t sent;
		unsigned readable, woken;

		start_pair(&p, true);
		/* Until both ends sleep, the paused one and the one that waits: the kernel may enlarge its buffers
		 * late. */
		do {
			sent = p.a.sent;
			readable = p.b.readable;
			woken = turns(p.l, 100);
			assert_true(p.a.sent < 15000000); /* the kernel's buffers and ours, not more */
			assert_true(mono_now().ns < limit.ns);
		} while (p.a.sent != sent || p.b.readable != readable || sent == 0 || woken >= 6);
		p.b.pause_at = 0;
		chan_pause(p.b.c, false);
		assert_true(nf_run_until(p.l, &p.b.full, 20000));
		assert_int_equal(p.b.got, 20000000);
		end_pair(&p);
	}
}

static bool all_sent(void *arg) { return ((struct pair *)arg)->a.sent == ((struct pair *)arg)->a.to_send; }
static bool some_got(void *arg) { return ((struct pair *)arg)->b.got > 0; }

/* What is not requested stays in the socket, except for the rest of a TLS record. */
static void no_read_ahead(void **state)
{
	int k, left;

	(void)state;
	for (k = 0; k < 2; k++) {
		struct pair p = { .a = { .to_send = 60000, .hand_over = k == 1 },
			.b = { .want = 60000, .read_bytes = 1000, .pause_at = 1000, .hand_over = k == 1,
			.no_read_ahead = true } };

		start_pair(&p, false);
		assert_true(nf_await(p.l, all_sent, &p) && nf_await(p.l, some_got, &p));
		nf_run_for(p.l, 50);
		assert_int_equal(p.b.got, 1000);
		assert_int_equal(ioctl(chan_fd(p.b.c), FIONREAD, &left), 0);
		/* a record of the handshake's read, and one of ours */
		assert_true(left >= 60000 - 1000 - (k == 1 ? 0 : 2 * 16384));
		p.b.pause_at = 0;
		chan_pause(p.b.c, false);
		assert_true(nf_run_until(p.l, &p.b.full, 20000));
		end_pair(&p);
	}
}

static void nothing_to_do_is_nothing_done(void **state)
{
	struct pair p = { .a = { .to_send = 1000 }, .b = { .want = 1000 } };

	(void)state;
	start_pair(&p, true);
	assert_true(nf_run_until(p.l, &p.b.full, 5000));
	nf_run_for(p.l, 10);
	assert_true(turns(p.l, 100) < 6);
	chan_shutdown(p.a.c); /* the other end does not close: */
	assert_int_equal(chan_write(p.a.c, "x", 1), 0); /* nothing spins for this */
	nf_run_for(p.l, 10);
	assert_true(turns(p.l, 100) < 6);
	assert_int_equal(p.a.writable, 0);
	end_pair(&p);
}

/* Who writes too early hears of it once bytes may flow, and nothing spins until then. */
static void written_before_it_is_open(void **state)
{
	struct pair p = { .b = { .want = 1000 } };
	struct end x = { .number = 0, .to_send = 1000 };
	int fd[2];

	(void)state;
	assert_int_equal(loop_new(&p.l, NULL), 0);
	socket_pair(fd, true);
	start_end(&x, p.l, fd[0], 0);
	assert_int_equal(chan_write(x.c, "early", 5), 0);
	nf_run_for(p.l, 10);
	assert_true(turns(p.l, 100) < 6);
	assert_int_equal(x.writable, 0);
	p.b.number = 1;
	start_end(&p.b, p.l, fd[1], 0);
	assert_true(nf_run_until(p.l, &p.b.full, 5000));
	assert_int_equal(p.b.got, 1000);
	chan_free(x.c);
	end_pair(&p);
}

/* ---- Moving ---- */

/* Of an end that has moved: what its thread tells the test. */
static atomic_bool moved_full;

static void moved_readable(void *arg)
{
	struct end *x = arg;

	on_readable(x);
	if (x->full)
		atomic_store(&moved_full, true);
}

static bool has_moved(void *arg)
{
	(void)arg;
	return atomic_load(&moved_full);
}

static void free_there(struct msg *m)
{
	struct end *x = CONTAINER_OF(m, struct end, arrive);

	chan_free(x->c);
}

static void moved_while_bytes_are_pending(void **state)
{
	int k;

	(void)state;
	for (k = 0; k < 4; k++) {
		struct pair p = { .a = { .to_send = 6000000, .hand_over = k % 2 == 1, .want = 3000000 },
			.b = { .to_send = 3000000, .move_at = k < 2 ? 1 : 1000000, .hand_over = k % 2 == 1,
			.read_bytes = 5000, .want = 6000000 } };

		atomic_store(&moved_full, false);
		assert_int_equal(loop_new(&p.b.to, NULL), 0);
		assert_int_equal(loop_start_thread(p.b.to, NULL), 0);
		start_pair(&p, true);
		assert_true(nf_run_until(p.l, &p.a.full, 20000));
		assert_true(nf_await(p.l, has_moved, NULL));
		p.b.arrive.run = free_there;
		loop_post(p.b.to, &p.b.arrive);
		loop_free(p.b.to); /* joins its thread */
		p.b.c = NULL;
		assert_int_equal(p.b.got, 6000000);
		end_pair(&p);
	}
}

static bool is_open(void *arg) { return ((struct pair *)arg)->a.opened == 1; }

/* Without callbacks nothing is read, nothing turns; with the callbacks of a later owner all of it is there. */
static void without_callbacks(void **state)
{
	static const struct chan_ops none = { .readable = NULL };
	struct pair p = { .a = { .to_send = 100000, .write_bytes = 100000 }, .b = { .number = 1, .want = 100000,
		.read_bytes = 65536 } };
	struct chan_opts o = { .server = true, .ops = &none };
	int fd[2];

	(void)state;
	assert_int_equal(loop_new(&p.l, NULL), 0);
	socket_pair(fd, true);
	start_end(&p.a, p.l, fd[0], 0);
	assert_int_equal(chan_new(&p.b.c, p.l, server_tls, &fd[1], &o, NULL), 0);
	assert_true(nf_await(p.l, is_open, &p));
	assert_true(turns(p.l, 20) < 5);
	chan_detach(p.b.c);
	assert_int_equal(chan_attach(p.b.c, p.l, &ops, &p.b, NULL), 0);
	assert_true(nf_run_until(p.l, &p.b.full, 5000));
	chan_detach(p.b.c);
	assert_int_equal(chan_attach(p.b.c, p.l, &none, NULL, NULL), 0);
	chan_free(p.a.c);
	p.a.c = NULL;
	nf_settle(p.l);
	assert_false(p.b.closed);
	end_pair(&p);
}

/* ---- Leaving TLS ---- */

static void data_in_place_of_close_notify(void **state)
{
	struct pair p = { .a = { .hand_over = true }, .b = { .to_send = 100 } };

	(void)state;
	start_pair(&p, false);
	assert_true(nf_run_until(p.l, &p.a.closed, 5000));
	assert_false(p.a.orderly);
	assert_int_equal(p.a.why.code, PTCP_EPROTO);
	assert_int_equal(p.a.opened, 1);
	end_pair(&p);
}

static void no_close_notify_comes(void **state)
{
	struct pair p = { .a = { .hand_over = true }, .b = { .silent = true } };

	(void)state;
	start_pair(&p, false);
	assert_true(nf_run_until(p.l, &p.b.told, 5000)); /* of close_notify */
	assert_int_equal(p.a.opened, 1); /* waits */
	chan_free(p.b.c); /* FIN in its place */
	p.b.c = NULL;
	assert_true(nf_run_until(p.l, &p.a.closed, 5000));
	assert_false(p.a.orderly);
	end_pair(&p);
}

/* Bytes behind the end of TLS are nobody's: the end is still told. */
static void junk_behind_the_end(void **state)
{
	struct pair p = { .a = { .to_send = 1000 }, .b = { .want = 1000 } };

	(void)state;
	start_pair(&p, false);
	assert_true(nf_run_until(p.l, &p.b.full, 5000));
	chan_leave_tls(p.a.c); /* writes close_notify */
	assert_int_equal(send(chan_fd(p.a.c), "junk junk junk", 14, MSG_NOSIGNAL), 14);
	assert_true(nf_run_until(p.l, &p.b.closed, 5000));
	assert_true(p.b.orderly);
	assert_int_equal(p.b.got, 1000);
	end_pair(&p);
}

/* ---- Ends ---- */

static void closed_in_good_order(void **state)
{
	int k;

	(void)state;
	for (k = 0; k < 2; k++) {
		struct pair p = { .a = { .to_send = 3000000, .shut = true, .hand_over = k == 1 },
			.b = { .shut_back = true, .read_bytes = 1000, .hand_over = k == 1 } };

		start_pair(&p, true);
		assert_true(nf_run_until(p.l, &p.b.closed, 10000));
		assert_int_equal(p.b.got, 3000000); /* all of it before the end */
		assert_true(p.b.orderly);
		nf_run_for(p.l, 5);
		chan_free(p.b.c);
		p.b.c = NULL;
		assert_true(nf_run_until(p.l, &p.a.closed, 5000));
		end_pair(&p);
	}
}

/* Both ends are heard at once, and who is told frees the channel: the other side hears ours even so. */
static void closed_while_closing(void **state)
{
	struct pair p = { .a = { .to_send = 1000, .shut = true },
		.b = { .want = 1000, .shut_full = true, .silent = true, .frees = IN_CLOSED } };
	int i;

	(void)state;
	start_pair(&p, true);
	assert_true(nf_run_until(p.l, &p.b.told, 5000));
	for (i = 0; i < 100; i++)
		loop_run_once(p.l, false); /* data and end have come, and wait */
	chan_pause(p.b.c, true);
	p.b.silent = false;
	chan_pause(p.b.c, false);
	assert_true(nf_run_until(p.l, &p.a.closed, 5000));
	assert_true(p.b.closed && p.b.orderly);
	assert_true(p.a.orderly);
	end_pair(&p);
}

/* FIN without close_notify is a cut, also behind whole records. */
static void truncated(void **state)
{
	struct pair p = { .a = { .to_send = 100000 }, .b = { .want = 100000 } };

	(void)state;
	start_pair(&p, true);
	assert_true(nf_run_until(p.l, &p.b.full, 5000));
	chan_free(p.a.c);
	p.a.c = NULL;
	assert_true(nf_run_until(p.l, &p.b.closed, 5000));
	assert_false(p.b.orderly);
	assert_int_equal(p.b.why.code, PTCP_EPEER);
	assert_int_equal(p.b.got, 100000);
	end_pair(&p);
}

static bool reason_sent(void *arg) { return ((struct pair *)arg)->b.sent == 500; }

/* The peer says why and goes, without reading what was on its way to it: a reset. The reason is read
 * although sending fails first. */
static void the_reason_before_a_reset(void **state)
{
	int k;

	(void)state;
	for (k = 0; k < 2; k++) {
		struct pair p = { .a = { .read_bytes = 7, .want = 500 },
			.b = { .to_send = 500, .silent = true } };

		start_pair(&p, true);
		chan_pause(p.a.c, true);
		assert_true(nf_await(p.l, reason_sent, &p));
		p.a.to_send = k == 0 ? 300 : 50000000;
		push(&p.a);
		chan_pause(p.b.c, true);
		nf_run_for(p.l, 20);
		chan_free(p.b.c);
		p.b.c = NULL;
		nf_sleep_ms(5);
		push(&p.a); /* fails, if there is anything to send */
		chan_pause(p.a.c, false);
		assert_true(nf_run_until(p.l, &p.a.closed, 5000));
		assert_false(p.a.orderly);
		assert_int_equal(p.a.why.code, PTCP_EPEER);
		assert_null(strstr(p.a.why.msg, "Bad file descriptor"));
		assert_int_equal(p.a.got, 500);
		end_pair(&p);
	}
}

/* Somebody between the two, who forwards so many bytes and then cuts both off. */
struct middle {
	int fd[2];
	size_t left;
	struct timer *timer;
};

static void forward(void *arg)
{
	struct middle *m = arg;
	uint8_t buf[1000];
	ssize_t n;
	int i;

	for (i = 0; i < 2 && m->left > 0; i++) {
		n = recv(m->fd[i], buf, m->left < sizeof buf ? m->left : sizeof buf, 0);
		if (n > 0 && send(m->fd[1 - i], buf, (size_t)n, MSG_NOSIGNAL) == n)
			m->left -= (size_t)n;
	}
	if (m->left > 0) {
		timer_set(m->timer, mono_now());
	} else {
		close(m->fd[0]);
		close(m->fd[1]);
	}
}

static void dies_at_any_point(void **state)
{
	size_t at;

	(void)state;
	for (at = 0; at < 4000; at += 131) {
		struct pair p = { .a = { .to_send = 5000, .hand_over = at % 2 == 1 },
			.b = { .to_send = 5000, .hand_over = at % 2 == 1, .number = 1 } };
		struct middle m = { .left = at };
		int one[2], two[2];

		assert_int_equal(loop_new(&p.l, NULL), 0);
		socket_pair(one, false);
		socket_pair(two, false);
		m.fd[0] = one[1];
		m.fd[1] = two[1];
		start_end(&p.a, p.l, one[0], 0);
		start_end(&p.b, p.l, two[0], 0);
		assert_int_equal(timer_new(&m.timer, p.l, forward, &m, NULL), 0);
		timer_set(m.timer, mono_now());
		assert_true(nf_run_until(p.l, &p.a.closed, 5000));
		assert_true(nf_run_until(p.l, &p.b.closed, 5000));
		/* Raw bytes have no end of their own; under TLS the cut is always seen. */
		assert_true(!p.a.orderly || p.a.opened == 2);
		assert_true(!p.b.orderly || p.b.opened == 2);
		assert_true(turns(p.l, 20) < 6);
		timer_free(m.timer);
		end_pair(&p);
	}
}

static void freed_in_each_callback(void **state)
{
	static const enum when whens[] = { IN_OPENED, IN_READABLE, IN_WRITABLE, IN_CLOSED };
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < 4; i++)
		for (k = 0; k < 2; k++) {
			struct pair p = { .a = { .to_send = 5000000, .frees = whens[i], .hand_over = k == 1 },
				.b = { .to_send = 1000, .hand_over = k == 1 } };

			if (whens[i] == IN_CLOSED) {
				p.b.to_send = 0;
				if (k == 0)
					p.b.shut = true;
				else
					p.b.frees = IN_OPENED; /* cut: there is a reason */
			}
			start_pair(&p, true);
			assert_true(nf_run_until(p.l, whens[i] == IN_CLOSED ? &p.a.closed : &p.b.closed, 10000));
			assert_null(p.a.c);
			end_pair(&p);
		}
	chan_free(NULL);
}

/* What a relay says first is no part of the bytes; alone, or with TLS behind it. */
static void relayed(void **state)
{
	static const unsigned relays[] = { 0, 1, 8, 127 };
	unsigned i, alone;

	(void)state;
	for (i = 0; i < sizeof relays / sizeof *relays; i++)
		for (alone = 0; alone < 2; alone++) {
			struct pair p = { .a = { .to_send = 1000, .number = 0 }, .b = { .want = 1000, .number = 1 } };
			int fd[2];

			assert_int_equal(loop_new(&p.l, NULL), 0);
			socket_pair(fd, true);
			if (relays[i] > 0)
				assert_true(chan_send_hops(fd[0], relays[i]));
			start_end(&p.b, p.l, fd[1], 0);
			assert_int_equal(chan_hops(p.b.c), 0);
			if (alone) {
				nf_run_for(p.l, 20);
				assert_false(p.b.closed);
			}
			start_end(&p.a, p.l, fd[0], 0);
			assert_true(nf_run_until(p.l, &p.b.full, 5000));
			assert_int_equal(chan_hops(p.b.c), relays[i]);
			end_pair(&p);
		}
}

/* ---- Hostile peers ---- */

/* Then nothing, or twice; the end behind it. */
static void relayed_and_no_more(void **state)
{
	unsigned i;

	(void)state;
	for (i = 1; i <= 2; i++) {
		struct end x = { .number = 1 };
		struct loop *l;
		int fd[2];

		assert_int_equal(loop_new(&l, NULL), 0);
		socket_pair(fd, true);
		start_end(&x, l, fd[1], 0);
		assert_int_equal(send(fd[0], "\201\201", i, MSG_NOSIGNAL), i);
		close(fd[0]);
		assert_true(nf_run_until(l, &x.closed, 5000));
		assert_int_equal(x.opened, 0);
		chan_free(x.c);
		loop_free(l);
	}
}

static void garbage_in_place_of_tls(void **state)
{
	struct end x = { .number = 1 };
	char junk[3000];
	struct loop *l;
	int fd[2];

	(void)state;
	memset(junk, 'Z', sizeof junk);
	assert_int_equal(loop_new(&l, NULL), 0);
	socket_pair(fd, true);
	start_end(&x, l, fd[1], 0);
	assert_int_equal(send(fd[0], junk, sizeof junk, MSG_NOSIGNAL), sizeof junk);
	close(fd[0]); /* at once: it is still the garbage that is the reason */
	assert_true(nf_run_until(l, &x.closed, 5000));
	assert_int_equal(x.why.code, PTCP_EPROTO);
	assert_non_null(strstr(x.why.msg, "TLS handshake"));
	assert_int_equal(x.opened, 0);
	chan_free(x.c);
	loop_free(l);
}

/* Keys are renewed after so many records, and everything arrives. */
static void keys_are_renewed(void **state)
{
	struct pair p = { .a = { .to_send = 6000000, .number = 0, .write_bytes = 100000 },
		.b = { .want = 6000000, .number = 1, .read_bytes = 9999 } };
	int fd[2];

	(void)state;
	assert_int_equal(loop_new(&p.l, NULL), 0);
	socket_pair(fd, false);
	start_end(&p.a, p.l, fd[0], 20); /* about twenty times; so many that the measure is not exceeded */
	start_end(&p.b, p.l, fd[1], 0);
	assert_true(nf_run_until(p.l, &p.b.full, 10000));
	assert_false(p.b.closed);
	end_pair(&p);
}

/* A peer that only changes keys is stopped. The test shows as well that records renew keys. */
static void too_many_key_updates(void **state)
{
	struct pair p = { .a = { .to_send = 3000, .number = 0, .write_bytes = 1 }, .b = { .number = 1 } };
	int fd[2];

	(void)state;
	assert_int_equal(loop_new(&p.l, NULL), 0);
	socket_pair(fd, false);
	start_end(&p.a, p.l, fd[0], 5);
	start_end(&p.b, p.l, fd[1], 0);
	assert_true(nf_run_until(p.l, &p.b.closed, 5000));
	assert_int_equal(p.b.why.code, PTCP_EPROTO);
	assert_non_null(strstr(p.b.why.msg, "key"));
	assert_in_range(p.b.got, 80, 90); /* 16 updates are free */
	end_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(bytes_of_many_sizes), nf_test(back_pressure_and_pause),
		nf_test(no_read_ahead), nf_test(nothing_to_do_is_nothing_done), nf_test(written_before_it_is_open),
		nf_test(moved_while_bytes_are_pending),
		nf_test(without_callbacks), nf_test(data_in_place_of_close_notify),
		nf_test(no_close_notify_comes), nf_test(junk_behind_the_end), nf_test(closed_in_good_order),
		nf_test(closed_while_closing), nf_test(truncated), nf_test(the_reason_before_a_reset),
		nf_test(dies_at_any_point),
		nf_test(freed_in_each_callback), nf_test(relayed), nf_test(relayed_and_no_more),
		nf_test(garbage_in_place_of_tls), nf_test(keys_are_renewed), nf_test(too_many_key_updates),
	};
	return cmocka_run_group_tests_name("net/chan", tests, make_identities, free_identities);
}
