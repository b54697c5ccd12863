/* The cases of tests/hostile: each returns when the other side did what it must, else it dies. */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include "peer.h"

struct hostile {
	const char *name;
	void (*run)(unsigned port, char **arguments);
};

extern int hostile_listener;
extern const struct hostile hostile_client[], hostile_grants[], hostile_server[];

#endif
