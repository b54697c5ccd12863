#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>

/* ---- Messages ---- */

#define POSTERS 4
#define EACH 2000

struct numbered {
	struct msg msg;
	struct shelf *shelf;
	unsigned poster, i;
};

struct shelf {
	struct loop *loop;
	pthread_t thread;
	unsigned next[POSTERS], total;
	atomic_bool wrong, done;
};

struct poster {
	struct shelf *shelf;
	unsigned number;
};

static void take(struct msg *m)
{
	struct numbered *n = (struct numbered *)(void *)m;
	struct shelf *s = n->shelf;

	if (n->i != s->next[n->poster]++ || !pthread_equal(pthread_self(), s->thread))
		atomic_store(&s->wrong, true);
	if (++s->total == POSTERS * EACH)
		atomic_store(&s->done, true);
	free(n);
}

static void *post_all(void *arg)
{
	struct poster *p = arg;
	unsigned i;

	for (i = 0; i < EACH; i++) {
		struct numbered *n = calloc(1, sizeof *n);

		n->msg.run = take;
		n->shelf = p->shelf;
		n->poster = p->number;
		n->i = i;
		loop_post(p->shelf->loop, &n->msg);
	}
	return NULL;
}

static void note_thread(struct msg *m)
{
	struct numbered *n = (struct numbered *)(void *)m;

	n->shelf->thread = pthread_self();
}

static void in_order_from_many_threads(void **state)
{
	struct shelf s = { .total = 0 };
	struct numbered first = { { note_thread, NULL }, &s, 0, 0 };
	struct poster p[POSTERS];
	pthread_t t[POSTERS];
	struct ptcp_err e;
	unsigned i;

	(void)state;
	assert_int_equal(loop_new(&s.loop, &e), 0);
	loop_post(s.loop, &first.msg);
	assert_int_equal(loop_start_thread(s.loop, &e), 0);
	for (i = 0; i < POSTERS; i++) {
		p[i] = (struct poster){ &s, i };
		assert_int_equal(pthread_create(&t[i], NULL, post_all, &p[i]), 0);
	}
	for (i = 0; i < POSTERS; i++)
		pthread_join(t[i], NULL);
	loop_stop(s.loop); /* what was posted before still runs */
	loop_free(s.loop);
	assert_true(atomic_load(&s.done));
	assert_false(atomic_load(&s.wrong));
	assert_int_equal(s.total, POSTERS * EACH);
}

struct chain {
	struct msg msg;
	struct loop *loop;
	unsigned left;
	bool timer_ran, flag;
	struct timer *timer;
};

static void post_again(struct msg *m)
{
	struct chain *c = (struct chain *)(void *)m;

	if (c->timer_ran)
		c->flag = true;
	else
		loop_post(c->loop, m);
}

static void chain_timer(void *arg)
{
	((struct chain *)arg)->timer_ran = true;
}

/* A message that posts itself for ever does not keep the loop from a timer. */
static void endless_posting_starves_nobody(void **state)
{
	struct chain c = { { post_again, NULL }, NULL, 0, false, false, NULL };
	struct ptcp_err e;

	(void)state;
	assert_int_equal(loop_new(&c.loop, &e), 0);
	assert_int_equal(timer_new(&c.timer, c.loop, chain_timer, &c, &e), 0);
	timer_set(c.timer, mono_add_ns(mono_now(), 5 * NS_PER_MS));
	loop_post(c.loop, &c.msg);
	assert_true(nf_run_until(c.loop, &c.flag, 5000));
	timer_free(c.timer);
	loop_free(c.loop);
}

static void post_next(struct msg *m)
{
	struct chain *c = (struct chain *)(void *)m;

	if (c->left-- > 1)
		loop_post(c->loop, m);
}

static void what_messages_post_is_delivered_at_the_end(void **state)
{
	struct chain c = { { post_next, NULL }, NULL, 5, false, false, NULL };
	struct ptcp_err e;

	(void)state;
	assert_int_equal(loop_new(&c.loop, &e), 0);
	loop_post(c.loop, &c.msg);
	loop_free(c.loop);
	assert_int_equal(c.left, 0);
}

/* ---- Stopping ---- */

static void stopped_before_it_runs(void **state)
{
	struct shelf s = { .total = 0 };
	struct numbered *n = calloc(1, sizeof *n);
	struct ptcp_err e;

	(void)state;
	assert_int_equal(loop_new(&s.loop, &e), 0);
	s.thread = pthread_self();
	n->msg.run = take;
	n->shelf = &s;
	loop_post(s.loop, &n->msg);
	loop_stop(s.loop);
	loop_stop(s.loop);
	loop_run(s.loop); /* returns */
	assert_int_equal(s.total, 1);
	loop_reset(s.loop);
	nf_run_for(s.loop, 5); /* and it runs again */
	loop_free(s.loop);
}

static void stopped_before_its_thread_runs(void **state)
{
	struct shelf s = { .total = 0 };
	struct numbered first = { { note_thread, NULL }, &s, 0, 0 };
	struct ptcp_err e;
	int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		struct numbered *n = calloc(1, sizeof *n);

		s = (struct shelf){ .total = 0 };
		assert_int_equal(loop_new(&s.loop, &e), 0);
		n->msg.run = take;
		n->shelf = &s;
		loop_post(s.loop, &first.msg);
		loop_post(s.loop, &n->msg);
		loop_stop(s.loop);
		assert_int_equal(loop_start_thread(s.loop, &e), 0);
		loop_free(s.loop);
		assert_int_equal(s.total, 1);
		assert_false(atomic_load(&s.wrong));
		assert_false(pthread_equal(s.thread, pthread_self()));
	}
	loop_free(NULL);
}

/* ---- Waking ---- */

static struct loop *alarmed;

static void on_alarm(int sig)
{
	(void)sig;
	loop_wake(alarmed);
}

struct woken {
	struct loop *loop;
	atomic_uint n;
	bool flag;
};

static void count_wake(void *arg)
{
	struct woken *w = arg;

	atomic_fetch_add(&w->n, 1);
	w->flag = true;
}

static void *wake_it(void *arg)
{
	struct woken *w = arg;
	int i;

	for (i = 0; i < 100; i++)
		loop_wake(w->loop);
	return NULL;
}

static void woken_by_threads_and_signals(void **state)
{
	struct itimerval soon = { .it_value = { 0, 2000 } };
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct woken w = { .flag = false };
	struct ptcp_err e;
	pthread_t t;

	(void)state;
	assert_int_equal(loop_new(&w.loop, &e), 0);
	loop_on_wake(w.loop, count_wake, &w);
	assert_int_equal(pthread_create(&t, NULL, wake_it, &w), 0);
	assert_true(nf_run_until(w.loop, &w.flag, 5000));
	pthread_join(t, NULL);
	nf_run_for(w.loop, 5);
	w.flag = false;
	alarmed = w.loop;
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &soon, NULL);
	assert_true(nf_run_until(w.loop, &w.flag, 5000));
	sigaction(SIGALRM, &old, NULL);
	loop_free(w.loop);
}

/* ---- Timers ---- */

struct alarm {
	struct timer *timer;
	struct mono set_for, fired_at, then;
	unsigned n;
	bool fired, frees;
};

static void ring(void *arg)
{
	struct alarm *a = arg;

	a->fired_at = mono_now();
	a->n++;
	a->fired = a->then.ns == 0; /* the last time */
	if (a->frees)
		timer_free(a->timer);
	else if (a->then.ns != 0)
		timer_set(a->timer, a->then);
	a->then.ns = 0;
}

static struct loop *with_alarm(struct alarm *a)
{
	struct loop *l;
	struct ptcp_err e;

	*a = (struct alarm){ .n = 0 };
	assert_int_equal(loop_new(&l, &e), 0);
	assert_int_equal(timer_new(&a->timer, l, ring, a, &e), 0);
	return l;
}

/* Until it has fired for the last time, and a little longer. */
static void rings(struct loop *l, struct alarm *a)
{
	a->fired = false;
	assert_true(nf_run_until(l, &a->fired, 5000));
	nf_run_for(l, 5);
}

static void timers_in_the_past_fire_at_once(void **state)
{
	struct alarm a;
	struct loop *l = with_alarm(&a);

	(void)state;
	timer_set(a.timer, (struct mono){ 1 });
	assert_true(nf_run_until(l, &a.fired, 5000));
	nf_run_for(l, 10);
	assert_int_equal(a.n, 1); /* once */
	timer_set(a.timer, (struct mono){ 1 });
	rings(l, &a);
	assert_int_equal(a.n, 2); /* the same moment may be set again once it has fired */
	timer_free(a.timer);
	loop_free(l);
}

static void timers_never_fire_early(void **state)
{
	struct alarm a;
	struct loop *l = with_alarm(&a);
	unsigned i;

	(void)state;
	for (i = 0; i < 40; i++) {
		a.fired = false;
		a.set_for = mono_add_ns(mono_now(), 1000 + i * 77777);
		timer_set(a.timer, a.set_for);
		assert_true(nf_run_until(l, &a.fired, 5000));
		assert_true(a.fired_at.ns >= a.set_for.ns);
	}
	assert_int_equal(a.n, 40);
	timer_free(a.timer);
	loop_free(l);
}

static void timers_are_set_anew(void **state)
{
	struct alarm a;
	struct loop *l = with_alarm(&a);
	struct mono soon = mono_add_ns(mono_now(), 20 * NS_PER_MS);

	(void)state;
	timer_set(a.timer, soon);
	timer_set(a.timer, MONO_NEVER);
	nf_run_for(l, 40);
	assert_int_equal(a.n, 0);
	timer_set(a.timer, mono_add_ns(mono_now(), 3600 * NS_PER_S));
	timer_set(a.timer, mono_add_ns(mono_now(), 5 * NS_PER_MS)); /* earlier */
	assert_true(nf_run_until(l, &a.fired, 5000));
	timer_set(a.timer, mono_add_ns(mono_now(), 5 * NS_PER_MS));
	timer_set(a.timer, mono_add_ns(mono_now(), 3600 * NS_PER_S)); /* later */
	nf_run_for(l, 20);
	assert_int_equal(a.n, 1);
	a.then = mono_now(); /* from its own callback */
	timer_set(a.timer, mono_now());
	rings(l, &a);
	assert_int_equal(a.n, 3);
	timer_set(a.timer, (struct mono){ MONO_NEVER.ns - 1 }); /* far, and no overflow */
	nf_run_for(l, 5);
	assert_int_equal(a.n, 3);
	timer_free(a.timer);
	loop_free(l);
}

struct restless {
	struct timer *timer;
	unsigned n;
};

static void never_content(void *arg)
{
	struct restless *r = arg;

	if (++r->n < 10000)
		timer_set(r->timer, (struct mono){ 1 });
}

/* A timer that is always late does not keep the loop from the others. */
static void late_timers_starve_nobody(void **state)
{
	struct restless r = { .n = 0 };
	struct alarm a;
	struct loop *l = with_alarm(&a);

	(void)state;
	assert_int_equal(timer_new(&r.timer, l, never_content, &r, NULL), 0);
	timer_set(r.timer, (struct mono){ 1 });
	timer_set(a.timer, mono_add_ns(mono_now(), 5 * NS_PER_MS));
	assert_true(nf_run_until(l, &a.fired, 5000));
	assert_in_range(r.n, 1, 100);
	timer_free(r.timer);
	timer_free(a.timer);
	loop_free(l);
}

static void timers_free_themselves(void **state)
{
	struct alarm a;
	struct loop *l = with_alarm(&a);

	(void)state;
	a.frees = true;
	timer_set(a.timer, mono_now());
	assert_true(nf_run_until(l, &a.fired, 5000));
	loop_free(l);
	l = with_alarm(&a);
	timer_set(a.timer, mono_now());
	timer_free(a.timer); /* and never fires */
	nf_run_for(l, 10);
	assert_int_equal(a.n, 0);
	timer_free(NULL);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(in_order_from_many_threads), nf_test(endless_posting_starves_nobody),
		nf_test(what_messages_post_is_delivered_at_the_end), nf_test(stopped_before_it_runs),
		nf_test(stopped_before_its_thread_runs), nf_test(woken_by_threads_and_signals),
		nf_test(timers_in_the_past_fire_at_once), nf_test(timers_never_fire_early),
		nf_test(timers_are_set_anew), nf_test(late_timers_starve_nobody),
		nf_test(timers_free_themselves),
	};
	return cmocka_run_group_tests_name("net/loop", tests, NULL, NULL);
}
