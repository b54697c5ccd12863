/* Changes of a transfer's rate limits, by any thread. */
#include "client/task_impl.h"
#include "core/err.h"

bool task_take_rate(struct ptcp_task *t)
{
	bool changed;

	pthread_mutex_lock(&t->new_rate.lock);
	changed = t->new_rate.changed;
	t->new_rate.changed = false;
	if (changed)
		t->rate = t->new_rate.table;
	pthread_mutex_unlock(&t->new_rate.lock);
	return changed;
}

static void change_rate(struct ptcp_task *t)
{
	struct ptcp_err why;

	if (pacing_set(&t->host.pacing, &t->rate, t->loop, &why) < 0)
		task_warn(t, why.msg);
	else
		session_rate_changed(t->session);
}

void task_pace(struct ptcp_task *t)
{
	unsigned i;

	if (t->session != NULL && task_take_rate(t))
		change_rate(t);
	if (t->session == NULL || !atomic_exchange(&t->path_rates.changed, false))
		return;
	for (i = 0; i < t->paths.n; i++)
		session_set_path_rate(t->session, i, atomic_load(&t->path_rates.bps[i]));
}

int ptcp_transfer_set_path_rate(struct ptcp_task *t, size_t path, uint64_t bps, struct ptcp_err *e)
{
	if (t->prober != NULL || t->remote_job != NULL || t->paths.n == 0)
		return err_set(e, PTCP_EUSAGE, "path rates: only for transfers from or to this host");
	if (path >= t->paths.n)
		return err_set(e, PTCP_EUSAGE, "the rate of path %zu: there are %u paths, counted from 0", path, t->paths.n);
	if (bps > 0 && bps < TIMETABLE_MIN_BPS)
		return err_set(e, PTCP_EUSAGE, "the rate of a path: below %d bit/s (PTCP_PATH_IDLE stops a path)",
		    TIMETABLE_MIN_BPS);
	atomic_store(&t->path_rates.bps[path], bps);
	atomic_store(&t->path_rates.changed, true);
	loop_wake(t->loop);
	return 0;
}

int ptcp_rate_check(const char *rate, struct ptcp_err *e)
{
	struct timetable table;

	return pacing_parse(&table, rate, e);
}

int ptcp_transfer_set_rate(struct ptcp_task *t, const char *rate, struct ptcp_err *e)
{
	struct timetable table;
	int r;

	if (t->prober != NULL || t->remote_job != NULL || t->paths.n == 0)
		return err_set(e, PTCP_EUSAGE, "rate: only for transfers from or to this host");
	if ((r = pacing_parse(&table, rate, e)) < 0)
		return r;
	pthread_mutex_lock(&t->new_rate.lock);
	t->new_rate.table = table;
	t->new_rate.changed = true;
	pthread_mutex_unlock(&t->new_rate.lock);
	loop_wake(t->loop);
	return 0;
}
