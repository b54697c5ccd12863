/* libFuzzer target: the paths of a peer's OPEN, beneath a root that has links out of it, links to links and
 * something that only looks like a directory. Whatever it asks for, where it lands is beneath the root. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"
#include "fuzz.h"
#include "scratch.h"
#include "store/destination.h"

static char beneath[200]; /* the root, as the kernel has it */

static void build(void)
{
	scratch_empty();
	MUST(mkdir(scratch_path("root"), 0700) == 0 && mkdir(scratch_path("outside"), 0700) == 0);
	MUST(mkdir(scratch_path("root/dir"), 0700) == 0 && mkdir(scratch_path("root/dir/sub"), 0700) == 0);
	MUST(symlink("dir", scratch_path("root/in")) == 0 && symlink("../outside", scratch_path("root/out")) == 0);
	MUST(symlink("/etc", scratch_path("root/etc")) == 0 && symlink("out", scratch_path("root/twice")) == 0);
	MUST(symlink("../..", scratch_path("root/dir/up")) == 0 && symlink("loop", scratch_path("root/loop")) == 0);
	scratch_write("root/file", (struct input){ (const uint8_t *)"x", 1 });
	MUST(realpath(scratch_path("root"), beneath) != NULL);
}

/* Nothing may be there: then it is its parent's business. */
static void check(struct dir *d)
{
	char link[64], path[4096];
	ssize_t n;
	int fd = dir_fd(d, NULL);

	if (fd < 0)
		return;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	MUST(n > 0);
	path[n] = '\0';
	MUST(strncmp(path, beneath, strlen(beneath)) == 0);
	MUST(path[strlen(beneath)] == '\0' || path[strlen(beneath)] == '/');
	dir_fd_done(d);
}

static void one(struct tree *tree, const char *path, uint8_t how)
{
	char name[DESTINATION_NAME_BYTES];
	struct destination p = { 0 };
	struct ptcp_err e;
	struct dir *d;

	if (destination_source(tree, path, (how & 1) != 0, &d, name, &e) == 0) {
		MUST(name[0] == '\0' || text_name_ok(name, strlen(name)));
		check(d);
		dir_unref(d);
	}
	if (destination_target(&p, tree, path, (how & (DESTINATION_INTO_DIR | DESTINATION_CONTENTS |
	    DESTINATION_DRY_RUN)) | ((how & 8) != 0 ? DESTINATION_MKPATH : 0), &e) == 0) {
		MUST(p.rename[0] == '\0' || text_name_ok(p.rename, strlen(p.rename)));
		check(p.base);
		if (p.above != NULL)
			check(p.above);
		destination_fini(&p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static bool built;
	struct input in = { data, n };
	struct tree *tree;
	uint8_t how = take_byte(&in);
	char *path;

	if (!built || (how & DESTINATION_DRY_RUN) == 0)
		build();
	built = (how & DESTINATION_DRY_RUN) != 0;
	MUST(tree_open(&tree, scratch_path("root"), &sys_real, NULL) == 0);
	while (in.n > 0) {
		path = take_line(&in);
		one(tree, path, how);
		free(path);
	}
	tree_unref(tree);
	return 0;
}
