/* Internals of trees and nodes: dir.c (nodes), dir_open.c (opening and path resolution), fs_err.c (paths
 * as text). */
#ifndef FS_DIR_IMPL_H
#define FS_DIR_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "core/list.h"
#include "fs/dir.h"
#include "fs/file_system.h"

struct dir {
	struct tree *tree;
	struct dir *parent; /* a reference; NULL for the root */
	atomic_uint refs;
	bool resolved;      /* `name` is a path from the root, whose links are followed */
	_Atomic uint64_t changes, synced; /* number of changes, and of durable changes */
	_Atomic uint64_t in_place; /* the last check that found the directory in its place; 0: none */
	/* Under tree->lock: */
	int fd;             /* -1 when closed */
	unsigned pins;      /* the root is pinned for life */
	bool known;         /* dev and ino are set, by the first opening */
	dev_t dev;
	ino_t ino;
	struct list idle;   /* member of tree->idle while open and not pinned */
	char name[];
};

/* File systems of one tree: a record does not change, and a later one of a device counts. Beyond the last record file
 * systems are unknown. */
struct known_file_systems {
	struct known_file_system {
		dev_t dev;
		struct file_system is;
	} of[16];
	unsigned n;
};

struct tree {
	const struct sys *sys;
	pthread_mutex_t lock;
	struct list idle; /* least recently used first */
	unsigned open, max_open, counted; /* counted: those in the descriptor budget, the others are not cached */
	mode_t umask;
	atomic_bool no_cached; /* the kernel lacks RESOLVE_CACHED */
	_Atomic uint64_t fs_hint; /* dev << 2 | hint */
	_Atomic uint64_t checks; /* number of dir_check_new() */
	enum dir_follow follow;
	struct excluded *excluded; /* owned; NULL: nothing is excluded */
	struct quota *quota; /* owned; NULL: none */
	struct known_file_systems file_systems; /* under `lock` */
	struct dir *root;
	char *path; /* path of the root, as given */
	size_t below; /* where the part of `path` begins that lies beneath the tree of tree_below(); else its length */
};

/* After closing a directory other than the root, with tree->lock held. */
void dir_closed(struct tree *t);

/* Of a tree that ends; NULL is fine. */
void quota_free(struct quota *q);

/* A node for `name`, of n bytes, below `parent` (NULL: the root). NULL without memory. */
struct dir *dir_node_new(struct tree *t, struct dir *parent, const char *name, size_t n);

#endif
