#include "conf/overlay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"

struct top {
	char *destination, *launch;
	int hosts, all, links, shared, windows; /* nodes; 0: not given */
	uint64_t slot_ns, deadline_ns;
	double impact_ratio;
};

static const struct conf_field top_fields[] = {
	{ "destination", CONF_TEXT, offsetof(struct top, destination), 1 },
	{ "hosts", CONF_NODE, offsetof(struct top, hosts), 1 },
	{ "all", CONF_NODE, offsetof(struct top, all), 0 },
	{ "links", CONF_NODE, offsetof(struct top, links), 0 },
	{ "shared", CONF_NODE, offsetof(struct top, shared), 0 },
	{ "windows", CONF_NODE, offsetof(struct top, windows), 0 },
	{ "slot", CONF_TIME, offsetof(struct top, slot_ns), 0 },
	{ "deadline", CONF_TIME, offsetof(struct top, deadline_ns), 0 },
	{ "launch", CONF_TEXT, offsetof(struct top, launch), 0 },
	{ "impact", CONF_PERCENT, offsetof(struct top, impact_ratio), 0 },
	{ NULL, CONF_TEXT, 0, 0 }
};

static const struct conf_field host_fields[] = {
	{ "address", CONF_TEXT, offsetof(struct conf_host, address), 0 },
	{ "data", CONF_SIZE, offsetof(struct conf_host, data_bytes), 0 },
	{ "path", CONF_TEXT, offsetof(struct conf_host, path), 0 },
	{ "relay", CONF_BOOL, offsetof(struct conf_host, relay), 0 },
	{ "storage", CONF_SIZE, offsetof(struct conf_host, storage_bytes), 0 },
	{ "ingress", CONF_RATE, offsetof(struct conf_host, ingress_bps), 0 },
	{ "egress", CONF_RATE, offsetof(struct conf_host, egress_bps), 0 },
	{ NULL, CONF_TEXT, 0, 0 }
};

void conf_overlay_free(struct ptcp_overlay *o)
{
	size_t i;

	if (o == NULL)
		return;
	for (i = 0; i < o->nhosts; i++) {
		free(o->hosts[i].name);
		free(o->hosts[i].address);
		free(o->hosts[i].path);
	}
	for (i = 0; i < o->nlinks; i++)
		conf_free_curve(o->links[i].curve);
	for (i = 0; i < o->ngroups; i++) {
		conf_free_curve(o->groups[i].curve);
		free(o->groups[i].links);
	}
	free(o->hosts);
	free(o->links);
	free(o->groups);
	free(o->windows);
	free(o->link_of);
	free(o->launch);
	free(o->file);
	free(o);
}

int conf_overlay_host(const struct ptcp_overlay *o, const char *name)
{
	size_t i;

	for (i = 0; i < o->nhosts; i++)
		if (strcmp(o->hosts[i].name, name) == 0)
			return (int)i;
	return -1;
}

int conf_overlay_link(const struct ptcp_overlay *o, const char *text,
    char buf[CONF_LINK_TEXT_BYTES], const char **missing)
{
	const char *sep = strchr(text, '>');
	int from, to;

	*missing = NULL;
	if (sep == NULL || strlen(text) >= CONF_LINK_TEXT_BYTES) {
		buf[0] = '\0';
		*missing = buf;
		return -1;
	}
	strcpy(buf, text);
	buf[sep - text] = '\0';
	if ((from = conf_overlay_host(o, buf)) < 0) {
		*missing = buf;
		return -1;
	}
	if ((to = conf_overlay_host(o, buf + (sep - text) + 1)) < 0) {
		*missing = buf + (sep - text) + 1;
		return -1;
	}
	return o->link_of[(size_t)from * o->nhosts + (size_t)to];
}

/* Names appear in "A>B" and "A>B=RATE", in tables and in file names. */
static int check_name(const struct conf_doc *d, int node, const char *s, struct ptcp_err *e)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:";
	size_t n = strlen(s);
	char q[CONF_QUOTED_BYTES];

	if (n == 0 || n > CONF_NAME_MAX_BYTES || strspn(s, allowed) != n || s[0] == '.' || s[0] == '-')
		return conf_fail(d, node, e, "hosts: expected a name of 1 to %d letters, digits "
		    "and . _ - : that does not begin with . or -, got '%s'",
		    CONF_NAME_MAX_BYTES, conf_quoted(q, s));
	return 0;
}

static int read_host(const struct conf_doc *d, int key, int value, struct conf_host *h, struct ptcp_err *e)
{
	char what[CONF_NAME_MAX_BYTES + 16];
	const char *name;
	int r;

	h->data_bytes = h->storage_bytes = h->ingress_bps = h->egress_bps = CONF_UNSET;
	h->mark = conf_doc_mark(d, key);
	if ((r = conf_want_text(d, key, "hosts", &name, e)) < 0 || (r = check_name(d, key, name, e)) < 0)
		return r;
	if ((h->name = strdup(name)) == NULL)
		return err_nomem(e);
	strcpy(what, "host ");
	strcat(what, name);
	if ((r = conf_read_map(d, value, what, host_fields, h, e)) < 0)
		return r;
	if (h->data_bytes != CONF_UNSET && h->data_bytes > CONF_DATA_MAX_BYTES)
		return conf_fail(d, conf_lookup(d, value, "data"), e,
		    "%s: data: expected at most 2^60 bytes", what);
	return 0;
}

static int read_hosts(const struct conf_doc *d, const struct top *t, struct ptcp_overlay *o,
    struct ptcp_err *e)
{
	size_t i, n;
	char q[CONF_QUOTED_BYTES];
	struct conf_host *dest;
	int r;

	if ((r = conf_want_map(d, t->hosts, "hosts", CONF_HOSTS_MAX, &n, e)) < 0)
		return r;
	if ((o->hosts = calloc(n + 1, sizeof *o->hosts)) == NULL)
		return err_nomem(e);
	o->nhosts = n;
	for (i = 0; i < n; i++)
		o->hosts[i].name = NULL;
	for (i = 0; i < n; i++)
		if ((r = read_host(d, conf_key(d, t->hosts, i), conf_value(d, t->hosts, i),
		    &o->hosts[i], e)) < 0)
			return r;
	if ((o->destination = conf_overlay_host(o, t->destination)) < 0)
		return conf_fail(d, conf_lookup(d, conf_doc_root(d), "destination"), e,
		    "destination: expected one of the hosts, got '%s'", conf_quoted(q, t->destination));
	dest = &o->hosts[o->destination];
	if (dest->data_bytes != CONF_UNSET && dest->data_bytes > 0)
		return err_set(e, PTCP_ECONFIG, "%s:%d:%d: host %s: expected no 'data' at the "
		    "destination, which has it already", o->file, dest->mark.line,
		    dest->mark.column, dest->name);
	return 0;
}

static bool has_curve(const struct ptcp_overlay *o)
{
	size_t i;

	for (i = 0; i < o->nlinks; i++)
		if (o->links[i].curve != NULL)
			return true;
	for (i = 0; i < o->ngroups; i++)
		if (o->groups[i].curve != NULL)
			return true;
	return false;
}

static int read_top(const struct conf_doc *d, struct top *t, struct ptcp_overlay *o, struct ptcp_err *e)
{
	int root = conf_doc_root(d), r;

	if ((r = conf_read_map(d, root, "overlay", top_fields, t, e)) < 0)
		return r;
	if (t->slot_ns == 0)
		return conf_fail(d, conf_lookup(d, root, "slot"), e, "slot: expected a time above 0");
	if (t->deadline_ns == 0)
		return conf_fail(d, conf_lookup(d, root, "deadline"), e, "deadline: expected a time above 0");
	if (t->launch != NULL && strstr(t->launch, "{host}") == NULL && strstr(t->launch, "{name}") == NULL)
		return conf_fail(d, conf_lookup(d, root, "launch"), e,
		    "launch: expected a command with {host} or {name} in it, such as \"ssh {host}\"");
	o->slot_ns = t->slot_ns;
	o->deadline_ns = t->deadline_ns;
	o->impact_ratio = t->impact_ratio;
	o->launch = t->launch;
	t->launch = NULL;
	if ((r = read_hosts(d, t, o, e)) < 0 || (r = conf_read_links(d, t->links, t->all, o, e)) < 0 ||
	    (r = conf_read_groups(d, t->shared, o, e)) < 0)
		return r;
	if (!isnan(o->impact_ratio) && !has_curve(o))
		return conf_fail(d, conf_lookup(d, root, "impact"), e, "impact: expected a 'curve' at some "
		    "link or shared bottleneck, without which no impact is known");
	return conf_read_windows(d, t->windows, o, e);
}

static int from_doc(struct ptcp_overlay **out, const struct conf_doc *d, const char *name, struct ptcp_err *e)
{
	struct ptcp_overlay *o = calloc(1, sizeof *o);
	struct top t = { .slot_ns = CONF_UNSET, .deadline_ns = CONF_UNSET, .impact_ratio = NAN };
	int r;

	if (o == NULL || (o->file = strdup(name)) == NULL)
		r = err_nomem(e);
	else
		r = read_top(d, &t, o, e);
	free(t.destination);
	free(t.launch);
	if (r < 0)
		conf_overlay_free(o);
	else
		*out = o;
	return r;
}

int conf_overlay_parse(struct ptcp_overlay **out, const char *text, size_t n, const char *name,
    struct ptcp_err *e)
{
	struct conf_doc *d = NULL;
	int r;

	if ((r = conf_doc_parse(&d, text, n, name, e)) == 0)
		r = from_doc(out, d, name, e);
	conf_doc_free(d);
	return r;
}

int conf_overlay_load(struct ptcp_overlay **out, const char *path, struct ptcp_err *e)
{
	struct conf_doc *d = NULL;
	char shown[TEXT_NAME_BYTES];
	const char *fault;
	int r;

	if ((r = conf_doc_load(&d, path, &fault, e)) == 0 &&
	    (r = from_doc(out, d, text_escape(shown, sizeof shown, path), e)) == 0)
		(*out)->fault = fault;
	conf_doc_free(d);
	return r;
}
