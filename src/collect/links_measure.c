/* Measures the links of an overlay: a few messages over each, links without a common host at the same time, then
 * the rest of the budget over the links with the noisiest estimates, then links together, to find shared
 * bottlenecks. This host measures the links that begin or end at it, servers measure the links that begin at theirs. */
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect_parameters.h"
#include "collect/links_impl.h"
#include "core/err.h"
#include "model/disjoint.h"
#include "model/divide.h"

#define AT_ONCE 16       /* links measured at the same time */

/* ---- Turns: links measured at the same time ---- */

struct link_turn {
	struct link_state *link;
	unsigned messages;
	struct ptcp_task *task;
	bool running;
	int result;
	struct ptcp_err why;
	struct ptcp_message *got;
	size_t n;
	double round_trip_s;
};

int links_canceled(struct ptcp_err *e)
{
	return err_set(e, PTCP_ECANCELED, "links: interrupted (run the same command again)");
}

/* Timing by us if we are an end of the link, or by the server where it begins. A link to us needs no server here: its
 * beginning sends over connections that we make. */
static int timing_of(struct ptcp_task **out, const struct ptcp_links *s, const struct link_turn *t, struct ptcp_err *e)
{
	const struct link_state *l = t->link;
	struct ptcp_overlay_host from, to;
	struct ptcp_timing_opts o;

	ptcp_overlay_host(s->overlay, (size_t)l->of.from, &from);
	ptcp_overlay_host(s->overlay, (size_t)l->of.to, &to);
	ptcp_timing_opts_init(&o);
	o.streams = s->o.streams;
	o.messages = t->messages < PTCP_MESSAGES_MAX ? t->messages : PTCP_MESSAGES_MAX;
	o.most_bytes = s->o.most_bytes;
	o.receive = l->of.to == s->local_host;
	return links_is_local(s, l) ? ptcp_timing_new(out, &s->connect, o.receive ? from.address : to.address, &o, e) :
	    ptcp_timing_between_new(out, &s->connect, from.address, to.address, &o, e);
}

static void links_measure_start(const struct ptcp_links *s, struct link_turn *t)
{
	if ((t->result = timing_of(&t->task, s, t, &t->why)) == 0)
		t->result = ptcp_task_start(t->task, &t->why);
	t->running = t->result == 0;
}

/* The task has ended: takes its messages. */
static void end(struct link_turn *t)
{
	t->running = false;
	if (t->result < 0)
		return;
	t->n = ptcp_timing_messages(t->task, NULL, 0, &t->round_trip_s);
	if ((t->got = calloc(t->n + 1, sizeof *t->got)) == NULL)
		t->result = err_nomem(&t->why);
	else
		ptcp_timing_messages(t->task, t->got, t->n, &t->round_trip_s);
}

/* Polls the loops of the tasks and the cancel flag until all have ended. */
static void poll_turns(struct ptcp_links *s, struct link_turn *turn, size_t n, struct pollfd *fd)
{
	size_t i, running;
	int ms, least;

	for (;;) {
		for (i = running = 0, least = LINKS_CANCEL_MS; i < n; i++) {
			if (!turn[i].running)
				continue;
			if (atomic_load(&s->canceled))
				ptcp_task_cancel(turn[i].task);
			fd[running++] = (struct pollfd){ .fd = ptcp_task_fd(turn[i].task), .events = POLLIN };
			ms = ptcp_task_timeout_ms(turn[i].task);
			least = ms >= 0 && ms < least ? ms : least;
		}
		if (running == 0)
			return;
		poll(fd, (nfds_t)running, least);
		for (i = 0; i < n; i++)
			if (turn[i].running && (turn[i].result = ptcp_task_step(turn[i].task, &turn[i].why)) <= 0)
				end(&turn[i]);
	}
}

/* Runs turns at the same time; returns only cancellation and lack of memory, all else is the result of a turn.
 * Whatever ends a canceled transfer is the cancellation: a server may have received the same signal. */
static int run_turns(struct ptcp_links *s, struct link_turn *turn, size_t n, struct ptcp_err *e)
{
	struct pollfd *fd = calloc(n + 1, sizeof *fd);
	size_t i;
	int r = 0;

	if (fd == NULL)
		return err_nomem(e);
	for (i = 0; i < n; i++)
		links_measure_start(s, &turn[i]);
	poll_turns(s, turn, n, fd);
	free(fd);
	for (i = 0; i < n; i++) {
		if (turn[i].result == PTCP_ENOMEM)
			r = err_nomem(e);
		ptcp_task_free(turn[i].task);
		turn[i].task = NULL;
	}
	return r == 0 && atomic_load(&s->canceled) ? links_canceled(e) : r;
}

static void free_turns(struct link_turn *turn, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		free(turn[i].got);
}

/* Of this turn alone; NAN: it failed. */
static double rate_of(const struct link_turn *t)
{
	double bytes = 0, seconds = 0;
	size_t i;

	for (i = 0; i < t->n; i++) {
		bytes += (double)t->got[i].bytes;
		seconds += t->got[i].delay_s;
	}
	return t->result == 0 && seconds > 0 ? 8 * bytes / seconds : NAN;
}

int links_run(struct ptcp_links *s, struct ptcp_task *t, struct ptcp_err *e)
{
	struct link_turn one = { .task = t };
	struct pollfd fd;

	if ((one.result = ptcp_task_start(t, e)) < 0)
		return one.result;
	one.running = true;
	poll_turns(s, &one, 1, &fd);
	free(one.got);
	if (one.result < 0 && e != NULL)
		*e = one.why;
	return one.result < 0 && atomic_load(&s->canceled) ? links_canceled(e) : one.result;
}

int links_measure_link(struct ptcp_links *s, struct link_state *l, unsigned messages, struct ptcp_err *e)
{
	struct link_turn t = { .link = l, .messages = messages };
	int r;

	if ((r = run_turns(s, &t, 1, e)) < 0)
		; /* canceled */
	else if ((r = t.result) == 0)
		r = links_take(l, t.got, t.n, t.round_trip_s, e);
	else if (e != NULL)
		*e = t.why;
	free_turns(&t, 1);
	return r;
}

/* ---- Rounds of links without a common host ---- */

/* Takes the messages of a turn; only lack of memory ends the whole. */
static int take_turn(struct ptcp_links *s, struct link_turn *t, struct ptcp_err *e)
{
	struct link_state *l = t->link;

	if (t->result == 0)
		t->result = links_take(l, t->got, t->n, t->round_trip_s, &t->why);
	if (t->result == PTCP_ENOMEM)
		return err_nomem(e);
	if (t->result == 0)
		l->estimate.state = PTCP_LINK_MEASURED;
	else if (l->estimate.state != PTCP_LINK_MEASURED) /* else the previous estimate stands */
		links_fail(l, &t->why);
	if (t->result == 0 && s->o.measured != NULL)
		s->o.measured(s->o.arg, (size_t)(l - s->link));
	return 0;
}

/* Measures links at the same time, and takes the results even if canceled. */
static int measure_at_once(struct ptcp_links *s, struct link_turn *turn, size_t n, struct ptcp_err *e)
{
	size_t i;
	int r, r2;

	for (i = 0; s->o.begin != NULL && i < n; i++)
		s->o.begin(s->o.arg, (size_t)(turn[i].link - s->link));
	r = run_turns(s, turn, n, e);
	for (i = 0; i < n; i++)
		if ((r == 0 || turn[i].result == 0) && (r2 = take_turn(s, &turn[i], e)) < 0)
			r = r2;
	return r;
}

/* Measures halves of a round, so that each link is absent once while each other link is active: a link whose rate
 * then rises was disturbed. Halves by the bits of the index need the fewest measurements. */
static int check_round(struct ptcp_links *s, const struct link_turn *round, size_t n, bool *disturbed,
    struct ptcp_err *e)
{
	struct link_turn half[AT_ONCE];
	size_t i, k, bit, of[AT_ONCE];
	int r = 0;

	*disturbed = false;
	for (bit = 1; r == 0 && bit < n && !*disturbed; bit *= 2) {
		for (i = k = 0; i < n; i++)
			if ((i & bit) == 0 && round[i].result == 0) {
				half[k] = (struct link_turn){ .link = round[i].link, .messages = LINKS_CHECKED };
				of[k++] = i;
			}
		r = run_turns(s, half, k, e);
		for (i = 0; r == 0 && i < k; i++) {
			*disturbed |= rate_of(&half[i]) > LINKS_DISTURBED * rate_of(&round[of[i]]);
			if (!*disturbed && half[i].result == 0)
				r = take_turn(s, &half[i], e);
		}
		free_turns(half, k);
	}
	return r;
}

/* Measures the links of a disturbed round again, one after the other. */
static int measure_alone(struct ptcp_links *s, const struct link_turn *round, size_t n, struct ptcp_err *e)
{
	struct link_turn t;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < n; i++) {
		if (round[i].result < 0)
			continue;
		round[i].link->n = 0;
		round[i].link->estimate.state = PTCP_LINK_FAILED;
		t = (struct link_turn){ .link = round[i].link, .messages = round[i].messages };
		r = measure_at_once(s, &t, 1, e);
		free_turns(&t, 1);
	}
	return r;
}

static int measure_round(struct ptcp_links *s, const size_t *which, size_t n, const unsigned *messages,
    struct ptcp_err *e)
{
	struct link_turn turn[AT_ONCE];
	bool disturbed = false;
	size_t i;
	int r;

	for (i = 0; i < n; i++)
		turn[i] = (struct link_turn){ .link = &s->link[which[i]], .messages = messages[which[i]] };
	if ((r = measure_at_once(s, turn, n, e)) == 0 && n > 1)
		r = check_round(s, turn, n, &disturbed, e);
	if (r == 0 && disturbed)
		r = measure_alone(s, turn, n, e);
	free_turns(turn, n);
	return r;
}

/* Measures each link that waits, with its number of messages. */
static int measure_waiting(struct ptcp_links *s, bool *waits, const unsigned *messages, struct ptcp_err *e)
{
	size_t n_hosts = ptcp_overlay_hosts(s->overlay), round[AT_ONCE], i, n;
	struct disjoint_link *link = calloc(s->n + 1, sizeof *link);
	int *scratch = calloc(2 * n_hosts + 1, sizeof *scratch), r = 0;

	if (link == NULL || scratch == NULL)
		r = err_nomem(e);
	for (i = 0; r == 0 && i < s->n; i++)
		link[i] = (struct disjoint_link){ s->link[i].of.from, s->link[i].of.to };
	while (r == 0 && (n = disjoint_round(round, AT_ONCE, link, waits, s->n, scratch, n_hosts)) > 0) {
		for (i = 0; i < n; i++)
			waits[round[i]] = false;
		r = measure_round(s, round, n, messages, e);
	}
	free(link);
	free(scratch);
	return r;
}

/* ---- The budget ---- */

/* Divides the rest among the links in proportion to the relative error of the rate, so that slow links count as
 * much as fast ones. */
static int spend_rest(struct ptcp_links *s, unsigned rest, struct ptcp_err *e)
{
	unsigned *counts = calloc(s->n + 1, sizeof *counts);
	double *sd = calloc(s->n + 1, sizeof *sd), *scratch = calloc(s->n + 1, sizeof *scratch);
	size_t *which = calloc(s->n + 1, sizeof *which), i, n = 0;
	struct link_turn t;
	int r = 0;

	if (counts == NULL || sd == NULL || scratch == NULL || which == NULL)
		r = err_nomem(e);
	for (i = 0; r == 0 && i < s->n; i++)
		if (s->link[i].estimate.state == PTCP_LINK_MEASURED &&
		    !(s->link[i].estimate.rate_error_bps <= LINKS_ACCURATE * s->link[i].estimate.rate_bps)) {
			which[n] = i;
			sd[n++] = s->link[i].estimate.rate_error_bps / s->link[i].estimate.rate_bps;
		}
	if (r == 0)
		divide_measurements(counts, sd, scratch, n, rest, 0);
	for (i = 0; r == 0 && i < n; i++)
		if (counts[i] > 0) {
			t = (struct link_turn){ .link = &s->link[which[i]], .messages = counts[i] };
			r = measure_at_once(s, &t, 1, e);
			free_turns(&t, 1);
		}
	free(counts);
	free(sd);
	free(scratch);
	free(which);
	return r;
}

/* Divides the first part of the budget evenly. */
static int spend_first(struct ptcp_links *s, unsigned *left, struct ptcp_err *e)
{
	unsigned *messages = calloc(s->n + 1, sizeof *messages), rest;
	bool *waits = calloc(s->n + 1, sizeof *waits);
	size_t i, n = 0;
	int r = 0;

	for (i = 0; i < s->n; i++)
		n += !s->link[i].out;
	rest = *left = s->o.budget > 0 ? s->o.budget : (unsigned)(2 * LINKS_LEAST * n);
	if (messages == NULL || waits == NULL)
		r = err_nomem(e);
	for (i = 0; r == 0 && i < s->n; i++)
		if ((waits[i] = !s->link[i].out)) {
			messages[i] = rest / (unsigned)n < LINKS_LEAST ? rest / (unsigned)n : LINKS_LEAST;
			rest -= messages[i];
			n--;
		}
	if (r == 0)
		r = measure_waiting(s, waits, messages, e);
	for (i = 0; r == 0 && i < s->n; i++)
		if (s->link[i].estimate.state == PTCP_LINK_MEASURED)
			*left -= messages[i];
	free(messages);
	free(waits);
	return r;
}

/* ---- Shared bottlenecks ---- */

static int test_together(struct ptcp_links *s, struct shared *f, const size_t *which, struct ptcp_err *e)
{
	struct link_turn turn[SHARED_LINKS_MAX];
	double rate_bps[SHARED_LINKS_MAX];
	bool run[SHARED_LINKS_MAX];
	size_t i, k, of[SHARED_LINKS_MAX];
	int r = 0;

	while (r == 0 && shared_next(f, run)) {
		for (i = k = 0; i < f->n; i++)
			if (run[i]) {
				turn[k] = (struct link_turn){ .link = &s->link[which[i]], .messages = LINKS_CHECKED };
				of[k++] = i;
			}
		if (s->o.together != NULL)
			s->o.together(s->o.arg, k);
		r = run_turns(s, turn, k, e);
		for (i = 0; i < k; i++)
			rate_bps[of[i]] = rate_of(&turn[i]);
		free_turns(turn, k);
		if (r == 0)
			shared_take(f, rate_bps);
	}
	return r;
}

static int find_shared(struct ptcp_links *s, struct ptcp_err *e)
{
	double apart_bps[SHARED_LINKS_MAX];
	size_t which[SHARED_LINKS_MAX], i, n = 0, filled = 0;
	struct shared f;
	int g, r;

	for (i = 0; i < s->n; i++)
		if (s->link[i].estimate.state == PTCP_LINK_MEASURED) {
			if (n == SHARED_LINKS_MAX)
				return 0;
			which[n] = i;
			apart_bps[n++] = s->link[i].estimate.rate_bps;
		}
	shared_init(&f, apart_bps, n);
	if ((r = test_together(s, &f, which, e)) < 0)
		return r;
	for (g = 0; g < (int)f.n_groups; g++) {
		s->shared[g] = (struct ptcp_shared_bottleneck){ f.groups[g].rate_bps,
		    s->shared_links + filled, f.groups[g].n };
		for (i = 0; i < n; i++)
			if (f.group[i] == g)
				s->shared_links[filled++] = which[i];
	}
	s->n_shared = f.n_groups;
	return 0;
}

int ptcp_links_measure(struct ptcp_links *s, struct ptcp_err *e)
{
	unsigned left;
	int r = spend_first(s, &left, e);

	if (r == 0 && left > 0)
		r = spend_rest(s, left, e);
	if (r == 0 && !s->o.no_shared)
		r = find_shared(s, e);
	return r < 0 ? r : links_outcome(s, false, e);
}
