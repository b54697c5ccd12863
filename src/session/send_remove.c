/* --remove-source-files: removes a source once the receiver has it, verified and durable. */
#include <errno.h>
#include <stdlib.h>

#include "core/err.h"
#include "fs/fs_err.h"
#include "session/send_impl.h"

struct removal {
	struct session *session;
	struct send_entry *entry;
	struct io_call call;
};

/* DONE: complete, and as fsync of OPEN demands, durable. SEND_NONE says as much for a file after the comparison of
 * contents only, and never for a link, which might be the source itself; for hard links a receiver has DONE only. */
static bool is_durable(const struct send_entry *o, enum snd_fate fate)
{
	return fate == SND_DONE || (fate == SND_SKIPPED && o->compared);
}

static bool is_linked(const struct send_entry *o)
{
	return o->source != NULL ? source_linked(o->source) : o->stamp.nlink > 1;
}

static void path_of(const struct send_entry *o, char *path, size_t cap)
{
	if (o->source != NULL)
		source_path_raw(o->source, path, cap);
	else
		dir_path_raw(o->dir, o->name, path, cap);
}

static void report(struct session *sess, const struct send_entry *o, const struct ptcp_err *why)
{
	char path[DIR_PATH_RAW_BYTES], text[DIR_PATH_TEXT_BYTES];
	struct ptcp_err bare, e;

	path_of(o, path, sizeof path);
	fs_err_strip(&bare, why, o->source != NULL ? source_path_text(o->source, text, sizeof text) :
	    dir_path_text(o->dir, o->name, text, sizeof text));
	err_set(&e, bare.code, "transferred, but not removed: %s", bare.msg);
	engine_warn(sess->engine, WIRE_WARNING_INSIDE, path, &e);
	session_file_failed(sess, path, &e);
}

static void on_removed(struct io_call *k)
{
	struct removal *c = CONTAINER_OF(k, struct removal, call);
	struct session *sess = c->session;
	char path[DIR_PATH_RAW_BYTES];

	engine_progress(sess->engine, mono_now());
	sess->send->n_checks--;
	path_of(c->entry, path, sizeof path);
	if (k->result == 0)
		published_add_source(sess->send->removed, path);
	else if (!sess->end.over)
		report(sess, c->entry, &k->why);
	snd_release(engine_snd(sess->engine));
	send_entry_free(c->entry);
	free(c);
	session_pump(sess);
}

/* On an I/O thread. A file that is gone needs no removal. */
static void run(struct io_call *k)
{
	const struct send_entry *o = CONTAINER_OF(k, struct removal, call)->entry;

	k->result = o->source != NULL ? source_remove(o->source, &k->why) :
	    manage_remove_unchanged(o->dir, o->name, &o->stamp, &k->why);
	if (k->result < 0 && k->why.sys == ENOENT)
		k->result = 0;
}

/* Takes the entry, which is held. */
static void start(struct session *sess, struct send_entry *o)
{
	struct removal *c = calloc(1, sizeof *c);
	struct ptcp_err why;

	if (c == NULL) {
		err_nomem(&why);
		report(sess, o, &why);
		snd_release(engine_snd(sess->engine));
		send_entry_free(o);
		return;
	}
	c->session = sess;
	c->entry = o;
	sess->send->n_checks++;
	io_call_start(&c->call, sess->o.context, run, on_removed);
}

bool send_remove(struct session *sess, struct send_entry *o, enum snd_fate fate)
{
	if (!sess->send->removes || o->is_dir || sess->end.over || !is_durable(o, fate))
		return false;
	snd_hold(engine_snd(sess->engine));
	if (is_linked(o))
		list_append(&sess->send->linked_done, &o->in_linked);
	else
		start(sess, o);
	return true;
}

static struct send_entry *take_linked(struct send_side *t)
{
	struct send_entry *o = CONTAINER_OF(t->linked_done.next, struct send_entry, in_linked);

	list_remove(&o->in_linked);
	return o;
}

void send_remove_linked(struct session *sess)
{
	if (list_empty(&sess->send->linked_done) || !snd_all_ended(engine_snd(sess->engine)))
		return;
	while (!list_empty(&sess->send->linked_done))
		start(sess, take_linked(sess->send));
}

void send_linked_free(struct send_side *t)
{
	while (!list_empty(&t->linked_done))
		send_entry_free(take_linked(t));
}
