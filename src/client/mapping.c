/* --chmod, --chown, --usermap, --groupmap and --numeric-ids: this end applies them, also as a receiver. */
#include "client/task_impl.h"
#include "core/err.h"
#include "store/attr_map.h"

const char *mapping_first(const struct ptcp_task *t)
{
	const struct ptcp_preserve *o = &t->o.preserve;

	return o->chmod != NULL ? "--chmod" : o->chown != NULL ? "--chown" : o->user_map != NULL ? "--usermap" :
	    o->group_map != NULL ? "--groupmap" : o->numeric_ids ? "--numeric-ids" : NULL;
}

int mapping_take(struct ptcp_task *t, struct ptcp_err *e)
{
	const struct ptcp_preserve *o = &t->o.preserve;
	const struct attr_map_texts texts = { o->chmod, o->chown, o->user_map, o->group_map, o->numeric_ids,
		dir_process_umask() };
	const char *first = mapping_first(t);
	int r;

	if (first == NULL)
		return 0;
	if (t->remote_job != NULL)
		return err_set(e, PTCP_ENOTYET, "%s: between two other hosts: not available yet (leave it out)", first);
	if (o->chmod != NULL && !o->mode)
		return err_set(e, PTCP_EUSAGE, "--chmod: without mode in --preserve (add it)");
	if ((o->chown != NULL || o->user_map != NULL || o->group_map != NULL) && !o->owner)
		return err_set(e, PTCP_EUSAGE, "%s: without owner in --preserve (add it, or -a)",
		    o->chown != NULL ? "--chown" : o->user_map != NULL ? "--usermap" : "--groupmap");
	if ((r = attr_map_new(&t->files.map, &texts, e)) < 0)
		return r;
	if (attr_map_sets_special(t->files.map) && !o->setid)
		return err_set(e, PTCP_EUSAGE,
		    "--chmod: setuid, setgid and sticky bits without setid in --preserve (add setid)");
	return 0;
}
