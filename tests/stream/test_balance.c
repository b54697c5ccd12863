/* Streams that move between workers while they carry a file: every block arrives, once and whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "draw.h"
#include "stream/balance.h"
#include "stream/stream_impl.h"

#define STREAMS 3
#define FILE_ID ((UINT64_C(1) << 16) | 1)

static struct {
	char path[200];
	struct loop *control;
	struct context context;
	struct tree *tree;
	struct dir *root;
	struct source *source;
	struct sink *sink;
	struct open_files files;
	struct pacer pacer;
	struct stream *sender[STREAMS], *receiver[STREAMS];
	bool verify, paced, ending;
	uint64_t size;
	struct wire_grid grid;
	uint32_t next, written; /* blocks */
	unsigned gone, moves, seen[CONTEXT_WORKERS_MAX];
	struct rng random;
} fx;

static uint8_t *content;

static unsigned draw(unsigned n) { return rng_below(&fx.random, n); }

/* ---- Files ---- */

static struct source *listed(const char *name)
{
	struct walk_entry e;
	struct source *s;
	struct walk *w;

	assert_int_equal(walk_new(&w, NULL, NULL), 0);
	assert_int_equal(walk_add(w, fx.root, name, NULL), 0);
	assert_int_equal(walk_next(w, &e, NULL), 1);
	s = source_new(&e);
	walk_free(w);
	return s;
}

static void make_files(void)
{
	const struct meta m = { 0 };
	const struct sink_opts o = { .block_bytes = fx.grid.block_bytes, .has_version = true };
	char path[220];
	uint64_t i;
	int fd;

	content = malloc(fx.size);
	for (i = 0; i < fx.size; i++)
		content[i] = (uint8_t)draw(256);
	snprintf(path, sizeof path, "%s/from", fx.path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, content, fx.size), fx.size);
	close(fd);
	assert_int_equal(tree_open(&fx.tree, fx.path, &sys_real, NULL), 0);
	fx.root = tree_root(fx.tree);
	fx.source = listed("from");
	fx.sink = sink_new(fx.root, "to", fx.size, &m, &o);
	open_files_init(&fx.files);
	open_files_set(&fx.files, FILE_ID, fx.sink, fx.grid);
}

static void compare_files(void)
{
	struct ptcp_err why;
	struct store_item item = { .sink = fx.sink, .why = &why };
	uint8_t *got = malloc(fx.size + 1);
	char path[220];
	int fd;

	open_files_clear(&fx.files, FILE_ID);
	store_complete(&item, 1, STORE_SYNC_NONE);
	assert_int_equal(item.result, 0);
	snprintf(path, sizeof path, "%s/to", fx.path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, got, fx.size + 1), fx.size);
	close(fd);
	assert_memory_equal(got, content, fx.size);
	unlink(path);
	snprintf(path, sizeof path, "%s/from", fx.path);
	unlink(path);
	free(got);
	free(content);
	sink_unref(fx.sink);
	source_unref(fx.source);
	open_files_fini(&fx.files);
	dir_unref(fx.root);
	tree_unref(fx.tree);
}

/* ---- Streams ---- */

/* Any stream, to any worker. */
static void move_some(void)
{
	struct stream *s = (draw(2) ? fx.sender : fx.receiver)[draw(STREAMS)];

	if (s == NULL)
		return;
	fx.seen[stream_worker(s)]++;
	stream_move(s, draw(fx.context.n_workers));
	fx.moves++;
}

static void feed(struct stream *s)
{
	struct stream_job *job;

	while (fx.next < wire_grid_blocks(fx.grid) && (job = stream_free_job(s)) != NULL) {
		job->job.n = 1;
		job->job.extent[0] = (struct snd_extent){ .id = FILE_ID,
		    .offset = (uint64_t)fx.next * fx.grid.block_bytes,
			.block = fx.next, .length = wire_grid_length(fx.grid, fx.next) };
		job->source[0] = source_ref(fx.source);
		fx.next++;
		stream_send(s);
	}
}

static void on_sent(void *arg, struct stream *s, struct stream_job *job)
{
	(void)arg;
	(void)s;
	assert_false(job->failed[0]);
	move_some();
}

static void on_idle(void *arg, struct stream *s)
{
	(void)arg;
	feed(s);
}

static void on_received(void *arg, struct stream *s, struct stream_results *r)
{
	unsigned i;

	(void)arg;
	(void)s;
	for (i = 0; i < r->n; i++)
		assert_int_equal(r->of[i].what, RCV_BLOCK_WRITTEN);
	fx.written += r->n;
	move_some();
	if (fx.written == wire_grid_blocks(fx.grid))
		loop_stop(fx.control);
}

static enum part_holder on_locked(void *arg, uint64_t dev, uint64_t ino, struct mono since, bool alone)
{
	(void)arg;
	(void)dev;
	(void)ino;
	(void)since;
	(void)alone;
	return PART_OF_OTHERS;
}

static void on_lost(void *arg, struct stream *s, const struct ptcp_err *why)
{
	(void)arg;
	(void)s;
	if (!fx.ending) /* then the peers close */
		fail_msg("%s", why->msg);
}

static void on_gone(void *arg, struct stream *s)
{
	(void)arg;
	stream_free(s);
	if (++fx.gone == 2 * STREAMS)
		loop_stop(fx.control);
}

static const struct stream_ops ops = { on_sent, on_idle, on_received, on_locked, on_lost, on_gone, NULL };

static void socket_pair(int fd[2])
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof sa;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(s, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(s, 1), 0);
	assert_int_equal(getsockname(s, (struct sockaddr *)&sa, &n), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&sa, n), 0);
	fd[1] = accept4(s, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	close(s);
}

static struct stream *start_stream(unsigned number, int fd, struct open_files *files)
{
	static const struct chan_ops none = { 0 };
	struct chan_opts c = { .ops = &none };
	struct stream_opts o = { .context = &fx.context, .number = number, .verify = fx.verify, .files = files,
		.pacer = fx.paced && files == NULL ? &fx.pacer : NULL, .only_stream = true, .ops = &ops };
	struct stream *s;

	assert_int_equal(chan_new(&o.chan, NULL, NULL, &fd, &c, NULL), 0);
	assert_int_equal(stream_new(&s, &o, NULL), 0);
	return s;
}

static void remove_all(void)
{
	char command[260];

	snprintf(command, sizeof command, "rm -r '%s'", fx.path);
	assert_int_equal(system(command), 0);
}

/* With at least two workers, however many processors there are. */
static void start(void)
{
	char config[220];

	snprintf(config, sizeof config, "%s/config", fx.path);
	assert_int_equal(loop_new(&fx.control, NULL), 0);
	assert_int_equal(context_init(&fx.context, fx.control, config, 4, 0, 0, NULL), 0);
	while (fx.context.n_workers < 2) {
		assert_int_equal(loop_new(&fx.context.worker[fx.context.n_workers], NULL), 0);
		assert_int_equal(loop_start_thread(fx.context.worker[fx.context.n_workers++], NULL), 0);
	}
	pacer_init(&fx.pacer);
	pacer_set(&fx.pacer, 400 * UINT64_C(1000000), mono_now());
}

static void finish(void)
{
	unsigned i;

	fx.gone = 0;
	fx.ending = true;
	loop_reset(fx.control);
	for (i = 0; i < STREAMS; i++) {
		stream_move(fx.sender[i], draw(fx.context.n_workers)); /* ends while it moves */
		stream_stop(fx.sender[i], false);
		stream_stop(fx.receiver[i], draw(2));
	}
	loop_run(fx.control);
	compare_files();
	context_fini(&fx.context);
	loop_free(fx.control);
	remove_all();
}

static void carry(uint64_t size, bool verify, bool paced)
{
	unsigned i;
	int fd[2];

	memset(&fx, 0, sizeof fx);
	fx.size = size;
	fx.grid = wire_grid_of(size);
	fx.verify = verify;
	fx.paced = paced;
	fx.random = (struct rng){ size };
	snprintf(fx.path, sizeof fx.path, "%s/ptcp-stream.XXXXXX",
	    getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(fx.path));
	start();
	make_files();
	for (i = 0; i < STREAMS; i++) {
		socket_pair(fd);
		fx.sender[i] = start_stream(i, fd[0], NULL);
		fx.receiver[i] = start_stream(i, fd[1], &fx.files);
	}
	for (i = 0; i < STREAMS; i++)
		feed(fx.sender[i]);
	loop_run(fx.control);
	assert_int_equal(fx.written, wire_grid_blocks(fx.grid));
	assert_true(fx.moves >= fx.written / 2);
	assert_true(fx.seen[0] > 0 && fx.seen[1] > 0);
	finish();
}

static void hashed(void **state)
{
	(void)state;
	carry(40000001, true, false);
}

/* Data that the sender does not copy. */
static void direct(void **state)
{
	(void)state;
	carry(40000001, false, false);
}

/* Moves while the timer of a rate limit runs. */
static void paced(void **state)
{
	(void)state;
	carry(20000001, true, true);
	carry(20000001, false, true);
}

/* New streams spread over the workers, whichever have ended. */
static void placed(void **state)
{
	unsigned i, on[CONTEXT_WORKERS_MAX] = { 0 };
	struct stream *s[4];
	int fd[2];

	(void)state;
	memset(&fx, 0, sizeof fx);
	snprintf(fx.path, sizeof fx.path, "%s/ptcp-stream.XXXXXX",
	    getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(fx.path));
	start();
	fx.ending = true;
	fx.size = 1000;
	fx.grid = wire_grid_of(fx.size);
	make_files();
	for (i = 0; i < 4; i++) {
		socket_pair(fd);
		s[i] = start_stream(i, fd[0], NULL);
		close(fd[1]);
		on[stream_worker(s[i])]++;
	}
	for (i = 0; i < fx.context.n_workers; i++)
		assert_in_range(on[i], 4 / fx.context.n_workers, (4 + fx.context.n_workers - 1) / fx.context.n_workers);
	fx.gone = 2 * STREAMS - 4;
	for (i = 0; i < 4; i++)
		stream_stop(s[i], true);
	loop_run(fx.control);
	sink_discard(fx.sink);
	open_files_clear(&fx.files, FILE_ID);
	sink_unref(fx.sink);
	source_unref(fx.source);
	open_files_fini(&fx.files);
	dir_unref(fx.root);
	tree_unref(fx.tree);
	context_fini(&fx.context);
	loop_free(fx.control);
	free(content);
	remove_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashed), cmocka_unit_test(direct), cmocka_unit_test(paced), cmocka_unit_test(placed),
	};

	return cmocka_run_group_tests_name("stream/balance", tests, NULL, NULL);
}
