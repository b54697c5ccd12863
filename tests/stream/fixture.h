/* What the tests of stream share: one stream on a worker of a real context, whose peer is the test at the other end of
 * a TCP connection over loopback, and the reports of the stream. The files are those of store/fixture.h, whose system
 * calls a test can make to fail or wait. */
#ifndef TESTS_STREAM_FIXTURE_H
#define TESTS_STREAM_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/fixture.h"
#include "stream/stream.h"
#include "wire/block.h"

#define SF_RESULTS 1024
#define SF_ID ((UINT64_C(1) << 16) | 1) /* id of the first open file; further ones follow */

struct sf {
	struct loop *control;
	struct context context;
	struct open_files files;
	struct stream_opts o;      /* of sf_start(), for the test to change before */
	struct stream *stream;
	int peer;                  /* the test's end of the connection, blocking */
	/* reports of a receiving stream, in order */
	unsigned n_results;
	struct {
		uint64_t id;
		uint32_t block;
		enum rcv_block_result what;
		uint32_t omitted_bytes;
		uint64_t hash;
		struct digest term;
		struct ptcp_err why;   /* code 0: none */
	} result[SF_RESULTS];
	unsigned n_unknown, n_locked;
	uint64_t unknown;          /* id of the latest question */
	enum part_holder holder;   /* the answer to ops.locked */
	/* of a sending stream */
	unsigned n_sent;
	struct stream_job sent;    /* copy of the latest job; its reasons are below */
	struct ptcp_err unread[SND_JOB_EXTENTS];
	/* of any */
	unsigned n_lost, n_gone;
	struct ptcp_err lost;
};
extern struct sf sf;

/* cmocka setup and teardown: a context; afterwards the stream has ended, and no descriptor stays open. */
int sf_setup(void **state);
int sf_teardown(void **state);
#define sf_test(f) cmocka_unit_test_setup_teardown(f, sf_setup, sf_teardown)

/* Starts the stream of sf.o: with sf.o.files it receives. */
void sf_start(void);
/* Stops the stream and waits for its end; sf_start() may follow. */
void sf_stop(void);
/* Runs the control loop until the counter of reports is n. A test that waits in vain is ended by a signal. */
void sf_wait(const unsigned *count, unsigned n);
/* Waits for the end of the connection, with that code and text. */
void sf_wait_lost(int code, const char *text);

/* Byte `i` of the content of test files. */
uint8_t sf_byte(uint64_t i);
/* A sink of the root for a file of these blocks, with a journal if it has several. */
struct sink *sf_sink(const char *name, struct wire_grid g);

/* Sends a frame of the test's content, with the right check: a chunk of n bytes at `offset`. */
void sf_put(uint64_t id, uint64_t offset, uint32_t n);
/* The same with another status or check. */
void sf_put_end(uint64_t id, uint64_t offset, uint32_t n, uint32_t status, uint64_t check_xor);
void sf_put_raw(const void *p, size_t n);
/* The content hash of a block, and its term, as the receiver must report them. */
uint64_t sf_block_hash(uint64_t offset, uint32_t n);
struct digest sf_term(struct wire_grid g, uint32_t block);

#endif
