#include "fake_ptcp.h"

#include <assert.h>
#include <ptcp/plan.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct fake fake;

#define FP "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

void fake_reset(void)
{
	memset(&fake, 0, sizeof fake);
	fake.openssl = "3.5.0";
}

static int play(int code, struct ptcp_err *e)
{
	if (code != 0) {
		e->code = code;
		snprintf(e->msg, sizeof e->msg, "%s", fake.sentence != NULL ? fake.sentence : "");
	}
	return code;
}

const char *ptcp_version(void)
{
	return "9.8.7";
}

static const char *const ciphers[] = { "aes128gcm", "aes256gcm", "chacha20", "none" };

const char *ptcp_cipher_name(enum ptcp_cipher c)
{
	return (unsigned)c < PTCP_CIPHERS ? ciphers[c] : NULL;
}

bool ptcp_cipher_parse(const char *name, enum ptcp_cipher *out)
{
	for (unsigned i = 0; i < PTCP_CIPHERS; i++)
		if (strcmp(ciphers[i], name) == 0) {
			*out = (enum ptcp_cipher)i;
			return true;
		}
	return false;
}

int ptcp_config_dir(char *out, size_t cap, struct ptcp_err *e)
{
	(void)e;
	snprintf(out, cap, "%s", fake.config_dir != NULL ? fake.config_dir : "/nowhere");
	return 0;
}

/* ---- Keys */

static int key(const char *called, char *fingerprint, struct ptcp_err *e)
{
	fake.called = called;
	if (fingerprint != NULL && fake.key_code == 0)
		strcpy(fingerprint, FP);
	return play(fake.key_code, e);
}

int ptcp_key_show(const char *dir, char fingerprint[PTCP_FINGERPRINT_BYTES], struct ptcp_err *e)
{
	(void)dir;
	return key("show", fingerprint, e);
}

int ptcp_key_generate(const char *dir, char fingerprint[PTCP_FINGERPRINT_BYTES],
    struct ptcp_err *e)
{
	(void)dir;
	return key("generate", fingerprint, e);
}

void ptcp_permission_init(struct ptcp_permission *p)
{
	memset(p, 0, sizeof *p);
	p->size = sizeof *p;
}

int ptcp_authorize(const char *dir, const struct ptcp_permission *p, struct ptcp_err *e)
{
	(void)dir;
	snprintf(fake.fingerprint, sizeof fake.fingerprint, "%s", p->fingerprint);
	snprintf(fake.perm_root, sizeof fake.perm_root, "%s", p->root != NULL ? p->root : "-");
	snprintf(fake.perm_name, sizeof fake.perm_name, "%s", p->name != NULL ? p->name : "-");
	fake.perm_read_only = p->read_only;
	fake.perm_no_relay = p->no_relay;
	fake.perm_authority = p->authority;
	fake.perm_quota = p->quota_bytes;
	return key("authorize", NULL, e);
}

int ptcp_authorized_each(const char *dir, ptcp_permission_fn *each, void *arg, struct ptcp_err *e)
{
	static const char *const names[] = { "lab", NULL };
	struct ptcp_permission p;
	unsigned i;

	(void)dir;
	for (i = 0; i < fake.n_clients; i++) {
		ptcp_permission_init(&p);
		p.fingerprint = FP;
		p.name = names[i % 2];
		p.read_only = i % 2 == 0;
		p.no_relay = i % 2 == 1;
		p.root = i % 2 == 0 ? "/a b" : NULL;
		p.quota_bytes = i % 2 == 0 ? 10000000000000 : 0;
		each(arg, &p);
	}
	return key("list", NULL, e);
}

int ptcp_revoke(const char *dir, const char *fingerprint, struct ptcp_err *e)
{
	(void)dir;
	snprintf(fake.fingerprint, sizeof fake.fingerprint, "%s", fingerprint);
	return key("revoke", NULL, e);
}

void ptcp_certificate_init(struct ptcp_certificate *c)
{
	memset(c, 0, sizeof *c);
	c->size = sizeof *c;
}

int ptcp_authority_generate(const char *path, char fingerprint[PTCP_FINGERPRINT_BYTES], struct ptcp_err *e)
{
	snprintf(fake.ca, sizeof fake.ca, "%s", path);
	return key("authority", fingerprint, e);
}

int ptcp_authority_show(const char *path, char fingerprint[PTCP_FINGERPRINT_BYTES], struct ptcp_err *e)
{
	snprintf(fake.ca, sizeof fake.ca, "%s", path);
	return key("show-authority", fingerprint, e);
}

int ptcp_host_trust(const char *dir, const char *host, const char *fingerprint, bool authority, struct ptcp_err *e)
{
	(void)dir;
	snprintf(fake.perm_name, sizeof fake.perm_name, "%s", host);
	snprintf(fake.fingerprint, sizeof fake.fingerprint, "%s", fingerprint);
	fake.perm_authority = authority;
	return key("trust", NULL, e);
}

int ptcp_host_forget(const char *dir, const char *host, struct ptcp_err *e)
{
	(void)dir;
	snprintf(fake.perm_name, sizeof fake.perm_name, "%s", host);
	return key("forget", NULL, e);
}

int ptcp_certificate_sign(const char *key_path, const struct ptcp_certificate *c, char line[PTCP_CERTIFICATE_BYTES],
    struct ptcp_err *e)
{
	snprintf(fake.ca, sizeof fake.ca, "%s", key_path);
	snprintf(fake.fingerprint, sizeof fake.fingerprint, "%s", c->fingerprint);
	snprintf(fake.perm_root, sizeof fake.perm_root, "%s", c->root != NULL ? c->root : "-");
	snprintf(fake.perm_name, sizeof fake.perm_name, "%s", c->name != NULL ? c->name : c->hosts);
	fake.perm_read_only = c->read_only;
	fake.perm_no_relay = c->no_relay;
	fake.valid_s = c->until_s - c->from_s;
	strcpy(line, "ptcp-certificate AAAA");
	return key("sign", NULL, e);
}

int ptcp_certificate_install(const char *dir, const char *line, struct ptcp_err *e)
{
	(void)dir;
	snprintf(fake.perm_name, sizeof fake.perm_name, "%s", line);
	return key("install", NULL, e);
}

static const struct ptcp_certificate of_ann = { .size = sizeof of_ann, .fingerprint = FP, .authority = FP,
	.name = "ann", .root = "a b", .read_only = true, .until_s = 86400, .serial = "00000000000000a1" };

int ptcp_certificate_read(const char *line, ptcp_certificate_fn *each, void *arg, struct ptcp_err *e)
{
	snprintf(fake.perm_name, sizeof fake.perm_name, "%s", line);
	each(arg, &of_ann);
	return key("read", NULL, e);
}

int ptcp_certificates_each(const char *dir, ptcp_certificate_fn *each, void *arg, struct ptcp_err *e)
{
	struct ptcp_certificate c = of_ann;

	(void)dir;
	each(arg, &c);
	c.name = c.root = NULL;
	c.hosts = "*.x";
	c.from_s = INT64_C(4102444800);
	c.until_s = c.from_s + 1;
	each(arg, &c);
	return key("certificates", NULL, e);
}

int ptcp_certificate_revoke(const char *dir, const char *serial, struct ptcp_err *e)
{
	(void)dir;
	snprintf(fake.fingerprint, sizeof fake.fingerprint, "%s", serial);
	return key("revoke-certificate", NULL, e);
}

/* ---- Transfers */

struct ptcp_task {
	int unused;
};
static struct ptcp_task transfer;

void ptcp_transfer_opts_init(struct ptcp_transfer_opts *o)
{
	memset(o, 0, sizeof *o);
	o->size = sizeof *o;
	o->preserve.times = o->preserve.mode = o->preserve.links = true;
	o->timeout_s = 30;
}

static int new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n, const char *dest, struct ptcp_err *e)
{
	size_t used = 0;

	fake.opts = *o;
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(fake.srcs + used, sizeof fake.srcs - used, "%s%s",
		    i > 0 ? "|" : "", srcs[i]);
	snprintf(fake.dest, sizeof fake.dest, "%s", dest);
	if (fake.new_code == 0)
		*out = &transfer;
	return play(fake.new_code, e);
}

int ptcp_send_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n, const char *dest, struct ptcp_err *e)
{
	fake.sends++;
	return new(out, o, srcs, n, dest, e);
}

int ptcp_recv_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *const *srcs, size_t n, const char *dest, struct ptcp_err *e)
{
	fake.recvs++;
	return new(out, o, srcs, n, dest, e);
}

int ptcp_task_run(struct ptcp_task *t, struct ptcp_err *e)
{
	(void)t;
	fake.runs++;
	for (size_t i = 0; i < fake.n_events; i++)
		fake.opts.event(fake.opts.arg, &fake.events[i]);
	for (size_t i = 0; i < fake.n_rounds; i++)
		fake.measure.round(fake.measure.arg, &fake.rounds[i]);
	for (size_t i = 0; i < fake.n_entries; i++)
		fake.manage.entry(fake.manage.arg, &fake.entries[i]);
	if (fake.raise != 0)
		raise(fake.raise);
	return play(fake.run_code, e);
}

void ptcp_result_init(struct ptcp_result *r)
{
	*r = (struct ptcp_result){ .size = sizeof *r };
}

void ptcp_transfer_result(const struct ptcp_task *t, struct ptcp_result *r)
{
	(void)t;
	*r = fake.result;
}

int ptcp_task_start(struct ptcp_task *t, struct ptcp_err *e)
{
	(void)t;
	(void)e;
	return 0;
}

int ptcp_task_fd(const struct ptcp_task *t)
{
	(void)t;
	return -1;
}

int ptcp_task_timeout_ms(const struct ptcp_task *t)
{
	(void)t;
	return 0;
}

int ptcp_task_step(struct ptcp_task *t, struct ptcp_err *e)
{
	return ptcp_task_run(t, e);
}

int ptcp_task_keep(struct ptcp_task *t, struct ptcp_host *h, struct ptcp_err *e)
{
	(void)t;
	(void)h;
	(void)e;
	return PTCP_EUSAGE; /* as of a transfer */
}

void ptcp_task_cancel(struct ptcp_task *t)
{
	fake.cancels += t == &transfer;
}

void ptcp_task_free(struct ptcp_task *t)
{
	fake.frees += t == &transfer;
}

/* ---- Measuring */

static int new_prober(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *target, struct ptcp_err *e)
{
	fake.opts = *o;
	snprintf(fake.dest, sizeof fake.dest, "%s", target);
	if (fake.new_code == 0)
		*out = &transfer;
	return play(fake.new_code, e);
}

int ptcp_advise_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_advice_opts *a, struct ptcp_err *e)
{
	fake.advice_opts = *a;
	return new_prober(out, o, target, e);
}

int ptcp_advise_result(const struct ptcp_task *t, struct ptcp_advice *a, struct ptcp_err *e)
{
	(void)t;
	(void)e;
	*a = fake.advice;
	return 0;
}

void ptcp_measure_opts_init(struct ptcp_measure_opts *o)
{
	memset(o, 0, sizeof *o);
	o->size = sizeof *o;
	o->rounds = 5;
	o->bytes_per_stream = 2000000;
}

const char *ptcp_state_name(enum ptcp_state s)
{
	static const char *const names[] = { "running", "done", "failed" };

	return names[s];
}

int ptcp_status_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *name,
    bool cancel, struct ptcp_err *e)
{
	fake.status_cancel = cancel;
	return new_prober(out, o, name, e);
}

int ptcp_measure_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o,
    const char *target, const struct ptcp_measure_opts *m, struct ptcp_err *e)
{
	fake.measure = *m;
	return new_prober(out, o, target, e);
}

size_t ptcp_measure_levels(const struct ptcp_task *t, struct ptcp_level *out, size_t most,
    unsigned *saturates_at)
{
	(void)t;
	assert(fake.n_levels <= most);
	for (size_t i = 0; i < fake.n_levels; i++)
		out[i] = fake.levels[i];
	*saturates_at = fake.saturates_at;
	return fake.n_levels;
}

/* ---- Disk */

int ptcp_file_system_try(const char *dir, struct ptcp_file_system *out, struct ptcp_err *e)
{
	(void)dir;
	*out = fake.file_system;
	return play(fake.file_system_code, e);
}

/* ---- Speed */

int ptcp_cipher_speed(enum ptcp_cipher c, double seconds, double *bps, struct ptcp_err *e)
{
	(void)seconds;
	(void)e;
	*bps = c == PTCP_CIPHER_AES128GCM ? fake.aes_bps : fake.chacha_bps;
	return 0;
}

const char *ptcp_openssl_version(void) { return fake.openssl; }

int ptcp_hash_speed(double seconds, double *bps, struct ptcp_err *e)
{
	(void)seconds;
	(void)e;
	*bps = fake.hash_bps;
	return 0;
}

/* ---- Leftovers */

void ptcp_mover_opts_init(struct ptcp_mover_opts *o)
{
	*o = (struct ptcp_mover_opts){ .size = sizeof *o };
}

int ptcp_mover(const struct ptcp_mover_opts *o, struct ptcp_err *e)
{
	(void)o;
	return play(0, e);
}

void ptcp_clean_opts_init(struct ptcp_clean_opts *o)
{
	*o = (struct ptcp_clean_opts){ .size = sizeof *o, .older_s = 86400 };
}

void ptcp_clean_result_init(struct ptcp_clean_result *r)
{
	*r = (struct ptcp_clean_result){ .size = sizeof *r };
}

int ptcp_clean(const char *dir, const struct ptcp_clean_opts *o, struct ptcp_clean_result *r, struct ptcp_err *e)
{
	const struct ptcp_leftover l = { .path = "d/a\nb", .bytes = 7000, .age_s = 3600, .why = fake.clean_why };

	fake.clean = *o;
	o->found(o->arg, &l);
	r->files = fake.clean_why == NULL;
	r->bytes = fake.clean_why == NULL ? 7000 : 0;
	r->failed = fake.clean_why != NULL;
	r->in_use = 2;
	if (fake.clean_why == NULL)
		return 0;
	e->code = PTCP_EPARTIAL;
	snprintf(e->msg, sizeof e->msg, "%s: one remains", dir);
	return e->code;
}

bool ptcp_is_remote(const char *path) { return strstr(path, "://") != NULL; }

int ptcp_clean_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, const char *url,
    const struct ptcp_clean_opts *clean, struct ptcp_err *e)
{
	fake.clean = *clean;
	return new_prober(out, o, url, e);
}

void ptcp_clean_totals(const struct ptcp_task *t, struct ptcp_clean_result *r)
{
	(void)t;
	r->files = 20000;
	r->unlisted = 10000;
}

/* ---- Files of another host */

void ptcp_manage_opts_init(struct ptcp_manage_opts *o)
{
	*o = (struct ptcp_manage_opts){ .size = sizeof *o };
}

void ptcp_manage_result_init(struct ptcp_manage_result *r)
{
	*r = (struct ptcp_manage_result){ .size = sizeof *r };
}

int ptcp_manage_new(struct ptcp_task **out, const struct ptcp_transfer_opts *o, enum ptcp_manage_op op,
    const char *const *urls, size_t n, const struct ptcp_manage_opts *m, struct ptcp_err *e)
{
	fake.op = op;
	fake.manage = *m;
	for (size_t i = 0; i < n; i++) {
		strcat(fake.srcs, urls[i]);
		strcat(fake.srcs, "|");
	}
	if (strncmp(urls[0], "ptcp://b", 8) == 0) {
		e->code = PTCP_ECONNECT;
		snprintf(e->msg, sizeof e->msg, "b: no connection");
		return e->code;
	}
	return new_prober(out, o, urls[0], e);
}

void ptcp_manage_totals(const struct ptcp_task *t, struct ptcp_manage_result *r)
{
	(void)t;
	r->entries = fake.n_entries;
	r->failed = fake.failed;
}

size_t ptcp_same_host(const char *const *urls, size_t n)
{
	size_t i = 1;

	while (i < n && strncmp(urls[i], urls[0], 8) == 0)
		i++;
	return i;
}

/* ---- Server */

struct ptcp_server {
	int unused;
};
static struct ptcp_server server;

void ptcp_server_opts_init(struct ptcp_server_opts *o)
{
	memset(o, 0, sizeof *o);
	o->size = sizeof *o;
	o->ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM |
	    1u << PTCP_CIPHER_CHACHA20;
	o->max_relayed = 512;
}

int ptcp_server_new(struct ptcp_server **out, const struct ptcp_server_opts *o,
    struct ptcp_err *e)
{
	fake.server = *o;
	snprintf(fake.listen, sizeof fake.listen, "%s", o->listen != NULL ? o->listen : "-");
	snprintf(fake.root, sizeof fake.root, "%s", o->root != NULL ? o->root : "-");
	if (fake.new_code == 0)
		*out = &server;
	return play(fake.new_code, e);
}

const char *ptcp_server_address(const struct ptcp_server *s)
{
	(void)s;
	return "::1";
}

unsigned ptcp_server_port(const struct ptcp_server *s)
{
	(void)s;
	return 4711;
}

const char *ptcp_server_fingerprint(const struct ptcp_server *s)
{
	(void)s;
	return FP;
}

bool ptcp_server_listening(const struct ptcp_server *s, size_t i, const char **address,
    unsigned *port)
{
	(void)s;
	*address = "::1";
	*port = 4711 + (unsigned)i;
	return i <= fake.server.n_also_listen;
}

int ptcp_server_start(struct ptcp_server *s, struct ptcp_err *e)
{
	(void)s;
	(void)e;
	fake.runs++;
	return 0;
}

int ptcp_server_fd(const struct ptcp_server *s)
{
	(void)s;
	return -1;
}

int ptcp_server_timeout_ms(const struct ptcp_server *s)
{
	(void)s;
	return 0;
}

/* The first step raises the signal, the second step is the last. */
int ptcp_server_step(struct ptcp_server *s, struct ptcp_err *e)
{
	(void)s;
	if (fake.steps++ > 0 || fake.raise == 0)
		return play(fake.run_code, e);
	raise(fake.raise);
	return 1;
}

int ptcp_server_change(struct ptcp_server *s, const struct ptcp_server_opts *o,
    struct ptcp_err *e)
{
	(void)s;
	(void)e;
	fake.changes++;
	fake.changed = *o;
	return 0;
}

void ptcp_server_stats_init(struct ptcp_server_stats *st)
{
	*st = (struct ptcp_server_stats){ .size = sizeof *st };
}

void ptcp_server_stats(struct ptcp_server *s, struct ptcp_server_stats *st)
{
	(void)s;
	*st = fake.stats;
}

void ptcp_server_quotas_each(struct ptcp_server *s, ptcp_server_quota_fn *each, void *arg)
{
	(void)s;
	each(arg, &(struct ptcp_server_quota){ "/srv/a \"b\"", 7, 10 });
}

void ptcp_server_memory_each(struct ptcp_server *s, ptcp_server_memory_fn *each, void *arg)
{
	(void)s;
	each(arg, &(struct ptcp_server_memory){ "SHA256:x", 4096 });
}

void ptcp_server_movers_each(struct ptcp_server *s, ptcp_server_mover_fn *each, void *arg)
{
	(void)s;
	each(arg, &(struct ptcp_mover_stats){ "n\"1\"", 700, 80, 3 });
	each(arg, &(struct ptcp_mover_stats){ "n2", 1, 8, 2 });
	each(arg, &(struct ptcp_mover_stats){ "n2", 2, 8, 2 });
}

int ptcp_server_set_links(struct ptcp_server *s, const struct ptcp_published_link *l, size_t n, struct ptcp_err *e)
{
	(void)s;
	(void)l;
	(void)n;
	(void)e;
	return 0;
}

void ptcp_server_drain(struct ptcp_server *s) { ptcp_server_stop(s); }

void ptcp_server_stop(struct ptcp_server *s)
{
	fake.stops += s == &server;
}

void ptcp_server_free(struct ptcp_server *s)
{
	fake.frees += s == &server;
}

/* ---- Links: without function, to avoid the network. */

void ptcp_links_opts_init(struct ptcp_links_opts *o)
{
	memset(o, 0, sizeof *o);
	o->size = sizeof *o;
}

int ptcp_links_new(struct ptcp_links **out, const struct ptcp_overlay *o,
    const struct ptcp_transfer_opts *connect, const struct ptcp_links_opts *opts, struct ptcp_err *e)
{
	(void)o;
	(void)connect;
	(void)opts;
	*out = NULL;
	return play(fake.new_code, e);
}

int ptcp_links_measure(struct ptcp_links *l, struct ptcp_err *e)
{
	(void)l;
	return play(fake.run_code, e);
}

int ptcp_links_query(struct ptcp_links *l, struct ptcp_err *e)
{
	(void)l;
	return play(fake.run_code, e);
}

int ptcp_links_keep(const struct ptcp_links *l, const char *file, struct ptcp_err *e)
{
	(void)l;
	(void)file;
	(void)e;
	return 0;
}

int ptcp_links_recall(struct ptcp_links *l, const char *file, struct ptcp_err *e)
{
	(void)l;
	(void)file;
	(void)e;
	return 0;
}

void ptcp_links_watch_init(struct ptcp_links_watch *w)
{
	*w = (struct ptcp_links_watch){ .size = sizeof *w };
}

int ptcp_links_watch(struct ptcp_links *l, const struct ptcp_links_watch *w, struct ptcp_err *e)
{
	(void)l;
	(void)w;
	return play(PTCP_ECANCELED, e);
}

void ptcp_links_cancel(struct ptcp_links *l) { (void)l; }
void ptcp_links_free(struct ptcp_links *l) { (void)l; }
int ptcp_links_local_host(const struct ptcp_links *l) { return l != NULL; }

size_t ptcp_links_shared(const struct ptcp_links *l, struct ptcp_shared_bottleneck *out, size_t most)
{
	(void)l, (void)out, (void)most;
	return 0;
}

void ptcp_links_get(const struct ptcp_links *l, size_t i, struct ptcp_link_estimate *out)
{
	(void)l;
	(void)i;
	memset(out, 0, sizeof *out);
}

/* ---- Collections: without function. */

void ptcp_collect_opts_init(struct ptcp_collect_opts *o)
{
	memset(o, 0, sizeof *o);
	o->size = sizeof *o;
}

int ptcp_collect_new(struct ptcp_collect **out, struct ptcp_overlay *o,
    const struct ptcp_transfer_opts *connect, const char *dest, const struct ptcp_collect_opts *opts,
    struct ptcp_err *e)
{
	(void)o;
	(void)connect;
	(void)dest;
	(void)opts;
	*out = NULL;
	return play(fake.new_code, e);
}

int ptcp_collect_run(struct ptcp_collect *c, struct ptcp_err *e)
{
	(void)c;
	return play(fake.run_code, e);
}

void ptcp_collect_cancel(struct ptcp_collect *c) { (void)c; }
void ptcp_collect_free(struct ptcp_collect *c) { (void)c; }
size_t ptcp_collect_sources(const struct ptcp_collect *c) { return c != NULL; }
const char *ptcp_collect_state_name(enum ptcp_collect_state s) { return s == PTCP_COLLECT_DONE ? "done" : "?"; }
void ptcp_collect_result_init(struct ptcp_collect_result *r) { memset(r, 0, sizeof *r); }

void ptcp_collect_result(const struct ptcp_collect *c, struct ptcp_collect_result *r)
{
	(void)c;
	(void)r;
}

void ptcp_collect_source(const struct ptcp_collect *c, size_t i, struct ptcp_collect_source *out)
{
	(void)c;
	(void)i;
	memset(out, 0, sizeof *out);
}

int ptcp_collect_save(const struct ptcp_collect *c, const char *from, const char *to, struct ptcp_err *e)
{
	(void)c;
	(void)from;
	(void)to;
	(void)e;
	return 0;
}

void ptcp_collect_link(const struct ptcp_collect *c, size_t i, struct ptcp_collect_link *out)
{
	(void)c;
	(void)i;
	memset(out, 0, sizeof *out);
}

int ptcp_transfer_set_rate(struct ptcp_task *t, const char *rate, struct ptcp_err *e)
{
	(void)t;
	snprintf(fake.rate_set, sizeof fake.rate_set, "%s", rate != NULL ? rate : "none");
	return play(fake.rate_code, e);
}
