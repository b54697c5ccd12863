/* A set of movers owns its listener, and all that the set makes for connections of hosts that have not joined yet. */
#include "../net/fixture.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mover/movers_impl.h"

#define STRANGERS 3 /* with handshakes at the same time: more than the control loop carries out */

static void on_notice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* A connection that stays silent. */
static int stranger(unsigned port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

/* The teardown of nf_test() finds the descriptors of a loop that stays. */
static void ends_with_its_handshakes(void **state)
{
	char *root[] = { nf_dir };
	struct log log = { .write = NULL };
	struct movers_opts o = { .log = &log, .listen = "127.0.0.1:0", .root = root, .n_roots = 1,
		.notify = on_notice };
	struct movers *m;
	int fd[STRANGERS];
	unsigned i;

	(void)state;
	assert_int_equal(loop_new(&o.control, NULL), 0);
	assert_int_equal(movers_new(&m, &o, NULL), 0);
	for (i = 0; i < STRANGERS; i++)
		fd[i] = stranger(listener_port(m->listener));
	while (m->context.n_handshakes < STRANGERS)
		loop_run_once(o.control, true);
	assert_non_null(m->context.handshakes);
	movers_free(m);
	loop_free(o.control);
	for (i = 0; i < STRANGERS; i++)
		close(fd[i]);
}

/* Before MOVER only MOVER, then the frames of a mover; each without its fields, and so malformed. */
static void frames_of_movers(void **state)
{
	static const uint8_t of_movers[] = { WIRE_ENDPOINT, WIRE_CONNECTED, WIRE_ACCEPTED, WIRE_HOP,
		WIRE_LOST, WIRE_GONE,
		WIRE_UNREAD, WIRE_SENT, WIRE_TRAFFIC, WIRE_WANT, WIRE_WROTE, WIRE_UNWRITTEN, WIRE_CLOSED };
	uint8_t frame[WIRE_HEADER_BYTES];
	struct frame_conn conn;
	struct ptcp_err e;
	unsigned type, joined;
	bool allowed;

	(void)state;
	for (type = 0; type < 256; type++)
		for (joined = 0; joined <= 1 && wire_type_known(type); joined++) {
			struct mover v = { .joined = joined };

			conn = (struct frame_conn){ .taken = 0 };
			frame_conn_init(&conn, &mover_table, &v, NULL, mono_now());
			wire_header_encode(frame, &(struct wire_header){ (uint8_t)type, WIRE_CRITICAL, 0 });
			assert_int_equal(frame_conn_input(&conn, frame, sizeof frame, mono_now(), &e), PTCP_EPROTO);
			allowed = type == WIRE_PING || (joined ? memchr(of_movers, (int)type,
			    sizeof of_movers) != NULL : type == WIRE_MOVER);
			assert_int_equal(strncmp(e.msg, allowed ? "malformed" : "unexpected", 9), 0);
			frame_conn_fini(&conn);
		}
}

/* ---- The set ---- */

static struct loop *control;

static int new_set(struct movers **out, const char *listen, const char *const *roots, size_t n_roots,
    struct ptcp_err *e)
{
	static struct log log;
	const struct movers_base base = { (char *)"given", (char *)"/absolute" };
	struct movers_opts o = { .control = control, .log = &log, .file = nf_path("invitation"),
		.listen = listen, .base = &base,
		.n_bases = 1, .root = (char *const *)roots, .n_roots = n_roots, .writes = true, .wait_ns = NS_PER_S,
		.notify = on_notice };

	return movers_new(out, &o, e);
}

/* The invitation is a secret of its owner: with the roots, the key and the addresses; it ends with the set. */
static void an_invitation(void **state)
{
	const char *roots[] = { nf_dir, "/absolute" };
	struct movers *m;
	struct invitation v;
	struct ptcp_err e;
	struct stat st;

	(void)state;
	assert_int_equal(loop_new(&control, NULL), 0);
	assert_int_equal(new_set(&m, "127.0.0.1:0", roots, 2, &e), 0);
	assert_string_equal(movers_invitation(m), nf_path("invitation"));
	assert_int_equal(stat(nf_path("invitation"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(invitation_read(&v, nf_path("invitation"), 0, &e), 0);
	assert_true(v.writes && !v.serves);
	assert_int_equal(v.n_roots, 2);
	assert_string_equal(v.root[0], nf_dir);
	assert_int_equal(v.n_addresses, 1);
	assert_int_equal(strncmp(v.address[0], "127.0.0.1:", 10), 0);
	assert_int_equal(atoi(v.address[0] + 10), listener_port(m->listener));
	assert_memory_equal(v.key, m->invitation.key, sizeof v.key);
	assert_string_equal(v.engine, m->context.identity.fingerprint);
	invitation_fini(&v);
	assert_true(movers_cover(m, "given"));       /* its absolute path is a root */
	assert_true(movers_cover(m, nf_dir));
	assert_false(movers_cover(m, "/"));
	assert_false(movers_cover(m, "/nowhere/at/all"));
	movers_free(m);
	assert_int_equal(stat(nf_path("invitation"), &st), -1);
	loop_free(control);
}

static void sets_that_cannot_be(void **state)
{
	const char *roots[INVITATION_ROOTS_MAX + 1];
	struct movers *m;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < INVITATION_ROOTS_MAX + 1; i++)
		roots[i] = nf_dir;
	assert_int_equal(loop_new(&control, NULL), 0);
	assert_int_equal(new_set(&m, "127.0.0.1:0", roots, 0, &e), PTCP_EUSAGE);
	assert_int_equal(new_set(&m, "127.0.0.1:0", roots, INVITATION_ROOTS_MAX + 1, &e), PTCP_EUSAGE);
	assert_non_null(strstr(e.msg, "sources in different directories"));
	assert_true(new_set(&m, "127.0.0.1:99999", roots, 1, &e) < 0);
	assert_non_null(strstr(e.msg, "--movers-listen"));
	loop_free(control);
}

/* Movers count once they have joined. */
static void counted(void **state)
{
	static struct movers set;
	static struct mover v[3] = { { .id = 4, .joined = true, .bytes = 40, .n_streams = 1, .host = "four" },
		{ .id = 5, .host = "five" },
		{ .id = 6, .joined = true, .bytes = 60, .rate_bps = 8e6, .host = "six" } };
	const uint8_t path[4] = { 0 };
	struct ptcp_mover_stats st;
	uint32_t place[4] = { 0 };
	unsigned i;

	(void)state;
	list_init(&set.movers);
	list_init(&set.launchers);
	list_init(&set.sessions);
	for (i = 0; i < 3; i++) {
		v[i].set = &set;
		list_append(&set.movers, &v[i].in_list);
	}
	set.n = 2;
	assert_int_equal(movers_count(&set), 2);
	assert_ptr_equal(movers_find(&set, 4), &v[0]);
	assert_null(movers_find(&set, 5));
	assert_null(movers_find(&set, 7));
	movers_stats(&set, 1, &st);
	assert_string_equal(st.host, "six");
	movers_stats(&set, 2, &st);
	assert_string_equal(st.host, "");
	assert_true(movers_deal(&set, place, 4, path));
	for (i = 0; i < 4; i++)
		assert_true(place[i] == 4 || place[i] == 6);
	assert_int_equal(movers_deadline(&set).ns, MONO_NEVER.ns); /* there are some */
	assert_int_equal(movers_fault(&set, mono_now(), NULL), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { nf_test(ends_with_its_handshakes),
		cmocka_unit_test(frames_of_movers),
		nf_test(an_invitation), nf_test(sets_that_cannot_be), cmocka_unit_test(counted) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
