/* Movers of a transfer: which options permit movers, and what the invitation lets movers read or write. */
#include "fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mover/invitation.h"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ptcp-striping.XXXXXX");
	return mkdtemp(dir) != NULL && chdir(dir) == 0 && mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 &&
	    mkdir("c", 0755) == 0 && symlink("a", "link") == 0 &&
	    close(open("a/file", O_CREAT | O_WRONLY, 0644)) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof command, "cd / && rm -rf '%s'", dir);
	return chdir("/") == 0 ? system(command) : -1;
}

static const struct cf_files sends = { true, { "a" }, CF_NO_HOST };
static const struct cf_files receives = { false, { CF_NO_HOST "x" }, "c" };

static struct ptcp_transfer_opts striped(void)
{
	struct ptcp_transfer_opts o = cf_opts();

	o.mover.file = "invitation";
	o.config_dir = dir;
	return o;
}

/* ---- Options ---- */

static void permitted(void **state)
{
	struct ptcp_transfer_opts o = striped();

	(void)state;
	ptcp_task_free(cf_accepted(&o, &sends));
	ptcp_task_free(cf_accepted(&o, &receives));
	cf_refused(&o, &(struct cf_files){ true, { CF_NO_HOST "a" }, "ptcp://127.0.0.1:2/" }, PTCP_ENOTYET,
	    "--movers: between two other hosts");
	o.pipe.fd = 0;
	cf_refused(&o, &(struct cf_files){ true, { "-" }, CF_NO_HOST "a" }, PTCP_EUSAGE,
	    "--movers: not with standard input");
	o = striped();
	o.impact_percent = 0;
	cf_refused(&o, &sends, PTCP_ENOTYET, "--movers: with --impact 0");
	o.streams = 4; /* the number is fixed, so that no stream yields */
	ptcp_task_free(cf_accepted(&o, &sends));
	o = striped();
	o.mover.stripe_bytes = 4096;
	ptcp_task_free(cf_accepted(&o, &sends));
	o.mover.stripe_bytes = 4097;
	cf_refused(&o, &sends, PTCP_EUSAGE, "--stripe-size 4097");
	o.mover.file = NULL;
	o.mover.stripe_bytes = 4096;
	cf_refused(&o, &sends, PTCP_EUSAGE, "--stripe-size: without movers");
}

static void command_of_movers(void **state)
{
	static const char *const hosts[] = { "one", "two" };
	struct ptcp_transfer_opts o = cf_opts();

	(void)state;
	o.mover.ptcp = "/usr/bin/ptcp";
	cf_refused(&o, &sends, PTCP_EUSAGE, "--mover-ptcp: only with --movers");
	o = cf_opts();
	o.mover.listen = "7000";
	cf_refused(&o, &sends, PTCP_EUSAGE, "--movers-listen: without movers");
	o = cf_opts();
	o.mover.hosts = hosts;
	o.mover.n_hosts = 2;
	cf_refused(&o, &sends, PTCP_EUSAGE, "--mover-hosts: only with --movers");
	o.mover.file = "invitation";
	cf_refused(&o, &sends, PTCP_EUSAGE, "--mover-hosts, --mover-file -");
	o.mover.command = "srun";
	cf_refused(&o, &sends, PTCP_EUSAGE, "has no {host}");
	o.mover.command = "ssh {host}";
	ptcp_task_free(cf_accepted(&o, &sends));
	o.mover.n_hosts = 0;
	cf_refused(&o, &sends, PTCP_EUSAGE, "{host} without hosts");
	o.mover.command = " ";
	cf_refused(&o, &sends, PTCP_EUSAGE, "the command is empty");
	o = cf_opts();
	o.mover.file = "-";
	cf_refused(&o, &sends, PTCP_EUSAGE, "need the command");
}

/* ---- The invitation ---- */

/* The invitation of the transfer has these roots, relative to the directory of the test; NULL ends them. */
static void invites(const struct ptcp_transfer_opts *o, const struct cf_files *f, const char *const *root)
{
	struct ptcp_task *t = cf_accepted(o, f);
	struct invitation v;
	struct ptcp_err e;
	char path[PATH_MAX];
	unsigned i;

	if (striping_begin(t, &e) < 0)
		fail_msg("%s", e.msg);
	assert_non_null(t->movers);
	if (invitation_read(&v, movers_invitation(t->movers), 0, &e) < 0)
		fail_msg("%s", e.msg);
	for (i = 0; root[i] != NULL; i++) {
		assert_true(i < v.n_roots);
		snprintf(path, sizeof path, "%s%s%s", dir, root[i][0] != '\0' ? "/" : "", root[i]);
		assert_string_equal(v.root[i], path);
	}
	assert_int_equal(v.n_roots, i);
	assert_int_equal(v.writes, !f->sends);
	assert_int_equal(v.direct_io, o->direct_io);
	assert_false(v.serves);
	invitation_fini(&v);
	ptcp_task_free(t);
	assert_int_equal(access("invitation", F_OK), -1); /* it ends with the transfer */
}
#define ROOTS(...) (const char *const[]){ __VA_ARGS__, NULL }

/* Movers may read the sources, by their real paths, and nothing beside them. */
static void readable(void **state)
{
	static const char *const list[] = { "file" };
	struct ptcp_transfer_opts o = striped();

	(void)state;
	invites(&o, &sends, ROOTS("a"));
	invites(&o, &(struct cf_files){ true, { "a/" }, CF_NO_HOST }, ROOTS("a"));
	invites(&o, &(struct cf_files){ true, { "a/file", "c" }, CF_NO_HOST }, ROOTS("a/file", "c"));
	invites(&o, &(struct cf_files){ true, { "link/file" }, CF_NO_HOST }, ROOTS("a/file"));
	invites(&o, &(struct cf_files){ true, { "a", "missing/x" }, CF_NO_HOST }, ROOTS("a"));
	o.direct_io = true;
	o.files = list;
	o.n_files = 1;
	invites(&o, &sends, ROOTS("a"));
}

/* Of many sources, the directories that hold them. */
static void many_sources(void **state)
{
	enum { N = INVITATION_ROOTS_MAX + 4 };
	static char name[N][24];
	static const char *all[N];
	struct ptcp_transfer_opts o = striped();
	struct ptcp_task *t;
	struct invitation v;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < N; i++) {
		snprintf(name[i], sizeof name[i], "c/%zu", i);
		assert_int_equal(close(open(name[i], O_CREAT | O_WRONLY, 0644)), 0);
		all[i] = name[i];
	}
	assert_int_equal(ptcp_send_new(&t, &o, all, N, CF_NO_HOST, &e), 0);
	assert_int_equal(striping_begin(t, &e), 0);
	assert_int_equal(invitation_read(&v, movers_invitation(t->movers), 0, &e), 0);
	assert_int_equal(v.n_roots, 1);
	assert_string_equal(strrchr(v.root[0], '/'), "/c");
	invitation_fini(&v);
	ptcp_task_free(t);
	for (i = 0; i < N; i++) { /* of too many directories, none is left out */
		snprintf(name[i], sizeof name[i], "a/%zu", i);
		assert_int_equal(mkdir(name[i], 0755), 0);
		strcat(name[i], "/x");
		assert_int_equal(close(open(name[i], O_CREAT | O_WRONLY, 0644)), 0);
	}
	assert_int_equal(ptcp_send_new(&t, &o, all, N, CF_NO_HOST, &e), 0);
	assert_int_equal(striping_begin(t, &e), PTCP_EUSAGE);
	cf_says(&e, "sources in more than 64 directories");
	assert_null(t->movers);
	ptcp_task_free(t);
}

/* Movers may write beneath the destination, or beneath the nearest directory above it that exists. */
static void writable(void **state)
{
	const struct ptcp_transfer_opts o = striped();

	(void)state;
	invites(&o, &receives, ROOTS("c"));
	invites(&o, &(struct cf_files){ false, { CF_NO_HOST "x" }, "a/b/new/file" }, ROOTS("a/b"));
	invites(&o, &(struct cf_files){ false, { CF_NO_HOST "x" }, "link/new//" }, ROOTS("a"));
	invites(&o, &(struct cf_files){ false, { CF_NO_HOST "x" }, "a/file" }, ROOTS("a"));
	invites(&o, &(struct cf_files){ false, { CF_NO_HOST "x" }, "new" }, ROOTS(""));
}

/* The nearest directory may be the root. */
static void the_root(void **state)
{
	const struct ptcp_transfer_opts o = striped();
	struct ptcp_task *t = cf_accepted(&o, &(struct cf_files){ false, { CF_NO_HOST "x" }, "/no-such-ptcp/x" });
	struct invitation v;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(striping_begin(t, &e), 0);
	assert_int_equal(invitation_read(&v, movers_invitation(t->movers), 0, &e), 0);
	assert_int_equal(v.n_roots, 1);
	assert_string_equal(v.root[0], "/");
	invitation_fini(&v);
	ptcp_task_free(t);
}

/* Nothing is started without a source, nor in a dry run, nor without movers. */
static void no_movers(void **state)
{
	struct ptcp_transfer_opts o = striped();
	struct ptcp_task *t = cf_accepted(&o, &(struct cf_files){ true, { "missing/x" }, CF_NO_HOST });
	struct ptcp_event ev = { .n_movers = 7 };
	struct ptcp_err e;

	(void)state;
	assert_int_equal(striping_begin(t, &e), 0);
	assert_null(t->movers);
	striping_show(t, &ev);
	assert_int_equal(ev.n_movers, 0);
	assert_true(striping_may_go_on(t));
	ptcp_task_free(t);
	o.dry_run = true;
	t = cf_accepted(&o, &sends);
	assert_int_equal(striping_begin(t, &e), 0);
	assert_null(t->movers);
	ptcp_task_free(t);
	o = cf_opts();
	t = cf_accepted(&o, &sends);
	assert_int_equal(striping_begin(t, &e), 0);
	assert_null(t->movers);
	ptcp_task_free(t);
}

/* Without a name, the invitation is in the configuration directory, for this user alone. */
static void own_invitation(void **state)
{
	struct ptcp_transfer_opts o = striped();
	struct ptcp_task *t;
	struct ptcp_err e;
	struct stat st;

	(void)state;
	o.mover.file = NULL;
	o.mover.command = "true";
	t = cf_accepted(&o, &sends);
	assert_int_equal(striping_begin(t, &e), 0);
	assert_int_equal(strncmp(movers_invitation(t->movers), dir, strlen(dir)), 0);
	assert_int_equal(stat(movers_invitation(t->movers), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	ptcp_task_free(t);
	assert_int_equal(close(open("invitation", O_CREAT | O_WRONLY, 0644)), 0);
	o = striped(); /* a file of that name is not replaced */
	t = cf_accepted(&o, &sends);
	assert_true(striping_begin(t, &e) < 0);
	cf_says(&e, "invitation");
	ptcp_task_free(t);
	assert_int_equal(access("invitation", F_OK), 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		test(permitted),
		test(command_of_movers),
		test(readable),
		test(many_sources),
		test(writable),
		test(the_root),
		test(no_movers),
		test(own_invitation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
