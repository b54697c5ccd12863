/* Connections that a client accepts while it listens for the server that it has started through ssh: the control
 * connection of that server, and the streams of its session. The test plays the arriving connections and the
 * session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "client/ssh_start_impl.h"
#include "net/chan_impl.h"

static struct {
	struct context context;
	struct ssh_start f;
	struct chan chan;
	struct inbound g;
	struct session *session;
	enum session_join verdict;
	enum ptcp_cipher cipher;
	unsigned reached;
	struct ptcp_err e;
} fx;

enum session_join session_join(const struct session *sess, struct chan *c, const struct wire_join *j)
{
	(void)j;
	assert_ptr_equal(sess, fx.session);
	assert_ptr_equal(c, &fx.chan);
	return fx.verdict;
}

enum ptcp_cipher session_cipher(const struct session *sess) { (void)sess; return fx.cipher; }
void session_add_stream(struct session *sess, unsigned number, struct chan *c) { (void)sess; (void)number; (void)c; }

static void on_reached(void *arg, enum ssh_start_mode mode, struct chan *c, struct connect *spare, const char *address,
    const char *label)
{
	(void)arg; (void)spare; (void)address; (void)label;
	assert_int_equal(mode, SSH_START_BACK);
	assert_ptr_equal(c, &fx.chan);
	fx.reached++;
}

static struct session *session_of(void *arg) { (void)arg; return fx.session; }

static void on_time(void *arg) { (void)arg; }

static void begin(void)
{
	static const struct ssh_start_ops ops = { .reached = on_reached, .session = session_of };

	memset(&fx, 0, sizeof fx);
	fx.f.o.ops = &ops;
	fx.f.o.context = &fx.context;
	assert_int_equal(loop_new(&fx.context.control, &fx.e), 0);
	assert_int_equal(timer_new(&fx.f.timer, fx.context.control, on_time, NULL, &fx.e), 0);
	fx.f.state = BACK;
	strcpy(fx.f.answer.fingerprint, "SHA256:started");
	strcpy(fx.chan.fingerprint, "SHA256:started");
	fx.g.chan = &fx.chan;
	assert_int_equal(ssh_connect_init(&fx.f, &fx.e), 0);
	assert_non_null(fx.g.from = admission_begin(fx.f.pending.admission, "127.0.0.1:7", mono_now()));
}

static int end(void **state)
{
	(void)state;
	admission_leave(fx.f.pending.admission, fx.g.from, ADMISSION_GOOD);
	pending_fini(&fx.f.pending);
	timer_free(fx.f.timer);
	loop_free(fx.context.control);
	return 0;
}

static const struct inbound_ops *ops(void) { return fx.f.pending.o.ops; }

static int control(void)
{
	fx.g.chan = &fx.chan; /* which the session takes */
	return ops()->control(&fx.f, &fx.g, &fx.e);
}

static void the_started_server(void **state)
{
	(void)state;
	begin();
	assert_int_equal(control(), 0);
	assert_int_equal(fx.reached, 1);
	assert_int_equal(control(), PTCP_EREFUSED); /* once */
	assert_int_equal(fx.reached, 1);
}

static void another_server(void **state)
{
	(void)state;
	begin();
	strcpy(fx.chan.fingerprint, "SHA256:another");
	assert_int_equal(control(), PTCP_EREFUSED);
	assert_int_equal(fx.reached, 0);
}

/* The pipe carries the session, or the start has failed. */
static void too_late(void **state)
{
	(void)state;
	begin();
	fx.f.state = PIPE;
	assert_int_equal(control(), PTCP_EREFUSED);
	fx.f.state = FAILED;
	assert_int_equal(control(), PTCP_EREFUSED);
	assert_int_equal(fx.reached, 0);
}

/* The session judges a JOIN; the listener believes nothing else. */
static void streams(void **state)
{
	const struct wire_join j = { .stream = 1 };
	bool plaintext = false;

	(void)state;
	begin();
	assert_int_equal(ops()->join(&fx.f, &fx.g, &j, &plaintext, &fx.e), PTCP_EREFUSED); /* there is no session yet */
	fx.session = (struct session *)&fx;
	fx.verdict = SESSION_JOIN_INVALID;
	assert_int_equal(ops()->join(&fx.f, &fx.g, &j, &plaintext, &fx.e), PTCP_EREFUSED);
	fx.verdict = SESSION_JOIN_LATE;
	assert_int_equal(ops()->join(&fx.f, &fx.g, &j, &plaintext, &fx.e), PTCP_EREFUSED);
	fx.verdict = SESSION_JOIN_VALID;
	assert_int_equal(ops()->join(&fx.f, &fx.g, &j, &plaintext, &fx.e), 0);
	assert_false(plaintext);
	fx.cipher = PTCP_CIPHER_NONE;
	assert_int_equal(ops()->join(&fx.f, &fx.g, &j, &plaintext, &fx.e), 0);
	assert_true(plaintext);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_started_server, end),
		cmocka_unit_test_teardown(another_server, end),
		cmocka_unit_test_teardown(too_late, end),
		cmocka_unit_test_teardown(streams, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
