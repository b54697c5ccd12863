/* Addresses of numbers and names: who waits for whom when name servers are dead.
 * against: memory */
#include "net/resolve.h"

#include <langinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "patience.h"

/* ---- A name service: names that end in ".dead" have no answer until the gate is open ---- */

#define UMLAUT "b\xc3\xbc\xc3\xb6.test"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* Under mutex: all may go, so many may go. */
static bool gate;
static unsigned n_tokens, n_stuck, n_calls;
static char last[40];

static int fake(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	size_t n = strlen(host);

	pthread_mutex_lock(&mutex);
	n_calls++;
	snprintf(last, sizeof last, "%s", host);
	if (n > 5 && strcmp(host + n - 5, ".dead") == 0) {
		n_stuck++;
		pthread_cond_broadcast(&changed);
		while (!gate && n_tokens == 0)
			pthread_cond_wait(&changed, &mutex);
		n_tokens -= n_tokens > 0;
		n_stuck--;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&mutex);
	if (strcmp(host, "gone.test") == 0)
		return EAI_NONAME;
#ifdef AI_IDN
	if (((hints->ai_flags & AI_IDN) != 0) != (strcmp(host, UMLAUT) == 0) ||
	    (strcmp(host, UMLAUT) == 0 && strcmp(nl_langinfo(CODESET), "UTF-8") != 0))
		return EAI_FAIL;
#endif
	return getaddrinfo(hints->ai_family == AF_INET6 ? "::1" : "127.0.0.1", service, hints, out);
}

static void set_gate(bool open)
{
	pthread_mutex_lock(&mutex);
	gate = open;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

/* One stuck lookup ends. */
static void release_one(void)
{
	pthread_mutex_lock(&mutex);
	n_tokens++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

/* Until so many lookups are stuck; more are for the caller to notice. */
static void wait_stuck(unsigned n)
{
	pthread_mutex_lock(&mutex);
	while (n_stuck < n)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

static unsigned under_mutex(const unsigned *n)
{
	unsigned value;

	pthread_mutex_lock(&mutex);
	value = *n;
	pthread_mutex_unlock(&mutex);
	return value;
}

/* ---- Requests ---- */

struct request {
	struct resolve q;
	bool came;
	int error, family;
	struct request *cancels;
};

static struct loop *loop;
static struct resolver *names;

static void on_done(struct resolve *q, const struct resolve_answer *a)
{
	struct request *r = CONTAINER_OF(q, struct request, q);

	assert_false(r->came);
	assert_true((a->all != NULL) == (a->error == 0));
	r->came = true;
	r->error = a->error;
	r->family = a->all != NULL ? a->all->ai_family : 0;
	if (r->cancels != NULL)
		resolve_cancel(&r->cancels->q);
}

static void ask_for(struct request *r, const char *client, const char *host, int family)
{
	struct ptcp_err e;

	*r = (struct request){ 0 };
	assert_int_equal(resolve_start(&r->q, names, client, host, family, on_done, &e), 0);
	assert_false(r->came);
}

static void ask(struct request *r, const char *client, const char *host) { ask_for(r, client, host, 0); }

/* n requests for different dead names. */
static void ask_dead(struct request *r, unsigned n, const char *client)
{
	char host[40];
	unsigned i;

	for (i = 0; i < n; i++) {
		snprintf(host, sizeof host, "%u.dead", i);
		ask(&r[i], client, host);
	}
}

static void cancel_all(struct request *r, unsigned n)
{
	while (n > 0)
		resolve_cancel(&r[--n].q);
}

static void answered(struct request *r) { assert_true(nf_run_until(loop, &r->came, 5000)); }

static void begin(void)
{
	struct ptcp_err e;

	set_gate(false);
	n_calls = n_tokens = 0;
	assert_int_equal(loop_new(&loop, &e), 0);
	assert_int_equal(resolver_new(&names, loop, fake, &e), 0);
}

/* Also with lookups that are still stuck, which end afterwards. */
static void end(void)
{
	resolver_free(names);
	loop_free(loop);
	set_gate(true);
	wait_stuck(0);
}

/* ---- */

static void numbers(void **state)
{
	static const struct {
		const char *host;
		int family;
		bool number, error;
	} all[] = {
		{ "127.0.0.1", 0, true, false }, { "127.0.0.1", 4, true, false }, { "127.0.0.1", 6, true, true },
		{ "::1", 0, true, false }, { "::1", 6, true, false }, { "::1", 4, true, true },
		{ "fe80::1%lo", 0, true, false }, { "127.1", 0, true, false }, { "2130706433", 0, true, false },
		{ "localhost", 0, false, false }, { "1.2.3.4.5", 0, false, false }, { "", 0, false, false },
	};
	struct resolve_answer a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof all / sizeof *all; i++) {
		if (resolve_number(&a, all[i].host, all[i].family) != all[i].number)
			fail_msg("%s", all[i].host);
		assert_true((a.error != 0) == all[i].error);
		assert_true((a.all != NULL) == (all[i].number && !all[i].error));
		if (a.all != NULL)
			freeaddrinfo(a.all);
	}
}

static void names_of_all_kinds(void **state)
{
	struct request r[4];

	(void)state;
	begin();
	ask(&r[3], NULL, UMLAUT);
	answered(&r[3]);
	assert_int_equal(r[3].error, 0);
	ask_for(&r[0], "a", "x.test", 4);
	ask_for(&r[1], "a", "x.test", 6);
	ask(&r[2], NULL, "gone.test");
	answered(&r[0]);
	answered(&r[1]);
	answered(&r[2]);
	assert_int_equal(r[0].family, AF_INET);
	assert_int_equal(r[1].family, AF_INET6);
	assert_int_equal(r[2].error, EAI_NONAME);
	end();
}

/* 256 lookups of one client are stuck: it has no more threads than it may, others get their answers. */
static void beside_stuck_look_ups(void **state)
{
	static struct request dead[256];
	struct request r[2];
	struct mono start;

	(void)state;
	begin();
	ask_dead(dead, 256, "a");
	wait_stuck(RESOLVE_CLIENT_MAX);
	start = mono_now();
	ask(&r[0], "b", "x.test");
	ask(&r[1], NULL, "y.test");
	answered(&r[0]);
	answered(&r[1]);
	assert_true(mono_diff_ns(mono_now(), start) < patience_s(1) * NS_PER_S);
	assert_int_equal(under_mutex(&n_stuck), RESOLVE_CLIENT_MAX);
	cancel_all(dead, 256);
	end();
}

/* Whoever gives up gets no further threads by that. */
static void abandoned_look_ups_count(void **state)
{
	static struct request dead[RESOLVE_CLIENT_MAX];
	struct request r;

	(void)state;
	begin();
	ask_dead(dead, RESOLVE_CLIENT_MAX, "a");
	wait_stuck(RESOLVE_CLIENT_MAX);
	cancel_all(dead, RESOLVE_CLIENT_MAX);
	ask(&r, "a", "x.test");
	nf_run_for(loop, 50);
	assert_false(r.came);
	set_gate(true);
	answered(&r);
	assert_int_equal(r.error, 0);
	end();
}

/* The process itself leaves half of the threads to its clients. */
static void own_look_ups(void **state)
{
	static struct request own[100];
	struct request r;

	(void)state;
	begin();
	ask_dead(own, 100, NULL);
	wait_stuck(RESOLVE_OWN_MAX);
	ask(&r, "a", "x.test");
	answered(&r);
	cancel_all(own, 100);
	end();
}

static bool one_more_called(void *arg)
{
	(void)arg;
	return under_mutex(&n_calls) > RESOLVE_MAX;
}

/* All threads are in use: then the client with the fewest is next, whoever came first. */
static void fair_in_turn(void **state)
{
	enum { CLIENTS = (RESOLVE_MAX - RESOLVE_OWN_MAX) / RESOLVE_CLIENT_MAX };
	static struct request own[RESOLVE_OWN_MAX], dead[CLIENTS][RESOLVE_CLIENT_MAX], more[CLIENTS];
	struct request late;
	char client[20];
	unsigned i;

	(void)state;
	begin();
	ask_dead(own, RESOLVE_OWN_MAX, NULL);
	for (i = 0; i < CLIENTS; i++) {
		snprintf(client, sizeof client, "client %u", i);
		ask_dead(dead[i], RESOLVE_CLIENT_MAX, client);
	}
	wait_stuck(RESOLVE_MAX);
	for (i = 0; i < CLIENTS; i++) {
		snprintf(client, sizeof client, "client %u", i);
		ask(&more[i], client, "more.dead");
	}
	ask(&late, "late", "late.dead");
	nf_run_for(loop, 20);
	assert_int_equal(under_mutex(&n_calls), RESOLVE_MAX);
	release_one();
	assert_true(nf_await(loop, one_more_called, NULL));
	wait_stuck(RESOLVE_MAX);
	assert_string_equal(last, "late.dead");
	set_gate(true);
	answered(&late);
	for (i = 0; i < CLIENTS; i++)
		answered(&more[i]);
	end();
}

/* 128 streams to one name need one lookup. */
static void shared_by_one_client(void **state)
{
	static struct request r[128];
	struct request other;
	unsigned i;

	(void)state;
	begin();
	for (i = 0; i < 128; i++)
		ask(&r[i], "a", "x.dead");
	ask(&other, "b", "x.dead");
	wait_stuck(2);
	r[3].cancels = &r[4];
	resolve_cancel(&r[5].q);
	set_gate(true);
	for (i = 0; i < 128; i++)
		if (i != 4 && i != 5)
			answered(&r[i]);
	answered(&other);
	nf_run_for(loop, 5);
	assert_false(r[4].came);
	assert_false(r[5].came);
	assert_int_equal(n_calls, 2);
	end();
}

/* A waiting lookup that is canceled never starts; an abandoned one is not shared. */
static void canceled(void **state)
{
	static struct request dead[RESOLVE_CLIENT_MAX + 1];
	struct request again;
	const struct resolve none = { .lookup = NULL };
	struct resolve q = none;

	(void)state;
	resolve_cancel(&q);
	begin();
	ask_dead(dead, RESOLVE_CLIENT_MAX + 1, "a");
	wait_stuck(RESOLVE_CLIENT_MAX);
	resolve_cancel(&dead[RESOLVE_CLIENT_MAX].q);
	resolve_cancel(&dead[0].q);
	ask(&again, "a", "0.dead");
	set_gate(true);
	answered(&again);
	answered(&dead[1]);
	nf_run_for(loop, 5);
	assert_false(dead[0].came);
	assert_int_equal(n_calls, RESOLVE_CLIENT_MAX + 1); /* of which one is `again` */
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		nf_test(numbers), nf_test(names_of_all_kinds), nf_timed_test(beside_stuck_look_ups),
		nf_test(abandoned_look_ups_count),
		nf_test(own_look_ups), nf_test(fair_in_turn), nf_test(shared_by_one_client), nf_test(canceled),
	};
	return cmocka_run_group_tests_name("net/resolve", tests, NULL, NULL);
}
