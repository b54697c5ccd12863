/* Options of a server: checks, changes while it runs; statistics. */
#include <string.h>

#include "core/err.h"
#include "core/opts.h"
#include "core/units.h"
#include "server/server_impl.h"

/* ---- Options ---- */

/* A number that the option has by default is permitted beside its range. Written so that NAN is refused. */
static int check_number(const char *name, double n, double initial, double min, double max, struct ptcp_err *e)
{
	return (n >= min && n <= max) || (n >= initial && n <= initial) ? 0 :
	    err_set(e, PTCP_EUSAGE, "--%s %.10g: must be %.10g to %.10g", name, n, min, max);
}

static int check_bytes(const char *name, uint64_t n, uint64_t initial, uint64_t min, uint64_t max, struct ptcp_err *e)
{
	char from[UNITS_TEXT_BYTES], to[UNITS_TEXT_BYTES];

	return (n >= min && n <= max) || n == initial ? 0 :
	    err_set(e, PTCP_EUSAGE, "--%s: must be %s to %s", name, units_size_text(from, min),
	    units_size_text(to, max));
}

#define CHECK_UNSIGNED(name, ...) if ((r = check_number(name, __VA_ARGS__, e)) < 0) return r;
#define CHECK_SECONDS(name, ...)  CHECK_UNSIGNED(name, __VA_ARGS__)
#define CHECK_BYTES(name, ...)    if ((r = check_bytes(name, __VA_ARGS__, e)) < 0) return r;
#define CHECK_STORAGE(name, ...)  CHECK_BYTES(name, __VA_ARGS__)
#define CHECK_RATE(name, ...)
#define CHECK_TEXT(name, ...)
#define CHECK_VALUE(TYPE, when, member, initial, min, max, name, value, help) \
	CHECK_##TYPE(name, o->member, initial, min, max)

static int check_ranges(const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	int r;

	PTCP_SERVER_OPTIONS(PTCP_NO_ROW, CHECK_VALUE, PTCP_NO_ROW)
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
	if ((r = opts_copy(all, sizeof *all, o, "ptcp_server_opts_init", e)) < 0 || (r = check_ranges(all, e)) < 0 ||
	    (r = server_check_movers(all, e)) < 0 || (r = pacing_parse(rate, all->rate, e)) < 0)
		return r;
	return parse_next_hops(next_hops, all, e);
}

/* ---- Changes and statistics ---- */

/* Numbers that apply from now on. Texts, which the caller owns, were parsed. */
#define TAKE_UNSIGNED(member) s->o.member = all.member;
#define TAKE_SECONDS(member)  TAKE_UNSIGNED(member)
#define TAKE_BYTES(member)    TAKE_UNSIGNED(member)
#define TAKE_RATE(member)
#define TAKE_LIVE(TYPE, member) TAKE_##TYPE(member)
#define TAKE_RESTART(TYPE, member)
#define TAKE_VALUE(TYPE, when, member, ...) TAKE_##when(TYPE, member)

int ptcp_server_change(struct ptcp_server *s, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct ptcp_server_opts all;
	struct timetable rate;
	struct relay_acl *to = NULL;
	int r;

	if ((r = server_check_opts(&all, &to, &rate, o, e)) < 0)
		return r;
	if ((r = pacing_set(&s->context.pacing, &rate, s->loop, e)) < 0 ||
	    (r = relay_acl_resolve(to, s->loop, s->context.names, &s->context.log, e)) < 0) {
		relay_acl_free(to);
		return r;
	}
	s->relay.to = s->jobs.next_hops = to;
	s->relay.max = all.max_relayed;
	relay_acl_free(s->next_hops);
	s->next_hops = to;
	PTCP_SERVER_OPTIONS(PTCP_NO_ROW, TAKE_VALUE, PTCP_NO_ROW)
	if (s->memory != NULL)
		memory_budget_set(s->memory, all.max_memory_bytes);
	if (s->share != NULL)
		port_share_set_max_user(s->share, all.share_sessions);
	s->o.log_level = all.log_level;
	s->context.log.level = (enum log_level)all.log_level;
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

#define INIT_VALUE(TYPE, when, member, initial, ...) .member = initial,

void ptcp_server_opts_init(struct ptcp_server_opts *o)
{
	*o = (struct ptcp_server_opts){
		.size = sizeof *o,
		.ciphers = 1u << PTCP_CIPHER_AES128GCM | 1u << PTCP_CIPHER_AES256GCM |
		    1u << PTCP_CIPHER_CHACHA20,
		.log_level = PTCP_LOG_WARN, .in = 0, .out = 1,
		PTCP_SERVER_OPTIONS(PTCP_NO_ROW, INIT_VALUE, PTCP_NO_ROW)
	};
}
