/* Messages to an object that moves between loops: in order, each runs on the loop where the object then is. */
#ifndef NET_MAILBOX_H
#define NET_MAILBOX_H

#include "net/loop.h"

struct mailbox;

int mailbox_new(struct mailbox **out, struct loop *l, struct ptcp_err *e);
/* Any thread; first in, first out. */
void mailbox_post(struct mailbox *b, struct msg *m);
/* From within a message of the box: the next messages run on `to`, `first` before all others. */
void mailbox_move(struct mailbox *b, struct loop *to, struct msg *first);
/* Any thread, once the last message has begun to run; NULL is fine. */
void mailbox_free(struct mailbox *b);

#endif
