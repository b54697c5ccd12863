/* Which of an overlay's hosts this one is: ptcp_overlay_here(), ptcp_overlay_there(); and what they are called. */
#ifndef COLLECT_HERE_H
#define COLLECT_HERE_H

#include <ptcp/plan.h>

const char *here_name(const struct ptcp_overlay *o, int host);

#endif
