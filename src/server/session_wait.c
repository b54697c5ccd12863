/* Sessions that wait for room: limits, positions, admission. */
#include <string.h>

#include "core/units.h"
#include "fs/fd_budget.h"
#include "server/server_session_impl.h"

#define TICK_NS NS_PER_S
#define WAIT_MAX_MS (60 * 60 * 1000u)
#define REPEAT_NS (10 * NS_PER_S) /* time between two WAITING frames with the same position */

struct queue_limits server_session_limits(const struct server_session_set *t)
{
	unsigned waiting = fd_budget_waiting(t->o->max_waiting);

	return (struct queue_limits){ .sessions = t->o->max_sessions, .client_sessions = t->o->max_client_sessions,
		.waiting = waiting, .client_waiting = waiting - waiting / 4 };
}

void server_session_leave(struct server_session *s)
{
	struct queue_limits l = server_session_limits(s->set);

	queue_leave(&s->set->queue, &s->place, &l);
}

int server_session_check_room(struct server_session_set *t, const char *client, struct ptcp_err *e)
{
	struct queue_limits l = server_session_limits(t);

	return queue_check_room(&t->queue, client, &l, e);
}

static struct server_session *of_place(struct queue_entry *p)
{
	return CONTAINER_OF(p, struct server_session, place);
}

void server_session_admit_waiting(struct server_session_set *t)
{
	struct queue_limits l = server_session_limits(t);
	struct server_session *s;
	struct queue_entry *p;
	unsigned streams;

	while ((p = queue_next(&t->queue, &l)) != NULL) {
		s = of_place(p);
		if (session_over(s->session)) { /* its client has left */
			queue_leave(&t->queue, p, &l);
			continue;
		}
		if ((streams = session_reserve(s->session, s->request.n_granted, t->queue.n_admitted == 0)) == 0)
			return;
		s->request.n_granted = streams;
		queue_admit(&t->queue, p);
		server_session_admit(s);
	}
}

static void refuse_busy(struct server_session *s)
{
	struct queue_limits l = server_session_limits(s->set);
	struct ptcp_err why;

	queue_reason(&s->set->queue, &s->place, &l, &why);
	server_session_leave(s);
	server_session_refuse(s, &why);
}

static void report_position(struct server_session *s, struct mono now)
{
	struct queue_limits l = server_session_limits(s->set);

	s->reported_ahead = queue_ahead(&s->set->queue, &s->place, &l);
	s->reported_at = now;
	session_wait(s->session, s->reported_ahead);
}

/* Positions change at each admission: a session's is reported once a second at most. */
void server_session_tick(void *arg)
{
	struct server_session_set *t = arg;
	struct queue_limits l = server_session_limits(t);
	struct mono now = mono_now();
	struct queue_entry *p;

	LIST_EACH(&t->queue.waiting, p, struct queue_entry, in_list) {
		if (session_over(of_place(p)->session))
			queue_leave(&t->queue, p, &l);
		else if (now.ns >= of_place(p)->wait_until.ns)
			refuse_busy(of_place(p));
	}
	server_session_admit_waiting(t);
	LIST_EACH(&t->queue.waiting, p, struct queue_entry, in_list)
		if (queue_ahead(&t->queue, p, &l) != of_place(p)->reported_ahead ||
		    mono_diff_ns(now, of_place(p)->reported_at) >= REPEAT_NS)
			report_position(of_place(p), now);
	if (!list_empty(&t->queue.waiting))
		timer_set(t->tick, mono_add_ns(now, TICK_NS));
}

/* A session without its control connection is retained for the client to return; the same request of the client shows
 * that it has begun a new session instead. */
static void end_abandoned(const struct server_session *s)
{
	struct server_session *other;

	LIST_EACH(&s->set->list, other, struct server_session, in_list)
		if (other != s && !other->gone && other->session != NULL && strcmp(other->client, s->client) == 0 &&
		    session_control_fd(other->session) < 0 && other->request.sends == s->request.sends &&
		    strcmp(request_first(&other->request), request_first(&s->request)) == 0) {
			log_at(&s->set->context->log, LOG_INFO, "server", "event=abandoned client=%s from=%s by=%s",
			    s->client, other->address, s->address);
			session_yield(other->session);
		}
}

void server_session_wait(struct server_session *s, uint32_t wait_ms)
{
	struct mono now = mono_now();

	queue_wait(&s->set->queue, &s->place);
	server_session_admit_waiting(s->set);
	if (s->place.state != QUEUE_WAITING)
		return;
	end_abandoned(s);
	if (wait_ms == 0) {
		refuse_busy(s);
		return;
	}
	s->wait_until = mono_add_ns(now, (wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS) * NS_PER_MS);
	report_position(s, now);
	log_at(&s->set->context->log, LOG_INFO, "server", "event=waiting from=%s client=%s ahead=%u",
	    s->address, s->client, s->reported_ahead);
	timer_set(s->set->tick, mono_add_ns(now, TICK_NS));
}
