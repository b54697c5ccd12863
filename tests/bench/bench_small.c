/* Microseconds and system calls for a small file: received and sent by the store,
 * and beside each the least that any program does.
 *
 *   bench_small [DIRECTORY [FILES]]     (default: /dev/shm, 20000 of 10 KiB)
 *   bench_small DIRECTORY FILES PHASE   one phase only, for strace -c */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "store/sink.h"
#include "store/source.h"

#define BYTES 10240
#define PER_DIR 200

static uint8_t data[BYTES];
static const struct meta meta = { .set_mode = true, .set_mtime = true, .mode = 0644, .mtime = { 1000000000, 5 } };
static int files = 20000;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void must(int r, const struct ptcp_err *e)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s\n", e->msg);
	exit(1);
}

/* Each phase works in the directory `root`. */

static void receive(const char *root)
{
	struct tree *t;
	struct dir *top, *d = NULL;
	struct ptcp_err e;
	struct store_item one;
	struct sink *s;
	char name[30];
	int i;

	must(tree_open(&t, root, &sys_real, &e), &e);
	top = tree_root(t);
	for (i = 0; i < files; i++) {
		if (i % PER_DIR == 0) {
			dir_unref(d);
			snprintf(name, sizeof name, "d%d", i / PER_DIR);
			must(store_mkdir(top, name, &meta, NULL, &e), &e);
			d = dir_child(top, name);
		}
		snprintf(name, sizeof name, "f%d", i);
		if ((s = sink_new(d, name, BYTES, &meta, NULL)) == NULL)
			die("sink");
		must(sink_write(s, data, BYTES, 0, 0, &e), &e);
		one = (struct store_item){ .sink = s, .why = &e };
		store_complete(&one, 1, STORE_SYNC_NONE);
		must(one.result, &e);
		sink_unref(s);
	}
	dir_unref(d);
	dir_unref(top);
	tree_unref(t);
}

/* open, write, close, rename, with full paths; no mode, no time, no lock. */
static void receive_least(const char *root)
{
	char temp[500], name[500];
	int i, fd;

	for (i = 0; i < files; i++) {
		snprintf(name, sizeof name, "%s/d%d", root, i / PER_DIR);
		if (i % PER_DIR == 0 && mkdir(name, 0755) != 0)
			die("mkdir");
		snprintf(name, sizeof name, "%s/d%d/f%d", root, i / PER_DIR, i);
		snprintf(temp, sizeof temp, "%s/d%d/.f%d", root, i / PER_DIR, i);
		fd = open(temp, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || write(fd, data, BYTES) != BYTES || close(fd) != 0 ||
		    rename(temp, name) != 0)
			die(name);
	}
}

static void send_all(const char *root)
{
	struct tree *t;
	struct dir *top;
	struct ptcp_err e;
	struct walk *w;
	struct walk_entry entry;
	struct source *s;
	int r, again = 0;

	must(tree_open(&t, root, &sys_real, &e), &e);
	top = tree_root(t);
	must(walk_new(&w, NULL, &e), &e);
	must(walk_add(w, top, NULL, &e), &e);
	while ((r = walk_next(w, &entry, &e)) == 1) {
		if (entry.type != WALK_FILE) {
			walk_entry_fini(&entry);
			continue;
		}
		if ((s = source_new(&entry)) == NULL)
			die("source");
		must(r = source_read(s, data, BYTES, 0, false, &e), &e);
		if (r == STORE_AGAIN) {
			again++;
			must(source_read(s, data, BYTES, 0, true, &e), &e);
		}
		source_unref(s);
	}
	must(r, &e);
	if (again > 0)
		printf("%d reads would have waited\n", again);
	walk_free(w);
	dir_unref(top);
	tree_unref(t);
}

/* open, read, close with full paths that are known already. */
static void send_least(const char *root)
{
	char name[500];
	int i, fd;

	for (i = 0; i < files; i++) {
		snprintf(name, sizeof name, "%s/d%d/f%d", root, i / PER_DIR, i);
		fd = open(name, O_RDONLY);
		if (fd < 0 || read(fd, data, BYTES) != BYTES || close(fd) != 0)
			die(name);
	}
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type;
	return ftw->level == 0 ? 0 : remove(path);
}

static const struct { const char *name; void (*run)(const char *root); int empty; } phases[] = {
	{ "receive-least", receive_least, 1 },
	{ "receive", receive, 1 },
	{ "send-least", send_least, 0 },
	{ "send", send_all, 0 },
};

int main(int argc, char **argv)
{
	const char *only = argc > 3 ? argv[3] : NULL;
	char root[400];
	struct mono start;
	size_t i;
	int round;

	if (argc > 2)
		files = atoi(argv[2]);
	snprintf(root, sizeof root, "%s/ptcp-bench-XXXXXX", argc > 1 ? argv[1] : "/dev/shm");
	if (mkdtemp(root) == NULL)
		die(root);
	memset(data, 'x', sizeof data);
	for (round = 0; round < (only != NULL ? 1 : 3); round++) {
		for (i = 0; i < sizeof phases / sizeof *phases; i++) {
			if (only != NULL && strcmp(only, phases[i].name) != 0)
				continue;
			if (phases[i].empty)
				nftw(root, remove_one, 64, FTW_DEPTH | FTW_PHYS);
			else if (only != NULL)
				receive_least(root);
			start = mono_now();
			phases[i].run(root);
			printf("%-14s %7.2f us a file\n", phases[i].name,
			    (double)mono_diff_ns(mono_now(), start) / 1000 / files);
		}
	}
	nftw(root, remove_one, 64, FTW_DEPTH | FTW_PHYS);
	return rmdir(root) == 0 ? 0 : 1;
}
