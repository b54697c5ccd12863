/* The connections that a handle of the user keeps between tasks. */
#ifndef CLIENT_KEPT_HOST_H
#define CLIENT_KEPT_HOST_H

struct chan;
struct ptcp_task;

/* For a task on files that is about to connect to t->target: a kept connection, attached to no loop; or NULL. */
struct chan *host_take(struct ptcp_task *t);
/* At the end of a task: keeps its connection, and clears t->chan, if the task keeps connections and the answer is
 * complete. */
void host_give(struct ptcp_task *t);

#endif
