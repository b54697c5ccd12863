/* What a lab leaves on disk while it is up: a directory with a lock that its keeper
 * holds, a file saying where its namespaces are, the control socket, a hosts file
 * and a log. A directory whose lock is free is what a crashed lab left. */
#ifndef LAB_STATE_H
#define LAB_STATE_H

#include <limits.h>
#include <ptcp/err.h>
#include <stdint.h>
#include <sys/types.h>

#include "ns.h"
#include "topo.h"

struct state_host {
	char name[TOPO_NAME_BYTES];
	uint32_t address;
	int fd;            /* of the keeper: the namespace */
	struct ns_id id;
};

struct state {
	char name[TOPO_NAME_BYTES];
	char topology[PATH_MAX];
	pid_t keeper, emulator;
	int user_fd;       /* of the keeper: the user namespace, -1 */
	int hosts;
	struct state_host *host; /* malloc'ed */
};

/* Path of a file of lab `name`; "" for its directory. */
int state_path(char *buf, size_t size, const char *name, const char *file, struct ptcp_err *e);

/* Create the lab's directory where there is none, and take its lock. Returns the
 * lock's descriptor, or PTCP_EREFUSED if somebody holds it. */
int state_create(const char *name, struct ptcp_err *e);

/* The same for a directory that exists; PTCP_ENOTYET if there is none. */
int state_lock(const char *name, struct ptcp_err *e);

int state_write(const struct state *s, struct ptcp_err *e);
int state_read(struct state *s, const char *name, struct ptcp_err *e);
void state_fini(struct state *s);

/* Remove the directory; the caller holds its lock. */
void state_remove(const char *name);

/* Names of all labs of this user, up or crashed; 0 or an error. Free each and all. */
int state_list(char ***names, int *n, struct ptcp_err *e);

/* Whether `name` may name a lab: letters, digits, - _ . and not too long. */
int state_name_ok(const char *name);

/* If the lab crashed: end what still runs in it and remove it. Returns 1 if it was
 * so, 0 if the lab is up or is not. Leaves a directory without a state file that
 * somebody locks alone. */
int state_clear_crashed(const char *name, struct ptcp_err *e);

#endif
