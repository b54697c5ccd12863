/* The inside of a walk, for walk.c (the order) and walk_entry.c. */
#ifndef STORE_WALK_IMPL_H
#define STORE_WALK_IMPL_H

#include "store/walk.h"

/* Fills out, which has dir, name and depth, with what is there. */
int walk_look(struct walk_entry *out, struct ptcp_err *why);
/* It is not sent, which `why` and out->why say. */
int walk_skip(struct walk_entry *out, const char *text, struct ptcp_err *why);

#endif
