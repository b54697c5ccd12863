/* Standard input as the source, or standard output as the destination, of a transfer. */
#include <string.h>

#include "client/task_impl.h"
#include "core/err.h"
#include "core/text.h"

#define WINDOW_BYTES (64u << 20) /* in memory: of the input until it is acknowledged, of the output
                                    until it is written */

/* The first given option that has no meaning without files; NULL: none. */
static const char *meaningless(const struct ptcp_task *t)
{
	const struct ptcp_transfer_opts *o = &t->o;
	const struct { bool given; const char *option; } all[] = {
		{ t->files.selection != NULL, "--files-from" }, { o->dry_run, "--dry-run" },
		    { o->delete_extra, "--delete" },
		{ o->remove_sources, "--remove-source-files" }, { o->n_rules > 0, "--exclude or --include" },
		{ o->checksum, "--checksum" }, { o->size_only, "--size-only" }, { o->update, "--update" },
		{ o->older.modify_window_s > 0, "--modify-window" },
		{ o->ignore_existing && !t->files.sends, "--ignore-existing" },
	};
	size_t i;

	for (i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].given)
			return all[i].option;
	return NULL;
}

static int task_pipe_check(const struct ptcp_task *t, bool sends, size_t n_srcs, const char *dest, struct ptcp_err *e)
{
	const char *option = meaningless(t) != NULL ? meaningless(t) : limits_first(t) != NULL ? limits_first(t) :
	    mapping_first(t),
	    *pipe = sends ? "standard input" : "standard output";
	char shown[TEXT_NAME_BYTES];

	if (t->remote_job != NULL)
		return err_set(e, PTCP_EUSAGE, "-: not between two other hosts (leave it out)");
	if (n_srcs != 1)
		return err_set(e, PTCP_EUSAGE, sends ? "-: standard input can only be the only source (send the other "
		    "sources separately)" : "-: only one file can be written to standard output (name one source)");
	if (sends && text_is_contents(t->target.path))
		return err_set(e, PTCP_EUSAGE,
		    "%s: a directory, but standard input has no name (add the name of the file)",
		    text_escape(shown, sizeof shown, dest));
	if (option != NULL)
		return err_set(e, PTCP_EUSAGE, "%s: not with %s (leave it out)", option, pipe);
	return 0;
}

static int new_input(struct ptcp_task *t, struct ptcp_err *e)
{
	const struct pipe_source_opts o = { .fd = t->o.pipe.fd, .block_bytes = WIRE_CHUNK_BYTES,
		.max_blocks = WINDOW_BYTES / WIRE_CHUNK_BYTES, .max_bytes = WIRE_UNSIZED_MAX, .ended = t->o.pipe.ended,
		.arg = t->o.arg };

	/* The file is a new one: an input has no attributes. */
	t->o.preserve.times = t->o.preserve.mode = t->o.preserve.owner = t->o.preserve.xattr =
	    t->o.preserve.acl = t->o.preserve.setid = false;
	return pipe_source_new(&t->files.input, &o, e);
}

int task_take_pipe(struct ptcp_task *t, const char *const *srcs, size_t n_srcs, const char *dest, struct ptcp_err *e)
{
	bool sends = t->files.sends, found = !sends && text_is_stdio(dest);
	size_t i;
	int r;

	for (i = 0; i < n_srcs && sends; i++)
		found |= text_is_stdio(srcs[i]);
	if (t->o.pipe.fd < 0 || !found)
		return 0;
	if ((r = task_pipe_check(t, sends, n_srcs, dest, e)) < 0)
		return r;
	r = sends ? new_input(t, e) : pipe_sink_new(&t->files.output, t->o.pipe.fd, WINDOW_BYTES, e);
	return r < 0 ? err_while(e, r, sends ? "standard input" : "standard output") : 0;
}
