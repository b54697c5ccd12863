/* CPU time that the engines of both ends need for each block of a striped transfer, by number of movers. The
 * engines are the processes ptcp send and ptcp serve, with their connections, journal and session; the movers of
 * both ends are this program, and no data moves. Once in a millisecond all jobs that the sender's engine has
 * given out are reported as sent, and to the receiver's engine as written: up to 12 jobs for a mover with 4
 * streams, the rate of a host of 100 Gbit/s. So the engines find as many reports at a time as they do when they
 * are the bottleneck, even on a busy machine. tests/bench/movers starts the processes.
 *
 *   bench_movers MOVERS BLOCKS PID-OF-SERVER INVITATION-OF-SERVER INVITATION COMMAND...
 *
 * Joins the server, then runs COMMAND (ptcp send), joins its transfer as well, and prints a row at the end of
 * COMMAND. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conn/connect.h"
#include "conn/join_proof.h"
#include "core/byteorder.h"
#include "core/units.h"
#include "mover/invitation.h"
#include "mover/link.h"
#include "mover/movers.h"
#include "net/identity.h"
#include "store/hash.h"
#include "wire/outbox.h"

#define WAIT_NS (30 * NS_PER_S)
#define TICK_NS NS_PER_MS
#define JOBS_MAX (MOVERS_MAX * 64)
#define HANDLES WIRE_MOVER_HANDLES
#define PORT_BASE 1000       /* + index of a mover of the server: no such port is connected to */
#define HOST_BITS_PER_S 100e9
#define JOB_BYTES (1u << 20)

enum role { OF_CLIENT, OF_POOL, OF_SESSION };

struct fake {
	enum role role;
	unsigned index;
	uint8_t run[WIRE_SESSION_BYTES], key[32];
	const struct invitation *invitation;
	struct connect *connect;
	struct mover_link *link;
	bool listens;                /* of the pool: known to the server */
	/* of the client: by handle, the mover of the server at the other end, and the stream's handle there */
	struct { struct fake *to; uint32_t handle; } pair[HANDLES];
	/* of a session */
	uint32_t last_handle;
	bool stopped[HANDLES];       /* no frame follows GONE */
	uint64_t known, wanted;      /* id of the file */
	uint8_t *waiting;            /* items until TARGET, each behind its handle */
	size_t n_waiting, max_waiting;
};

static struct context host;
static struct fake client[MOVERS_MAX], pool[MOVERS_MAX], session[MOVERS_MAX];
static unsigned n_movers, n_joined, n_listening;
static uint32_t n_blocks, n_written;
static pid_t pid[2]; /* client, server */
static double cpu_s[2][2]; /* of both engines, when an eighth and seven eighths of the blocks are written */
static struct mono at[2];

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_movers: %s%s%s\n", what, why[0] != '\0' ? ": " : "", why);
	exit(1);
}

static struct outbox *out_of(struct fake *k) { return mover_link_out(k->link); }

/* ---- Measuring ---- */

static double cpu_of(pid_t p)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(p, &clock) != 0 || clock_gettime(clock, &t) != 0)
		die("an engine has ended", "");
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void count_written(void)
{
	unsigned end, point = n_written == n_blocks / 8 ? 0 : 1;

	if (n_written != n_blocks / 8 && n_written != n_blocks - n_blocks / 8)
		return;
	at[point] = mono_now();
	for (end = 0; end < 2; end++)
		cpu_s[end][point] = cpu_of(pid[end]);
}

static void print_row(void)
{
	double blocks = n_blocks - 2 * (n_blocks / 8), us[2], worse;
	unsigned end;

	for (end = 0; end < 2; end++)
		us[end] = (cpu_s[end][1] - cpu_s[end][0]) * 1e6 / blocks;
	worse = us[0] > us[1] ? us[0] : us[1];
	printf("%6u %10.2f %10.2f %12.0f %8.1f\n", n_movers, us[0], us[1],
	    blocks * 1e9 / (double)mono_diff_ns(at[1], at[0]), 1e6 / worse / (HOST_BITS_PER_S / 8 / JOB_BYTES));
}

/* ---- Blocks ---- */

static void put_item(uint8_t *p, const uint8_t *extent)
{
	put_u64(p, get_u64(extent));
	put_u32(p + 8, get_u32(extent + 16));
	put_u64(p + 12, 0); /* the hash of a content that nobody reads */
	p[20] = WIRE_WRITTEN_GOOD;
}

static void put_wrote(struct fake *k, uint32_t handle, const uint8_t *items, unsigned n)
{
	if (k->stopped[handle % HANDLES]) /* the peer repeats the blocks of a stream that was replaced */
		return;
	OUTBOX_PUT(out_of(k), wrote, WROTE, (&(struct wire_wrote){ handle, (uint8_t)n,
	    { items, n * WIRE_WRITTEN_BYTES } }));
	while (n-- > 0) {
		n_written++;
		count_written();
	}
}

/* As long as the engine has not described the file. */
static void put_off(struct fake *k, uint32_t handle, const uint8_t *item)
{
	const size_t size = 4 + WIRE_WRITTEN_BYTES;

	if (k->n_waiting == k->max_waiting &&
	    (k->waiting = realloc(k->waiting, (k->max_waiting = 2 * k->max_waiting + 64) * size)) == NULL)
		die("out of memory", "");
	put_u32(k->waiting + k->n_waiting * size, handle);
	memcpy(k->waiting + k->n_waiting++ * size + 4, item, WIRE_WRITTEN_BYTES);
}

static int on_target(struct fake *k, const struct wire_target *f, struct ptcp_err *e)
{
	const size_t size = 4 + WIRE_WRITTEN_BYTES;
	size_t i;

	(void)e;
	k->known = f->id;
	for (i = 0; i < k->n_waiting; i++)
		put_wrote(k, get_u32(k->waiting + i * size), k->waiting + i * size + 4, 1);
	k->n_waiting = 0;
	return 0;
}

static void arrive(struct fake *k, uint32_t handle, const struct wire_send *f)
{
	uint8_t items[WIRE_EXTENTS_MAX * WIRE_WRITTEN_BYTES];
	uint64_t id = get_u64(f->extents.p);
	unsigned i;

	if (k->link == NULL) /* the copy of a block, after the end */
		return;
	for (i = 0; i < f->n; i++)
		put_item(items + i * WIRE_WRITTEN_BYTES, f->extents.p + i * WIRE_EXTENT_BYTES);
	if (k->known == id) {
		put_wrote(k, handle, items, f->n);
		return;
	}
	for (i = 0; i < f->n; i++)
		put_off(k, handle, items + i * WIRE_WRITTEN_BYTES);
	if (k->wanted != id && !k->stopped[handle % HANDLES])
		OUTBOX_PUT(out_of(k), want, WANT, (&(struct wire_want){ handle, id }));
	else
		return;
	k->wanted = id;
}

/* Jobs until the next tick. */
static struct job {
	struct fake *of;
	struct wire_send send;
	uint8_t extents[WIRE_EXTENTS_MAX * WIRE_EXTENT_BYTES];
} jobs[JOBS_MAX];
static unsigned n_jobs;
static struct timer *tick;

static int on_send(struct fake *k, const struct wire_send *f, struct ptcp_err *e)
{
	struct job *job = &jobs[n_jobs];

	(void)e;
	if (n_jobs++ == JOBS_MAX)
		die("too many jobs", "");
	job->of = k;
	job->send = *f;
	memcpy(job->extents, f->extents.p, f->extents.n);
	job->send.extents.p = job->extents;
	return 0;
}

static void carry_out(struct fake *k, const struct wire_send *f)
{
	uint8_t terms[WIRE_EXTENTS_MAX * WIRE_TERM_BYTES];
	struct digest term;
	unsigned i;

	if (k->link == NULL || k->pair[f->handle % HANDLES].to == NULL) /* stopped */
		return;
	for (i = 0; i < f->n; i++) {
		const uint8_t *x = f->extents.p + i * WIRE_EXTENT_BYTES;

		term = hash_term(get_u32(x + 16), get_u32(x + 20), 0);
		put_u64(terms + i * WIRE_TERM_BYTES, term.hi);
		put_u64(terms + i * WIRE_TERM_BYTES + 8, term.lo);
	}
	OUTBOX_PUT(out_of(k), sent, SENT, (&(struct wire_sent){ f->handle, f->n, { terms, f->n * WIRE_TERM_BYTES } }));
	arrive(k->pair[f->handle % HANDLES].to, k->pair[f->handle % HANDLES].handle, f);
}

static void on_tick(void *arg)
{
	unsigned i;

	(void)arg;
	for (i = 0; i < n_jobs; i++)
		carry_out(jobs[i].of, &jobs[i].send);
	n_jobs = 0;
	timer_set(tick, mono_add_ns(mono_now(), TICK_NS));
}

/* ---- Streams ---- */

static int on_stream(struct fake *k, const struct wire_stream *f, struct ptcp_err *e)
{
	unsigned there = f->port - PORT_BASE;
	struct wire_accepted accepted = { .number = f->number };
	struct fake *to;

	(void)e;
	if (there >= n_movers || session[there].link == NULL)
		die("a stream to another host than a mover of the server", "");
	to = &session[there];
	k->pair[f->handle % HANDLES].to = to;
	k->pair[f->handle % HANDLES].handle = ++to->last_handle;
	to->stopped[to->last_handle % HANDLES] = false;
	accepted.handle = to->last_handle;
	memcpy(accepted.peer, f->peer, sizeof accepted.peer);
	OUTBOX_PUT(out_of(to), accepted, ACCEPTED, &accepted);
	OUTBOX_PUT(out_of(k), connected, CONNECTED, (&(struct wire_connected){ f->handle }));
	return 0;
}

/* The stream moves to another mover, or the transfer ends: the connection is closed. */
static int on_stop(struct fake *k, const struct wire_stop *f, struct ptcp_err *e)
{
	struct fake *to = k->pair[f->handle % HANDLES].to;
	struct wire_lost lost = { .handle = k->pair[f->handle % HANDLES].handle, 
		.why = { (uint16_t)-PTCP_EPEER, 0, { (const uint8_t *)"closed", 6 } } };

	(void)e;
	if (k->role == OF_CLIENT && to != NULL && to->link != NULL && !to->stopped[lost.handle % HANDLES])
		OUTBOX_PUT(out_of(to), lost, LOST, &lost);
	k->pair[f->handle % HANDLES].to = NULL;
	k->stopped[f->handle % HANDLES] = true;
	OUTBOX_PUT(out_of(k), gone, GONE, (&(struct wire_gone){ f->handle }));
	return 0;
}

static int on_close(struct fake *k, const struct wire_close *f, struct ptcp_err *e)
{
	(void)e;
	OUTBOX_PUT(out_of(k), closed, CLOSED, (&(struct wire_closed){ f->id }));
	return 0;
}

/* ---- Joining ---- */

static void join(struct fake *k);

static int on_invite(struct fake *k, const struct wire_invite *f, struct ptcp_err *e)
{
	struct fake *s = &session[k->index];

	(void)e;
	if (s->invitation != NULL)
		die("a second session", "");
	*s = (struct fake){ .role = OF_SESSION, .index = k->index, .invitation = k->invitation };
	memcpy(s->run, f->run, sizeof s->run);
	memcpy(s->key, f->key, sizeof s->key);
	join(s);
	return 0;
}

static void on_lost(void *arg, const struct ptcp_err *why)
{
	struct fake *k = arg;

	if (n_written < n_blocks)
		die("lost", why->msg);
	mover_link_free(k->link);
	k->link = NULL;
	if (k->role == OF_CLIENT && --n_joined == 0)
		loop_stop(host.control);
}

static void join_client(void);

/* With the tick of a PING behind the MOVER frame: the server has processed both. */
static int on_ping(struct fake *k, const struct wire_ping *f, struct ptcp_err *e)
{
	(void)e;
	if (k->role == OF_POOL && f->tick != 0 && !k->listens) {
		k->listens = true;
		if (++n_listening == n_movers)
			join_client();
	}
	return 0;
}

static int ignore(const struct fake *k, const void *f, struct ptcp_err *e)
{
	(void)k, (void)f, (void)e;
	return 0;
}

static const char *const state_names[] = { "JOINED" };

#define RULES(X) \
	X(PING, 1, 0, on_ping) X(INVITE, 1, 0, on_invite) X(STREAM, 1, 0, on_stream) X(SEND, 1, 0, on_send) \
	X(TARGET, 1, 0, on_target) X(CLOSE, 1, 0, on_close) X(STOP, 1, 0, on_stop) X(SOURCE, 1, 0, ignore) \
	X(FORGET, 1, 0, ignore) X(CHECK, 1, 0, ignore) X(PACE, 1, 0, ignore) X(END, 1, 0, ignore)

RULES(FRAME_TAKE)
static const struct frame_rule rules[] = { RULES(FRAME_RULE) };

static unsigned state_of(const void *fake)
{
	(void)fake;
	return 0;
}

static struct frame_limits limits_of(const void *fake)
{
	struct frame_limits l = mover_link_limits(fake);

	l.silence_ns = WAIT_NS;
	return l;
}

static struct wire_ping ping_of(void *fake, struct mono now)
{
	(void)fake;
	return (struct wire_ping){ WIRE_IDLE, now.ns };
}

static const struct frame_table table = { FRAME_TABLE_RULES(rules), .state_names = state_names, .state = state_of,
	.limits = limits_of, .ping = ping_of };

static int write_join(void *arg, struct chan *c, struct ptcp_err *e)
{
	const struct fake *k = arg;

	return join_proof_write(c, k->run, k->key, 0, e);
}

static void on_connected(void *arg, const struct connect_result *r)
{
	struct wire_endpoint endpoint = { .host = { (const uint8_t *)"127.0.0.1", 9 } };
	struct fake *k = arg;
	struct ptcp_err e;

	if (r->chan == NULL || mover_link_new(&k->link, host.control, r->chan, &table, k, on_lost, &e) < 0)
		die("joining", r->chan == NULL ? r->why.msg : e.msg);
	OUTBOX_PUT(out_of(k), mover, MOVER, (&(struct wire_mover){ { (const uint8_t *)"bench", 5 } }));
	if (k->role == OF_SESSION) {
		endpoint.port = (uint16_t)(PORT_BASE + k->index);
		identity_digest(endpoint.peer, host.identity.fingerprint);
		OUTBOX_PUT(out_of(k), endpoint, ENDPOINT, &endpoint);
	} else if (k->role == OF_CLIENT) {
		n_joined++;
	}
}

static void join(struct fake *k)
{
	char name[SOCK_HOST_BYTES];
	struct connect_opts o = { .context = &host, .host = name, .timeout_ns = WAIT_NS, .alpn = ALPN_MOVER,
		.answer = WIRE_JOINED, .first = write_join, .fingerprint = k->invitation->engine,
		.done = on_connected, .arg = k };
	struct ptcp_err e;

	if (sock_split(k->invitation->address[0], name, &o.port, 0, &e) < 0 || connect_start(&k->connect, &o, &e) < 0)
		die("joining", e.msg);
}

static void join_all(struct fake *set, enum role role, const struct invitation *v)
{
	unsigned i;

	for (i = 0; i < n_movers; i++) {
		set[i] = (struct fake){ .role = role, .index = i, .invitation = v };
		memcpy(set[i].run, v->run, sizeof set[i].run);
		memcpy(set[i].key, v->key, sizeof set[i].key);
		join(&set[i]);
	}
}

static char **command;
static const char *client_file;

/* The server's movers are there: the transfer may begin. */
static void join_client(void)
{
	static struct invitation v;
	struct ptcp_err e;

	if ((pid[0] = fork()) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(command[0], command);
		_exit(127);
	}
	if (pid[0] < 0 || invitation_read(&v, client_file, WAIT_NS, &e) < 0)
		die("the transfer", e.msg);
	join_all(client, OF_CLIENT, &v);
}

int main(int argc, char **argv)
{
	const unsigned ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM | 1u << PTCP_CIPHER_CHACHA20;
	struct invitation v;
	struct loop *loop;
	struct ptcp_err e;
	int status;

	if (argc < 7 || (n_movers = (unsigned)atoi(argv[1])) < 1 || n_movers > MOVERS_MAX ||
	    (n_blocks = (uint32_t)strtoul(argv[2], NULL, 10)) < 1000)
		die("usage", "bench_movers MOVERS BLOCKS PID-OF-SERVER INVITATION-OF-SERVER INVITATION COMMAND...");
	pid[1] = (pid_t)atoi(argv[3]);
	client_file = argv[5];
	command = argv + 6;
	if (loop_new(&loop, &e) < 0 || invitation_read(&v, argv[4], WAIT_NS, &e) < 0 ||
	    identity_new(&host.identity, &e) < 0 ||
	    context_init(&host, loop, "/", 1, ciphers, 0, &e) < 0 || timer_new(&tick, loop, on_tick, NULL, &e) < 0)
		die("start", e.msg);
	on_tick(NULL);
	join_all(pool, OF_POOL, &v);
	loop_run(loop);
	if (waitpid(pid[0], &status, 0) != pid[0] || status != 0)
		die("the transfer failed", "");
	print_row();
	return 0;
}
