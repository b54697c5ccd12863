#include "fixture.h"

#include <errno.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "offer.h"
#include "store/part.h"
#include "store/sink.h"

static const struct meta plain = { .mode = 0666 };

static const char *part_of(const char *name)
{
	static char part[PART_NAME_BYTES];

	return part_name(part, name, PART_SUFFIX);
}

static struct sink *make(const char *name, uint64_t size)
{
	struct sink *s = sink_new(fx_root, name, size, &plain, NULL);

	assert_non_null(s);
	return s;
}

static void receive(const char *name, const char *text)
{
	struct sink *s = make(name, strlen(text));

	assert_int_equal(sink_write(s, text, strlen(text), 0, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
}

/* An unsized file: made for the largest size. */
static struct sink *make_unsized(const char *name)
{
	const struct sink_opts o = { .block_bytes = 4, .rules.flags = RULE_IGNORE_TIMES, .unsized = true };
	struct sink *s = sink_new(fx_root, name, UINT64_C(1) << 45, &plain, &o);

	assert_non_null(s);
	return s;
}

static void a_size_at_the_end(void **state)
{
	struct sink *s = make_unsized("f");

	(void)state;
	assert_int_equal(sink_write(s, "efgh", 4, 4, 0, NULL), 0);
	assert_int_equal(sink_write(s, "abcd", 4, 0, 0, NULL), 0);
	assert_int_equal(sink_write(s, "ijkl", 4, 8, 0, NULL), 0); /* beyond the end that follows */
	sink_set_size(s, 8);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	fx_holds("f", "abcdefgh");
	s = make_unsized("empty");
	sink_set_size(s, 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	fx_holds("empty", "");
}

static void a_kept_beginning(void **state)
{
	struct sink *s;
	char name[256];
	struct ptcp_err e;

	(void)state;
	fx_text("f", "old");
	fx_text("f.partial", "older");
	s = make_unsized("f");
	assert_int_equal(sink_write(s, "abcd", 4, 0, 0, NULL), 0);
	assert_int_equal(sink_write(s, "ijkl", 4, 8, 0, NULL), 0);
	assert_int_equal(sink_keep_beginning(s, 4, &e), 0);
	sink_unref(s);
	fx_holds("f", "old");
	fx_holds("f.partial", "abcd");
	assert_int_equal(fx_count(""), 2);
	fx_mkdir("d.partial");
	fx_mkdir("d.partial/below");
	s = make_unsized("d");
	assert_int_equal(sink_write(s, "abcd", 4, 0, 0, NULL), 0);
	assert_int_equal(sink_keep_beginning(s, 4, &e), PTCP_EIO);
	sink_unref(s);
	memset(name, 'n', 255);
	name[255] = '\0';
	s = make_unsized(name);
	assert_int_equal(sink_write(s, "abcd", 4, 0, 0, NULL), 0);
	assert_int_equal(sink_keep_beginning(s, 4, &e), PTCP_EIO);
	sink_unref(s);
	s = make_unsized("g"); /* nothing was written */
	assert_int_equal(sink_keep_beginning(s, 0, &e), PTCP_EIO);
	sink_unref(s);
	assert_int_equal(fx_count(""), 3);
}

static mode_t mode_of(const char *below)
{
	struct stat st;

	assert_int_equal(lstat(fx_path(below), &st), 0);
	return st.st_mode & 07777;
}

static void one_file(void **state)
{
	struct sink *s = make("f", 10);
	char text[40];
	struct stat st;

	(void)state;
	assert_string_equal(sink_path_text(s, text, sizeof text), "f");
	assert_int_equal(fx_count(""), 0); /* no I/O yet */
	assert_int_equal(sink_write(s, "56789", 5, 5, 0, NULL), 0);
	assert_int_equal(fx_open_files(), 1);
	assert_int_equal(fx_count(""), 1);
	assert_int_equal(mode_of(part_of("f")), 0600);
	assert_int_equal(sink_write(s, "01234", 5, 0, 0, NULL), 0);
	assert_false(fx_exists("f"));
	assert_int_equal(offer_commit(s, NULL), 0);
	assert_int_equal(fx_open_files(), 0);
	fx_holds("f", "0123456789");
	assert_int_equal(fx_count(""), 1);
	assert_int_equal(stat(fx_path("f"), &st), 0);
	assert_int_equal(st.st_nlink, 1);
	/* What comes late does no harm. */
	assert_int_equal(sink_write(s, "xxxxx", 5, 0, 0, NULL), PTCP_ECANCELED);
	sink_discard(s);
	fx_holds("f", "0123456789");
	sink_unref(s);
	sink_unref(NULL);
}

static void empty_file(void **state)
{
	struct sink *s = make("f", 0);

	(void)state;
	assert_int_equal(sink_write(s, "", 0, 0, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	fx_holds("f", "");
	s = make("g", 0);
	assert_int_equal(offer_commit(s, NULL), 0); /* not written to at all */
	sink_unref(s);
	fx_holds("g", "");
	assert_int_equal(fx_count(""), 2);
}

/* As on FAT, beyond 4 GiB: fails before a byte, and leaves nothing. The same where the size always fits, or where the
 * file system cannot tell. */
static void larger_than_files_can_be(void **state)
{
	static const struct { uint64_t size_bytes; int sys, r; } table[] = { { UINT64_C(5) << 30, EINVAL, PTCP_EIO },
		{ UINT64_C(5) << 30, ESPIPE, 0 }, { INT32_MAX, EINVAL, 0 } };
	struct ptcp_err e;
	struct sink *s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof table / sizeof *table; i++) {
		s = make("f", table[i].size_bytes);
		fx_fail_always(FX_lseek, table[i].sys);
		assert_int_equal(sink_write(s, "x", 1, 0, 0, &e), table[i].r);
		if (table[i].r != 0) {
			assert_int_equal(e.sys, EFBIG);
			assert_non_null(strstr(e.msg, "f: larger than files of this file system can be ("));
		}
		fx_heal();
		sink_discard(s);
		sink_unref(s);
		assert_int_equal(fx_count(""), 0);
	}
}

/* The length is what was announced, where the end of the file is a hole too. */
static void hole_at_the_end(void **state)
{
	struct sink *s = make("f", 100000);
	uint8_t back[100000], want[100000] = "head";

	(void)state;
	assert_int_equal(sink_write(s, "head", 4, 0, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	assert_int_equal(fx_read("f", back, sizeof back), sizeof back);
	assert_memory_equal(back, want, sizeof back);
}

/* Whether the complete file lacks an attribute, named by `e`. */
static bool commit_with_mode(const char *name, mode_t mode, struct ptcp_err *e)
{
	struct meta m = { .set_mode = true, .set_mtime = true, .mode = mode };
	struct store_item item = { .sink = sink_new(fx_root, name, 1, &m, NULL), .why = e };

	assert_int_equal(sink_write(item.sink, "x", 1, 0, 0, NULL), 0);
	store_complete(&item, 1, STORE_SYNC_GROUP);
	assert_int_equal(item.result, 0);
	sink_unref(item.sink);
	assert_int_equal(mode_of(name), 0600);
	return item.attr_dropped;
}

static void metadata(void **state)
{
	struct ptcp_err e;
	struct meta m = { .set_mode = true, .set_mtime = true, .mode = 07754,
		.mtime = { -5, 123456789 } };
	struct sink *s = sink_new(fx_root, "f", 1, &m, NULL);
	mode_t mask = dir_umask(fx_root);
	struct stat st;

	(void)state;
	assert_int_equal(sink_write(s, "x", 1, 0, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	assert_int_equal(stat(fx_path("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0754); /* no setuid from a peer */
	assert_int_equal(st.st_mtim.tv_sec, -5);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	receive("g", "x");
	assert_int_equal(mode_of("g"), 0666 & ~mask);
	/* A file system that cannot hold them: a warning, unless the mode is the same. */
	fx_fail_always(FX_fchmod, EPERM);
	fx_fail_always(FX_futimens, EOPNOTSUPP);
	assert_true(commit_with_mode("h", 0644, &e));
	assert_string_equal(e.msg, "h: the mode is 0600 instead of 0644: Operation not permitted");
	assert_true(commit_with_mode("i", 0600, &e));
	assert_string_equal(e.msg, "i: cannot set the modification time: Operation not supported");
	assert_int_equal(fx_failed(), 4);
	fx_fail_always(FX_futimens, 0);
	assert_false(commit_with_mode("j", 0600, &e));
}

/* New files have the mode of any other program's, by the default ACL of the directory; a mode of the source is as it
 * is. */
static void default_acl(void **state)
{
	/* user rwx, group r-x, a user rwx, mask rwx, other --- */
	static const uint8_t acl[] = "\2\0\0\0" "\1\0\7\0\377\377\377\377" "\2\0\7\0\1\0\0\0" "\4\0\5\0\377\377\377\377"
	    "\20\0\7\0\377\377\377\377" "\40\0\0\0\377\377\377\377";
	static const uint8_t basic[] = "\2\0\0\0" "\1\0\7\0\377\377\377\377" "\4\0\4\0\377\377\377\377"
	    "\40\0\0\0\377\377\377\377";
	const struct meta m = { .set_mode = true, .mode = 0644 };
	struct sink *s;

	(void)state;
	fx_needs_linux();
	if (setxattr(fx_path("."), "system.posix_acl_default", acl, sizeof acl - 1, 0) != 0)
		skip(); /* the file system has none */
	fx_text("theirs", "");
	assert_int_equal(mode_of("theirs"), 0660);
	receive("ours", "x");
	assert_int_equal(mode_of("ours"), 0660);
	s = sink_new(fx_root, "with", 0, &m, NULL);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	assert_int_equal(mode_of("with"), 0644);
	assert_int_equal(setxattr(fx_path("."), "system.posix_acl_default", basic, sizeof basic - 1, 0), 0);
	receive("plain", "x");
	assert_int_equal(mode_of("plain"), 0640);
	assert_int_equal(removexattr(fx_path("."), "system.posix_acl_default"), 0);
}

static void odd_names(void **state)
{
	static const char *const odd[] = { "-rf", "a\nb", "\xff\xfe", " ", "...", "\x1b[31m", "~", "*" };
	char longest[256];
	size_t i;

	(void)state;
	memset(longest, '\xc3', 255);
	longest[255] = '\0';
	receive(longest, "long");
	fx_holds(longest, "long");
	for (i = 0; i < 8; i++) {
		receive(odd[i], odd[i]);
		fx_holds(odd[i], odd[i]);
	}
	assert_int_equal(fx_count(""), 9);
}

/* What bears the name already is replaced, never opened. */
static void replaces(void **state)
{
	struct ptcp_err e;
	struct stat st;
	struct sink *s;

	(void)state;
	fx_mkdir("away");
	fx_text("away/target", "old");
	assert_int_equal(symlink("away/target", fx_path("link")), 0);
	assert_int_equal(link(fx_path("away/target"), fx_path("hard")), 0);
	assert_int_equal(mkfifo(fx_path("fifo"), 0600), 0);
	fx_mkdir("dir");
	fx_mkdir("dir/below");
	receive("link", "new");
	receive("hard", "new");
	fx_holds("link", "new");
	fx_holds("hard", "new");
	fx_holds("away/target", "old");
	s = make("fifo", 3); /* nor a device: recv .. /dev/null must not break the host */
	assert_int_equal(sink_write(s, "new", 3, 0, 0, NULL), 0);
	assert_int_equal(offer_commit(s, &e), PTCP_EIO);
	assert_int_equal(e.sys, EEXIST);
	assert_int_equal(lstat(fx_path("fifo"), &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	sink_discard(s);
	sink_unref(s);
	s = make("dir", 3);
	assert_int_equal(sink_write(s, "new", 3, 0, 0, NULL), 0);
	assert_int_equal(offer_commit(s, &e), PTCP_EIO);
	assert_int_equal(e.sys, EISDIR);
	assert_true(fx_exists(part_of("dir")));
	sink_discard(s);
	sink_unref(s);
	assert_int_equal(fx_count("dir"), 1);
	assert_false(fx_exists(part_of("dir")));
	assert_int_equal(remove(fx_path("dir/below")), 0);
	receive("dir", "new");
	fx_holds("dir", "new");
}

/* The leftover of an earlier run, of any length and mode, whole or in blocks. */
static void leftovers(void **state)
{
	struct sink *s;
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		fx_text(part_of("f"), "leftover, and longer than the new one");
		assert_int_equal(chmod(fx_path(part_of("f")), i < 2 ? 0600 : 0444), 0);
		s = make("f", 4);
		if (i % 2 == 0)
			assert_int_equal(sink_write(s, "ne", 2, 0, 0, NULL), 0);
		assert_int_equal(sink_write(s, &"new!"[i % 2 ? 0 : 2], i % 2 ? 4 : 2,
		    i % 2 ? 0 : 2, 0, NULL), 0);
		assert_int_equal(offer_commit(s, NULL), 0);
		sink_unref(s);
		fx_holds("f", "new!");
		assert_int_equal(fx_count(""), 1);
	}
	/* Where it had got its final mode, and opening it for writing fails. */
	fx_text(part_of("f"), "leftover");
	s = make("f", 4);
	fx_fail_nth(2, EACCES);
	assert_int_equal(sink_write(s, "ne", 2, 0, 0, NULL), 0);
	assert_int_equal(fx_failed(), 1);
	assert_int_equal(sink_write(s, "w?", 2, 2, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	fx_holds("f", "new?");
	assert_int_equal(fx_count(""), 1);
}

/* Under the part's name lies what could harm: it is not written to. */
static void planted(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct ptcp_err e;
	struct sink *s;
	struct stat st;
	int i, fd;

	(void)state;
	fx_text("precious", "precious");
	for (i = 0; i < 4; i++) {
		if (i == 0) {
			assert_int_equal(symlink("precious", fx_path(part_of("f"))), 0);
		} else if (i == 1) {
			assert_int_equal(mkfifo(fx_path(part_of("f")), 0600), 0);
		} else if (i == 2) {
			fx_mkdir(part_of("f"));
		} else {
			fd = socket(AF_UNIX, SOCK_STREAM, 0);
			snprintf(sun.sun_path, sizeof sun.sun_path, "%s", fx_path("s"));
			assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof sun), 0);
			close(fd);
			assert_int_equal(rename(fx_path("s"), fx_path(part_of("f"))), 0);
		}
		s = make("f", 3);
		assert_int_equal(sink_write(s, "new", 3, 0, 0, &e), PTCP_EIO);
		assert_int_equal(e.sys, EEXIST);
		assert_non_null(strstr(e.msg, part_of("f")));
		sink_discard(s); /* and what is not ours is not removed */
		sink_unref(s);
		assert_int_equal(remove(fx_path(part_of("f"))), 0);
	}
	/* A second name of another file: only that name goes. */
	assert_int_equal(link(fx_path("precious"), fx_path(part_of("f"))), 0);
	s = make("f", 3);
	assert_int_equal(sink_write(s, "n", 1, 0, 0, NULL), 0);
	assert_int_equal(sink_write(s, "ew", 2, 1, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	fx_holds("f", "new");
	fx_holds("precious", "precious");
	if (!fx_is_root())
		return;
	/* Another user's file, who could read along. */
	fx_text(part_of("f"), "");
	assert_int_equal(chown(fx_path(part_of("f")), 12345, 12345), 0);
	s = make("f", 3);
	assert_int_equal(sink_write(s, "n", 1, 0, 0, NULL), 0);
	assert_int_equal(stat(fx_path(part_of("f")), &st), 0);
	assert_int_equal(st.st_uid, 0);
	sink_discard(s);
	sink_unref(s);
}

/* Somebody removes the part that we write, or puts something else there, such as the part of a transfer
 * that cannot know of us: that is not what gets the final name, nor ours to remove. */
static void lost_its_name(void **state)
{
	struct ptcp_err e;
	struct sink *s;
	int i;

	(void)state;
	fx_text("precious", "precious");
	for (i = 0; i < 3; i++) {
		s = make("f", 5);
		assert_int_equal(sink_write(s, "our", 3, 0, 0, NULL), 0);
		assert_int_equal(sink_write(s, "s!", 2, 3, 0, NULL), 0);
		assert_int_equal(remove(fx_path(part_of("f"))), 0);
		if (i == 1)
			fx_text(part_of("f"), "half");
		else if (i == 2)
			assert_int_equal(symlink("precious", fx_path(part_of("f"))), 0);
		assert_int_equal(offer_commit(s, &e), PTCP_EIO);
		assert_non_null(strstr(e.msg, "removed or replaced"));
		sink_discard(s);
		sink_unref(s);
		assert_false(fx_exists("f"));
		assert_int_equal(fx_exists(part_of("f")), i != 0);
	}
	assert_int_equal(remove(fx_path(part_of("f"))), 0);
	receive("f", "ours!");
	fx_holds("f", "ours!");
	fx_holds("precious", "precious");
}

static void busy(void **state)
{
	struct sink *a = make("f", 6), *b = make("f", 6);
	struct ptcp_err e;

	(void)state;
	assert_int_equal(sink_write(a, "old", 3, 0, 0, NULL), 0);
	assert_int_equal(sink_write(b, "new", 3, 0, 0, &e), PTCP_EIO);
	assert_int_equal(e.sys, EWOULDBLOCK);
	assert_string_equal(e.msg, "f: another transfer is writing this file (wait until it has ended)");
	assert_int_equal(sink_write(b, "newnew", 6, 0, 0, &e), PTCP_EIO); /* nor whole */
	sink_discard(b); /* does not take a's part away */
	sink_unref(b);
	assert_int_equal(sink_write(a, "old", 3, 3, 0, NULL), 0);
	assert_int_equal(offer_commit(a, NULL), 0);
	sink_unref(a);
	fx_holds("f", "oldold");
	/* A dead one's part is free. */
	a = make("f", 6);
	assert_int_equal(sink_write(a, "old", 3, 0, 0, NULL), 0);
	sink_unref(a);
	assert_true(fx_exists(part_of("f")));
	b = make("f", 4);
	assert_int_equal(sink_write(b, "ne", 2, 0, 0, NULL), 0);
	assert_int_equal(sink_write(b, "w2", 2, 2, 0, NULL), 0);
	assert_int_equal(offer_commit(b, NULL), 0);
	sink_unref(b);
	fx_holds("f", "new2");
	/* Where there are no locks one works without. */
	fx_fail_always(FX_flock, ENOLCK);
	receive("f", "unlocked");
	fx_holds("f", "unlocked");
}

/* Another transfer takes the part over, at the worst moments, between our creating
 * it and our locking it: played by a hook that runs before a system call. */
static enum fx_call when;
static void (*deed)(void);

static void hook(enum fx_call call)
{
	void (*f)(void) = deed;

	if (call == when && f != NULL) {
		deed = NULL;
		f();
	}
}

static void take_over(const char *text, int finish)
{
	int fd = open(fx_path(part_of("f")), O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	if (finish)
		assert_int_equal(rename(fx_path(part_of("f")), fx_path("f")), 0);
	else
		assert_int_equal(unlink(fx_path(part_of("f"))), 0);
	close(fd);
}

static void and_commits(void) { take_over("theirs", 1); }
static void and_discards(void) { take_over("theirs", 0); }

/* Two transfers, of which the second has a part of its own: the last to complete has the name, whichever it is. */
static void parts_of_two(void **state)
{
	struct sink *s[2];
	struct ptcp_err e;
	unsigned last;

	(void)state;
	for (last = 0; last < 2; last++) {
		s[0] = make("f", 5);
		s[1] = make("f", 6);
		assert_int_equal(sink_write(s[0], "first", 5, 0, 0, NULL), 0);
		assert_int_equal(sink_write(s[1], "second", 6, 0, 0, &e), PTCP_EIO);
		assert_int_equal(e.sys, EWOULDBLOCK);
		assert_true(sink_part_alone(s[1]) && sink_part_alone(s[1]));
		assert_int_equal(sink_write(s[1], "second", 6, 0, 0, NULL), 0);
		assert_int_equal(offer_commit(s[!last], NULL), 0);
		assert_int_equal(offer_commit(s[last], NULL), 0);
		fx_holds("f", last == 0 ? "first" : "second");
		sink_unref(s[0]);
		sink_unref(s[1]);
		assert_int_equal(fx_count(""), 1);
	}
}

/* A part of its own that is not completed goes with its transfer; the other part stays for a later run. */
static void an_unfinished_part_of_its_own(void **state)
{
	struct sink *s = make("f", 5), *other = make("f", 5);

	(void)state;
	assert_int_equal(sink_write(s, "first", 5, 0, 0, NULL), 0);
	assert_true(sink_part_alone(other));
	assert_int_equal(sink_write(other, "other", 5, 0, 0, NULL), 0);
	assert_int_equal(fx_count(""), 2);
	sink_unref(other);
	assert_int_equal(fx_count(""), 1);
	assert_true(fx_exists(part_of("f")));
	sink_unref(s);
	assert_true(fx_exists(part_of("f")));
}

/* Who replaces a version, or only adds files, waits for the other. */
static void no_part_of_its_own(void **state)
{
	const struct sink_opts match = { .block_bytes = 8, .match = { .set = true } };
	const struct sink_opts adds = { .block_bytes = 8, .owner = "o" };
	struct sink *s[] = { sink_new(fx_root, "f", 5, &plain, &match), sink_new(fx_root, "f", 5, &plain, &adds) };
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_false(sink_may_be_alone(s[i]));
		assert_false(sink_part_alone(s[i]));
		sink_unref(s[i]);
	}
}


static void taken_over(void **state)
{
	static void (*const deeds[])(void) = { and_commits, and_discards };
	static const enum fx_call moments[] = { FX_flock, FX_fstat };
	struct sink *s;
	int i, j, k;

	(void)state;
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 2; j++) {
			for (k = 0; k < 2; k++) { /* a fresh part, a leftover */
				if (k == 1)
					fx_text(part_of("f"), "leftover");
				else if (moments[j] == FX_fstat)
					continue; /* locked by then */
				s = make("f", 5);
				when = moments[j];
				deed = deeds[i];
				fx_before(hook);
				assert_int_equal(sink_write(s, "our", 3, 0, 0, NULL), 0);
				assert_null(deed);
				if (i == 0)
					fx_holds("f", "theirs");
				assert_int_equal(sink_write(s, "s!", 2, 3, 0, NULL), 0);
				assert_int_equal(offer_commit(s, NULL), 0);
				sink_unref(s);
				fx_holds("f", "ours!");
				assert_int_equal(fx_count(""), 1);
			}
		}
	}
}

/* One that writes nothing before it commits cannot be told from our fresh part by
 * its size: it must not take ours over. */
static void and_commits_nothing(void)
{
	struct sink *s = make("f", 0);

	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
}

static void empty_one_meanwhile(void **state)
{
	struct sink *s = make("f", 5);

	(void)state;
	when = FX_flock;
	deed = and_commits_nothing;
	fx_before(hook);
	assert_int_equal(sink_write(s, "our", 3, 0, 0, NULL), 0);
	assert_null(deed);
	fx_holds("f", "");
	assert_int_equal(sink_write(s, "s!", 2, 3, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	sink_unref(s);
	fx_holds("f", "ours!");
}

/* As on network file systems: what failed to be written is told by close(). */
static void told_late(void **state)
{
	struct sink *s = make("f", 4);
	struct ptcp_err e;

	(void)state;
	fx_text("f", "old");
	assert_int_equal(sink_write(s, "new!", 4, 0, 0, NULL), 0);
	fx_fail_always(FX_close, EDQUOT);
	assert_int_equal(offer_commit(s, &e), PTCP_ENOSPC);
	assert_int_equal(e.sys, EDQUOT);
	fx_holds("f", "old");
	sink_discard(s);
	sink_unref(s);
}

/* A local file system has told each failed write before. */
static void told_at_once(void **state)
{
	const long before = fx_file_system;
	struct sink *s;

	(void)state;
	fx_needs_linux();
	fx_file_system = EXT4_SUPER_MAGIC;
	s = make("f", 4);
	assert_int_equal(sink_write(s, "new!", 4, 0, 0, NULL), 0);
	fx_heal();
	assert_int_equal(offer_commit(s, NULL), 0);
	assert_int_equal(fx_calls_of(FX_dup), 0);
	assert_int_equal(fx_calls_of(FX_renameat), 0);
	fx_holds("f", "new!");
	sink_unref(s);
	s = make("f", 4); /* once more, in place of the first */
	assert_int_equal(sink_write(s, "over", 4, 0, 0, NULL), 0);
	assert_int_equal(offer_commit(s, NULL), 0);
	assert_int_equal(fx_calls_of(FX_renameat), 1);
	fx_holds("f", "over");
	sink_unref(s);
	fx_file_system = before;
}

static void discard(void **state)
{
	struct sink *s = make("f", 10);

	(void)state;
	fx_text("f", "old");
	sink_discard(s);
	sink_unref(s);
	s = make("f", 10);
	assert_int_equal(sink_write(s, "12345", 5, 0, 0, NULL), 0);
	sink_discard(s);
	sink_discard(s);
	assert_int_equal(fx_open_files(), 0);
	assert_int_equal(sink_write(s, "12345", 5, 5, 0, NULL), PTCP_ECANCELED);
	sink_unref(s);
	fx_holds("f", "old");
	assert_int_equal(fx_count(""), 1);
}

static const struct meta full = { .set_mode = true, .set_mtime = true, .mode = 0644,
	.mtime = { 1000, 1 } };

/* Receives f in blocks and, if that works, commits; else gives up. */
static int attempt(int pieces, struct ptcp_err *e)
{
	struct sink *s = sink_new(fx_root, "f", 4, &full, NULL);
	bool named = false;
	char text[4];
	int i, r = 0;

	for (i = 0; i < pieces && r == 0; i++)
		r = sink_write(s, &"new!"[i * 4 / pieces], 4 / (size_t)pieces,
		    (uint64_t)(i * 4 / pieces), 0, e);
	if (r == 0 && (r = offer_commit(s, e)) != 0) {
		/* After the renaming only the place of the directory can fail. */
		named = fx_read("f", text, sizeof text) == 4;
		fx_holds("f", named ? "new!" : "old");
		if (!named && offer_commit(s, NULL) == 0) /* it can be tried again */
			fx_holds("f", "new!");
		else
			r = 1;
	}
	if (r != 0 && !named)
		sink_discard(s);
	sink_unref(s);
	return r;
}

/* Each call fails in turn: an error with its errno, the old file stays as it was,
 * no descriptor stays open, and the next attempt succeeds. */
static void give_up(void **state)
{
	struct sink *s = make("never", 8);
	struct ptcp_err e;

	(void)state;
	assert_true(sink_discard_unopened(s));
	assert_int_equal(sink_write(s, "late", 4, 0, 0, &e), PTCP_ECANCELED);
	assert_int_equal(fx_open_files(), 0);
	sink_unref(s);

	s = make("begun", 8);
	assert_int_equal(sink_write(s, "some", 4, 0, 0, NULL), 0);
	assert_false(sink_discard_unopened(s));
	assert_int_equal(sink_write(s, "more", 4, 4, 0, NULL), 0);
	sink_discard(s);
	assert_true(sink_discard_unopened(s)); /* it has nothing any more */
	sink_unref(s);
}

static void faults(void **state)
{
	static const int why[] = { EIO, ENOSPC, EMFILE };
	struct ptcp_err e;
	int n, w, way, r, fds = fx_open_fds();

	(void)state;
	for (w = 0; w < 3; w++) {
		for (way = 0; way < 4; way++) {
			for (n = 1;; n++) {
				remove(fx_path(part_of("f")));
				fx_text("f", "old");
				if (way >= 2)
					fx_text(part_of("f"), "leftover");
				fx_heal();
				fx_fail_nth(n, why[w]);
				e.sys = 0;
				r = attempt(way % 2 ? 2 : 1, &e);
				if (r != 0) {
					assert_int_equal(fx_failed(), 1);
					assert_int_equal(e.sys, why[w]);
					assert_int_equal(e.code, why[w] == ENOSPC ? PTCP_ENOSPC : PTCP_EIO);
				}
				assert_int_equal(fx_open_fds(), fds);
				if (fx_failed() == 0)
					break;
				fx_heal();
				assert_int_equal(attempt(1, NULL), 0);
				fx_holds("f", "new!");
				assert_int_equal(fx_count(""), 1);
			}
			assert_true(n > 8);
		}
	}
}

static void short_writes(void **state)
{
	char text[1000];

	(void)state;
	memset(text, 'x', 999);
	text[999] = '\0';
	fx_short_io(7);
	receive("f", text);
	assert_true(fx_calls_of(FX_pwrite) > 140);
	fx_heal();
	fx_holds("f", text);
	fx_fail_nth(4, EINTR); /* open, flock, fstat, pwrite */
	receive("f", "interrupted");
	assert_int_equal(fx_failed(), 1);
	fx_holds("f", "interrupted");
}

#define BLOCK 1000
#define BLOCKS 400

static struct { struct sink *s; atomic_int next; uint8_t data[BLOCK * BLOCKS]; } shared;

static void *write_blocks(void *arg)
{
	int i;

	(void)arg;
	while ((i = atomic_fetch_add(&shared.next, 1)) < BLOCKS)
		if (sink_write(shared.s, shared.data + i * BLOCK, BLOCK, (uint64_t)i * BLOCK, 0, NULL) != 0)
			return "write failed";
	return NULL;
}

static void side_by_side(void **state)
{
	static uint8_t back[BLOCK * BLOCKS];
	pthread_t t[4];
	void *bad;
	int i, round;

	(void)state;
	for (i = 0; i < BLOCK * BLOCKS; i++)
		shared.data[i] = (uint8_t)(i * 31 >> 3);
	for (round = 0; round < 20; round++) {
		shared.s = make("f", BLOCK * BLOCKS);
		atomic_store(&shared.next, 0);
		for (i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&t[i], NULL, write_blocks, NULL), 0);
		for (i = 0; i < 4; i++) {
			pthread_join(t[i], &bad);
			assert_null(bad);
		}
		assert_int_equal(offer_commit(shared.s, NULL), 0);
		sink_unref(shared.s);
		assert_int_equal(fx_read("f", back, sizeof back), sizeof back);
		assert_memory_equal(back, shared.data, sizeof back);
	}
}

/* Given up while others write: they fail or succeed, and never write to what has
 * been closed (the descriptors' numbers are taken at once by another file). */
static void discard_while_written(void **state)
{
	pthread_t t[4];
	int i, round, bait;

	(void)state;
	for (round = 0; round < 50; round++) {
		shared.s = make("f", BLOCK * BLOCKS);
		atomic_store(&shared.next, 0);
		for (i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&t[i], NULL, write_blocks, NULL), 0);
		while (atomic_load(&shared.next) < 5 + round)
			;
		sink_discard(shared.s);
		bait = open(fx_path("bait"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		for (i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		close(bait);
		fx_holds("bait", "");
		sink_unref(shared.s);
		assert_int_equal(fx_count(""), 1);
	}
}

/* Whether the rules keep `name` as it is, for a source of 3 bytes of the year 2001. */
static bool kept(const char *name, unsigned rules)
{
	const struct meta m = { .mtime = { .tv_sec = 1000000000 } };
	struct sink *s = sink_new(fx_root, name, 3, &m, &(struct sink_opts){ .block_bytes = 1 << 20,
	    .rules.flags = rules });
	struct sink_existing look;

	assert_int_equal(sink_inspect(s, &look, NULL), 0);
	sink_unref(s);
	return look.found == SINK_KEPT;
}

static void kept_by_rules(void **state)
{
	(void)state;
	fx_text("file", "abc"); /* newer, and of the same size */
	fx_mkdir("dir");
	assert_int_equal(symlink("nowhere", fx_path("link")), 0);
	assert_false(kept("file", 0) || kept("missing", 0) || kept("link", 0));
	assert_true(kept("file", RULE_IGNORE_EXISTING) && kept("file", RULE_UPDATE));
	assert_true(kept("link", RULE_IGNORE_EXISTING));
	assert_false(kept("link", RULE_UPDATE) || kept("link", RULE_SIZE_ONLY));
	assert_false(kept("missing", RULES_ALL & ~(unsigned)RULE_EXISTING));
	assert_true(kept("missing", RULE_EXISTING));
	assert_false(kept("file", RULE_EXISTING) || kept("link", RULE_EXISTING) || kept("dir", RULE_EXISTING));
	assert_true(kept("file", RULE_EXISTING | RULE_UPDATE));
	assert_false(fx_exists("missing"));
}

static void own_names(void **state)
{
	char name[PART_NAME_BYTES];

	(void)state;
	assert_true(part_is_own_name(part_name(name, "x", PART_SUFFIX)));
	assert_true(part_is_own_name(part_name(name, "", PART_LINK_SUFFIX)));
	assert_true(part_is_own_name(part_name(name, "\n", PART_JOURNAL_SUFFIX)));
	assert_false(part_is_own_name(""));
	assert_false(part_is_own_name(".ptcp-"));
	assert_false(part_is_own_name(".ptcp-0123456789abcdef"));
	assert_false(part_is_own_name(".ptcp-0123456789abcdefg.part"));
	assert_false(part_is_own_name("x.ptcp-0123456789abcdef.part"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fx_tree_test(one_file), fx_tree_test(a_size_at_the_end), fx_tree_test(a_kept_beginning),
		fx_tree_test(empty_file), fx_tree_test(larger_than_files_can_be), fx_tree_test(hole_at_the_end),
		fx_tree_test(metadata), fx_tree_test(default_acl), fx_tree_test(odd_names),
		fx_tree_test(replaces), fx_tree_test(leftovers), fx_tree_test(planted), fx_tree_test(lost_its_name),
		fx_tree_test(busy), fx_tree_test(parts_of_two), fx_tree_test(an_unfinished_part_of_its_own),
		fx_tree_test(no_part_of_its_own),
		fx_tree_test(taken_over), fx_tree_test(empty_one_meanwhile), fx_tree_test(told_late),
		fx_tree_test(told_at_once),
		fx_tree_test(discard), fx_tree_test(give_up), fx_tree_test(faults), fx_tree_test(short_writes),
		fx_tree_test(side_by_side), fx_tree_test(discard_while_written), fx_tree_test(own_names),
		fx_tree_test(kept_by_rules),
	};
	return cmocka_run_group_tests_name("store/sink", tests, NULL, NULL);
}
