/* Published link estimates of a server (PROTOCOL.md, section 13). Any thread. */
#ifndef SERVER_LINK_TABLE_H
#define SERVER_LINK_TABLE_H

#include <ptcp/ptcp.h>
#include <pthread.h>

#include "wire/outbox.h"

struct link_table {
	pthread_mutex_t mutex;
	struct link_table_entry *entry; /* NULL: the server does not measure links */
	size_t n;
};

void link_table_init(struct link_table *k);
void link_table_fini(struct link_table *k);

/* As ptcp_server_set_links(). */
int link_table_set(struct link_table *k, const struct ptcp_published_link *l, size_t n, struct ptcp_err *e);
/* Number of links with an estimate. */
unsigned link_table_count(struct link_table *k);
/* Puts a LINK for each link, with the present age. False: the server does not measure links. */
bool link_table_put(struct link_table *k, struct outbox *o);

#endif
