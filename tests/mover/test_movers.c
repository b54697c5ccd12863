/* A set of movers owns its listener, and all that the set makes for connections of hosts that have not joined yet. */
#include "../net/fixture.h"

#include <netinet/in.h>
#include <sys/socket.h>
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
	struct movers_opts o = { .log = &log, .listen = "127.0.0.1:0", .root = root, .n_roots = 1, .notify = on_notice };
	struct movers *m;
	int fd[STRANGERS];
	unsigned i;

	(void)state;
	assert_int_equal(loop_new(&o.control, NULL), 0);
	assert_int_equal(movers_new(&m, &o, NULL), 0);
	for (i = 0; i < STRANGERS; i++)
		fd[i] = stranger(listener_port(m->listener));
	while (m->host.n_handshakes < STRANGERS)
		loop_run_once(o.control, true);
	assert_non_null(m->host.handshakes);
	movers_free(m);
	loop_free(o.control);
	for (i = 0; i < STRANGERS; i++)
		close(fd[i]);
}

/* Before MOVER only MOVER, then the frames of a mover; each without its fields, and so malformed. */
static void frames_of_movers(void **state)
{
	static const uint8_t of_movers[] = { WIRE_ENDPOINT, WIRE_CONNECTED, WIRE_ACCEPTED, WIRE_HOP, WIRE_LOST, WIRE_GONE,
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
			allowed = type == WIRE_PING || (joined ? memchr(of_movers, (int)type, sizeof of_movers) != NULL : type == WIRE_MOVER);
			assert_int_equal(strncmp(e.msg, allowed ? "malformed" : "unexpected", 9), 0);
			frame_conn_fini(&conn);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { nf_test(ends_with_its_handshakes), cmocka_unit_test(frames_of_movers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
