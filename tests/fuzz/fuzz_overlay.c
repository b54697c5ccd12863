/* libFuzzer target: an overlay file. What is taken is as conf/overlay.h says; what is not has a sentence that
 * says where. */
#include "conf/overlay.h"
#include "core/err.h"
#include "fuzz.h"

static void check(const struct ptcp_overlay *o)
{
	char buf[CONF_LINK_TEXT_BYTES], text[sizeof buf];
	const char *why;
	size_t i, j;

	MUST(o->nhosts >= 1 && o->nhosts <= CONF_HOSTS_MAX && o->destination >= 0 &&
	    (size_t)o->destination < o->nhosts);
	for (i = 0; i < o->nhosts; i++)
		MUST(conf_overlay_host(o, o->hosts[i].name) == (int)i);
	for (i = 0; i < o->nlinks; i++) {
		const struct conf_link *l = &o->links[i];

		MUST(l->from >= 0 && (size_t)l->from < o->nhosts && l->to >= 0 && (size_t)l->to < o->nhosts &&
		    l->from != l->to);
		MUST(o->link_of[(size_t)l->from * o->nhosts + (size_t)l->to] == (int)i);
		snprintf(text, sizeof text, "%s>%s", o->hosts[l->from].name, o->hosts[l->to].name);
		MUST(conf_overlay_link(o, text, buf, &why) == (int)i);
	}
	for (i = 0; i < o->ngroups; i++)
		for (j = 0; j < o->groups[i].nlinks; j++)
			MUST(o->groups[i].links[j] >= 0 && (size_t)o->groups[i].links[j] < o->nlinks);
	for (i = 0; i < o->nwindows; i++) {
		const struct conf_window *w = &o->windows[i];

		MUST(w->link >= 0 && (size_t)w->link < o->nlinks && w->from_ns < w->until_ns);
		MUST(i == 0 || w[-1].link < w->link || (w[-1].link == w->link && w[-1].until_ns <= w->from_ns));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ptcp_overlay *o = NULL;
	struct ptcp_err e = { 0 };
	int r = conf_overlay_parse(&o, (const char *)data, n, "f", &e);

	if (r == 0)
		check(o);
	else
		MUST(r == e.code && (r == PTCP_ENOMEM || (r == PTCP_ECONFIG && strncmp(e.msg, "f:", 2) == 0)));
	conf_overlay_free(o);
	return 0;
}
