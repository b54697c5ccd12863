/* The process behind a lab: makes its namespaces, holds them, starts the emulator
 * and clears everything away when the emulator ends, when it is told to (SIGTERM)
 * or when the process ends that the lab was made for. */
#ifndef LAB_KEEPER_H
#define LAB_KEEPER_H

#include <ptcp/err.h>

#include "topo.h"

struct keeper_opts {
	const char *name;
	const char *topology;  /* path, for the state file */
	int lock_fd;           /* the lab's lock, which the keeper then holds */
	int with_pidfd;        /* the lab ends with this process; -1: no such */
};

/* Start one in the background; 0 when the lab is up. Closes lock_fd. On failure
 * nothing is left of the lab. */
int keeper_start(const struct topo *t, const struct keeper_opts *o, struct ptcp_err *e);

#endif
