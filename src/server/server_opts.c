/* Options of a server: checks, changes while it runs; statistics. */
#include <string.h>

#include "core/err.h"
#include "core/opts.h"
#include "server/server_impl.h"

#define LINGER_MAX_S (30 * 86400)

/* ---- Options ---- */

static int check_ranges(const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	const struct {
		const char *name;
		unsigned n, min, max;
	} limits[] = {
		{ "max-streams", o->max_streams, 1, PTCP_STREAMS_MAX },
		{ "max-sessions", o->max_sessions, 1, PTCP_SESSIONS_MAX },
		{ "max-client-sessions", o->max_client_sessions, 1, PTCP_SESSIONS_MAX },
		{ "max-waiting", o->max_waiting, 1, PTCP_SESSIONS_MAX },
		{ "max-startups", o->max_startups, 1, PTCP_STARTUPS_MAX },
		{ "max-relayed", o->max_relayed, RELAY_SESSION_PLACES, 65535 },
		{ "share-sessions", o->share_sessions, 1, PTCP_SESSIONS_MAX },
	};
	size_t i;

	for (i = 0; i < sizeof limits / sizeof *limits; i++)
		if (limits[i].n < limits[i].min || limits[i].n > limits[i].max)
			return err_set(e, PTCP_EUSAGE, "--%s %u: must be %u to %u", limits[i].name, limits[i].n,
			    limits[i].min, limits[i].max);
	if (!(o->timeout_s >= 0.1 && o->timeout_s <= 86400))
		return err_set(e, PTCP_EUSAGE, "--timeout %g: must be 0.1 to 86400 seconds", o->timeout_s);
	if (!(o->max_linger_s >= 0 && o->max_linger_s <= LINGER_MAX_S))
		return err_set(e, PTCP_EUSAGE, "--max-linger %g: must be 0 to %d seconds", o->max_linger_s, LINGER_MAX_S);
	if (!(o->drain_s >= 0 && o->drain_s <= 86400))
		return err_set(e, PTCP_EUSAGE, "--drain %g: must be 0 to 86400 seconds", o->drain_s);
	if (o->max_memory_bytes < PTCP_MEMORY_MIN)
		return err_set(e, PTCP_EUSAGE, "--max-memory: below the minimum of %u MiB (give more)", PTCP_MEMORY_MIN >> 20);
	if (o->relay_storage_bytes > 0 && o->relay_storage_bytes < 2 * SPOOL_GRAIN)
		return err_set(e, PTCP_EUSAGE, "--relay-storage: below the minimum of 2 MiB (give more, or leave it out)");
	if ((o->listen != NULL) + o->n_also_listen + o->n_sockets > PTCP_LISTEN_MAX)
		return err_set(e, PTCP_EUSAGE, "listening: more than %d addresses (leave some out)", PTCP_LISTEN_MAX);
	return 0;
}

static int parse_next_hops(struct relay_acl **out, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct relay_acl *list = NULL;
	size_t i;
	int r = 0;

	for (i = 0; i < o->n_relay_to && r == 0; i++)
		r = relay_acl_add(&list, o->relay_to[i], PTCP_PORT, e);
	if (r < 0)
		relay_acl_free(list);
	else
		*out = list;
	return r;
}

int server_check_opts(struct ptcp_server_opts *all, struct relay_acl **next_hops, struct timetable *rate,
    const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	int r;

	ptcp_server_opts_init(all);
	if (o != NULL && (o->size == 0 || o->size > sizeof *all))
		return err_set(e, PTCP_EUSAGE, "options: not initialized by ptcp_server_opts_init()");
	if (o != NULL)
		memcpy(all, o, o->size);
	if ((r = check_ranges(all, e)) < 0 || (r = server_check_movers(all, e)) < 0 || (r = pacing_parse(rate, all->rate, e)) < 0)
		return r;
	return parse_next_hops(next_hops, all, e);
}

/* ---- Changes and statistics ---- */

int ptcp_server_change(struct ptcp_server *s, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct ptcp_server_opts all;
	struct timetable rate;
	struct relay_acl *to = NULL;
	int r;

	if ((r = server_check_opts(&all, &to, &rate, o, e)) < 0)
		return r;
	if ((r = pacing_set(&s->host.pacing, &rate, s->loop, e)) < 0 ||
	    (r = relay_acl_resolve(to, s->loop, s->host.names, &s->host.log, e)) < 0) {
		relay_acl_free(to);
		return r;
	}
	s->relay.to = s->jobs.next_hops = to;
	s->relay.max = all.max_relayed;
	relay_acl_free(s->next_hops);
	s->next_hops = to;
	s->o.max_relayed = all.max_relayed;
	s->o.max_streams = all.max_streams;
	if (s->memory != NULL)
		memory_budget_set(s->memory, all.max_memory_bytes);
	s->o.max_sessions = all.max_sessions;
	s->o.max_client_sessions = all.max_client_sessions;
	s->o.max_waiting = all.max_waiting;
	s->o.timeout_s = all.timeout_s;
	s->o.max_linger_s = all.max_linger_s;
	s->o.drain_s = all.drain_s;
	if (s->share != NULL)
		port_share_set_max_user(s->share, all.share_sessions);
	s->o.log_level = all.log_level;
	s->host.log.level = (enum log_level)all.log_level;
	server_session_admit_waiting(&s->sessions);
	return 0;
}

void ptcp_server_stats(struct ptcp_server *s, struct ptcp_server_stats *st)
{
	struct ptcp_server_stats all = s->sessions.past;

	all.refused += s->pending.shut_out + s->jobs.n_refused;
	server_session_add_stats(&s->sessions, &all);
	all.relayed_now = s->relay.n;
	all.links_known = link_table_count(&s->links);
	all.stored_bytes = relay_stored_bytes(&s->relay);
	port_share_stats(s->share, &all);
	all.memory_bytes = s->memory != NULL ? memory_budget_used(s->memory) : 0;
	results_copy(st, &all, sizeof all);
}

struct quota_listing {
	ptcp_server_quota_fn *each;
	void *arg;
};

static void list_quota(void *arg, const struct quota_entry *q)
{
	const struct quota_listing *l = arg;

	l->each(l->arg, &(struct ptcp_server_quota){ q->path, q->used_bytes, q->limit_bytes });
}

void ptcp_server_quotas_each(struct ptcp_server *s, ptcp_server_quota_fn *each, void *arg)
{
	struct quota_listing l = { each, arg };

	if (s->quotas != NULL)
		quota_table_each(s->quotas, list_quota, &l);
}

struct memory_listing {
	ptcp_server_memory_fn *each;
	void *arg;
};

static void list_memory(void *arg, const char *client, uint64_t bytes)
{
	const struct memory_listing *l = arg;

	l->each(l->arg, &(struct ptcp_server_memory){ client, bytes });
}

void ptcp_server_memory_each(struct ptcp_server *s, ptcp_server_memory_fn *each, void *arg)
{
	struct memory_listing l = { each, arg };

	if (s->memory != NULL)
		memory_budget_each(s->memory, list_memory, &l);
}

void ptcp_server_stats_init(struct ptcp_server_stats *st)
{
	*st = (struct ptcp_server_stats){ .size = sizeof *st };
}

void ptcp_server_opts_init(struct ptcp_server_opts *o)
{
	*o = (struct ptcp_server_opts){
		.size = sizeof *o,
		.ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM |
		    1u << PTCP_CIPHER_CHACHA20,
		.max_streams = PTCP_STREAMS_MAX, .max_sessions = 64, .max_client_sessions = 16, .max_waiting = 256,
		.max_startups = 512, .timeout_s = 30, .max_linger_s = 3600, .max_relayed = 512,
		.max_memory_bytes = UINT64_C(256) << 20, .share_sessions = 32, .mover_port = PTCP_PORT,
		.log_level = PTCP_LOG_WARN, .in = 0, .out = 1
	};
}
