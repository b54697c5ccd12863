/* The server's configuration and state directories, which no client may reach. */
#ifndef SERVER_OWN_DIRS_H
#define SERVER_OWN_DIRS_H

#include "core/log.h"
#include "core/userdir.h"
#include "fs/dir.h"

struct own_dirs {
	char path[2][USERDIR_BYTES]; /* "": none */
	int fd[2];                   /* descriptors by O_PATH: moving the directories does not help; -1: none */
};

/* Creates a missing state directory, if possible: a client whose root contains its place must not create it. Before
 * confinement. */
int own_dirs_open(struct own_dirs *o, const char *config_dir, struct ptcp_err *e);
void own_dirs_close(struct own_dirs *o);

/* Excludes both directories, as of the start and as of now, from `tree`. PTCP_EREFUSED: the root lies in one of them.
 * May block on disk. */
int own_dirs_exclude(const struct own_dirs *o, struct tree *tree, struct ptcp_err *e);

/* At the start: refuses a root in one of the directories, and warns of a root that contains the configuration. */
int own_dirs_check_root(const struct own_dirs *o, const char *root, const struct log *log, struct ptcp_err *e);

#endif
