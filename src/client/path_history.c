/* The history of a path: recalled at the start, recorded at the end. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "client/task_impl.h"
#include "core/err.h"

_Static_assert(HISTORY_PEER_BYTES >= REMOTE_USER_BYTES + SOCK_HOST_BYTES && HISTORY_LOCAL_BYTES >= SOCK_TEXT_BYTES &&
    HISTORY_CC_BYTES == TCPINFO_CC_BYTES && HISTORY_PROBES_MAX == PROFILE_MAX, "sizes");

void task_name_path(struct ptcp_task *t, int fd)
{
	struct history_key *key = &t->history.key;
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	const char *candidate = t->paths.at[t->tries.path].candidate;
	char text[SOCK_TEXT_BYTES], host[SOCK_HOST_BYTES];
	unsigned port;

	*key = (struct history_key){ .sends = t->files.sends || (t->prober != NULL && !t->prober->receives) };
	snprintf(key->peer, sizeof key->peer, "%s%s%s", t->known_as, candidate[0] != '\0' ? " via " : "", candidate);
	/* ssh's pipe has no address, and the number of streams is fixed. */
	if (getsockname(fd, (struct sockaddr *)&sa, &n) < 0 ||
	    (sa.ss_family != AF_INET && sa.ss_family != AF_INET6))
		return;
	sock_address_text(text, (struct sockaddr *)&sa, n);
	if (sock_split(text, host, &port, 0, NULL) == 0)
		strcpy(key->local, host);
}

/* Not fatal: a transfer does not need its history. */
static void log_failure(const struct ptcp_task *t, const struct ptcp_err *why)
{
	log_at(&t->context.log, LOG_WARN, "history", "why=\"%s\"", why->msg);
}

static bool path_history_find(const struct ptcp_task *t, struct history_entry *h)
{
	struct ptcp_err why;
	int r;

	if (t->o.no_history || t->history.key.local[0] == '\0')
		return false;
	if ((r = history_find(t->o.state_dir, &t->history.key, h, &why)) < 0)
		log_failure(t, &why);
	return r > 0;
}

static void keep(const struct ptcp_task *t, const struct history_entry *h)
{
	struct ptcp_err why;

	if (!t->o.no_history && h->key.congestion[0] != '\0' && h->key.local[0] != '\0' &&
	    history_put(t->o.state_dir, h, &why) < 0)
		log_failure(t, &why);
}

/* ---- A transfer ---- */

static unsigned on_known(void *arg, struct session *sess, const char *congestion)
{
	struct ptcp_task *t = arg;
	bool follows = t->history.group != NULL && !task_has_deadline(t) &&
	    !path_group_begin(t->history.group, congestion);
	struct history_entry h;

	strcpy(t->history.key.congestion, congestion);
	if (follows || !path_history_find(t, &h))
		return follows;
	if (task_has_deadline(t))
		session_set_most_streams(sess, t->o.max_streams);
	session_recall_probes(sess, h.probe, h.n_probes, &h.evidence);
	return follows;
}

/* Joins the transfers and measurements of this user on the path. */
static void join(struct ptcp_task *t)
{
	enum stream_member_kind kind = t->prober != NULL ? STREAM_MEMBER_MEASURES :
	    t->history.adaptive && !task_has_deadline(t) ? STREAM_MEMBER_SHARES : STREAM_MEMBER_FIXED;
	struct ptcp_err why;

	if (t->history.key.local[0] == '\0' || t->history.striped)
		return;
	t->history.group = path_group_join(t->o.state_dir, &t->history.key, kind, task_impact(t) / 100, &why);
	if (t->history.group == NULL)
		log_failure(t, &why);
}

/* The history and the group are of a path between two hosts: movers are others. */
void task_adapt_streams(struct ptcp_task *t, struct session *sess)
{
	struct stream_count_opts o = { .budget_ratio = task_impact(t) / 100,
		.max_streams = task_has_deadline(t) ? 1 : t->o.max_streams, .arg = t };

	t->history.striped = session_is_striped(sess);
	join(t);
	if (!t->history.striped)
		o.known = on_known;
	if (t->history.group != NULL && !task_has_deadline(t))
		o.group = (struct stream_count_group){ path_group_add, path_group_budget, t->history.group };
	if (t->history.adaptive)
		session_adapt_streams(sess, &o);
}

unsigned task_join_group(struct ptcp_task *t)
{
	join(t);
	return t->history.group != NULL ? path_group_others(t->history.group) : 0;
}

void task_leave_group(struct ptcp_task *t)
{
	path_group_leave(t->history.group);
	t->history.group = NULL;
}

/* A recalled history that was confirmed is not recorded again; a contradicted history is deleted. */
void task_remember(struct ptcp_task *t)
{
	const struct stream_control *m = &t->history.control;
	struct history_entry h = { .key = t->history.key, .when_s = (int64_t)time(NULL) };
	bool learned = history_learn(&h, m);

	if ((learned || m->contradicted) && !t->history.striped)
		keep(t, &h);
}

/* ---- Advice ---- */

/* The congestion control of a remote sender is unknown before it sends; the newest entry will do. */
void task_recall_advice(struct ptcp_task *t)
{
	struct history_entry h;

	if (t->prober->ops->recall == NULL)
		return;
	if (t->history.key.sends)
		strcpy(t->history.key.congestion, session_congestion(t->session));
	if (path_history_find(t, &h))
		t->prober->ops->recall(t->prober, &h, (double)(time(NULL) - h.when_s));
}

void task_remember_advice(struct ptcp_task *t)
{
	struct history_entry h = { .key = t->history.key, .when_s = (int64_t)time(NULL) };

	if (advise_remember(t->prober, &h))
		keep(t, &h);
}
