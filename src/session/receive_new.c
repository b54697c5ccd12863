/* Clients who may only add: nothing that exists is compared, replaced or changed. */
#include "core/err.h"
#include "session/receive_impl.h"
#include "store/manage.h"

void session_receive_only_new(struct session *sess, const char *client) { sess->receive->only_new = client; }

bool receive_new_takes(const struct wire_entry *f, struct ptcp_err *e)
{
	if (f->type == WIRE_FILE || f->type == WIRE_DIR)
		return true;
	err_set(e, PTCP_EREFUSED, "a link, and this client may only add files (leave the link out, or send hard links as files with --preserve times,mode)");
	return false;
}

void receive_new_file(struct receive_entry *t)
{
	if ((t->result = sink_is_new(t->sink, &t->same, &t->why)) < 0)
		return;
	if (t->same && t->durable)
		t->result = manage_sync(t->dir, t->name, &t->why);
	else if (!t->same && !t->no_resume && !t->dry_run)
		t->result = sink_inspect(t->sink, &t->existing, &t->why);
}

bool receive_new_has_dir(struct receive_entry *t)
{
	if (!t->only_new || dir_fd(t->self, NULL) < 0)
		return false;
	dir_fd_done(t->self);
	return true;
}
