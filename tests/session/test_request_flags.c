/* What a transfer does with files, by the flags of its request: a table of rules for files that exist; deletion, hard
 * links, holes, selections, patterns, pipes and a destination that only gains files. Both ends are real, in both
 * directions. */
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/filter.h"
#include "core/selection.h"
#include "store/pipe_sink.h"
#include "store/pipe_source.h"

static void set_time(const char *below, time_t s)
{
	const struct timespec both[2] = { { .tv_sec = s }, { .tv_sec = s } };

	assert_int_equal(utimensat(AT_FDCWD, fx_path(below), both, 0), 0);
}

static void transfer(uint8_t role)
{
	sf_begin(role, 2);
	sf_finish();
	sf_failed(&sf.starter, 0, "");
	sf_failed(&sf.acceptor, 0, "");
}

/* ---- The destination itself ---- */

static struct destination receives;
static bool only_new;

/* As sf_add_files(), but for where the receiver places what it receives. */
static void add_files(struct session *sess)
{
	struct destination place = receives;
	struct ptcp_err e;

	if (engine_snd(sess->engine) != NULL) {
		sf_add_files(sess);
		return;
	}
	place.base = tree_root(sf.to);
	assert_int_equal(session_receive_into(sess, &place, &e), 0);
	if (only_new)
		session_receive_only_new(sess, "client");
}

static void forget_place(void)
{
	receives = (struct destination){ .base = NULL };
	only_new = false;
	sf.starts = sf.serves = NULL;
}

/* A new directory gets the attributes of the source, an existing one with owners only, unless it is a server's root. */
static void the_destination(void **state)
{
	const uint16_t preserve = WIRE_PRESERVE_MODE | WIRE_PRESERVE_TIMES;
	const mode_t mode[] = { 0750, 0500, 02770 };
	bool made, owner, sets;
	struct stat st;
	unsigned i;
	uint8_t role;

	(void)state;
	fx_text("from/a", "source");
	for (i = 0; i < 2 * 2 * 2 * 2 * 3; i++) {
		role = i % 2 == 0 ? WIRE_ACCEPTOR_RECEIVES : WIRE_ACCEPTOR_SENDS;
		receives.contents = made = receives.made = (i / 2) % 2 == 1;
		owner = (i / 4) % 2 == 1;
		only_new = (i / 8) % 2 == 1;
		receives.served = role == WIRE_ACCEPTOR_RECEIVES; /* the root of the server */
		sets = made || (owner && !only_new && role == WIRE_ACCEPTOR_SENDS);
		chmod(fx_path("to"), 0755);
		unlink(fx_path("to/a"));
		set_time("to", 1000);
		chmod(fx_path("from"), mode[i / 16]);
		set_time("from", 2000);
		sf.open.preserve = preserve | (owner ? WIRE_PRESERVE_OWNER : 0);
		sf.starts = sf.serves = add_files;
		transfer(role);
		assert_int_equal(sf.starter.n_failed + sf.starter.n_warnings, 0);
		assert_int_equal(stat(fx_path("to"), &st), 0);
		assert_int_equal(st.st_mode & 07777, sets ? mode[i / 16] & 0777 : 0755);
		assert_true((st.st_mtim.tv_sec == 2000) == sets);
		forget_place();
		sf_again();
	}
	chmod(fx_path("from"), 0755);
	chmod(fx_path("to"), 0755);
}

/* The sender may describe the destination only if it is the directory that receives the entries. */
static void the_destination_of_a_name(void **state)
{
	(void)state;
	fx_text("from/a", "source");
	strcpy(receives.rename, "x");
	sf.serves = add_files;
	transfer(WIRE_ACCEPTOR_RECEIVES);
	assert_int_equal(sf.starter.n_failed, 1);
	assert_non_null(strstr(sf.starter.failed, "the contents of a directory for the name of one file"));
	fx_holds("to/x", "source");
	forget_place();
}

/* ---- Files that exist at the destination ---- */

/* The source has "source" of the time 2000, the destination `there` of that time. */
static void existing_files(void **state)
{
	static const struct {
		uint32_t flags;
		const char *there;     /* NULL: nothing */
		time_t at;
		bool sent;
	} rules[] = {
		{ 0, "source", 2000, false },
		{ 0, "SOURCE", 2000, false },
		{ 0, "source", 1000, true },
		{ 0, "longer source", 2000, true },
		{ 0, NULL, 0, true },
		{ WIRE_OPEN_UPDATE, "SOURCE", 1000, true },
		{ WIRE_OPEN_UPDATE, "longer source", 3000, false },
		{ WIRE_OPEN_SIZE_ONLY, "SOURCE", 1000, false },
		{ WIRE_OPEN_SIZE_ONLY, "longer source", 2000, true },
		{ WIRE_OPEN_IGNORE_EXISTING, "longer source", 1000, false },
		{ WIRE_OPEN_IGNORE_EXISTING, NULL, 0, true },
		{ WIRE_OPEN_EXISTING, NULL, 0, false },
		{ WIRE_OPEN_EXISTING, "longer source", 1000, true },
		{ WIRE_OPEN_IGNORE_TIMES, "SOURCE", 2000, true },
		{ WIRE_OPEN_CHECKSUM | WIRE_OPEN_VERIFY, "SOURCE", 2000, true },
		{ WIRE_OPEN_CHECKSUM | WIRE_OPEN_VERIFY, "source", 1000, false },
	};
	const uint32_t flags = sf.open.flags;
	uint8_t role;
	size_t i;

	(void)state;
	fx_text("from/a", "source");
	set_time("from/a", 2000);
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_SENDS; role++)
		for (i = 0; i < sizeof rules / sizeof *rules; i++) {
			unlink(fx_path("to/a"));
			if (rules[i].there != NULL) {
				fx_text("to/a", rules[i].there);
				set_time("to/a", rules[i].at);
			}
			sf.open.flags = flags | rules[i].flags;
			transfer(role);
			if (rules[i].sent || rules[i].there != NULL)
				fx_holds("to/a", rules[i].sent ? "source" : rules[i].there);
			else
				assert_false(fx_exists("to/a"));
			assert_int_equal(sf.starter.n_done, rules[i].sent);
			sf_again();
		}
}

static void attributes(void **state)
{
	struct stat st;

	(void)state;
	fx_text("from/a", "x");
	chmod(fx_path("from/a"), 0751);
	set_time("from/a", 1234567);
	transfer(WIRE_ACCEPTOR_RECEIVES);
	assert_int_equal(stat(fx_path("to/a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0751);
	assert_int_equal(st.st_mtime, 1234567);
	sf_again();
	unlink(fx_path("to/a"));
	sf.open.flags = 0;
	sf.open.preserve = 0;
	transfer(WIRE_ACCEPTOR_RECEIVES);
	assert_int_equal(stat(fx_path("to/a"), &st), 0);
	assert_true(st.st_mtime != 1234567);
}

/* ---- Deletion ---- */

static void removes_what_the_source_has_not(void **state)
{
	uint8_t role;

	(void)state;
	sf.open.flags |= WIRE_OPEN_DELETE;
	sf.open.max_delete = 100;
	fx_text("from/a", "a");
	fx_mkdir("from/d");
	fx_text("from/d/b", "b");
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_SENDS; role++) {
		fx_text("to/extra", "x");
		if (!fx_exists("to/d"))
			fx_mkdir("to/d");
		fx_mkdir("to/d/more");
		fx_text("to/d/more/y", "y");
		transfer(role);
		assert_int_equal(sf.starter.n_deleted, 3);
		assert_false(fx_exists("to/extra") || fx_exists("to/d/more"));
		fx_holds("to/d/b", "b");
		assert_int_equal(fx_count("to"), 2);
		sf_again();
	}
}

/* More than permitted: nothing is removed, and the user learns it. */
static void removes_no_more_than_permitted(void **state)
{
	(void)state;
	sf.open.flags |= WIRE_OPEN_DELETE;
	sf.open.max_delete = 1;
	fx_text("from/a", "a");
	fx_text("to/x", "x");
	fx_text("to/y", "y");
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish();
	assert_int_equal(sf.starter.n_deleted, 0);
	assert_true(fx_exists("to/x") && fx_exists("to/y"));
	sf_failed(&sf.starter, PTCP_EIO, "more than 1 files and directories to delete: none is deleted");
}

static void fill(const char *dir, unsigned n)
{
	char name[60];

	if (!fx_exists(dir))
		fx_mkdir(dir);
	while (n-- > 0) {
		snprintf(name, sizeof name, "%s/%u", dir, n);
		fx_text(name, "x");
	}
}

/* Full directories in place of files and of a link, one after the other; if the session ends meanwhile, the next one
 * goes on. */
static void directories_make_way(void **state)
{
	struct ptcp_err why = { .code = PTCP_ECANCELED, .msg = "enough" };
	char link[10];
	uint8_t role;

	(void)state;
	sf.open.flags |= WIRE_OPEN_DELETE;
	sf.open.preserve |= WIRE_PRESERVE_LINKS;
	sf.open.max_delete = 10000;
	fx_text("from/a", "a");
	fx_text("from/b", "b");
	fx_text("from/d", "d");
	assert_int_equal(symlink("a", fx_path("from/c")), 0);
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_SENDS; role++) {
		fill("to/a", 700);
		fill("to/b", 600);
		fill("to/c", 500);
		sf_begin(role, 2);
		while (!sf_both_run() || sf.starter.n_deleted == 0)
			loop_run_once(sf.control, true);
		session_cancel(sf.starter.session, &why);
		sf_finish();
		assert_true(sf.starter.n_deleted < 1800);
		sf_again();
		transfer(role);
		assert_true(sf.starter.n_deleted > 0 && sf.starter.n_deleted <= 1800);
		fx_holds("to/a", "a");
		fx_holds("to/b", "b");
		assert_int_equal(readlink(fx_path("to/c"), link, sizeof link), 1);
		assert_int_equal(fx_count("to"), 4);
		assert_true(unlink(fx_path("to/a")) == 0 && unlink(fx_path("to/b")) == 0 &&
		    unlink(fx_path("to/c")) == 0);
		sf_again();
	}
}

/* ---- Leftovers ---- */

/* A part file of a source that is gone is reported, not one that this transfer completes. */
static void leftovers(void **state)
{
	struct ptcp_err why = { .code = PTCP_ECANCELED, .msg = "enough" };
	struct timetable slow = { .n = 0 };

	(void)state;
	assert_int_equal(pacing_parse(&slow, "20Mbit/s", NULL), 0);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &slow, sf.control, NULL), 0);
	sf_file("a", 24 << 20);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	while (!sf_both_run() || session_progress(sf.acceptor.session).wire_bytes < 600000)
		loop_run_once(sf.control, true);
	session_cancel(sf.starter.session, &why);
	sf_finish();
	assert_true(fx_count("to") > 0);
	assert_false(fx_exists("to/a"));
	sf_again();
	memset(&slow, 0, sizeof slow);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &slow, sf.control, NULL), 0);
	rename(fx_path("from/a"), fx_path("a"));
	fx_text("from/b", "b");
	transfer(WIRE_ACCEPTOR_RECEIVES);
	assert_true(sf.starter.n_leftovers > 0);
	sf_again();
	rename(fx_path("a"), fx_path("from/a"));
	transfer(WIRE_ACCEPTOR_RECEIVES);
	assert_int_equal(sf.starter.n_leftovers, 0);
	sf_same("a");
	assert_int_equal(fx_count("to"), 2);
}

/* With the command that removes them, of which an older time limit is a part. */
static void text_of_leftovers(void **state)
{
	const struct {
		struct wire_leftovers f;
		const char *text;
	} cases[] = {
		{ { 1, 1 << 20, 0 }, "1 leftover of interrupted transfers, " },
		{ { 3, 1 << 20, 0 }, "3 leftovers of interrupted transfers, " },
		{ { 3, 1 << 20, 10 * 24 * 3600 * UINT64_C(1000) }, "(remove with: ptcp clean host:/data" },
	};
	char out[SESSION_LEFTOVERS_BYTES];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_non_null(strstr(session_leftovers_text(out, &cases[i].f, "host:/data"), cases[i].text));
}

/* Without resuming, the part of the earlier run does not count. */
static void from_scratch(void **state)
{
	struct ptcp_err why = { .code = PTCP_ECANCELED, .msg = "enough" };
	struct timetable slow = { .n = 0 };

	(void)state;
	assert_int_equal(pacing_parse(&slow, "20Mbit/s", NULL), 0);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &slow, sf.control, NULL), 0);
	sf_file("a", 12 << 20);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	while (!sf_both_run() || session_progress(sf.acceptor.session).wire_bytes < 600000)
		loop_run_once(sf.control, true);
	session_cancel(sf.starter.session, &why);
	sf_finish();
	sf_again();
	memset(&slow, 0, sizeof slow);
	assert_int_equal(pacing_set(&sf.starter.context.pacing, &slow, sf.control, NULL), 0);
	sf.open.flags |= WIRE_OPEN_NO_RESUME;
	transfer(WIRE_ACCEPTOR_RECEIVES);
	assert_true(sf.starter.at_end.wire_bytes >= 12 << 20);
	sf_same("a");
}

/* ---- Shape of files ---- */

static void hard_links(void **state)
{
	struct stat a, b, c;
	uint8_t role;

	(void)state;
	sf_file("a", 500000);
	fx_mkdir("from/d");
	assert_int_equal(link(fx_path("from/a"), fx_path("from/d/b")), 0);
	assert_int_equal(link(fx_path("from/a"), fx_path("from/c")), 0);
	for (role = WIRE_ACCEPTOR_RECEIVES; role <= WIRE_ACCEPTOR_SENDS; role++) {
		transfer(role);
		assert_int_equal(stat(fx_path("to/a"), &a), 0);
		assert_int_equal(stat(fx_path("to/d/b"), &b), 0);
		assert_int_equal(stat(fx_path("to/c"), &c), 0);
		assert_true(a.st_ino == b.st_ino && b.st_ino == c.st_ino);
		assert_int_equal(a.st_nlink, 3);
		assert_true(sf.starter.at_end.wire_bytes < 3 * 500000); /* not the content of each name */
		sf_same("a");
		sf_again();
		unlink(fx_path("to/a"));
		unlink(fx_path("to/c"));
		unlink(fx_path("to/d/b"));
	}
}

/* Holes do not travel. */
static void holes(void **state)
{
	int fd;

	(void)state;
	fx_text("from/sparse", "begins");
	fd = open(fx_path("from/sparse"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 40 << 20), 0);
	assert_int_equal(pwrite(fd, "ends", 4, (40 << 20) - 4), 4);
	close(fd);
	sf_begin(WIRE_ACCEPTOR_RECEIVES, 2);
	sf_finish_well();
	assert_int_equal(sf.starter.at_end.file_bytes, 40 << 20);
	assert_true(sf.starter.at_end.wire_bytes < 20 << 20);
}

/* ---- Parts of a tree ---- */

static void tree(void)
{
	fx_mkdir("from/d");
	fx_mkdir("from/e");
	fx_text("from/d/one.c", "1");
	fx_text("from/d/two.o", "2");
	fx_text("from/e/three.c", "3");
	fx_text("from/four.o", "4");
}

static struct filter *filter;

static void starts_filtered(struct session *sess)
{
	assert_int_equal(session_send_filtered(sess, filter, false, NULL), 0);
	sf_add_files(sess);
}

static void filtered(void **state)
{
	(void)state;
	tree();
	assert_int_equal(filter_new(&filter, NULL, NULL), 0);
	assert_int_equal(filter_add_pattern(filter, false, "*.o", NULL), 0);
	sf.starts = starts_filtered;
	transfer(WIRE_ACCEPTOR_RECEIVES);
	assert_int_equal(sf.starter.n_done, 2);
	fx_holds("to/d/one.c", "1");
	fx_holds("to/e/three.c", "3");
	assert_false(fx_exists("to/d/two.o") || fx_exists("to/four.o"));
	sf_end();
	filter_free(filter);
}

static struct selection *selection;

static void starts_selecting(struct session *sess)
{
	session_select(sess, selection);
	sf_add_files(sess);
}

/* A starter that receives names entries of the source. */
static void selected(void **state)
{
	(void)state;
	tree();
	assert_int_equal(selection_new(&selection, NULL, NULL), 0);
	assert_int_equal(selection_add(selection, "e", 1, NULL), 0);
	assert_int_equal(selection_add(selection, "d/two.o", 7, NULL), 0);
	assert_int_equal(selection_sort(selection, NULL), 0);
	sf.open.flags |= WIRE_OPEN_SELECTED;
	sf.starts = starts_selecting;
	transfer(WIRE_ACCEPTOR_SENDS);
	assert_int_equal(sf.starter.n_done, 2);
	fx_holds("to/d/two.o", "2");
	fx_holds("to/e/three.c", "3");
	assert_false(fx_exists("to/d/one.c") || fx_exists("to/four.o"));
	sf_end();
	selection_free(selection);
}

/* ---- A destination that only gains files ---- */

static void serves_write_once(struct session *sess)
{
	sf_add_files(sess);
	session_receive_only_new(sess, "SHA256:client");
}

static void only_new_files(void **state)
{
	(void)state;
	fx_text("from/a", "new");
	fx_text("from/b", "changed");
	fx_text("to/b", "kept");
	sf.serves = serves_write_once;
	transfer(WIRE_ACCEPTOR_RECEIVES);
	fx_holds("to/a", "new");
	fx_holds("to/b", "kept");
	assert_int_equal(sf.starter.n_done, 1);
	assert_int_equal(sf.starter.n_failed, 1);
	assert_int_equal(strncmp(sf.starter.failed, "b: ", 3), 0);
}

/* ---- Pipes ---- */

#define PIPE_BYTES 3000000u

static struct { int fd; bool writes; uint64_t n, sum; } end_of_pipe;

/* The program at the other end of the pipe. */
static void *use_pipe(void *arg)
{
	uint8_t b[4096];
	ssize_t n;
	unsigned i;

	(void)arg;
	while (end_of_pipe.writes ? end_of_pipe.n < PIPE_BYTES : true) {
		for (i = 0; end_of_pipe.writes && i < sizeof b; i++)
			b[i] = (uint8_t)(end_of_pipe.n + i * 7);
		n = end_of_pipe.writes ? write(end_of_pipe.fd, b, sizeof b) : read(end_of_pipe.fd, b, sizeof b);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++)
			end_of_pipe.sum = end_of_pipe.sum * 31 + b[i];
		end_of_pipe.n += (uint64_t)n;
	}
	close(end_of_pipe.fd);
	return NULL;
}

static pthread_t begin_pipe(int *ours, bool writes)
{
	pthread_t t;
	int fd[2];

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	memset(&end_of_pipe, 0, sizeof end_of_pipe);
	end_of_pipe.writes = writes;
	end_of_pipe.fd = fd[writes];
	*ours = fd[!writes];
	assert_int_equal(pthread_create(&t, NULL, use_pipe, NULL), 0);
	return t;
}

static struct pipe_source *input;
static struct pipe_sink *output;

static void starts_with_input(struct session *sess) { assert_int_equal(session_send_pipe(sess, input, NULL), 0); }
static void starts_with_output(struct session *sess) { assert_int_equal(session_receive_pipe(sess, output, NULL), 0); }

/* An input of unknown size becomes a file, which then goes to an output. */
static void from_and_to_pipes(void **state)
{
	struct pipe_source_opts o = { .block_bytes = 256 << 10, .max_blocks = 8, .max_bytes = UINT64_C(1) << 40 };
	uint64_t n, sum;
	pthread_t t;
	int fd;

	(void)state;
	t = begin_pipe(&fd, true);
	o.fd = fd;
	assert_int_equal(pipe_source_new(&input, &o, NULL), 0);
	sf.starts = starts_with_input;
	transfer(WIRE_ACCEPTOR_RECEIVES);
	pthread_join(t, NULL);
	sf_again();
	pipe_source_free(input);
	close(fd);
	n = end_of_pipe.n;
	sum = end_of_pipe.sum;
	assert_true(n >= PIPE_BYTES);
	assert_int_equal(fx_read("to/-", NULL, 0), n);

	rename(fx_path("to/-"), fx_path("from/x"));
	t = begin_pipe(&fd, false);
	assert_int_equal(pipe_sink_new(&output, fd, 4 << 20, NULL), 0);
	sf.starts = starts_with_output;
	transfer(WIRE_ACCEPTOR_SENDS);
	sf_again();
	pipe_sink_free(output);
	close(fd);
	pthread_join(t, NULL);
	assert_true(end_of_pipe.n == n && end_of_pipe.sum == sum);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		sf_test(the_destination), sf_test(the_destination_of_a_name),
		sf_test(existing_files), sf_test(attributes), sf_test(removes_what_the_source_has_not),
		sf_test(removes_no_more_than_permitted), sf_test(directories_make_way), sf_test(leftovers),
		cmocka_unit_test(text_of_leftovers), sf_test(from_scratch), sf_test(hard_links), sf_test(holes),
		sf_test(filtered), sf_test(selected), sf_test(only_new_files), sf_test(from_and_to_pipes),
	};

	return cmocka_run_group_tests_name("session/request_flags", tests, NULL, NULL);
}
