/* Watches a descriptor for input. Everything on the thread of the loop. */
#ifndef NET_WATCH_H
#define NET_WATCH_H

#include "net/loop.h"

struct watch;
/* `readable` is called while the descriptor has input, its end or an error to read, and may free the watch. The
 * descriptor remains the caller's, who closes it after watch_free(). */
int watch_new(struct watch **out, struct loop *l, int fd, void (*readable)(void *arg), void *arg, struct ptcp_err *e);
/* Calls nothing until released. */
void watch_hold(struct watch *w, bool hold);
void watch_free(struct watch *w); /* NULL is fine */

#endif
