/* What a server has done so far, and what may change while it serves. */
#include <string.h>

#include "core/err.h"
#include "server/server_impl.h"

int ptcp_server_change(struct ptcp_server *s, const struct ptcp_server_opts *o, struct ptcp_err *e)
{
	struct ptcp_server_opts all;
	struct timetable rate;
	struct relay_acl *to;
	int r;

	ptcp_server_opts_init(&all);
	if (o->size == 0 || o->size > sizeof all)
		return err_set(e, PTCP_EUSAGE, "options that ptcp_server_opts_init() has not filled in");
	memcpy(&all, o, o->size);
	if ((r = server_check(&all, e)) < 0 || (r = pacing_parse(&rate, all.rate, e)) < 0 ||
	    (r = server_nexthops(&to, &all, e)) < 0)
		return r;
	pacing_stop(&s->host.pacing);
	if ((r = pacing_start(&s->host.pacing, &rate, s->loop, e)) < 0) {
		relay_acl_free(to);
		return r;
	}
	s->relay.to = s->errands.nexthops = to;
	s->relay.most = all.max_relayed;
	relay_acl_free(s->nexthops);
	s->nexthops = to;
	s->o.max_relayed = all.max_relayed;
	s->o.max_streams = all.max_streams;
	s->o.max_sessions = all.max_sessions;
	s->o.max_client_sessions = all.max_client_sessions;
	s->o.timeout_s = all.timeout_s;
	s->o.log_level = all.log_level;
	s->host.log.level = (enum log_level)all.log_level;
	return 0;
}

void ptcp_server_stats(struct ptcp_server *s, struct ptcp_server_stats *st)
{
	struct ptcp_server_stats all = s->sessions.past;

	all.refused += s->pending.shut_out;
	server_session_add_stats(&s->sessions, &all);
	all.relayed_now = s->relay.n;
	all.links_known = link_table_count(&s->told);
	all.stored_bytes = atomic_load(&s->relay.holding.all.used_bytes);
	all.size = st->size < sizeof all ? st->size : sizeof all;
	memcpy(st, &all, all.size);
}

void ptcp_server_stats_init(struct ptcp_server_stats *st)
{
	*st = (struct ptcp_server_stats){ .size = sizeof *st };
}
