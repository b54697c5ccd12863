/* Entries that a host offers to a client that writes to standard output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/receive_impl.h"
#include "store/pipe_sink.h"

static const uint8_t unsized[] = { 0x80, 1, 0, 0 };

static void offered(const struct wire_entry *f, int code)
{
	static struct session s;
	static struct receive_side r;
	uint64_t *claimed = NULL;
	void *cookie = NULL;
	struct ptcp_err e = { 0 };
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	memset(&r, 0, sizeof r);
	s.receive = &r;
	r.session = &s;
	spares_init(&r.entries, NULL, sizeof(struct receive_entry), RECEIVE_ENTRY_BYTES);
	assert_int_equal(pipe_sink_new(&r.pipe, fd[1], 1 << 20, &e), 0);
	assert_int_equal(receive_pipe_prepare(&s, 1 << 16, f, &cookie, &claimed, &e),
	    code == 0 ? RCV_PARTS : RCV_REFUSE);
	assert_int_equal(e.code, code);
	free(claimed);
	receive_entry_free(&s, cookie);
	spares_fini(&r.entries);
	pipe_sink_free(r.pipe);
	close(fd[0]);
	close(fd[1]);
}

static void entries(void **state)
{
	struct wire_entry f = { .id = 1 << 16, .type = WIRE_FILE, .size_bytes = 10,
		.name = { (const uint8_t *)"x", 1 } };

	(void)state;
	offered(&f, 0);
	f.type = WIRE_DIR;
	offered(&f, PTCP_EUSAGE);
	f.type = WIRE_FILE;
	f.size_bytes = 0;
	f.attrs = (struct span){ unsized, sizeof unsized };
	offered(&f, PTCP_EPROTO); /* the output has no room for a file whose end is unknown */
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(entries) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
