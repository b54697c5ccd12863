/* Quotas of a server's clients: the space used beneath each client's directory, counted when a session begins and the
 * last count is old, and adjusted by the server's own changes until then (fs/quota.h). */
#ifndef SERVER_QUOTA_TABLE_H
#define SERVER_QUOTA_TABLE_H

#include "core/log.h"
#include "core/memory_budget.h"
#include "fs/dir.h"
#include "fs/io.h"

struct quota_table;

/* `io` and `log` outlive the table; `io` may be set later, before the first use. */
int quota_table_new(struct quota_table **out, const struct log *log, struct ptcp_err *e);
/* No count is in progress. NULL is fine. */
void quota_table_free(struct quota_table *t);

enum quota_need {
	QUOTA_NONE,    /* the work changes nothing */
	QUOTA_ADJUST,  /* the work only frees space: no count */
	QUOTA_SHOW,    /* the work shows the usage; after a count that is not whole, a lower bound */
	QUOTA_COUNT    /* the work makes files */
};

/* I/O thread: gives the tree its quota; before the tree's first use. 1: a count is necessary, and `again` will be
 * submitted to `io` after it, to repeat the call. A count that is not whole refuses QUOTA_COUNT. The client of
 * `memory` is charged for what the table remembers of the directory, and the count; NULL: no limit. */
int quota_table_apply(struct quota_table *t, struct io *io, struct tree *tree, uint64_t limit_bytes,
    enum quota_need need, struct memory_account *memory, struct io_job *again, struct ptcp_err *e);

struct quota_entry {
	const char *path; /* path of the directory; valid during the call */
	uint64_t used_bytes, limit_bytes;
};
/* Calls `each` for every counted directory. Any thread. */
void quota_table_each(struct quota_table *t, void (*each)(void *arg, const struct quota_entry *q), void *arg);

#endif
