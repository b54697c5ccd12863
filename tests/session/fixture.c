#include "fixture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/units.h"
#include "patience.h"

#define LIMIT_S 60
#define CIPHERS (1u << PTCP_CIPHER_AES128GCM)

struct sf sf;

/* ---- Reports ---- */

static struct sf_end *end_of(const struct session *sess)
{
	return sess->o.open != NULL ? &sf.starter : &sf.acceptor;
}

static void on_open(void *arg, struct session *sess, const struct wire_open *o)
{
	unsigned n = session_reserve(sess, o->streams < sf.granted ? o->streams : sf.granted, true);

	assert_ptr_equal(arg, &sf.acceptor);
	if (sf.opens != NULL)
		sf.opens(sess);
	else if (sf.refusal.code != 0)
		engine_fail(sess->engine, &sf.refusal);
	else
		session_accept(sess, n, o->cipher, false);
}

static void on_waiting(void *arg, uint32_t ahead)
{
	((struct sf_end *)arg)->n_waiting += ahead;
}

void sf_add_files(struct session *sess)
{
	struct destination place = { .base = NULL };
	struct ptcp_err e;

	if (engine_snd(sess->engine) != NULL) {
		struct dir *from = tree_root(sf.from);

		assert_int_equal(session_send_from(sess, from, NULL, &e), 0);
		dir_unref(from);
	} else {
		place.base = tree_root(sf.to);
		place.contents = true;
		assert_int_equal(session_receive_into(sess, &place, &e), 0);
	}
}

static void on_running(void *arg, struct session *sess)
{
	struct sf_end *end = arg;
	void (*begins)(struct session *sess) = end == &sf.starter ? sf.starts : sf.serves;

	assert_false(end->running);
	end->running = true;
	if (begins != NULL)
		begins(sess);
	else if (end == &sf.acceptor || !sf.early)
		sf_add_files(sess);
}

static void on_file(void *arg, const struct session_file *f)
{
	struct sf_end *end = arg;

	end->n_files++;
	end->n_done += f->status == PTCP_FILE_DONE;
	end->n_failed += f->status == PTCP_FILE_FAILED;
	end->n_deleted += f->status == PTCP_FILE_DELETED;
	if (f->status == PTCP_FILE_FAILED)
		snprintf(end->failed, sizeof end->failed, "%s: %s", f->path, f->why->msg);
}

static void on_warning(void *arg, const char *path, const char *text)
{
	struct sf_end *end = arg;

	end->n_warnings++;
	snprintf(end->warning, sizeof end->warning, "%s: %s", path != NULL ? path : "", text);
}

static void on_leftovers(void *arg, const struct wire_leftovers *f)
{
	((struct sf_end *)arg)->n_leftovers += (unsigned)f->files;
}

static void on_streams(void *arg, unsigned from, unsigned to, const char *why)
{
	struct sf_end *end = arg;

	if (end->session->probe == NULL) /* levels are not reported, but losses are */
		assert_int_equal(end->connected, from);
	end->n_streams++;
	end->connected = to;
	snprintf(end->streams, sizeof end->streams, "%s", why);
}

static void on_congestion(void *arg, const char *name, const char *why)
{
	assert_true(name[0] != '\0');
	(void)why;
	((struct sf_end *)arg)->n_congestion++;
}

static void on_reconnecting(void *arg, unsigned attempt, uint64_t wait_ns, const char *why)
{
	struct sf_end *end = arg;

	assert_true(attempt > 0 && wait_ns < 100 * NS_PER_S);
	end->n_reconnecting++;
	snprintf(end->reconnecting, sizeof end->reconnecting, "%s", why);
}

static void on_path_failed(void *arg, unsigned path, unsigned hop, const char *why)
{
	struct sf_end *end = arg;

	end->n_path_failed++;
	end->failed_path = path;
	end->failed_hop = hop;
	snprintf(end->path_failed, sizeof end->path_failed, "%s", why);
}

static void on_paths(void *arg, const char *why)
{
	struct sf_end *end = arg;

	end->n_paths++;
	snprintf(end->paths, sizeof end->paths, "%s", why);
}

static int on_check(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *peer,
    struct ptcp_err *e)
{
	(void)arg, (void)hop;
	if (!relay && strcmp(peer->fingerprint, sf.acceptor.context.identity.fingerprint) == 0)
		return 0;
	return err_set(e, PTCP_EREFUSED, "unknown");
}

static void on_gone(void *arg, struct session *sess, const struct ptcp_err *why)
{
	struct sf_end *end = arg;

	assert_ptr_equal(end, end_of(sess));
	assert_false(end->gone);
	end->gone = true;
	end->session = sess;
	end->at_end = session_progress(sess);
	if (why != NULL)
		end->why = *why;
}

static const struct session_ops ops = { .open = on_open, .waiting = on_waiting, .running = on_running, .file = on_file,
	.warning = on_warning, .leftovers = on_leftovers, .streams = on_streams, .congestion = on_congestion,
	.reconnecting = on_reconnecting, .path_failed = on_path_failed, .paths = on_paths, .check = on_check,
	.gone = on_gone };

/* ---- The acceptor's port ---- */

static int on_control(void *arg, struct inbound *g, struct ptcp_err *e)
{
	(void)arg;
	assert_null(sf.acceptor.session);
	sf.acceptor.o.control = inbound_take_chan(g);
	return session_new(&sf.acceptor.session, &sf.acceptor.o, e);
}

static int on_join(void *arg, struct inbound *g, const struct wire_join *j, bool *plaintext, struct ptcp_err *e)
{
	const struct session *sess = sf.acceptor.gone || sf.forgets ? NULL : sf.acceptor.session;

	(void)arg;
	if (j->stream != WIRE_JOIN_CONTROL && sf.refuses > 0) {
		sf.refuses--;
		return err_set(e, PTCP_EREFUSED, "not now");
	}
	if (session_join(sess, g->chan, j) != SESSION_JOIN_VALID)
		return err_set(e, PTCP_EREFUSED, "no such session or stream");
	*plaintext = session_cipher(sess) == PTCP_CIPHER_NONE;
	return 0;
}

static void on_stream(void *arg, struct chan *c, const struct wire_join *j)
{
	(void)arg;
	sf.n_joins += j->stream != WIRE_JOIN_CONTROL;
	if (j->stream == WIRE_JOIN_CONTROL && sf.takes != NULL)
		sf.takes(c);
	else
		session_add_stream(sf.acceptor.session, j->stream, c);
}

static const struct inbound_ops inbound_ops = { .control = on_control, .join = on_join, .stream = on_stream };

static void on_accepted(void *arg, int *fd, const char *address)
{
	(void)arg;
	pending_take(&sf.pending, fd, address, false);
}

/* ---- Sessions ---- */

static void on_connected(void *arg, const struct connect_result *r)
{
	struct session_opts *o = &sf.starter.o;
	struct ptcp_err e;

	(void)arg;
	sf.first = NULL;
	if (r->chan == NULL)
		fail_msg("no control connection: %s", r->why.msg);
	o->control = r->chan;
	if (session_new(&sf.starter.session, o, &e) < 0)
		fail_msg("no session: %s", e.msg);
	if (sf.early)
		sf_add_files(sf.starter.session);
	session_offer_early(sf.starter.session);
}

static void put_path(uint8_t flags, const char *path)
{
	static uint8_t p[64];

	sf.open.paths = (struct span){ p, wire_path_encode(p, flags, (struct span){ (const uint8_t *)path,
	    strlen(path) }) };
}

void sf_begin(uint8_t role, unsigned streams)
{
	struct connect_opts c = { .context = &sf.starter.context, .host = "127.0.0.1",
		.port = listener_port(sf.listener),
		.timeout_ns = LIMIT_S * NS_PER_S, .alpn = ALPN_CONTROL, .sock = sf.sock, .check = on_check,
		.done = on_connected };
	struct ptcp_err e;

	sf.open.role = role;
	sf.open.streams = (uint16_t)streams;
	sf.open.n_paths = role == WIRE_ACCEPTOR_SENDS || role == WIRE_ACCEPTOR_RECEIVES;
	if (role == WIRE_ACCEPTOR_SENDS && sf.source != NULL)
		put_path(0, sf.source);
	else if (sf.open.n_paths > 0)
		put_path(role == WIRE_ACCEPTOR_SENDS ? WIRE_PATH_CONTENTS : 0, "x");
	assert_int_equal(connect_start(&sf.first, &c, &e), 0);
}

static void forget(struct sf_end *end)
{
	assert_true(end->gone);
	session_free(end->session);
	memset(&end->session, 0, sizeof *end - offsetof(struct sf_end, session));
}

void sf_again(void)
{
	forget(&sf.starter);
	forget(&sf.acceptor);
	sf.n_joins = 0;
}

void sf_until(bool (*holds)(void))
{
	while (!holds())
		loop_run_once(sf.control, true);
}

bool sf_both_run(void) { return sf.starter.running && sf.acceptor.running; }
bool sf_both_gone(void) { return sf.starter.gone && sf.acceptor.gone; }
void sf_finish(void) { sf_until(sf_both_gone); }

static void succeeded(const struct sf_end *end)
{
	if (end->why.code != 0)
		fail_msg("failed: %s", end->why.msg);
}

void sf_failed(const struct sf_end *end, int code, const char *text)
{
	assert_true(end->gone);
	if (end->why.code != code || strstr(end->why.msg, text) == NULL)
		fail_msg("%d, \"%s\" is not in: %d, \"%s\"", code, text, end->why.code, end->why.msg);
}

/* ---- Files ---- */

void sf_file(const char *name, size_t n)
{
	uint8_t *p = malloc(n + 1);
	uint64_t x = n * 2654435761u + 1;
	char at[200];
	size_t i;

	for (i = 0; i < n; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		p[i] = (uint8_t)(x >> 56);
	}
	snprintf(at, sizeof at, "from/%s", name);
	fx_write(at, p, n);
	free(p);
}

void sf_same(const char *name)
{
	char at[2][200];
	uint8_t *p[2];
	long n;

	snprintf(at[0], sizeof at[0], "from/%s", name);
	snprintf(at[1], sizeof at[1], "to/%s", name);
	n = fx_read(at[0], NULL, 0);
	assert_true(n >= 0);
	p[0] = malloc((size_t)n + 1);
	p[1] = malloc((size_t)n + 1);
	assert_int_equal(fx_read(at[0], p[0], (size_t)n), n);
	assert_int_equal(fx_read(at[1], p[1], (size_t)n), n);
	assert_memory_equal(p[0], p[1], (size_t)n);
	free(p[0]);
	free(p[1]);
}

void sf_finish_well(void)
{
	struct dirent *d;
	DIR *all;

	sf_finish();
	succeeded(&sf.starter);
	succeeded(&sf.acceptor);
	all = opendir(fx_path("from"));
	while ((d = readdir(all)) != NULL)
		if (d->d_type == DT_REG)
			sf_same(d->d_name);
	closedir(all);
}

/* ---- Connections ---- */

void sf_cut(int fd) { assert_int_equal(shutdown(fd, SHUT_RDWR), 0); }

static bool leads_to_the_acceptor(int fd)
{
	struct sockaddr_in sa;
	socklen_t n = sizeof sa;

	return getpeername(fd, (struct sockaddr *)&sa, &n) == 0 && sa.sin_family == AF_INET &&
	    ntohs(sa.sin_port) == listener_port(sf.listener);
}

unsigned sf_cut_streams(void)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *d;
	unsigned n = 0;
	int fd;

	while ((d = readdir(all)) != NULL) {
		fd = atoi(d->d_name);
		if (d->d_name[0] != '.' && fd != session_control_fd(sf.starter.session) && leads_to_the_acceptor(fd)) {
			sf_cut(fd);
			n++;
		}
	}
	closedir(all);
	return n;
}

void sf_unreachable(bool on) { listener_hold(sf.listener, on); }

/* ---- Setup ---- */

static int begin_end(struct sf_end *end, const char *config, bool starter)
{
	fx_mkdir(config);
	if (context_init(&end->context, sf.control, fx_path(config), 2, starter ? CIPHERS : 0,
	    starter ? 0 : CIPHERS, NULL) < 0)
		return -1;
	end->o = (struct session_opts){ .context = &end->context, .connects = starter,
	    .address = starter ? "127.0.0.1" : "",
		.max_streams = PTCP_STREAMS_MAX, .timeout_ns = 30 * NS_PER_S, .linger_ns = 30 * NS_PER_S,
		.ops = &ops, .arg = end };
	return 0;
}

int sf_setup(void **state)
{
	struct pending_opts o = { .context = &sf.acceptor.context, .timeout_ns = 10 * NS_PER_S,
		.waiting = 64, .sessions = 4, .streams = 64, .ops = &inbound_ops };
	struct loop *l;

	if (loop_new(&l, NULL) < 0) /* libuv's first loop opens descriptors that stay */
		return -1;
	loop_free(l);
	if (fx_setup(state) != 0)
		return -1;
	alarm(patience_s(LIMIT_S));
	memset(&sf, 0, sizeof sf);
	fx_mkdir("from");
	fx_mkdir("to");
	if (loop_new(&sf.control, NULL) < 0 || begin_end(&sf.starter, "starter", true) < 0 ||
	    begin_end(&sf.acceptor, "acceptor", false) < 0 || tree_open(&sf.from, fx_path("from"), &fx_sys, NULL) < 0 ||
	    tree_open(&sf.to, fx_path("to"), &fx_sys, NULL) < 0 || pending_init(&sf.pending, &o, NULL) < 0 ||
	    listener_new(&sf.listener, sf.control, "127.0.0.1:0", 0, on_accepted, NULL, NULL) < 0)
		return -1;
	sf.granted = PTCP_STREAMS_MAX;
	sf.open = (struct wire_open){ .cipher = PTCP_CIPHER_AES128GCM,
	    .preserve = WIRE_PRESERVE_TIMES | WIRE_PRESERVE_MODE | WIRE_PRESERVE_LINKS };
	sf.starter.o.open = &sf.open;
	sf.starter.o.port = listener_port(sf.listener);
	return 0;
}

static void end(struct sf_end *end)
{
	static const struct ptcp_err why = { .code = PTCP_ECANCELED, .msg = "the test is over" };

	if (end->session == NULL)
		return;
	if (!end->gone)
		session_cancel(end->session, &why);
	while (!end->gone)
		loop_run_once(sf.control, true);
	session_free(end->session);
	end->session = NULL;
}

void sf_end(void)
{
	connect_cancel(sf.first);
	sf.first = NULL;
	end(&sf.starter);
	end(&sf.acceptor);
}

int sf_teardown(void **state)
{
	sf_end();
	pending_empty(&sf.pending);
	pending_fini(&sf.pending);
	listener_free(sf.listener);
	tree_unref(sf.from);
	tree_unref(sf.to);
	context_fini(&sf.starter.context);
	context_fini(&sf.acceptor.context);
	loop_free(sf.control);
	alarm(0);
	return fx_teardown(state);
}
