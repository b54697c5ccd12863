/* What the store's tests share: a directory of their own, system calls that can be
 * made to fail, and what is true of every test (no descriptor stays open). */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>

#include "fs/dir.h"
#include "fs/sys.h"

/* cmocka setup and teardown: an empty directory below $TMPDIR; afterwards it is
 * removed, and as many descriptors must be open as before. */
int fx_setup(void **state);
int fx_teardown(void **state);
#define fx_test(f) cmocka_unit_test_setup_teardown(f, fx_setup, fx_teardown)

/* The same with that directory opened as a tree; no part or journal may be left open in the end. */
extern struct tree *fx_tree;
extern struct dir *fx_root;
int fx_tree_setup(void **state);
int fx_tree_teardown(void **state);
#define fx_tree_test(f) cmocka_unit_test_setup_teardown(f, fx_tree_setup, fx_tree_teardown)

/* For tests of many thousand files: from now on that directory is made in memory, if there is
 * such a place and TMPDIR does not say otherwise. */
void fx_in_memory(void);

/* For tests of the page cache of a disk: from now on that directory is made where tests/run says that a disk is. */
void fx_on_disk(void);

/* "PATH/below" of that directory; one of a few buffers used in turn. */
const char *fx_path(const char *below);

int fx_open_fds(void);
/* Of these, of files below that directory. */
int fx_open_files(void);
void fx_write(const char *below, const void *data, size_t n);
void fx_text(const char *below, const char *text);
void fx_mkdir(const char *below);
/* The file's length, or -1 if there is none; at most cap bytes of it in buf. */
long fx_read(const char *below, void *buf, size_t cap);
/* Asserts that the file holds exactly this text. */
void fx_holds(const char *below, const char *text);
int fx_exists(const char *below); /* links are not followed */
/* Entries below that directory of ours, "." and ".." left out. */
int fx_count(const char *below);
int fx_is_root(void);
/* Skips a case about what only calls of Linux can do, in a build without them (make POSIX=1). */
void fx_needs_linux(void);

/* sys_real until told otherwise; but syncing is only counted. */
extern const struct sys fx_sys;
/* What fstatfs() says: a network file system, unless a test sets another type. */
extern long fx_file_system;

#define FX_CALLS(X) \
	X(openat) X(openat2) X(close) X(dup) X(fstat) X(fstatat) X(fstatfs) X(faccessat) X(fdopendir) \
	X(readdir) X(closedir) X(readlinkat) X(preadv2) X(pwrite) X(ftruncate) X(flock) \
	X(fchmod) X(fchmodat) X(futimens) X(utimensat) X(mkdirat) X(symlinkat) X(renameat) \
	X(unlinkat) X(fallocate) X(lseek) X(sendfile) X(cachestat) X(setdirect) X(dioalign) X(clonerange) \
	    X(fsync) X(fdatasync) X(syncfs) X(fchownat) X(flistxattr) \
	X(fgetxattr) X(fsetxattr) X(fremovexattr) X(getxattrat) X(linkat) X(renameat2)

enum fx_call {
#define X(name) FX_##name,
	FX_CALLS(X)
#undef X
	FX_CALLS_N
};

extern atomic_bool fx_clones;                    /* clonerange() copies; else the file system decides */
void fx_heal(void);                             /* nothing fails any more, counts are 0 */
void fx_fail_nth(int nth, int sys);             /* the nth call from now, 1 being the next */
void fx_fail_always(enum fx_call call, int sys);
int fx_failed(void);                            /* how many calls failed by our doing */
int fx_calls(void);                             /* since fx_heal() */
int fx_calls_of(enum fx_call call);
void fx_short_io(size_t most);                  /* reads and writes move no more; 0: all */
/* Called before every system call, on the thread that makes it; NULL for none. */
void fx_before(void (*hook)(enum fx_call call));

#endif
