/* The limit of bytes that a stream of a measurement may deliver. The test plays the channel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "stream/stream_impl.h"

static struct stream s;
static uint8_t head[WIRE_BLOCK_HEAD_BYTES];
static size_t sent;
static struct ptcp_err lost;

size_t chan_read(struct chan *c, void *p, size_t n)
{
	(void)c;
	n = n < sizeof head - sent ? n : sizeof head - sent;
	memcpy(p, head + sent, n);
	sent += n;
	return n;
}

void chan_pause(struct chan *c, bool pause) { (void)c; (void)pause; }
void chan_read_ahead(struct chan *c, bool ahead) { (void)c; (void)ahead; }
bool chan_holds_input(const struct chan *c) { (void)c; return false; }
bool memory_wanted(const struct memory_claim *c) { (void)c; return false; }
void mailbox_post(struct mailbox *b, struct msg *m) { (void)b; (void)m; }
void loop_post(struct loop *l, struct msg *m) { (void)l; (void)m; }
struct sink *open_files_find(struct open_files *f, const struct wire_block *b, struct wire_chunk *c, bool *ok)
{
	(void)f; (void)b; (void)c;
	*ok = true;
	return NULL;
}
void sink_unref(struct sink *k) { (void)k; }
bool sink_has_journal(const struct sink *k) { (void)k; return false; }

size_t stream_allowance(struct stream *st, size_t want) { (void)st; return want; }
void stream_charge(struct stream *st, size_t n) { (void)st; (void)n; }
void stream_io_begin(struct stream *st) { (void)st; }
void stream_io_done(struct stream *st) { (void)st; }
bool stream_memory_take(struct stream *st) { (void)st; return true; }
bool stream_memory_turn(struct stream *st) { (void)st; return true; }
void stream_memory_give(struct stream *st) { (void)st; }
uint8_t *stream_memory_take_buf(struct stream *st) { (void)st; return NULL; }
void stream_memory_give_buf(struct stream *st, uint8_t *buf) { (void)st; (void)buf; }
void stream_results_post(struct stream *st) { (void)st; }
bool stream_write(struct stream *st) { (void)st; return true; }
bool stream_write_room(struct stream *st) { (void)st; return true; }
bool stream_write_waits(const struct stream *st) { (void)st; return false; }
void stream_write_fini(struct stream *st) { (void)st; }

void stream_result_add(struct stream *st, uint64_t id, uint32_t block, enum rcv_block_result what, struct digest term,
    uint64_t hash, const struct ptcp_err *why)
{
	(void)st; (void)id; (void)block; (void)what; (void)term; (void)hash; (void)why;
}

void stream_fail(struct stream *st, const struct ptcp_err *why)
{
	assert_ptr_equal(st, &s);
	lost = *why;
}

/* The head of a block arrives on a stream that has brought some bytes. */
static void arrives(uint64_t before, uint32_t bytes, uint64_t most, int code)
{
	static const struct stream_ops ops = { .unknown = NULL };
	const struct wire_block b = { .id = 1 << 16, .length_bytes = bytes };
	uint8_t frame[WIRE_BLOCK_HEAD_BYTES + 16 + WIRE_BLOCK_END_BYTES];

	memset(&s, 0, sizeof s);
	memset(&lost, 0, sizeof lost);
	s.o.ops = &ops;
	s.o.max_bytes = most;
	s.received_bytes = before;
	wire_block_encode(frame, &b);
	memcpy(head, frame, sizeof head);
	sent = 0;
	stream_recv_readable(&s);
	assert_int_equal(lost.code, code);
	assert_int_equal(s.received_bytes, before + bytes);
}

static void bytes(void **state)
{
	(void)state;
	arrives(0, 10, 10, 0);
	arrives(UINT64_C(1) << 40, 10, 0, 0); /* no limit */
	arrives(5, 5, 10, 0);
	arrives(5, 6, 10, PTCP_EREFUSED);
	arrives((UINT64_C(1) << 40) - 5, 6, UINT64_C(1) << 40, PTCP_EREFUSED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(bytes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
