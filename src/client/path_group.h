/* The group of a path on this host: transfers and measurements of one user, between the same addresses and names, in
 * one direction (model/stream_group.h). Each group has a file in a runtime directory of the user (core/userdir.h),
 * named by a hash of the path:
 *
 *   the order of the leader: a share for each member, and the levels so far, as a line of the history
 *   a record for each member: sums of its samples
 *
 * A member has a lock on the byte of its place, and the leader one on a further byte. The kernel releases both when a
 * process ends, so that another member leads at its next sample. Records are written as a whole, and count if the
 * numbers at both ends are equal. The directory is locked while members come and go; the last removes the file. */
#ifndef CLIENT_PATH_GROUP_H
#define CLIENT_PATH_GROUP_H

#include "model/history.h"
#include "model/stream_group.h"

struct path_group;

/* Joins, as a member of this kind; dir: as for history_find(), NULL: a runtime directory. NULL with *e: no directory
 * could be used, or there are too many members; the transfer then controls its streams alone. Blocks for a second at
 * most. */
struct path_group *path_group_join(const char *dir, const struct history_key *key, enum stream_member_kind kind,
    double budget_ratio, struct ptcp_err *e);
/* Earlier members, of any kind. */
unsigned path_group_others(const struct path_group *g);
/* The member begins to send with this congestion control, or continues with another. True: the member leads; otherwise
 * it follows until the leader ends. */
bool path_group_begin(struct path_group *g, const char *congestion);
/* As stream_count_group.add; arg: the group. */
bool path_group_add(void *arg, struct stream_control *model, const struct stream_control_sample *x,
    struct stream_share *out);
/* As stream_count_group.budget: another impact budget of the member. */
void path_group_budget(void *arg, double ratio);
/* NULL is fine. */
void path_group_leave(struct path_group *g);

#endif
