/* Movers in threads of the test, with real engines at both ends: they carry the streams of a client, or of a server, in
 * both directions; they join late, are lost, and end. */
#include "../session/fixture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/units.h"
#include "mover/movers_impl.h"
#include "work/work.h"

#define MOVERS 2
#define STREAMS 4
#define LARGE (24u << 20)

static struct {
	struct movers *set;
	char root[2][300], file[300];
	char *roots[2];
	struct movers_base base[2];
	unsigned n_notices;
	char notice[400];
	struct worker {
		bool runs;
		pthread_t thread;
		int result;
		struct ptcp_err why;
	} of[MOVERS];
} movers;

/* ---- The set, and its movers ---- */

static void on_notice(void *arg, const char *text)
{
	(void)arg;
	movers.n_notices++;
	snprintf(movers.notice, sizeof movers.notice, "%s", text);
}

static void *run(void *arg)
{
	const struct ptcp_mover_opts o = { .size = sizeof o, .join = movers.file };
	struct worker *w = arg;

	w->result = mover_work(&o, &w->why);
	return NULL;
}

static void join(unsigned i)
{
	movers.of[i].runs = true;
	assert_int_equal(pthread_create(&movers.of[i].thread, NULL, run, &movers.of[i]), 0);
}

static void left(unsigned i)
{
	if (movers.of[i].runs)
		assert_int_equal(pthread_join(movers.of[i].thread, NULL), 0);
	movers.of[i].runs = false;
}

static int setup(void **state)
{
	unsigned i;

	if (sf_setup(state) != 0)
		return -1;
	memset(&movers, 0, sizeof movers);
	snprintf(movers.root[0], sizeof movers.root[0], "%s", fx_path("from"));
	snprintf(movers.root[1], sizeof movers.root[1], "%s", fx_path("to"));
	snprintf(movers.file, sizeof movers.file, "%s", fx_path("invitation"));
	for (i = 0; i < 2; i++) {
		movers.roots[i] = movers.root[i];
		movers.base[i] = (struct movers_base){ movers.root[i], movers.root[i] };
	}
	return 0;
}

static int teardown(void **state)
{
	unsigned i;

	sf_end();
	movers_free(movers.set);
	for (i = 0; i < MOVERS; i++)
		left(i);
	return sf_teardown(state);
}

static void invite(bool writes, bool serves)
{
	static struct log log;
	struct movers_opts o = { .control = sf.control, .log = &log, .file = movers.file, .listen = "127.0.0.1:0",
		.base = &movers.base[writes], .n_bases = 1, .root = &movers.roots[writes], .n_roots = 1,
		.writes = writes, .serves = serves, .wait_ns = 20 * NS_PER_S, .notify = on_notice };
	struct ptcp_err e;

	if (movers_new(&movers.set, &o, &e) < 0)
		fail_msg("no movers: %s", e.msg);
}

static bool one_joined(void) { return movers_count(movers.set) == 1; }
static bool all_joined(void) { return movers_count(movers.set) == MOVERS; }

static void join_all(void)
{
	unsigned i;

	for (i = 0; i < MOVERS; i++)
		join(i);
	sf_until(all_joined);
}

static void slow_down(const char *rate)
{
	struct timetable t = { .n = 0 };

	assert_int_equal(pacing_parse(&t, rate, NULL), 0);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &t, sf.control, NULL), 0);
	if (sf.starter.session != NULL && !sf.starter.gone)
		session_rate_changed(sf.starter.session);
}

/* Streams of the session that a mover carries. */
static unsigned carried_by(const struct session *sess, const struct mover *m)
{
	unsigned i, n = 0;

	for (i = 0; i < STREAMS; i++)
		n += sess->slot[i].stream != NULL && sess->slot[i].mover == m->id;
	return n;
}

static bool all_connected(void) { return sf_both_run() && sf.starter.session->streams.n_connected == STREAMS; }

/* ---- Of a client ---- */

static void begin(uint8_t role)
{
	invite(role == WIRE_ACCEPTOR_SENDS, false);
	sf.starter.o.movers = movers.set;
	sf.starter.o.fixed_streams = true;
	sf_file("a", LARGE);
	sf_file("b", 70000);
	sf_begin(role, STREAMS);
}

static void a_client_sends(void **state)
{
	struct mover *m;

	(void)state;
	slow_down("20Mbit/s");
	begin(WIRE_ACCEPTOR_RECEIVES);
	join_all();
	sf_until(all_connected);
	assert_true(session_is_striped(sf.starter.session));
	assert_false(session_is_striped(sf.acceptor.session));
	LIST_EACH(&movers.set->movers, m, struct mover, in_list)
		assert_int_equal(carried_by(sf.starter.session, m), STREAMS / MOVERS);
	slow_down("0");
	sf_finish_well();
	assert_int_equal(sf.starter.n_done, 2);
	assert_int_equal(sf.starter.at_end.file_bytes, LARGE + 70000);
	assert_true(movers.n_notices >= MOVERS);
}

static void a_client_receives(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_SENDS);
	join_all();
	sf_finish_well();
	assert_int_equal(sf.starter.n_done, 2);
	assert_int_equal(fx_count("to"), 2);
}

/* The transfer waits for the first mover. */
static void a_late_mover(void **state)
{
	(void)state;
	begin(WIRE_ACCEPTOR_RECEIVES);
	sf_until(sf_both_run);
	assert_int_equal(sf.n_joins, 0);
	assert_int_equal(movers_fault(movers.set, mono_now(), NULL), 0);
	assert_true(movers_deadline(movers.set).ns > mono_now().ns);
	join(0);
	sf_until(one_joined);
	sf_finish_well();
}

static void no_mover(void **state)
{
	struct ptcp_err e;

	(void)state;
	begin(WIRE_ACCEPTOR_RECEIVES);
	sf_until(sf_both_run);
	assert_int_equal(movers_fault(movers.set, movers_deadline(movers.set), &e), PTCP_ECONNECT);
	striping_pump(sf.starter.session, movers_deadline(movers.set));
	assert_true(session_over(sf.starter.session));
	sf_finish();
	sf_failed(&sf.starter, PTCP_ECONNECT, "mover");
}

/* The links of movers to the engine. */
static void cut_links(void)
{
	DIR *all = opendir("/proc/self/fd");
	struct sockaddr_in sa;
	struct dirent *d;
	socklen_t n;

	while ((d = readdir(all)) != NULL) {
		n = sizeof sa;
		if (d->d_name[0] != '.' && getpeername(atoi(d->d_name), (struct sockaddr *)&sa, &n) == 0 &&
		    sa.sin_family == AF_INET && ntohs(sa.sin_port) == listener_port(movers.set->listener))
			sf_cut(atoi(d->d_name));
	}
	closedir(all);
}

static bool none_left(void) { return movers_count(movers.set) == 0; }

/* Movers that are lost end, and their streams with them; another mover continues. */
static void lost_movers(void **state)
{
	(void)state;
	slow_down("20Mbit/s");
	begin(WIRE_ACCEPTOR_RECEIVES);
	join(0);
	sf_until(all_connected);
	cut_links();
	sf_until(none_left);
	left(0);
	assert_true(movers.of[0].result < 0);
	assert_non_null(strstr(movers.of[0].why.msg, "the engine at 127.0.0.1:"));
	assert_false(session_over(sf.starter.session));
	slow_down("0");
	join(1);
	sf_finish_well();
	assert_true(sf.n_joins >= STREAMS + 1);
}

static void lost_movers_of_a_receiver(void **state)
{
	(void)state;
	slow_down("20Mbit/s");
	begin(WIRE_ACCEPTOR_SENDS);
	join(0);
	sf_until(all_connected);
	cut_links();
	sf_until(none_left);
	left(0);
	assert_true(movers.of[0].result < 0);
	slow_down("0");
	join(1);
	sf_finish_well();
}

/* Movers end with the set, and successfully. */
static void the_end(void **state)
{
	unsigned i;

	(void)state;
	begin(WIRE_ACCEPTOR_RECEIVES);
	join_all();
	sf_finish_well();
	sf_end();
	movers_free(movers.set);
	movers.set = NULL;
	for (i = 0; i < MOVERS; i++) {
		left(i);
		if (movers.of[i].result != 0)
			fail_msg("%s", movers.of[i].why.msg);
	}
}

static void the_transfer_is_over(void **state)
{
	(void)state;
	invite(false, false);
	rename(movers.file, fx_path("copy"));
	movers_free(movers.set);
	movers.set = NULL;
	rename(fx_path("copy"), movers.file);
	join(0);
	left(0);
	assert_int_equal(movers.of[0].result, PTCP_ECONNECT);
	unlink(movers.file);
}

static void no_invitation(void **state)
{
	(void)state;
	fx_text("invitation", "this is none\n");
	chmod(fx_path("invitation"), 0600);
	join(0);
	left(0);
	assert_int_equal(movers.of[0].result, PTCP_EUSAGE);
}

/* ---- Of a server ---- */

static void opens(struct session *sess)
{
	session_use_movers(sess, movers.set);
	session_accept(sess, session_reserve(sess, STREAMS, true), PTCP_CIPHER_AES128GCM, false);
}

static void serve(uint8_t role)
{
	invite(role == WIRE_ACCEPTOR_RECEIVES, true);
	join_all();
	sf.opens = opens;
	sf.open.flags |= WIRE_OPEN_MOVERS;
	sf.starter.o.fixed_streams = true;
	sf_file("a", LARGE);
	sf_file("b", 70000);
	sf_begin(role, STREAMS);
	sf_finish_well();
	assert_int_equal(sf.starter.n_done, 2);
	assert_int_equal(sf.n_joins, 0); /* all data connections lead to the movers */
	assert_true(session_is_striped(sf.starter.session));
	assert_false(session_lacks_movers(sf.starter.session));
}

static void a_server_receives(void **state)
{
	(void)state;
	serve(WIRE_ACCEPTOR_RECEIVES);
	assert_true(movers_cover(movers.set, fx_path("to")));
	assert_false(movers_cover(movers.set, fx_path("from")));
}

static void a_server_sends(void **state)
{
	(void)state;
	serve(WIRE_ACCEPTOR_SENDS);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(a_client_sends), test(a_client_receives), test(a_late_mover), test(no_mover), test(lost_movers),
		test(lost_movers_of_a_receiver), test(the_end), test(the_transfer_is_over), test(no_invitation),
		test(a_server_receives), test(a_server_sends),
	};

	return cmocka_run_group_tests_name("work/work", tests, NULL, NULL);
}
