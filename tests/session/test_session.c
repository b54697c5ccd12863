/* Both ends of a session, with real files and connections: transfers in either direction, lost connections, and
 * ends. */
#include "fixture.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/units.h"

#define LARGE (24u << 20)

/* ---- Transfers ---- */

static void a_starter_sends(void **state)
{
	(void)state;
	sf_file("a", 3000000);
	sf_file("b", 1);
	sf_file("empty", 0);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 3);
	sf_finish_well();
	assert_int_equal(sf.starter.n_done, 3);
	assert_int_equal(sf.starter.at_end.file_bytes, 3000001);
	assert_int_equal(sf.starter.at_end.files, 3);
	assert_true(sf.starter.at_end.total_known);
	assert_int_equal(sf.starter.at_end.total_bytes, 3000001);
	assert_true(sf.starter.at_end.wire_bytes >= 3000001);
	assert_int_equal(fx_count("to"), 3); /* and no part file */
}

/* Entries are offered before the acceptor has answered. */
static void an_early_starter(void **state)
{
	(void)state;
	sf.early = true;
	sf_file("a", 3000000);
	sf_file("b", 1);
	fx_mkdir("from/d");
	fx_text("from/d/c", "below");
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 3);
	sf_finish_well();
	assert_int_equal(sf.starter.n_done, 3);
	fx_holds("to/d/c", "below");
	assert_memory_equal(session_id(sf.starter.session), session_id(sf.acceptor.session), WIRE_SESSION_BYTES);
	assert_int_equal(session_cipher(sf.starter.session), PTCP_CIPHER_AES128GCM);
}

static void early_and_refused(void **state)
{
	(void)state;
	sf.early = true;
	sf_file("a", 3000000);
	err_set(&sf.refusal, PTCP_EREFUSED, "not for you");
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 3);
	sf_finish();
	sf_failed(&sf.starter, PTCP_EREFUSED, "not for you");
	assert_int_equal(fx_count("to"), 0);
	assert_int_equal(sf.starter.n_done, 0);
}

static void a_starter_receives(void **state)
{
	(void)state;
	sf_file("a", 3000000);
	sf_file("b", 70000);
	sf_begin(WIRE_ACCEPTOR_SENDS, 2);
	sf_finish_well();
	assert_int_equal(sf.starter.n_done, 2);
	assert_int_equal(sf.starter.at_end.file_bytes, 3070000);
	assert_int_equal(fx_count("to"), 2);
}

static void nothing_to_send(void **state)
{
	(void)state;
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 4);
	sf_finish_well();
	assert_int_equal(sf.starter.n_files, 0);
	assert_int_equal(fx_count("to"), 0);
}

static void trees(void **state)
{
	char at[100];

	(void)state;
	fx_mkdir("from/d");
	fx_mkdir("from/d/e");
	fx_text("from/d/e/f", "below");
	fx_text("from/d/g", "beside");
	assert_int_equal(symlink("e/f", fx_path("from/d/link")), 0);
	fx_mkdir("from/nothing");
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish_well();
	fx_holds("to/d/e/f", "below");
	fx_holds("to/d/g", "beside");
	assert_int_equal(readlink(fx_path("to/d/link"), at, sizeof at), 3);
	assert_memory_equal(at, "e/f", 3);
	assert_true(fx_exists("to/nothing"));
}

static void plaintext(void **state)
{
	(void)state;
	sf.open.cipher = PTCP_CIPHER_NONE;
	sf_file("a", 5000000);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish_well();
	assert_int_equal(session_cipher(sf.starter.session), PTCP_CIPHER_NONE);
	assert_true(sf.n_joins > 0);
}

/* Blocks travel between the frames of the only connection. */
static void one_channel(void **state)
{
	uint8_t role;

	(void)state;
	sf_file("a", 5000000);
	sf_file("b", 100);
	sf.starter.o.one_channel = sf.acceptor.o.one_channel = true;
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_SENDS; role++) {
		sf_begin(role, 4);
		sf_finish_well();
		assert_int_equal(sf.starter.n_done, 2);
		assert_int_equal(sf.n_joins, 0);
		assert_int_equal(sf.starter.at_end.max_streams, 1);
		sf_again();
		unlink(fx_path("to/a"));
		unlink(fx_path("to/b"));
	}
}

static void up_to_date(void **state)
{
	(void)state;
	sf_file("a", 3000000);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish_well();
	sf_again();
	sf_file("b", 1000);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish_well();
	assert_int_equal(sf.starter.n_done, 1); /* the other one was complete */
	assert_true(sf.starter.at_end.wire_bytes < 100000);
}

static void dry_run(void **state)
{
	(void)state;
	sf.open.flags |= WIRE_OPEN_DRY_RUN;
	sf.starter.o.linger_ns = 0;
	sf_file("a", 3000000);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish();
	sf_failed(&sf.starter, 0, "");
	assert_int_equal(fx_count("to"), 0);
}

/* A server may not choose names. */
static void unrequested_names(void **state)
{
	(void)state;
	sf.source = "d/b";
	sf_file("a", 1000);
	sf_file("b", 1000);
	sf_begin(WIRE_ACCEPTOR_SENDS, 2);
	sf_finish();
	sf_failed(&sf.starter, 0, "");
	assert_true(sf.starter.n_done == 1 && sf.starter.n_failed == 2); /* and the directory itself */
	assert_string_equal(sf.starter.failed, "a: not requested");
	assert_false(fx_exists("to/a"));
	sf_same("b");
}

/* The receiver compares the content of files that look the same. */
static void verify(void **state)
{
	struct timespec same[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };

	(void)state;
	sf.open.flags |= WIRE_OPEN_VERIFY | RULE_CHECKSUM; /* size and time do not suffice */
	fx_text("from/a", "the true content");
	fx_text("from/b", "the same content");
	fx_text("to/a", "another  content");
	fx_text("to/b", "the same content");
	utimensat(0, fx_path("from/a"), same, 0);
	utimensat(0, fx_path("to/a"), same, 0);
	utimensat(0, fx_path("from/b"), same, 0);
	utimensat(0, fx_path("to/b"), same, 0);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish_well();
	assert_int_equal(sf.starter.n_done, 1);
}

/* ---- Number of streams ---- */

/* A rate that gives the test time: a transfer of LARGE takes ten seconds. */
static void slow_down(void)
{
	static struct timetable t;

	assert_int_equal(pacing_parse(&t, "20Mbit/s", NULL), 0);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &t, sf.control, NULL), 0);
}

static void fast_again(void)
{
	static const struct timetable none;

	assert_int_equal(pacing_set(&sf.starter.context.pacing, &none, sf.control, NULL), 0);
	if (sf.starter.session != NULL && !sf.starter.gone)
		session_rate_changed(sf.starter.session);
}

static void as_many_as_granted(void **state)
{
	(void)state;
	sf.granted = 2;
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 8);
	sf_finish_well();
	assert_int_equal(sf.starter.at_end.max_streams, 2);
	assert_int_equal(sf.acceptor.at_end.max_streams, 2);
	assert_int_equal(sf.n_joins, 2);
}

static void as_many_as_the_starter_wants(void **state)
{
	(void)state;
	sf.starter.o.streams = 3;
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_SENDS, 8);
	sf_finish_well();
	assert_int_equal(sf.starter.at_end.max_streams, 3);
	assert_int_equal(sf.n_joins, 3);
	assert_true(sf.starter.n_streams > 0);
}

static bool three_joined(void) { return sf.n_joins == 3; }

static void refused_streams_are_tried_again(void **state)
{
	(void)state;
	sf.refuses = 4;
	slow_down();
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_SENDS, 3);
	sf_until(three_joined);
	assert_int_equal(sf.refuses, 0);
	fast_again();
	sf_finish_well();
}

static void no_stream_at_all(void **state)
{
	(void)state;
	sf.refuses = UINT32_MAX;
	sf.starter.o.linger_ns = 0;
	sf.starter.o.timeout_ns = 3 * NS_PER_S / 2;
	sf_file("a", 1000);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 1);
	sf_finish();
	if (sf.starter.why.code != PTCP_ETIMEOUT) /* the acceptor has the same limit, and may be the first */
		sf_failed(&sf.starter, PTCP_ECONNECT, "data connections: none for 1.5 s: ");
	assert_true(sf.acceptor.why.code < 0);
	assert_false(fx_exists("to/a"));
}

/* ---- Lost connections ---- */

static bool begun(void)
{
	return sf_both_run() && sf.n_joins > 0 && session_path(sf.starter.session, 0).bytes > 0 &&
	    session_path(sf.acceptor.session, 0).bytes > 0; /* a block is written, and in the journal */
}

static bool both_begun(void) { return begun() && sf.n_joins == 2; }

static void lost_streams_are_replaced(void **state)
{
	uint8_t role;

	(void)state;
	sf_file("a", LARGE);
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_SENDS; role++) {
		slow_down();
		sf_begin(role, 2);
		sf_until(both_begun);
		assert_true(sf_cut_streams() >= 2);
		fast_again();
		sf_finish_well();
		assert_true(sf.n_joins > 2);
		assert_int_equal(sf.starter.n_reconnecting, 0);
		assert_int_equal(sf.starter.at_end.file_bytes, LARGE);
		sf_again();
		unlink(fx_path("to/a"));
	}
}

static bool reconnecting(void) { return sf.starter.n_reconnecting > 0; }

static void a_lost_control_connection_is_replaced(void **state)
{
	uint8_t role;

	(void)state;
	sf_file("a", LARGE);
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_SENDS; role++) {
		slow_down();
		sf_begin(role, 2);
		sf_until(begun);
		sf_cut(session_control_fd(sf.starter.session));
		sf_until(reconnecting);
		assert_int_equal(session_control_fd(sf.starter.session), -1);
		fast_again();
		sf_finish_well();
		assert_int_equal(sf.starter.at_end.file_bytes, LARGE);
		sf_again();
		unlink(fx_path("to/a"));
	}
}

static bool acceptor_is_left(void) { return session_is_abandoned(sf.acceptor.session); }

/* All connections, while the other host cannot be reached: the session waits for its return. */
static void an_outage(void **state)
{
	(void)state;
	slow_down();
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 3);
	sf_until(begun);
	assert_false(session_is_abandoned(sf.acceptor.session));
	sf_unreachable(true);
	sf_cut_streams();
	sf_cut(session_control_fd(sf.starter.session));
	sf_until(acceptor_is_left);
	assert_false(session_over(sf.acceptor.session));
	sf_unreachable(false);
	fast_again();
	sf_finish_well();
	assert_true(sf.starter.n_reconnecting > 0);
}

/* The client does not return: the server's session ends after its time-out, and keeps what it has. */
static void an_outage_without_end(void **state)
{
	(void)state;
	sf.acceptor.o.timeout_ns = sf.starter.o.timeout_ns = NS_PER_S;
	sf.starter.o.linger_ns = NS_PER_S / 2;
	slow_down();
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 3);
	sf_until(begun);
	sf_unreachable(true);
	sf_cut_streams();
	sf_cut(session_control_fd(sf.starter.session));
	sf_finish();
	assert_int_equal(sf.starter.why.code, PTCP_ECONNECT);
	assert_true(sf.acceptor.why.code < 0);
	sf_unreachable(false);
	fast_again();
	sf.acceptor.o.timeout_ns = sf.starter.o.timeout_ns = sf.starter.o.linger_ns = 30 * NS_PER_S;
	sf_again();
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 3);
	sf_finish_well();
	assert_int_equal(fx_count("to"), 1); /* the part has become the file */
}

/* What a running session says of itself, at both ends. */
static void reports(void **state)
{
	struct ptcp_progress g;
	struct session_path p;

	(void)state;
	slow_down();
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_until(both_begun);
	while (!session_progress(sf.starter.session).total_known)
		loop_run_once(sf.control, true);
	g = session_progress(sf.starter.session);
	assert_true(g.total_known && g.total_bytes == LARGE && g.total_files == 1);
	assert_int_equal(g.failed + g.files, 0);
	assert_true(g.streams == 2 && g.max_streams == 2);
	p = session_path(sf.starter.session, 0);
	assert_int_equal(p.streams, 2);
	assert_true(p.bytes > 0 && p.bytes <= LARGE);
	assert_int_equal(session_path(sf.starter.session, 1).streams, 0);
	assert_true(session_control_fd(sf.starter.session) >= 0 && session_control_fd(sf.acceptor.session) >= 0);
	assert_false(session_over(sf.starter.session) || session_over(sf.acceptor.session));
	assert_true(session_is_users(sf.starter.session));
	assert_false(session_is_users(sf.acceptor.session)); /* a peer has requested it */
	fast_again();
	sf_finish_well();
	assert_true(session_path(sf.starter.session, 0).bytes >= LARGE); /* blocks may go twice */
	assert_true(session_path(sf.acceptor.session, 0).bytes >= LARGE);
}

static void without_replacement(void **state)
{
	(void)state;
	sf.starter.o.linger_ns = 0;
	slow_down();
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_until(begun);
	sf_cut(session_control_fd(sf.starter.session));
	sf_finish();
	sf_failed(&sf.starter, PTCP_EPEER, "control connection: ");
	sf_failed(&sf.acceptor, PTCP_EPEER, "control connection: ");
	assert_int_equal(sf.starter.n_reconnecting, 0);
}

/* ---- Ends ---- */

static void refused(void **state)
{
	(void)state;
	err_set(&sf.refusal, PTCP_EREFUSED, "not that directory");
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish();
	sf_failed(&sf.starter, PTCP_EREFUSED, "not that directory");
	sf_failed(&sf.acceptor, PTCP_EREFUSED, "not that directory");
	assert_false(sf.starter.running || sf.acceptor.running);
}

/* Either end: the other one gets the reason, and the receiver keeps its part for the next run. */
static void canceled(void **state)
{
	static const struct ptcp_err why = { .code = PTCP_ECANCELED, .msg = "enough" };
	unsigned i;

	(void)state;
	sf_file("a", LARGE);
	for (i = 0; i < 2; i++) {
		slow_down();
		sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
		sf_until(begun);
		session_cancel(i == 0 ? sf.starter.session : sf.acceptor.session, &why);
		assert_true(session_over(i == 0 ? sf.starter.session : sf.acceptor.session));
		sf_finish();
		sf_failed(i == 0 ? &sf.starter : &sf.acceptor, PTCP_ECANCELED, "enough");
		sf_failed(i == 0 ? &sf.acceptor : &sf.starter, PTCP_EPEER, "enough");
		assert_false(fx_exists("to/a"));
		assert_true(fx_count("to") > 0);
		sf_again();
	}
	fast_again();
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish_well();
	assert_int_equal(fx_count("to"), 1);
}

/* Whether a file in "to" that is not complete is locked by the session. */
static bool has_locked_its_part(const struct session *sess)
{
	struct stat st;
	struct dirent *d;
	DIR *all = opendir(fx_path("to"));
	char at[300];
	bool locked = false;

	while ((d = readdir(all)) != NULL) {
		snprintf(at, sizeof at, "to/%s", d->d_name);
		locked |= d->d_name[1] != '\0' && stat(fx_path(at), &st) == 0 && session_has_locked(sess,
		    st.st_dev, st.st_ino);
	}
	closedir(all);
	return locked;
}

static void yields_to_a_newer_run(void **state)
{
	struct stat st;

	(void)state;
	slow_down();
	sf_file("a", LARGE);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_until(begun);
	assert_int_equal(stat(fx_path("from/a"), &st), 0);
	assert_false(session_has_locked(sf.acceptor.session, st.st_dev, st.st_ino)); /* the source */
	assert_true(has_locked_its_part(sf.acceptor.session));
	assert_false(has_locked_its_part(sf.starter.session)); /* which sends */
	session_yield(sf.acceptor.session);
	sf_finish();
	sf_failed(&sf.starter, PTCP_ESUPERSEDED, "a newer run");
	sf_failed(&sf.acceptor, PTCP_ESUPERSEDED, "a newer run");
}

static void waits(struct session *sess)
{
	session_wait(sess, 3);
}

static bool waiting(void) { return sf.starter.n_waiting == 3; }

static void a_busy_acceptor(void **state)
{
	(void)state;
	sf.opens = waits;
	sf.open.wait_ms = 60000;
	sf_file("a", 1000);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_until(waiting);
	assert_false(sf.starter.running);
	session_accept(sf.acceptor.session, 1, sf.open.cipher, true);
	sf_finish_well();
	assert_true(session_sources_expanded(sf.starter.session));
}

/* What a session takes from the memory of its client is given back with the session. */
static void memory_of_a_client(void **state)
{
	struct memory_budget *budget;
	struct memory_account *account;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(memory_budget_new(&budget, UINT64_C(64) << 20, &e), 0);
	assert_int_equal(memory_account_new(&account, budget, "client", &e), 0);
	sf.acceptor.o.memory = account;
	sf_file("a", 3000000);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish_well();
	assert_int_equal(sf.starter.n_done, 1);
	sf_again();
	sf.acceptor.o.memory = NULL;
	memory_account_free(account); /* which asserts that nothing is left in use */
	assert_int_equal(memory_budget_used(budget), 0);
	memory_budget_free(budget);
}

/* ---- Files that fail ---- */

static void a_missing_source(struct session *sess)
{
	struct ptcp_err why = { .code = PTCP_EIO, .msg = "no such file" };

	sf_add_files(sess);
	session_send_missing(sess, "gone/file", &why);
}

static void missing_sources(void **state)
{
	uint8_t role;

	(void)state;
	sf_file("a", 1000);
	sf.starts = sf.serves = NULL;
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_SENDS; role++) {
		*(role == WIRE_ACCEPTOR_RECEIVES ? &sf.starts : &sf.serves) = a_missing_source;
		sf_begin(role, 2);
		sf_finish_well();
		assert_int_equal(sf.starter.n_failed, 1);
		assert_int_equal(sf.starter.at_end.failed, 1);
		assert_string_equal(sf.starter.failed, "gone/file: no such file");
		sf_again();
		sf.starts = sf.serves = NULL;
		unlink(fx_path("to/a"));
	}
}

/* A directory where the file should be: that file fails, with a reason for both users. */
static void a_place_that_is_taken(void **state)
{
	(void)state;
	sf_file("a", 1000);
	sf_file("b", 1000);
	fx_mkdir("to/a");
	fx_mkdir("to/a/below");
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish();
	sf_failed(&sf.starter, 0, "");
	assert_true(sf.starter.n_done == 1 && sf.starter.n_failed == 1 && sf.acceptor.n_failed == 1);
	assert_non_null(strstr(sf.starter.failed, "a: "));
	sf_same("b");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sf_test(a_starter_sends), sf_test(an_early_starter), sf_test(early_and_refused),
		sf_test(a_starter_receives), sf_test(nothing_to_send), sf_test(trees), sf_test(plaintext),
		sf_test(one_channel), sf_test(up_to_date), sf_test(dry_run),
		sf_test(unrequested_names), sf_test(verify),
		sf_test(as_many_as_granted), sf_test(as_many_as_the_starter_wants),
		sf_test(refused_streams_are_tried_again), sf_test(no_stream_at_all),
		sf_test(lost_streams_are_replaced), sf_test(a_lost_control_connection_is_replaced), sf_test(an_outage),
		sf_test(an_outage_without_end), sf_test(without_replacement), sf_test(reports),
		sf_test(refused), sf_test(canceled), sf_test(yields_to_a_newer_run), sf_test(a_busy_acceptor),
		sf_test(memory_of_a_client), sf_test(missing_sources), sf_test(a_place_that_is_taken),
	};

	return cmocka_run_group_tests_name("session/session", tests, NULL, NULL);
}
