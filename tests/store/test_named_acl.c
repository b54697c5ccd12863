#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/file_system.h"
#include "offer.h"
#include "store/named_acl.h"
#include "store/sink.h"

/* ---- Hosts that we play: user N is "uN" at the source, and uN has the number N + 100 at the destination ---- */

static int user_name(uid_t id, struct passwd *pw, char *buf, size_t n, struct passwd **out)
{
	snprintf(buf, n, "u%u", id);
	pw->pw_name = buf;
	*out = pw;
	return 0;
}

static int user_id(const char *name, struct passwd *pw, char *buf, size_t n, struct passwd **out)
{
	(void)buf;
	(void)n;
	pw->pw_uid = (uid_t)atoi(name + 1) + 100;
	*out = pw;
	return 0;
}

static int group_name(gid_t id, struct group *gr, char *buf, size_t n, struct group **out)
{
	(void)id;
	(void)gr;
	(void)buf;
	(void)n;
	*out = NULL;
	return 0;
}

static int group_id(const char *name, struct group *gr, char *buf, size_t n, struct group **out)
{
	(void)name;
	return group_name(0, gr, buf, n, out);
}

static const struct owner_db played = { user_name, user_id, group_name, group_id };

static struct owners *hosts;
static struct acl_names names;
static struct xattrs list;

static int setup(void **state)
{
	if (fx_tree_setup(state) != 0 || owners_new(&hosts, &played, NULL, NULL) < 0)
		return -1;
	names = (struct acl_names){ hosts, NULL };
	list = XATTRS_INIT;
	fx_text("f", "x");
	fx_mkdir("d");
	return 0;
}

static int teardown(void **state)
{
	xattrs_fini(&list);
	owners_free(hosts);
	return fx_tree_teardown(state);
}

#define acl_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- Lists ---- */

struct acl {
	uint8_t bytes[100];
	size_t n;
};

/* Owner rwx, the user and the group, owning group `group`, `mask`, others none. */
static struct acl acl_of(uint32_t user, uint32_t group_id_, unsigned group, unsigned mask)
{
	const struct acl_entry entries[] = { { ACL_USER_OBJ, 7, ACL_NOBODY }, { ACL_USER, 6, user },
		{ ACL_GROUP_OBJ, (uint16_t)group, ACL_NOBODY }, { ACL_GROUP, 4, group_id_ },
		{ ACL_MASK, (uint16_t)mask, ACL_NOBODY }, { ACL_OTHER, 0, ACL_NOBODY } };
	struct acl a = { .n = 0 };
	size_t i;

	a.n = acl_begin(a.bytes);
	for (i = 0; i < sizeof entries / sizeof *entries; i++)
		a.n += acl_put(a.bytes + a.n, entries[i]);
	return a;
}

static void give(const char *file, const char *attr, struct acl a)
{
	if (setxattr(fx_path(file), attr, a.bytes, a.n, 0) == 0)
		return;
	if (errno == EOPNOTSUPP)
		skip(); /* this file system has none */
	fail_msg("%s: %s", file, strerror(errno));
}

static void has(const char *file, const char *attr, struct acl want)
{
	uint8_t got[200];
	ssize_t n = getxattr(fx_path(file), attr, got, sizeof got);

	assert_int_equal(n, want.n);
	assert_memory_equal(got, want.bytes, want.n);
}

static bool has_none(const char *file, const char *attr)
{
	return getxattr(fx_path(file), attr, NULL, 0) < 0 && errno == ENODATA;
}

static mode_t mode_of(const char *file)
{
	struct stat st;

	assert_int_equal(stat(fx_path(file), &st), 0);
	return st.st_mode & 07777;
}

static void lists(void **state)
{
	struct acl a = acl_of(5, 6, 7, 5);
	struct acl_entry entry;
	mode_t mode = 0;
	size_t at = 0;

	(void)state;
	assert_true(acl_is_name(ACL_ACCESS) && acl_is_name(ACL_DEFAULT) && !acl_is_name("user.a"));
	assert_true(acl_next(a.bytes, a.n, &at, &entry) && acl_next(a.bytes, a.n, &at, &entry));
	assert_true(entry.tag == ACL_USER && entry.perm == 6 && entry.id == 5);
	assert_true(acl_mode(a.bytes, a.n, &mode));
	assert_int_equal(mode, 0750);
	assert_int_equal(acl_group_mode(a.bytes, a.n, 04777), 04757); /* rwx below the mask r-x */
	a = acl_of(5, 6, 4, 7);
	assert_int_equal(acl_group_mode(a.bytes, a.n, 0770), 0740);
	assert_int_equal(acl_group_mode(a.bytes, ACL_HEADER_BYTES - 1, 0770), 0770);
	for (at = 0, a.bytes[0] = 3; acl_next(a.bytes, a.n, &at, &entry);)
		fail();
	assert_false(acl_mode(a.bytes, a.n, &mode));
}

/* What is read at the source is set at the destination, whose numbers differ; others' entries do not stay. */
static void there_and_back(void **state)
{
	mode_t mode = 0770;
	int fd;

	(void)state;
	fx_needs_linux();
	give("d", ACL_ACCESS, acl_of(5, 6, 4, 7));
	give("d", ACL_DEFAULT, acl_of(7, 8, 0, 5));
	assert_int_equal(xattrs_read(&list, fx_root, "d", XATTR_USER | XATTR_ACL, NULL), 0);
	assert_int_equal(list.n, 2);
	assert_int_equal(acls_describe(&list, &names, fx_root, "d", "d"[0] == 'd', &mode, NULL), 0);
	assert_int_equal(mode, 0740); /* the owning group's, if the list is not kept */
	fx_mkdir("e");
	give("e", ACL_DEFAULT, acl_of(9, 9, 7, 7));
	fd = open(fx_path("e"), O_RDONLY | O_DIRECTORY);
	assert_int_equal(acls_set(&list, &names, fx_root, "e", fd, true, &mode, NULL), 0);
	assert_int_equal(mode, 0770);
	has("e", ACL_ACCESS, acl_of(105, 6, 4, 7));
	has("e", ACL_DEFAULT, acl_of(107, 8, 0, 5));
	assert_int_equal(mode_of("e"), 0770);
	assert_int_equal(acls_set(NULL, &names, fx_root, "e", fd, true, &mode, NULL), 0);
	assert_true(has_none("e", ACL_ACCESS) && has_none("e", ACL_DEFAULT));
	close(fd);
}

/* An inherited list must not stay where the source's cannot be kept, and the mode does not give the mask to the
 * group. */
static void refused(void **state)
{
	struct acl_entry twice[] = { { ACL_USER, 6, 5 }, { ACL_USER, 4, 5 } };
	mode_t mode = 0770;
	struct ptcp_err e;
	struct acl a;
	int fd;

	(void)state;
	fx_needs_linux();
	a.n = acl_begin(a.bytes);
	a.n += acl_put(a.bytes + a.n, twice[0]);
	a.n += acl_put(a.bytes + a.n, twice[1]);
	assert_int_equal(xattrs_add(&list, ACL_ACCESS, strlen(ACL_ACCESS), a.bytes, a.n, NULL), 0);
	assert_int_equal(acls_describe(&list, &names, fx_root, "f", "f"[0] == 'd', &mode, NULL), 0);
	mode = 0640;
	give("f", ACL_ACCESS, acl_of(5, 6, 4, 7));
	fd = open(fx_path("f"), O_RDWR);
	assert_int_equal(acls_set(&list, &names, fx_root, "f", fd, false, &mode, &e), 1);
	assert_non_null(strstr(e.msg, "f: ACL: not kept"));
	assert_int_equal(mode, 0640);
	assert_true(has_none("f", ACL_ACCESS));
	fx_fail_always(FX_fsetxattr, EIO);
	assert_int_equal(acls_set(&list, &names, fx_root, "f", fd, false, &mode, &e), PTCP_EIO);
	fx_fail_always(FX_fremovexattr, EIO);
	assert_int_equal(acls_set(NULL, &names, fx_root, "f", fd, false, &mode, &e), PTCP_EIO);
	assert_non_null(strstr(e.msg, "f: cannot remove the ACL"));
	fx_fail_always(FX_fremovexattr, EOPNOTSUPP);
	assert_int_equal(acls_set(NULL, &names, fx_root, "f", fd, false, &mode, &e), 0);
	close(fd);
}

/* Any bytes of a peer. */
static void malformed(void **state)
{
	static const char *const values[] = { "\2\6\0\0\0\5", "\2\6\0\0\0\5\2u", "\2\6\0\0\0\5\0\2" };
	static const size_t n[] = { 6, 8, 8 };
	mode_t mode = 0600;
	struct ptcp_err e;
	size_t i;
	int fd = open(fx_path("f"), O_RDWR);

	(void)state;
	for (i = 0; i < sizeof n / sizeof *n; i++) {
		xattrs_fini(&list);
		assert_int_equal(xattrs_add(&list, ACL_ACCESS, strlen(ACL_ACCESS), values[i], n[i], NULL), 0);
		assert_int_equal(acls_set(&list, &names, fx_root, "f", fd, false, &mode, &e), 1);
		assert_int_equal(mode, 0600);
	}
	close(fd);
}

/* More entries than fit into a frame, with their names. */
static void too_large(void **state)
{
	static uint8_t value[ACL_HEADER_BYTES + 6000 * ACL_ENTRY_BYTES];
	size_t used = acl_begin(value);
	mode_t mode = 0770;
	struct ptcp_err e;
	uint16_t i;

	(void)state;
	for (i = 0; i < 6000; i++)
		used += acl_put(value + used, (struct acl_entry){ ACL_USER, 7, i });
	assert_int_equal(xattrs_add(&list, ACL_ACCESS, strlen(ACL_ACCESS), value, used, NULL), 0);
	assert_int_equal(acls_describe(&list, &names, fx_root, "f", "f"[0] == 'd', &mode, &e), 1);
	assert_non_null(strstr(e.msg, "f: ACL: too large: not sent"));
	assert_int_equal(list.n, 0);
	assert_int_equal(mode, 0700); /* no entry of the group */
}

static void narrowed(void **state)
{
	(void)state;
	fx_needs_linux();
	give("f", ACL_ACCESS, acl_of(5, 6, 4, 7));
	assert_int_equal(acls_narrowed(fx_root, "f", 0770), 0740);
	assert_int_equal(acls_narrowed(fx_root, "d", 0770), 0770);
	assert_int_equal(acls_narrowed(fx_root, "missing", 0770), 0770);
	fx_fail_always(FX_getxattrat, ERANGE); /* nothing is known of a list that cannot be read */
	assert_int_equal(acls_narrowed(fx_root, "f", 0770), 0700);
}

/* ---- As part of what is completed ---- */

/* A file in a directory with a default list, complete, and up to date with an additional list. */
static void completed(void **state)
{
	struct meta m = { .set_mode = true, .mode = 0640, .acls = true, .owners = hosts };
	mode_t mode = 0;
	struct sink *s;
	struct dir *d;

	(void)state;
	fx_needs_linux();
	give("d", ACL_DEFAULT, acl_of(9, 9, 7, 7));
	fx_text("d/made", "");
	assert_false(has_none("d/made", ACL_ACCESS));
	d = dir_child(fx_root, "d");
	s = sink_new(d, "new", 1, &m, NULL);
	assert_int_equal(sink_write(s, "x", 1, 0, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	assert_true(has_none("d/new", ACL_ACCESS));
	assert_int_equal(mode_of("d/new"), 0640);
	give("f", ACL_ACCESS, acl_of(5, 6, 4, 7));
	assert_int_equal(xattrs_read(&list, fx_root, "f", XATTR_ACL, NULL), 0);
	assert_int_equal(acls_describe(&list, &names, fx_root, "f", "f"[0] == 'd', &mode, NULL), 0);
	m.xattrs = &list;
	s = sink_new(d, "listed", 1, &m, NULL);
	assert_int_equal(sink_write(s, "x", 1, 0, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	has("d/listed", ACL_ACCESS, acl_of(105, 6, 4, 7));
	assert_int_equal(mode_of("d/listed"), 0770);
	dir_unref(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		acl_test(lists), acl_test(there_and_back), acl_test(refused), acl_test(malformed), acl_test(too_large),
		acl_test(narrowed), acl_test(completed)
	};

	return cmocka_run_group_tests_name("store/named_acl", tests, NULL, NULL);
}
