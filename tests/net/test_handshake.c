#include "net/handshake.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"

static struct identity ours;
static SSL_CTX *client_tls, *server_tls;
static struct loop *home, *worker;
static unsigned running;

/* One end of a connection. */
struct end {
	struct handshake *h;
	struct chan *c;
	bool done, failed, readable, *both;
	struct ptcp_err why;
	const struct end *other;
	pthread_t thread;
};

static void on_readable(void *arg) { ((struct end *)arg)->readable = true; }

static const struct chan_ops ops = { .readable = on_readable };

static void on_done(void *arg, struct chan *c, const struct ptcp_err *why)
{
	struct end *x = arg;

	assert_false(x->done);
	assert_true((c == NULL) == (why != NULL));
	x->h = NULL;
	x->c = c;
	x->done = true;
	x->failed = c == NULL;
	if (why != NULL)
		x->why = *why;
	x->thread = pthread_self();
	*x->both = x->done && x->other->done;
}

static void start(struct end *x, struct loop *on, int fd, bool server)
{
	struct handshake_opts o = { .home = home, .worker = on, .running = &running, .done = on_done };
	struct chan_opts c = { .server = server, .alpn = ALPN_DATA, .ops = &ops, .arg = x };

	assert_int_equal(handshake_start(&x->h, &o, server ? server_tls : client_tls, &fd, &c, NULL), 0);
}

/* The client's handshake is on `on`, the server's on the worker. */
static void start_pair(struct end x[2], struct loop *on, bool *both)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	*both = false;
	memset(x, 0, 2 * sizeof x[0]);
	x[0].other = &x[1];
	x[1].other = &x[0];
	x[0].both = x[1].both = both;
	start(&x[0], on, fd[0], false);
	start(&x[1], worker, fd[1], true);
}

static int setup(void **state)
{
	const unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM;

	if (nf_setup(state) != 0)
		return -1;
	running = 0;
	return identity_load(&ours, nf_path("id"), false, NULL) | tls_new(&client_tls, &ours, false, ciphers, NULL) |
	    tls_new(&server_tls, &ours, true, ciphers, NULL) | loop_new(&home, NULL) | loop_new(&worker, NULL) |
	    loop_start_thread(worker, NULL);
}

static int teardown(void **state)
{
	loop_free(worker);
	loop_free(home);
	SSL_CTX_free(client_tls);
	SSL_CTX_free(server_tls);
	identity_fini(&ours);
	return nf_teardown(state);
}

static void opened_on_the_owners_thread(void **state)
{
	struct loop *of_client[] = { worker, home };
	char text[6] = "";
	struct end x[2];
	unsigned i, n;
	bool both;

	(void)state;
	for (i = 0; i < 2; i++) {
		start_pair(x, of_client[i], &both);
		assert_int_equal(running, 2);
		assert_true(nf_run_until(home, &both, 5000));
		assert_int_equal(running, 0);
		for (n = 0; n < 2; n++) {
			assert_true(pthread_equal(x[n].thread, pthread_self()));
			assert_non_null(x[n].c);
			assert_string_equal(chan_fingerprint(x[n].c), ours.fingerprint);
		}
		assert_int_equal(chan_write(x[0].c, "hello", 5), 5);
		chan_flush(x[0].c);
		assert_true(nf_run_until(home, &x[1].readable, 5000));
		while (chan_read(x[1].c, text, 5) == 0)
			nf_run_for(home, 1);
		assert_string_equal(text, "hello");
		chan_free(x[0].c);
		chan_free(x[1].c);
	}
}

/* ---- Peers that a context of ours would not let come so far ---- */

/* A client whose certificate has a key that is no identity; NULL: without a certificate. */
static SSL_CTX *stranger(const char *curve)
{
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());
	EVP_PKEY *key;
	X509 *x;

	assert_non_null(c);
	if (curve == NULL)
		return c;
	assert_non_null(key = EVP_EC_gen(curve));
	assert_non_null(x = X509_new());
	assert_true(X509_gmtime_adj(X509_getm_notBefore(x), 0) != NULL &&
	    X509_gmtime_adj(X509_getm_notAfter(x), 3600) != NULL &&
	    X509_set_pubkey(x, key) && X509_sign(x, key, EVP_sha256()) > 0);
	assert_true(SSL_CTX_use_certificate(c, x) && SSL_CTX_use_PrivateKey(c, key));
	X509_free(x);
	EVP_PKEY_free(key);
	return c;
}

/* The end with the number `first`, 0 for the client, fails because of the other. */
static void fails(SSL_CTX *client, SSL_CTX *server, unsigned first)
{
	SSL_CTX *kept[2] = { client_tls, server_tls };
	struct end x[2];
	bool both;

	client_tls = client;
	server_tls = server;
	start_pair(x, home, &both);
	client_tls = kept[0];
	server_tls = kept[1];
	assert_true(nf_run_until(home, &both, 5000));
	chan_free(x[0].c);
	chan_free(x[1].c);
	assert_true(x[first].failed);
	assert_int_equal(x[first].why.code, PTCP_EPROTO);
	assert_non_null(strstr(x[first].why.msg, "the peer "));
}

static void peers_without_identity(void **state)
{
	const unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM;
	SSL_CTX *lax, *c;

	(void)state;
	assert_int_equal(tls_new(&lax, &ours, true, ciphers, NULL), 0);
	SSL_CTX_set_verify(lax, SSL_VERIFY_PEER, SSL_CTX_get_verify_callback(lax));
	assert_true(SSL_CTX_set1_sigalgs_list(lax, "ed25519:ECDSA+SHA256"));
	fails(c = stranger(NULL), lax, 1);
	SSL_CTX_free(c);
	fails(c = stranger("P-256"), lax, 1);
	SSL_CTX_free(c);
	SSL_CTX_set_alpn_select_cb(lax, NULL, NULL); /* a server that speaks something else */
	fails(client_tls, lax, 0);
	SSL_CTX_free(lax);
}

static void failures_are_reported(void **state)
{
	struct end x = { .both = &x.readable, .other = &x };
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	start(&x, worker, fd[0], true);
	assert_int_equal(write(fd[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
	assert_true(nf_run_until(home, &x.done, 5000));
	assert_true(x.failed);
	assert_int_equal(running, 0);
	close(fd[1]);
}

/* At each point of the handshake: it takes about a millisecond. */
static void canceled_at_any_time(void **state)
{
	struct end x[2];
	unsigned i, n;
	bool both;

	(void)state;
	for (i = 0; i < 300; i++) {
		start_pair(x, worker, &both);
		usleep(i % 100 * 20);
		if (i % 3 == 0)
			loop_run_once(home, false);
		for (n = 0; n < 2; n++) {
			handshake_cancel(x[n].h);
			chan_free(x[n].c);
			x[n].both = NULL; /* no callback follows */
		}
		assert_int_equal(running, 0);
		if (i % 2 == 0)
			loop_run_once(home, false);
	}
}

/* Messages of handshakes are left when both loops end. */
static void canceled_at_the_end(void **state)
{
	struct end x[2];
	bool both;

	(void)state;
	start_pair(x, worker, &both);
	nf_sleep_ms(50);
	handshake_cancel(x[0].h);
	handshake_cancel(x[1].h);
}

#define handshake_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		handshake_test(opened_on_the_owners_thread), handshake_test(peers_without_identity),
		handshake_test(failures_are_reported),
		handshake_test(canceled_at_any_time), handshake_test(canceled_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
