/* The cases of tests/hostile: each returns when the other side did what it must, else it dies. */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include "peer.h"

struct hostile {
	const char *name;
	void (*run)(unsigned port, char **arguments);
};

extern int hostile_listener;
/* Says "open", then waits until our stdin ends: the script looks at the server meanwhile. */
void hold(void);
/* Of clients: what breaks the rules, what wants too much, what never says who it is. */
extern const struct hostile hostile_client[], hostile_greedy[], hostile_strangers[], hostile_server[];
/* What steers, or says what it has seen, as nobody should: clients and servers. */
extern const struct hostile hostile_steerers[], hostile_steered[];
/* A bad relay that is to store. */
extern const struct hostile hostile_keeper[];
/* Bad hosts that are asked for jobs. */
extern const struct hostile hostile_doers[];
/* Bad sources of a collection. */
extern const struct hostile hostile_sources[];
/* What uses grants that are not for this. */
extern const struct hostile hostile_grants[];
/* What misuses routes, jobs, and control connections that are replaced. */
extern const struct hostile hostile_between[], hostile_relay[];
/* What tells, or asks, what is known of links. */
extern const struct hostile hostile_lying[], hostile_askers[];
/* What cleans, or reports what was removed. */
extern const struct hostile hostile_cleaners[], hostile_cleaning[];
/* What works on files, or reports on them. */
extern const struct hostile hostile_managers[], hostile_managed[];
/* What makes a server hold memory. */
extern const struct hostile hostile_holders[];
/* What disturbs a host from within: arguments as they are. */
extern const struct hostile hostile_local[];

#endif
