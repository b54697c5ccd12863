#include "collect/planner_thread.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/err.h"
#include "core/thread.h"
#include "plan/overlay_copy.h"
#include "plan/rate_limits.h"

struct planner_thread {
	pthread_t thread;
	bool joined;
	atomic_bool done;
	/* owned by the thread until done */
	struct ptcp_overlay *overlay;
	struct ptcp_plan_opts opts;
	struct ptcp_plan *plan;
	struct schedule *schedule;
	struct ptcp_err err;
	int code;
};

static void *work(void *arg)
{
	struct planner_thread *p = arg;

	if ((p->code = ptcp_plan_make(&p->plan, p->overlay, &p->opts, &p->err)) == 0)
		p->code = schedule_new(&p->schedule, p->plan, &p->err);
	atomic_store(&p->done, true);
	return NULL;
}

int planner_thread_new(struct planner_thread **out, const struct ptcp_overlay *o, double room_s,
    const struct ptcp_plan_opts *opts, struct ptcp_err *e)
{
	struct planner_thread *p = calloc(1, sizeof *p);
	int r;

	if (p == NULL)
		return err_nomem(e);
	atomic_init(&p->done, false);
	p->opts = *opts;
	if ((r = overlay_snapshot(&p->overlay, o, e)) == 0) {
		limits_pass(p->overlay, room_s);
		r = thread_start(&p->thread, work, p, e);
	}
	if (r < 0) {
		overlay_snapshot_free(p->overlay);
		free(p);
		return r;
	}
	*out = p;
	return 0;
}

bool planner_thread_is_done(const struct planner_thread *p)
{
	return atomic_load(&p->done);
}

static void join(struct planner_thread *p)
{
	if (!p->joined)
		pthread_join(p->thread, NULL);
	p->joined = true;
}

int planner_thread_take(struct planner_thread *p, struct ptcp_plan **plan, struct schedule **schedule,
    struct ptcp_err *e)
{
	join(p);
	if (p->code < 0) {
		if (e != NULL)
			*e = p->err;
		return p->code;
	}
	*plan = p->plan;
	*schedule = p->schedule;
	p->plan = NULL;
	p->schedule = NULL;
	return 0;
}

void planner_thread_free(struct planner_thread *p)
{
	if (p == NULL)
		return;
	join(p);
	ptcp_plan_free(p->plan);
	schedule_free(p->schedule);
	overlay_snapshot_free(p->overlay);
	free(p);
}
