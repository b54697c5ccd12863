#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "store/attr_map.h"

static struct attr_map *made(struct attr_map_texts texts)
{
	struct attr_map *m;
	struct ptcp_err e;

	if (attr_map_new(&m, &texts, &e) < 0)
		fail_msg("%s", e.msg);
	return m;
}

/* As rsync does, with a umask of 022. */
static void modes(void **state)
{
	static const struct { const char *text; mode_t file, file_is, dir, dir_is; } cases[] = {
		{ "644", 0750, 0644, 0700, 0644 }, { "D755,F644", 0600, 0644, 0700, 0755 },
		{ "D2775", 0640, 0640, 0700, 02775 }, { "g-w,o=", 0666, 0640, 0777, 0750 },
		{ "u+rwX,go+rX", 0400, 0644, 0500, 0755 }, { "a+X", 0744, 0755, 0600, 0711 },
		{ "+x", 0644, 0755, 0644, 0755 }, { "Dg+s,Fu-s", 04755, 0755, 0755, 02755 },
		{ "u=rw,g=r,o=", 0777, 0640, 0777, 0640 }, { "o+t", 0644, 01644, 0755, 01755 },
		{ "ug=rx,a-t", 01777, 0557, 01777, 0557 }, { "u=", 04755, 04055, 0755, 0055 },
		{ "ug=s", 0755, 06005, 0755, 06005 },
		{ "+w", 0444, 0644, 0555, 0755 },
		{ "=r", 0777, 0444, 0777, 0444 }, { "-w", 0666, 0466, 0777, 0577 },
		{ "Fgo=r", 0600, 0644, 0711, 0711 }, { "00", 07777, 0, 07777, 0 },
	};
	struct attr_map *m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		m = made((struct attr_map_texts){ .chmod = cases[i].text, .umask = 022 });
		if (attr_map_mode(m, cases[i].file, false) != cases[i].file_is ||
		    attr_map_mode(m, cases[i].dir, true) != cases[i].dir_is)
			fail_msg("%s: %o %o", cases[i].text, attr_map_mode(m, cases[i].file, false),
			    attr_map_mode(m, cases[i].dir, true));
		attr_map_free(m);
	}
	assert_int_equal(attr_map_mode(NULL, 04711, false), 04711);
	m = made((struct attr_map_texts){ .chmod = "g+w" });
	assert_false(attr_map_sets_special(m));
	attr_map_free(m);
	m = made((struct attr_map_texts){ .chmod = "g+w,D2755" });
	assert_true(attr_map_sets_special(m));
	attr_map_free(m);
	assert_false(attr_map_sets_special(NULL));
}

static struct owner owner_of(uint32_t uid, const char *user, uint32_t gid, const char *group)
{
	struct owner o = { .uid = uid, .gid = gid };

	strcpy(o.user, user);
	strcpy(o.group, group);
	return o;
}

static void assert_owner(struct attr_map_texts texts, struct owner o, uint32_t uid, const char *user, uint32_t gid,
    const char *group)
{
	struct attr_map *m = made(texts);

	attr_map_owner(m, &o);
	attr_map_free(m);
	assert_int_equal(o.uid, uid);
	assert_string_equal(o.user, user);
	assert_int_equal(o.gid, gid);
	assert_string_equal(o.group, group);
}

static void owners(void **state)
{
	const struct owner ann = owner_of(1000, "ann", 100, "users"), root = owner_of(0, "", 0, ""),
	    nameless = owner_of(4711, "", 4711, "");
	const uint32_t named = ATTR_MAP_BY_NAME;

	(void)state;
	assert_owner((struct attr_map_texts){ .chown = "bob" }, ann, named, "bob", 100, "users");
	assert_owner((struct attr_map_texts){ .chown = "bob:" }, ann, named, "bob", 100, "users");
	assert_owner((struct attr_map_texts){ .chown = ":staff" }, ann, 1000, "ann", named, "staff");
	assert_owner((struct attr_map_texts){ .chown = "12:13" }, ann, 12, "", 13, "");
	assert_owner((struct attr_map_texts){ .chown = "root:root" }, ann, 0, "", 0, "");
	assert_owner((struct attr_map_texts){ .user_map = "0-999:7,a*:bob,*:nobody" }, ann, named, "bob", 100, "users");
	assert_owner((struct attr_map_texts){ .user_map = "0-999:7,a*:bob,*:nobody" }, root, 7, "", 0, "");
	assert_owner((struct attr_map_texts){ .user_map = "a*:bob,4711:8" }, nameless, 8, "", 4711, "");
	assert_owner((struct attr_map_texts){ .user_map = "root:8,a*:9", .group_map = "0:1" }, root, 8, "", 1, "");
	assert_owner((struct attr_map_texts){ .user_map = "ann:7", .chown = "8:9" }, ann, 7, "", 9, "");
	assert_owner((struct attr_map_texts){ .numeric_ids = true }, ann, 1000, "", 100, "");
	assert_owner((struct attr_map_texts){ .numeric_ids = true, .user_map = "ann:7" }, ann, 1000, "", 100, "");
	attr_map_owner(NULL, &(struct owner){ .uid = 1 });
}

static void malformed(void **state)
{
	static const struct attr_map_texts bad[] = {
		{ .chmod = "" }, { .chmod = "D" }, { .chmod = "888" }, { .chmod = "17777" }, { .chmod = "u" },
		{ .chmod = "u*w" }, { .chmod = "u+q" }, { .chmod = "644," }, { .chmod = "u-X" }, { .chmod = "DF644" },
		{ .chown = "" }, { .chown = ":" }, { .chown = "a:b:c" }, { .user_map = "" }, { .user_map = "a" },
		{ .user_map = "a:" }, { .user_map = "a:b," }, { .user_map = "9-1:b" }, { .group_map = "a:b,c" },
	};
	struct attr_map *m;
	struct ptcp_err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (attr_map_new(&m, &bad[i], &e) != PTCP_EUSAGE)
			fail_msg("number %zu", i);
		assert_non_null(strstr(e.msg, " (write "));
		assert_null(m);
	}
	assert_int_equal(attr_map_new(&m, &(struct attr_map_texts){ .chmod = NULL }, &e), 0);
	assert_null(m);
	attr_map_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes), cmocka_unit_test(owners), cmocka_unit_test(malformed)
	};

	return cmocka_run_group_tests_name("store/attr_map", tests, NULL, NULL);
}
