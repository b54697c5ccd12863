/* Files of clients who may only add. */
#include "store/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fixture.h"
#include "store/hash.h"
#include "store/part.h"

static const struct meta plain = { .set_mtime = true, .mtime = { 1000, 7 } };

/* Without an owner: exclusive creation by anyone. */
static struct sink *offer(const char *owner, const char *name, const char *text)
{
	const struct sink_opts o = { .block_bytes = 1 << 20, .owner = owner,
		.rules = { .write_once = owner != NULL, .flags = owner == NULL ? RULE_EXCLUSIVE : 0 } };
	struct sink *s = sink_new(fx_root, name, strlen(text), &plain, &o);

	assert_non_null(s);
	return s;
}

static int add(const char *owner, const char *name, const char *text, struct ptcp_err *e)
{
	struct sink *s = offer(owner, name, text);
	struct store_item item = { .sink = s, .why = e };

	assert_int_equal(sink_write(s, text, strlen(text), 0, 0, NULL), 0);
	store_complete(&item, 1, STORE_SYNC_NONE);
	if (item.result < 0)
		sink_discard(s);
	sink_unref(s);
	return item.result;
}

static int look(const char *owner, const char *name, const char *text, bool *done, struct ptcp_err *e)
{
	struct sink *s = offer(owner, name, text);
	struct sink_existing seen = { .found = SINK_NOTHING };
	int r = sink_inspect(s, &seen, e);

	*done = seen.found == SINK_KEPT;
	sink_unref(s);
	return r;
}

static void names_are_given_once(void **state)
{
	struct ptcp_err e;

	(void)state;
	assert_int_equal(add("ann", "f", "one", &e), 0);
	fx_holds("f", "one");
	assert_int_equal(add("ann", "f", "two", &e), PTCP_EREFUSED);
	assert_non_null(strstr(e.msg, STORE_TAKEN_WHY));
	assert_int_equal(add("ben", "f", "two", &e), PTCP_EREFUSED);
	fx_holds("f", "one");
	assert_int_equal(mkdir(fx_path("d"), 0700), 0);
	assert_int_equal(symlink("nowhere", fx_path("l")), 0);
	assert_int_equal(add("ann", "d", "x", &e), PTCP_EREFUSED);
	assert_int_equal(add("ann", "l", "x", &e), PTCP_EREFUSED);
	assert_int_equal(fx_count(""), 3); /* no part stays */
}

/* What is said of a name: to its owner, that the file was added before; to all others, that the name is taken. */
static void nothing_is_told(void **state)
{
	bool done, attributes;
	struct ptcp_err e;

	(void)state;
	assert_int_equal(look("ann", "f", "one", &done, &e), 0);
	assert_false(done);
	assert_int_equal(add("ann", "f", "one", &e), 0);
	attributes = getxattr(fx_path("f"), "user.ptcp.added-by", NULL, 0) == 3;
	assert_int_equal(look("ann", "f", "one", &done, &e), attributes ? 0 : PTCP_EREFUSED);
	assert_int_equal(done, attributes);
	assert_int_equal(look("ben", "f", "one", &done, &e), PTCP_EREFUSED); /* the same size and time */
	assert_false(done);
	assert_int_equal(e.sys, EEXIST);
	assert_int_equal(look("an", "f", "one", &done, &e), PTCP_EREFUSED);
	assert_int_equal(look("ann", "f", "longer", &done, &e), PTCP_EREFUSED); /* its own, and another size */
	assert_int_equal(utimensat(AT_FDCWD, fx_path("f"), (struct timespec[2]){ { 1, 0 }, { 2000, 0 } }, 0), 0);
	assert_int_equal(look("ann", "f", "one", &done, &e), PTCP_EREFUSED);
	assert_int_equal(mkdir(fx_path("d"), 0700), 0);
	assert_int_equal(look("ann", "d", "one", &done, &e), PTCP_EREFUSED);
	assert_int_equal(symlink("f", fx_path("l")), 0);
	assert_int_equal(look("ann", "l", "one", &done, &e), PTCP_EREFUSED);
}

/* Two clients write one name at a time: each its own part; the first to complete has the name. */
static void parts_are_apart(void **state)
{
	struct sink *a = offer("ann", "f", "aaa"), *b = offer("ben", "f", "bbb");
	struct ptcp_err e;
	struct store_item first = { .sink = b }, second = { .sink = a, .why = &e };

	(void)state;
	assert_int_equal(sink_write(a, "aaa", 3, 0, 0, NULL), 0);
	assert_int_equal(sink_write(b, "bbb", 3, 0, 0, NULL), 0);
	assert_int_equal(fx_count(""), 2);
	store_complete(&first, 1, STORE_SYNC_NONE);
	assert_int_equal(first.result, 0);
	store_complete(&second, 1, STORE_SYNC_NONE);
	assert_int_equal(second.result, PTCP_EREFUSED);
	fx_holds("f", "bbb");
	sink_discard(a);
	sink_unref(a);
	sink_unref(b);
	assert_int_equal(fx_count(""), 1);
}

static void without_the_flag(void **state)
{
	struct ptcp_err e;

	(void)state;
	fx_fail_always(FX_renameat2, EINVAL);
	assert_int_equal(add("ann", "f", "one", &e), 0);
	assert_int_equal(add("ben", "f", "two", &e), PTCP_EREFUSED);
	fx_holds("f", "one");
	assert_int_equal(fx_count(""), 1);
	fx_heal();
}

/* Without extended attributes nobody is told more than a refusal. */
static void without_attributes(void **state)
{
	struct ptcp_err e;
	bool done;

	(void)state;
	fx_fail_always(FX_fsetxattr, EOPNOTSUPP);
	assert_int_equal(add("ann", "f", "one", &e), 0);
	fx_heal();
	assert_int_equal(look("ann", "f", "one", &done, &e), PTCP_EREFUSED);
}

#define RACERS 8

static void *race(void *arg)
{
	char owner[16];

	snprintf(owner, sizeof owner, "client%u", *(unsigned *)arg);
	return add(owner, "f", owner, NULL) == 0 ? arg : NULL;
}

static void one_of_many_wins(void **state)
{
	unsigned id[RACERS], i, won = 0;
	pthread_t t[RACERS];
	void *result;

	(void)state;
	for (i = 0; i < RACERS; i++) {
		id[i] = i;
		assert_int_equal(pthread_create(&t[i], NULL, race, &id[i]), 0);
	}
	for (i = 0; i < RACERS; i++) {
		pthread_join(t[i], &result);
		won += result != NULL;
	}
	assert_int_equal(won, 1);
	assert_int_equal(fx_count(""), 1);
}

static void resumes_its_own(void **state)
{
	const struct sink_opts o = { .block_bytes = 1, .has_version = true, .rules = { .write_once = true },
		.owner = "ann" };
	struct sink_opts other = o;
	struct sink_existing found = { .found = SINK_NOTHING };
	struct sink *s = sink_new(fx_root, "f", 3, &plain, &o);

	(void)state;
	assert_int_equal(sink_write(s, "a", 1, 0, hash_content("a", 1), NULL), 0);
	sink_keep(s);
	sink_unref(s);
	other.owner = "ben";
	s = sink_new(fx_root, "f", 3, &plain, &other);
	assert_int_equal(sink_inspect(s, &found, NULL), 0);
	assert_int_equal(found.found, SINK_NOTHING); /* not that of another */
	assert_null(found.restart_why);
	sink_unref(s);
	s = sink_new(fx_root, "f", 3, &plain, &o);
	assert_int_equal(sink_inspect(s, &found, NULL), 0);
	assert_int_equal(found.found, SINK_PART);
	assert_int_equal(found.n_claimed, 1);
	free(found.claimed);
	sink_discard(s);
	sink_unref(s);
}

/* The name may appear after it was looked for. */
static void exclusive(void **state)
{
	struct ptcp_err e;
	struct sink *s;
	bool done;

	(void)state;
	assert_int_equal(look(NULL, "f", "one", &done, &e), 0);
	assert_int_equal(add(NULL, "f", "one", &e), 0);
	fx_holds("f", "one");
	assert_int_equal(look(NULL, "f", "one", &done, &e), PTCP_EREFUSED); /* whatever it has */
	assert_int_equal(e.sys, EEXIST);
	assert_non_null(strstr(e.msg, "File exists"));
	assert_int_equal(add(NULL, "f", "two", &e), PTCP_EREFUSED);
	assert_int_equal(e.sys, EEXIST);
	fx_holds("f", "one");
	s = offer(NULL, "g", "mine");
	assert_int_equal(sink_write(s, "mine", 4, 0, 0, NULL), 0);
	fx_text("g", "of another");
	{
		struct store_item item = { .sink = s, .why = &e };

		store_complete(&item, 1, STORE_SYNC_NONE);
		assert_int_equal(item.result, PTCP_EREFUSED);
	}
	sink_discard(s);
	sink_unref(s);
	fx_holds("g", "of another");
	assert_int_equal(fx_count(""), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(names_are_given_once), fx_tree_test(nothing_is_told), fx_tree_test(parts_are_apart),
		fx_tree_test(one_of_many_wins), fx_tree_test(without_the_flag), fx_tree_test(without_attributes),
		fx_tree_test(resumes_its_own), fx_tree_test(exclusive),
	};
	return cmocka_run_group_tests_name("store/write_once", tests, NULL, NULL);
}
