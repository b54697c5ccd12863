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
/* Peers that use grants for another purpose, host, key or path. */
extern const struct hostile hostile_grants[];
/* Peers that misuse routes, jobs and replaced control connections. */
extern const struct hostile hostile_between[], hostile_relay[];
/* Peers that report, or request, measurements of links. */
extern const struct hostile hostile_lying[], hostile_askers[];
/* Peers that remove leftovers, or report removals. */
extern const struct hostile hostile_cleaners[], hostile_cleaning[];
/* Peers that list and change files, or report on them. */
extern const struct hostile hostile_managers[], hostile_managed[];
/* Peers that make a server hold memory. */
extern const struct hostile hostile_holders[];
/* Senders that lie about the blocks of existing files. */
extern const struct hostile hostile_comparers[];
/* Movers of striped transfers, and engines. */
extern const struct hostile hostile_movers[], hostile_engines[];
/* Processes on the same host; their arguments are passed unchanged. */
extern const struct hostile hostile_local[], hostile_local_user[];

#endif
