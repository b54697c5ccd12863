#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/list.h"
#include "net/mailbox.h"

#define POSTERS 3
#define EACH 4000
#define LOOPS 3

/* An object that moves between loops. */
static struct {
	struct mailbox *box;
	struct loop *loop[LOOPS];
	atomic_uint on;           /* loop */
	pthread_t thread[LOOPS];
	atomic_bool known[LOOPS];
	atomic_bool running;      /* a message is */
	unsigned next[POSTERS], total, moves;
	bool arriving;
	bool done;
	struct loop *home;
	struct msg over;
} fx;

struct numbered {
	struct msg msg, arrive;
	unsigned poster, i;
};

static void on_over(struct msg *m)
{
	(void)m;
	fx.done = true;
	loop_stop(fx.home);
}

static void begin(void)
{
	assert_false(atomic_exchange(&fx.running, true));
	assert_true(pthread_equal(pthread_self(), fx.thread[atomic_load(&fx.on)]));
}

static void end(void) { atomic_store(&fx.running, false); }

static void arrive(struct msg *m)
{
	begin();
	assert_true(fx.arriving);
	fx.arriving = false;
	end();
	free(CONTAINER_OF(m, struct numbered, arrive));
}

static void take(struct msg *m)
{
	struct numbered *n = CONTAINER_OF(m, struct numbered, msg);

	begin();
	assert_false(fx.arriving); /* that comes first */
	assert_int_equal(n->i, fx.next[n->poster]++);
	if (++fx.total == POSTERS * EACH) {
		fx.over.run = on_over;
		loop_post(fx.home, &fx.over);
	}
	if (n->i % 7 == n->poster) {
		fx.moves++;
		fx.arriving = true;
		atomic_store(&fx.on, (atomic_load(&fx.on) + n->i) % LOOPS);
		n->arrive.run = arrive;
		end();
		mailbox_move(fx.box, fx.loop[atomic_load(&fx.on)], &n->arrive);
		return;
	}
	end();
	free(n);
}

static void *post_all(void *arg)
{
	unsigned i;

	for (i = 0; i < EACH; i++) {
		struct numbered *n = calloc(1, sizeof *n);

		n->msg.run = take;
		n->poster = (unsigned)(uintptr_t)arg;
		n->i = i;
		mailbox_post(fx.box, &n->msg);
	}
	return NULL;
}

struct greeting {
	struct msg msg;
	unsigned i;
};

static void know(struct msg *m)
{
	unsigned i = CONTAINER_OF(m, struct greeting, msg)->i;

	fx.thread[i] = pthread_self();
	atomic_store(&fx.known[i], true);
}

/* Messages of several threads: in order, one at a time, on the thread of the loop where the object is. */
static void in_order(void **state)
{
	struct greeting hello[LOOPS];
	pthread_t t[POSTERS];
	unsigned i;

	(void)state;
	assert_int_equal(loop_new(&fx.home, NULL), 0);
	for (i = 0; i < LOOPS; i++) {
		assert_int_equal(loop_new(&fx.loop[i], NULL), 0);
		assert_int_equal(loop_start_thread(fx.loop[i], NULL), 0);
		hello[i] = (struct greeting){ .msg.run = know, .i = i };
		loop_post(fx.loop[i], &hello[i].msg);
	}
	for (i = 0; i < LOOPS; i++)
		while (!atomic_load(&fx.known[i]))
			nf_sleep_ms(1);
	assert_int_equal(mailbox_new(&fx.box, fx.loop[0], NULL), 0);
	for (i = 0; i < POSTERS; i++)
		pthread_create(&t[i], NULL, post_all, (void *)(uintptr_t)i);
	loop_run(fx.home);
	assert_true(fx.done);
	for (i = 0; i < POSTERS; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(fx.next[i], EACH);
	}
	for (i = 0; i < LOOPS; i++) /* the last arrival, too */
		loop_free(fx.loop[i]);
	assert_true(fx.moves > EACH / 7 && !fx.arriving);
	mailbox_free(fx.box);
	loop_free(fx.home);
}

static struct loop *only;

static void free_box(struct msg *m)
{
	mailbox_free(fx.box);
	loop_stop(only);
	free(m);
}

/* Freed by its last message, on its loop or meanwhile elsewhere. */
static void freed_by_message(void **state)
{
	struct msg *m = calloc(1, sizeof *m);

	(void)state;
	assert_int_equal(loop_new(&only, NULL), 0);
	assert_int_equal(mailbox_new(&fx.box, only, NULL), 0);
	m->run = free_box;
	mailbox_post(fx.box, m);
	loop_run(only);
	assert_int_equal(mailbox_new(&fx.box, only, NULL), 0);
	mailbox_free(fx.box); /* never used */
	mailbox_free(NULL);
	loop_free(only);
}

int main(void)
{
	const struct CMUnitTest tests[] = { nf_test(in_order), nf_test(freed_by_message) };

	return cmocka_run_group_tests_name("net/mailbox", tests, NULL, NULL);
}
