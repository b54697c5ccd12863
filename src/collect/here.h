/* Which of an overlay's hosts this one is. */
#ifndef COLLECT_HERE_H
#define COLLECT_HERE_H

#include <ptcp/plan.h>

/* The host of that name, or (NULL) the one whose address is one of this host's. PTCP_EUSAGE: there is none, or
 * more than one. Waits for the resolver. */
int here_find(int *host, const struct ptcp_overlay *o, const char *name, struct ptcp_err *e);
const char *here_name(const struct ptcp_overlay *o, int host);

#endif
