#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offer.h"
#include "store/owner.h"
#include "store/sink.h"

/* ---- Names, from a service that we play: user uN is N, group gN is N ---- */

static int asked, down;

static int answer(const char *prefix, uint32_t id, char *buf, size_t n)
{
	asked++;
	if (down != 0)
		return down;
	if (id == 7000 && n < 100000) /* a group with many members */
		return ERANGE;
	snprintf(buf, n, "%s%u", prefix, id);
	return 0;
}

static int by_uid(uid_t id, struct passwd *pw, char *buf, size_t n, struct passwd **out)
{
	int r = answer("u", id, buf, n);

	pw->pw_name = buf;
	*out = r == 0 && id < 10000 ? pw : NULL;
	return r;
}

static int by_gid(gid_t id, struct group *gr, char *buf, size_t n, struct group **out)
{
	int r = answer("g", id, buf, n);

	gr->gr_name = buf;
	*out = r == 0 && id < 10000 ? gr : NULL;
	return r;
}

static int by_user(const char *name, struct passwd *pw, char *buf, size_t n, struct passwd **out)
{
	int r = answer("", 0, buf, n);

	pw->pw_uid = (uid_t)atoi(name + 1);
	*out = r == 0 && name[0] == 'u' ? pw : NULL;
	return r;
}

static int by_group(const char *name, struct group *gr, char *buf, size_t n, struct group **out)
{
	int r = answer("", 0, buf, n);

	gr->gr_gid = (gid_t)atoi(name + 1);
	*out = r == 0 && name[0] == 'g' ? gr : NULL;
	return r;
}

static const struct owner_db played = { by_uid, by_user, by_gid, by_group };

static void describes(void **state)
{
	struct owners *o;
	struct owner w;
	uint32_t i;

	(void)state;
	asked = down = 0;
	assert_int_equal(owners_new(&o, &played, NULL, NULL), 0);
	for (i = 0; i < 3; i++) {
		owners_describe(o, 1000, 7000, &w);
		assert_int_equal(w.uid, 1000);
		assert_int_equal(w.gid, 7000);
		assert_string_equal(w.user, "u1000");
		assert_string_equal(w.group, "g7000");
	}
	assert_true(asked <= 1 + 5); /* each once, the large one with more room each time */
	asked = 0;
	owners_describe(o, 0, 0, &w);
	assert_string_equal(w.user, "");
	assert_string_equal(w.group, "");
	assert_int_equal(asked, 0);
	for (i = 0; i < 3; i++) {
		owners_describe(o, 20000, 20000, &w); /* nobody */
		assert_string_equal(w.user, "");
	}
	assert_int_equal(asked, 2);
	for (i = 1; i < 1000; i++) { /* more than are kept */
		char want[20];

		owners_describe(o, i, i + 1, &w);
		snprintf(want, sizeof want, "u%u", i);
		assert_string_equal(w.user, want);
		snprintf(want, sizeof want, "g%u", i + 1);
		assert_string_equal(w.group, want);
	}
	down = EIO;
	owners_describe(o, 5000, 5000, &w);
	assert_string_equal(w.user, "");
	owners_free(o);
	owners_free(NULL);
}

static void resolves(void **state)
{
	static const struct { const char *user, *group; uint32_t uid, gid; int questions; } t[] = {
		{ "u1000", "g1001", 1000, 1001, 2 },
		{ "u1000", "g1001", 1000, 1001, 0 },
		{ "nobody", "none", 77, 88, 2 },   /* unknown: the numbers */
		{ "nobody", "none", 77, 88, 0 },
		{ "", "", 77, 88, 0 },
		{ "u0", "g0", 77, 88, 2 },         /* no name leads to 0 */
		{ "u5\n", "g5:", 77, 88, 0 },
		{ "u/5", "\x1bg5", 77, 88, 0 },
	};
	struct owner w = { .uid = 77, .gid = 88 };
	struct owners *o;
	uint32_t uid, gid;

	(void)state;
	down = 0;
	assert_int_equal(owners_new(&o, &played, NULL, NULL), 0);
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		strcpy(w.user, t[i].user);
		strcpy(w.group, t[i].group);
		asked = 0;
		owners_resolve(o, &w, &uid, &gid);
		assert_int_equal(uid, t[i].uid);
		assert_int_equal(gid, t[i].gid);
		assert_int_equal(asked, t[i].questions);
	}
	w.uid = w.gid = 0; /* root is root everywhere */
	w.user[0] = w.group[0] = '\0';
	owners_resolve(o, &w, &uid, &gid);
	assert_int_equal(uid, 0);
	assert_int_equal(gid, 0);
	owners_free(o);
}

static void the_real_service(void **state)
{
	struct passwd *me = getpwuid(1); /* "daemon" or whoever */
	struct owners *o;
	struct owner w;
	uint32_t uid, gid;

	(void)state;
	if (me == NULL)
		skip();
	assert_int_equal(owners_new(&o, &owner_db_real, NULL, NULL), 0);
	owners_describe(o, 1, 1, &w);
	assert_string_equal(w.user, me->pw_name);
	w.uid = w.gid = 12345;
	owners_resolve(o, &w, &uid, &gid);
	assert_int_equal(uid, 1);
	owners_free(o);
}

/* ---- Setting ---- */

static int at;

static int setup(void **state)
{
	if (fx_tree_setup(state) != 0)
		return -1;
	at = dir_fd(fx_root, NULL);
	fx_text("f", "x");
	return symlink("f", fx_path("l"));
}

static int teardown(void **state)
{
	dir_fd_done(fx_root);
	return fx_tree_teardown(state);
}

#define set_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void is(const char *name, uid_t uid, gid_t gid)
{
	struct stat st;

	assert_int_equal(lstat(fx_path(name), &st), 0);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
}

static void sets(void **state)
{
	fx_needs_linux();
	int fd = open(fx_path("f"), O_RDONLY | O_CLOEXEC), path = open(fx_path("f"), O_PATH | O_CLOEXEC);

	(void)state;
	assert_int_equal(owner_set(fx_root, "f", fd, getuid(), getgid(), NULL), 1);
	if (fx_is_root()) {
		assert_int_equal(owner_set(fx_root, "f", fd, 12, 34, NULL), 1);
		is("f", 12, 34);
		assert_int_equal(owner_set(fx_root, "f", path, 56, 78, NULL), 1);
		is("f", 56, 78);
		assert_int_equal(owner_set_at(fx_root, "l", at, 1, 2, NULL), 1);
		is("l", 1, 2);
		is("f", 56, 78); /* not followed */
		assert_int_equal(owner_set(fx_root, "f", fd, UINT32_MAX, 9, NULL), 0);
		is("f", 56, 9);
	}
	close(fd);
	close(path);
}

static int chowns;
static uid_t last_uid;

/* As for somebody who is in group 34 only. */
static int group_34(int d, const char *p, uid_t uid, gid_t gid, int flags)
{
	(void)d, (void)p, (void)flags;
	chowns++;
	last_uid = uid;
	if (uid == (uid_t)-1 && gid == 34)
		return 0;
	errno = EPERM;
	return -1;
}

static void not_root(void **state)
{
	struct sys sys = sys_real;
	struct tree *t;
	struct dir *d;

	(void)state;
	sys.fchownat = group_34;
	assert_int_equal(tree_open(&t, fx_path(""), &sys, NULL), 0);
	d = tree_root(t);
	chowns = 0;
	assert_int_equal(owner_set(d, "f", at, 12, 34, NULL), 0);
	assert_int_equal(chowns, 2);
	assert_int_equal(last_uid, (uid_t)-1);
	assert_int_equal(owner_set_at(d, "f", at, 12, 35, NULL), 0);
	dir_unref(d);
	tree_unref(t);
}

static void fails(void **state)
{
	struct ptcp_err e;

	(void)state;
	fx_fail_nth(1, EIO);
	assert_int_equal(owner_set_at(fx_root, "f", at, 1, 1, &e), PTCP_EIO);
	assert_int_equal(e.sys, EIO);
	assert_non_null(strstr(e.msg, "f: "));
	fx_fail_always(FX_fchownat, EROFS);
	assert_int_equal(owner_set(fx_root, "f", at, 1, 1, &e), PTCP_EIO);
	fx_fail_always(FX_fchownat, EINVAL); /* not in this user namespace */
	assert_int_equal(owner_set(fx_root, "f", at, 1, 1, &e), 0);
}

static void modes(void **state)
{
	(void)state;
	assert_int_equal(owner_mode(07755, false, true), 0755);
	assert_int_equal(owner_mode(07755, false, false), 0755);
	assert_int_equal(owner_mode(06755, true, true), 06755);
	assert_int_equal(owner_mode(07755, true, false), 01755);
	assert_int_equal(owner_mode(0177777, true, true), 07777);
}

/* ---- As part of what is completed ---- */

static void completed(void **state)
{
	static const struct { bool setid, mine; mode_t mode; } t[] = {
		{ false, true, 0755 }, { true, true, 06755 }, { true, false, 0755 },
	};
	struct owner w = { .user = "u1000", .group = "g1001" };
	struct meta m = { .set_mode = true, .mode = 06755, .owner = &w };
	struct owners *o;
	struct stat st;
	struct sink *s;
	struct dir *d;
	size_t i;

	(void)state;
	if (!fx_is_root())
		skip();
	down = 0;
	assert_int_equal(owners_new(&o, &played, NULL, NULL), 0);
	m.owners = o;
	for (i = 0; i < sizeof t / sizeof *t; i++) {
		m.setid = t[i].setid;
		if (!t[i].mine)
			fx_fail_always(FX_fchownat, i % 2 == 0 ? EPERM : ENOSYS);
		s = sink_new(fx_root, "new", 1, &m, NULL);
		assert_int_equal(sink_write(s, "x", 1, 0, 0, NULL), 0);
		assert_int_equal(offer_commit(s, NULL), 0);
		sink_unref(s);
		assert_int_equal(store_mkdir(fx_root, "d", &m, NULL, NULL), 0);
		d = dir_child(fx_root, "d");
		assert_int_equal(store_dir_finish(d, &m, NULL), 0);
		dir_unref(d);
		assert_int_equal(store_symlink(fx_root, "soft", "f", &m, NULL, NULL), 0);
		fx_heal();
		is("new", t[i].mine ? 1000 : 0, t[i].mine ? 1001 : 0);
		is("soft", t[i].mine ? 1000 : 0, t[i].mine ? 1001 : 0);
		is("f", 0, 0);
		assert_int_equal(lstat(fx_path("new"), &st), 0);
		assert_int_equal(st.st_mode & 07777, t[i].mode);
		assert_int_equal(lstat(fx_path("d"), &st), 0);
		assert_int_equal(st.st_mode & 07777, t[i].mode);
		assert_int_equal(st.st_uid, t[i].mine ? 1000 : 0);
		remove(fx_path("d"));
	}
	owners_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(describes), cmocka_unit_test(resolves), cmocka_unit_test(the_real_service),
		set_test(sets), set_test(not_root), set_test(fails), set_test(completed), cmocka_unit_test(modes),
	};
	return cmocka_run_group_tests_name("store/owner", tests, NULL, NULL);
}
