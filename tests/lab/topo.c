#include "topo.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/err.h"
#include "core/units.h"
#include "params.h"

#define FIRST_ADDRESS 0x0a000001u /* 10.0.0.1 */
#define MAX_RANGE 500

struct reader {
	const char *path;
	yaml_document_t doc;
	struct topo *topo;
	struct ptcp_err *err;
	struct topo_node host_default;
	struct link_conf link_default;
	const char *wanted; /* section this pass reads */
};

static int bad(const struct reader *r, const yaml_node_t *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int bad(const struct reader *r, const yaml_node_t *at, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return err_set(r->err, PTCP_ECONFIG, "%s:%zu:%zu: %s", r->path,
	    at->start_mark.line + 1, at->start_mark.column + 1, text);
}

static yaml_node_t *get(struct reader *r, int index)
{
	return yaml_document_get_node(&r->doc, index);
}

/* The text of a scalar; NULL after an error. */
static const char *text_of(struct reader *r, const yaml_node_t *n, const char *what)
{
	if (n->type == YAML_SCALAR_NODE &&
	    strlen((char *)n->data.scalar.value) == n->data.scalar.length)
		return (char *)n->data.scalar.value;
	bad(r, n, "%s should be a single value", what);
	return NULL;
}

typedef int pair_fn(struct reader *r, void *arg, const yaml_node_t *key_node,
    const char *key, yaml_node_t *value);

/* Call fn for each pair of a mapping; a key given twice is an error. */
static int each_pair(struct reader *r, yaml_node_t *map, const char *what, pair_fn *fn,
    void *arg)
{
	if (map->type == YAML_SCALAR_NODE && map->data.scalar.length == 0)
		return 0; /* "name:" with nothing after it */
	if (map->type != YAML_MAPPING_NODE)
		return bad(r, map, "%s should be a mapping (key: value)", what);
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
	    p < map->data.mapping.pairs.top; p++) {
		const yaml_node_t *k = get(r, p->key);
		const char *key = text_of(r, k, "a key");

		if (key == NULL)
			return PTCP_ECONFIG;
		for (yaml_node_pair_t *q = map->data.mapping.pairs.start; q < p; q++)
			if (strcmp((char *)get(r, q->key)->data.scalar.value, key) == 0)
				return bad(r, k, "\"%s\" is given twice", key);
		if (fn(r, arg, k, key, get(r, p->value)) < 0)
			return PTCP_ECONFIG;
	}
	return 0;
}

/* ------------------------------------------------------- names and ranges */

/* "s[1-7]" stands for s1 to s7; a name without brackets for itself. */
struct range {
	char before[TOPO_NAME_BYTES], after[TOPO_NAME_BYTES];
	int first, last, is_range;
};

static int parse_range(struct reader *r, const yaml_node_t *at, const char *text,
    struct range *g)
{
	const char *open = strchr(text, '[');
	int used = 0;

	memset(g, 0, sizeof *g);
	if (strlen(text) >= TOPO_NAME_BYTES - 4)
		return bad(r, at, "the name \"%s\" is too long", text);
	snprintf(g->before, sizeof g->before, "%.*s",
	    (int)(open ? open - text : (long)strlen(text)), text);
	if (open) {
		if (sscanf(open, "[%4d-%4d]%n", &g->first, &g->last, &used) != 2 ||
		    used == 0 || g->first < 0 || g->last < g->first ||
		    g->last - g->first >= MAX_RANGE)
			return bad(r, at, "\"%s\": a range should be like s[1-7]", text);
		g->is_range = 1;
		snprintf(g->after, sizeof g->after, "%s", open + used);
	}
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && strchr(open ? "-_.[]" : "-_.", *p) == NULL)
			return bad(r, at, "\"%s\": a name has letters, digits, - _ .", text);
	return text[0] ? 0 : bad(r, at, "a name is empty");
}

static int range_size(const struct range *g)
{
	return g->last - g->first + 1;
}

/* The i-th name; a plain name, whatever i. */
static void range_name(const struct range *g, int i, char *out)
{
	if (g->is_range)
		snprintf(out, TOPO_NAME_BYTES, "%.20s%d%.6s", g->before, g->first + i, g->after);
	else
		snprintf(out, TOPO_NAME_BYTES, "%s", g->before);
}

/* ------------------------------------------------------------------- nodes */

static int add_sysctl(struct reader *r, struct topo_node *h, const yaml_node_t *at,
    const char *name, const char *value)
{
	struct topo_sysctl *s = h->sysctl;
	int i;

	if (value == NULL)
		return PTCP_ECONFIG;
	for (i = 0; i < h->sysctls && strcmp(s[i].name, name) != 0; i++)
		;
	if (i == TOPO_MAX_SYSCTLS || strlen(name) >= sizeof s->name ||
	    strlen(value) >= sizeof s->value)
		return bad(r, at, "%s: too long, or too many settings", name);
	snprintf(s[i].name, sizeof s->name, "%s", name);
	snprintf(s[i].value, sizeof s->value, "%s", value);
	h->sysctls = i < h->sysctls ? h->sysctls : i + 1;
	return 0;
}

static int sysctl_pair(struct reader *r, void *arg, const yaml_node_t *k, const char *key,
    yaml_node_t *value)
{
	if (strncmp(key, "net.", 4) != 0 || strchr(key, '/') || strstr(key, ".."))
		return bad(r, k, "\"%s\": only net.* can be set for one host", key);
	return add_sysctl(r, arg, k, key + 4, text_of(r, value, key));
}

static int host_pair(struct reader *r, void *arg, const yaml_node_t *k, const char *key,
    yaml_node_t *value)
{
	struct topo_node *h = arg;
	const char *v;
	uint64_t x;

	if (strcmp(key, "sysctl") == 0)
		return each_pair(r, value, "sysctl", sysctl_pair, h);
	v = text_of(r, value, key);
	if (v == NULL)
		return PTCP_ECONFIG;
	if (strcmp(key, "cc") == 0)
		return add_sysctl(r, h, value, "ipv4.tcp_congestion_control", v);
	if (strcmp(key, "rmem") == 0)
		return add_sysctl(r, h, value, "ipv4.tcp_rmem", v);
	if (strcmp(key, "wmem") == 0)
		return add_sysctl(r, h, value, "ipv4.tcp_wmem", v);
	if (strcmp(key, "mtu") == 0) {
		if (units_parse_size(v, &x) < 0 || x < 576 || x > 9000)
			return bad(r, value, "mtu is \"%s\", should be 576 to 9000", v);
		h->mtu = (uint32_t)x;
		return 0;
	}
	if (strcmp(key, "window") == 0) {
		if (units_parse_size(v, &x) < 0 || x < 1000 || x > 1u << 30)
			return bad(r, value, "window is \"%s\", should be 1kB to 1GiB", v);
		h->window_bytes = x;
		return 0;
	}
	return bad(r, k, "unknown key \"%s\" (a host has cc, rmem, wmem, mtu, window, sysctl)",
	    key);
}

static int add_nodes(struct reader *r, const yaml_node_t *at, const char *pattern,
    const struct topo_node *like)
{
	struct topo *t = r->topo;
	struct range g;
	char name[TOPO_NAME_BYTES];

	if (parse_range(r, at, pattern, &g) < 0)
		return PTCP_ECONFIG;
	for (int i = 0; i < range_size(&g); i++) {
		range_name(&g, i, name);
		if (topo_node(t, name) >= 0)
			return bad(r, at, "there are two nodes \"%s\"", name);
		if (t->nodes == TOPO_MAX_NODES)
			return bad(r, at, "more than %d nodes", TOPO_MAX_NODES);
		t->node[t->nodes] = *like;
		memcpy(t->node[t->nodes].name, name, sizeof name);
		if (like->is_host) {
			t->node[t->nodes].address = FIRST_ADDRESS + (uint32_t)t->nodes;
			t->hosts++;
		}
		t->nodes++;
	}
	return 0;
}

static int host_entry(struct reader *r, void *arg, const yaml_node_t *k, const char *key,
    yaml_node_t *value)
{
	struct topo_node h = r->host_default;

	(void)arg;
	if (each_pair(r, value, "a host", host_pair, &h) < 0)
		return PTCP_ECONFIG;
	return add_nodes(r, k, key, &h);
}

static int read_routers(struct reader *r, yaml_node_t *list)
{
	struct topo_node router = { .is_host = 0 };

	if (list->type != YAML_SEQUENCE_NODE)
		return bad(r, list, "routers should be a list: [left, right]");
	for (yaml_node_item_t *i = list->data.sequence.items.start;
	    i < list->data.sequence.items.top; i++) {
		const char *name = text_of(r, get(r, *i), "a router");

		if (name == NULL || add_nodes(r, get(r, *i), name, &router) < 0)
			return PTCP_ECONFIG;
	}
	return 0;
}

/* ------------------------------------------------------------------- links */

struct link_entry {
	struct range end[2];
	int ends, both;
	struct link_conf conf[2];
};

static int param_pair(struct reader *r, void *arg, const yaml_node_t *k, const char *key,
    yaml_node_t *value)
{
	struct ptcp_err e = { 0 };
	const char *v = text_of(r, value, key);

	if (v == NULL)
		return PTCP_ECONFIG;
	if (params_set(arg, key, v, &e) == 0)
		return 0;
	return bad(r, strncmp(e.msg, "unknown", 7) == 0 ? k : value, "%s", e.msg);
}

static int read_ends(struct reader *r, struct link_entry *l, yaml_node_t *list)
{
	yaml_node_item_t *i = list->data.sequence.items.start;

	if (list->type != YAML_SEQUENCE_NODE || list->data.sequence.items.top - i != 2)
		return bad(r, list, "should be a list of two nodes: [a, b]");
	for (int end = 0; end < 2; end++) {
		const yaml_node_t *n = get(r, i[end]);
		const char *text = text_of(r, n, "a node");
		char name[TOPO_NAME_BYTES];

		if (text == NULL || parse_range(r, n, text, &l->end[end]) < 0)
			return PTCP_ECONFIG;
		for (int k = 0; k < range_size(&l->end[end]); k++) {
			range_name(&l->end[end], k, name);
			if (topo_node(r->topo, name) < 0)
				return bad(r, n, "there is no node \"%s\"", name);
		}
	}
	l->ends++;
	return 0;
}

/* First the ends, then what holds both ways, then the exceptions. */
static int link_ends_pair(struct reader *r, void *arg, const yaml_node_t *k, const char *key,
    yaml_node_t *value)
{
	struct link_entry *l = arg;

	if (strcmp(key, "between") != 0 && strcmp(key, "from-to") != 0)
		return 0;
	if (l->ends > 0)
		return bad(r, k, "a link has either between or from-to");
	l->both = key[0] == 'b';
	return read_ends(r, l, value);
}

static int link_param_pair(struct reader *r, void *arg, const yaml_node_t *k, const char *key,
    yaml_node_t *value)
{
	struct link_entry *l = arg;

	if (strcmp(key, "between") == 0 || strcmp(key, "from-to") == 0 ||
	    strcmp(key, "fwd") == 0 || strcmp(key, "rev") == 0)
		return 0;
	if (param_pair(r, &l->conf[0], k, key, value) < 0)
		return PTCP_ECONFIG;
	return param_pair(r, &l->conf[1], k, key, value);
}

static int link_exception_pair(struct reader *r, void *arg, const yaml_node_t *k,
    const char *key, yaml_node_t *value)
{
	struct link_entry *l = arg;

	if (strcmp(key, "fwd") == 0)
		return each_pair(r, value, key, param_pair, &l->conf[0]);
	if (strcmp(key, "rev") != 0)
		return 0;
	if (!l->both)
		return bad(r, k, "a from-to link has no reverse direction");
	return each_pair(r, value, key, param_pair, &l->conf[1]);
}

/* With ranges at both ends, the ranges run side by side; with one, the other end
 * is shared by all. The name's range must have as many members. */
static int add_links(struct reader *r, const yaml_node_t *at, const char *pattern,
    const struct link_entry *l)
{
	int a = range_size(&l->end[0]), b = range_size(&l->end[1]), n = a > b ? a : b;
	struct topo *t = r->topo;
	struct range g;
	char end[TOPO_NAME_BYTES];

	if (parse_range(r, at, pattern, &g) < 0)
		return PTCP_ECONFIG;
	if (range_size(&g) != n || (a != n && l->end[0].is_range) ||
	    (b != n && l->end[1].is_range))
		return bad(r, at, "the ranges in name and ends have %d, %d and %d members",
		    range_size(&g), a, b);
	for (int i = 0; i < n; i++) {
		struct topo_link *new = &t->link[t->links];

		if (t->links == TOPO_MAX_LINKS)
			return bad(r, at, "more than %d links", TOPO_MAX_LINKS);
		range_name(&g, i, new->name);
		for (int k = 0; k < t->links; k++)
			if (strcmp(t->link[k].name, new->name) == 0)
				return bad(r, at, "there are two links \"%s\"", new->name);
		for (int k = 0; k < 2; k++) {
			range_name(&l->end[k], i, end);
			new->ends[k] = topo_node(t, end);
			new->conf[k] = l->conf[k];
		}
		new->both = l->both;
		t->links++;
	}
	return 0;
}

static int link_entry(struct reader *r, void *arg, const yaml_node_t *k, const char *key,
    yaml_node_t *value)
{
	struct link_entry l = { .conf = { r->link_default, r->link_default } };

	(void)arg;
	if (each_pair(r, value, "a link", link_ends_pair, &l) < 0)
		return PTCP_ECONFIG;
	if (l.ends == 0)
		return bad(r, k, "link \"%s\" needs between: [a, b] or from-to: [a, b]", key);
	if (each_pair(r, value, "a link", link_param_pair, &l) < 0 ||
	    each_pair(r, value, "a link", link_exception_pair, &l) < 0)
		return PTCP_ECONFIG;
	return add_links(r, k, key, &l);
}

/* -------------------------------------------------------------------- file */

static int default_pair(struct reader *r, void *arg, const yaml_node_t *k, const char *key,
    yaml_node_t *value)
{
	(void)arg;
	if (strcmp(key, "host") == 0)
		return each_pair(r, value, key, host_pair, &r->host_default);
	if (strcmp(key, "link") == 0)
		return each_pair(r, value, key, param_pair, &r->link_default);
	return bad(r, k, "unknown key \"%s\" (defaults are host and link)", key);
}

/* Sections refer backwards, so each pass over the file reads one. */
static int section_pair(struct reader *r, void *arg, const yaml_node_t *k, const char *key,
    yaml_node_t *value)
{
	static const char *const all[] = { "seed", "defaults", "hosts", "routers", "links" };
	const char *v;
	size_t i;

	for (i = 0; i < 5 && strcmp(key, all[i]) != 0; i++)
		;
	if (i == 5)
		return bad(r, k, "unknown key \"%s\" (there are seed, defaults, hosts, routers, "
		    "links)", key);
	(void)arg;
	if (strcmp(key, r->wanted) != 0)
		return 0;
	if (strcmp(key, "defaults") == 0)
		return each_pair(r, value, key, default_pair, NULL);
	if (strcmp(key, "hosts") == 0)
		return each_pair(r, value, key, host_entry, NULL);
	if (strcmp(key, "routers") == 0)
		return read_routers(r, value);
	if (strcmp(key, "links") == 0)
		return each_pair(r, value, key, link_entry, NULL);
	v = text_of(r, value, key);
	if (v == NULL || units_parse_size(v, &r->topo->seed) < 0)
		return bad(r, value, "seed should be a whole number");
	return 0;
}

static int read_document(struct reader *r)
{
	static const char *const sections[] = { "seed", "defaults", "hosts", "routers", "links" };
	yaml_node_t *root = yaml_document_get_root_node(&r->doc);

	if (root == NULL)
		return err_set(r->err, PTCP_ECONFIG, "%s:1:1: the file is empty", r->path);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		r->wanted = sections[i];
		if (each_pair(r, root, "a topology", section_pair, NULL) < 0)
			return PTCP_ECONFIG;
	}
	if (r->topo->hosts == 0)
		return bad(r, root, "there are no hosts");
	return 0;
}

int topo_load(struct topo **out, const char *path, struct ptcp_err *e)
{
	struct reader r = { .path = path, .err = e,
	    .host_default = { .is_host = 1, .mtu = 1500 } };
	yaml_parser_t parser;
	FILE *f = fopen(path, "re");
	int ret = 0;

	if (f == NULL)
		return err_sys(e, PTCP_EIO, "cannot open %s", path);
	params_default(&r.link_default);
	r.topo = calloc(1, sizeof *r.topo);
	if (r.topo == NULL || !yaml_parser_initialize(&parser)) {
		free(r.topo);
		fclose(f);
		return err_nomem(e);
	}
	yaml_parser_set_input_file(&parser, f);
	if (!yaml_parser_load(&parser, &r.doc)) {
		ret = err_set(e, PTCP_ECONFIG, "%s:%zu:%zu: %s", path,
		    parser.problem_mark.line + 1, parser.problem_mark.column + 1,
		    parser.problem ? parser.problem : "not YAML");
	} else {
		ret = read_document(&r);
		yaml_document_delete(&r.doc);
	}
	yaml_parser_delete(&parser);
	fclose(f);
	if (ret < 0)
		topo_free(r.topo);
	else
		*out = r.topo;
	return ret;
}

void topo_free(struct topo *t)
{
	free(t);
}

int topo_node(const struct topo *t, const char *name)
{
	for (int i = 0; i < t->nodes; i++)
		if (strcmp(t->node[i].name, name) == 0)
			return i;
	return -1;
}

int topo_host(const struct topo *t, const char *name)
{
	int i = topo_node(t, name);

	return i >= 0 && t->node[i].is_host ? i : -1;
}
