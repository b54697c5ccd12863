/* Inside a mover process: mover_process.c (start, clients' connections, end), work.c (joining, the engine's frames),
 * work_files.c (sources by path), work_streams.c, work_targets.c. Control thread. */
#ifndef WORK_WORK_IMPL_H
#define WORK_WORK_IMPL_H

#include <stdatomic.h>

#include "conn/connect.h"
#include "conn/inbound.h"
#include "conn/io_call.h"
#include "core/list.h"
#include "mover/invitation.h"
#include "mover/link.h"
#include "net/listen.h"
#include "stream/stream.h"
#include "work/work.h"

#define WORK_DIRS 64 /* directories used last */

/* A root of the invitation: a directory, or a single file in one. */
struct work_root {
	struct tree *tree;
	char *only;                 /* the file; NULL: a directory */
};

/* Sources described by the engine, and the directories used last. */
struct work_files {
	struct work_root root[INVITATION_ROOTS_MAX];
	unsigned n_roots;
	struct { uint64_t id; struct source *source; } *slot; /* WIRE_SLOTS */
	struct { char *path; unsigned root; struct dir *dir; } recent[WORK_DIRS];
};

struct target_flush;

/* Part files described by the engine, and results of blocks. */
struct work_targets {
	struct open_files files;
	struct sink_lease lease;    /* the engine has not given this mover up */
	bool durable;               /* blocks are on disk before they are reported */
	struct target_result *first, **last; /* results that are not flushed yet */
	struct target_flush *flush; /* flush on an I/O thread; or NULL */
};

struct work;

/* The process of a mover. */
struct mover_process {
	const struct ptcp_mover_opts *o;
	struct loop *loop;
	struct context context;
	struct invitation invitation;
	struct work_files files;    /* opened before confinement, for the first work */
	unsigned address;           /* index of the engine's address that is being tried */
	struct list works;
	struct work *first;         /* work of the invitation; the process ends with it */
	struct listener *listener;  /* listener of a server's mover, for clients; else NULL */
	struct pending pending;
	bool over;
	int result;
	struct ptcp_err why;
};

/* The session of INVITE, whose data connections the mover accepts. */
struct work_session {
	uint8_t id[WIRE_SESSION_BYTES], join[32];
	char peer[PTCP_FINGERPRINT_BYTES], near[SOCK_HOST_BYTES], congestion[WIRE_CONGESTION_MAX + 1];
	enum ptcp_cipher cipher;
	uint8_t flags;              /* enum wire_stream_flags */
	unsigned streams;
	uint64_t timeout_ns;
};

/* A set of movers that the process has joined: of a transfer, of a server, or of a session of the server. */
struct work {
	struct list in_list;
	struct mover_process *process;
	struct loop *loop;          /* the process's */
	uint8_t run[WIRE_SESSION_BYTES], key[32]; /* identify the set of movers */
	struct work_session *session; /* NULL: none */
	bool serves;                /* the engine is a server's, and sends INVITE only */
	bool receives;              /* files of TARGET; else files of SOURCE are sent */
	struct pacer pacer;
	struct direct_io direct_io; /* used if the invitation demands it */
	struct work_files files;
	struct work_targets targets;
	struct connect *connect;    /* connection to the engine */
	struct mover_link *link;    /* link to the engine, once connected */
	struct timer *timer;
	struct list streams;
	unsigned n_streams;
	uint32_t last_handle;       /* handle of the last accepted connection */
	unsigned n_io;              /* jobs of work_targets.c on I/O threads */
	bool over, ended_posted;
	int result;
	struct ptcp_err why;
	struct msg ended;
};

/* ---- mover_process.c ---- */

/* All of the work has ended: frees it. */
void process_ended(struct work *w);
unsigned process_port(const struct mover_process *p);

/* ---- work.c ---- */

/* Joins the engine of the process. `session` is taken, also on failure. */
int work_new(struct work **out, struct mover_process *p, const uint8_t run[WIRE_SESSION_BYTES], const uint8_t key[32],
    struct work_session *session, struct ptcp_err *e);
void work_free(struct work *w);
/* Ends the work; `why` NULL: in order. */
void work_end(struct work *w, const struct ptcp_err *why);
/* For the files of the work; NULL: they use the page cache. */
static inline struct direct_io *work_direct_io(struct work *w)
{
	return w->process->invitation.direct_io ? &w->direct_io : NULL;
}
/* Something that the end waits for is done. */
void work_step_ended(struct work *w);

/* ---- work_files.c ---- */

/* PTCP_ECONFIG: a root is missing on the host, even after `wait_ns`. */
int work_files_open(struct work_files *f, const struct invitation *v, uint64_t wait_ns, struct ptcp_err *e);
void work_files_fini(struct work_files *f);
/* PTCP_EPROTO: the path leaves the root. */
int work_files_add(struct work_files *f, const struct wire_source *s, struct direct_io *direct, struct ptcp_err *e);
/* The directory (a reference) and name (on the heap) of a part file. PTCP_EPROTO: not a part file beneath a root. */
int work_files_target(struct work_files *f, const struct wire_target *t, struct dir **dir, char **name,
    struct ptcp_err *e);
void work_files_forget(struct work_files *f, uint64_t id);
/* NULL: unknown. Borrowed. */
struct source *work_files_find(const struct work_files *f, uint64_t id);

/* ---- work_streams.c ---- */

/* PTCP_EPROTO: a request no engine makes. */
int work_on_stream(struct work *w, const struct wire_stream *f, struct ptcp_err *e);
int work_on_pass(struct work *w, const struct wire_pass *f, struct ptcp_err *e);
int work_on_send(struct work *w, const struct wire_send *f, struct ptcp_err *e);
int work_on_check(struct work *w, const struct wire_check *f, struct ptcp_err *e);
int work_on_stop(struct work *w, const struct wire_stop *f, struct ptcp_err *e);
int work_on_pace(struct work *w, const struct wire_pace *f, struct ptcp_err *e);
void work_report_traffic(struct work *w);
/* The engine has answered about the file that streams wait for. */
void work_streams_known(struct work *w, uint64_t id);
/* A data connection of the session has joined; `c` is taken. */
void work_accept(struct work *w, struct chan *c, unsigned number);
bool work_stream_is_there(const struct work *w, uint32_t handle);
/* After work_end(): stops all streams; the loop stops after the last stream. */
void work_stop_streams(struct work *w);

/* ---- work_targets.c ---- */

void work_targets_init(struct work_targets *t);
void work_targets_fini(struct work_targets *t);
/* PTCP_EPROTO: a request no engine makes. */
int work_on_target(struct work *w, const struct wire_target *f, struct ptcp_err *e);
int work_on_close(struct work *w, const struct wire_close *f, struct ptcp_err *e);
/* A stream waits for the file. True: the engine is to be asked. */
bool work_target_missing(struct work *w, uint64_t id);
/* Flushes the blocks, then reports them. */
void work_targets_received(struct work *w, uint32_t handle, struct stream_results *results);

#endif
