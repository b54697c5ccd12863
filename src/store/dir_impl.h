/* The inside of trees and their nodes, for dir.c (nodes and what is kept with them), dir_open.c (opening them)
 * and dir_path.c (paths of several names). */
#ifndef STORE_DIR_IMPL_H
#define STORE_DIR_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "core/list.h"
#include "store/dir.h"

struct dir {
	struct tree *tree;
	struct dir *parent; /* held; NULL for the root */
	atomic_uint refs;
	bool resolved;      /* name is a path from the root; links in it are followed */
	_Atomic uint64_t changes, synced; /* all changes up to that number are durable */
	/* Under tree->lock: */
	int fd;             /* -1 when closed */
	unsigned pins;      /* the root has one for life */
	bool known;         /* dev and ino are those of the first opening */
	dev_t dev;
	ino_t ino;
	struct list idle;   /* in tree->idle while open and not pinned */
	char name[];
};

struct tree {
	const struct sys *sys;
	pthread_mutex_t lock;
	struct list idle; /* the longest unused first */
	unsigned open, most_open;
	mode_t umask;
	atomic_bool no_cached; /* this kernel has no RESOLVE_CACHED */
	_Atomic uint64_t note;  /* dev << 2 | note */
	struct dir *root;
};

/* A node for `name`, n bytes, below `parent`, which it holds (NULL: it is the root). NULL without memory. */
struct dir *dir_node_new(struct tree *t, struct dir *parent, const char *name, size_t n);

#endif
