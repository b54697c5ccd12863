#include "conf/edit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conf/overlay.h"
#include "core/atomic_file.h"
#include "core/err.h"
#include "core/sorted.h"
#include "core/text.h"
#include "core/units.h"

#define EDIT_BYTES (2 * CONF_CHANGE_BYTES + 64)

struct edit {
	size_t first, end; /* replaced characters */
	size_t number;        /* order of addition */
	bool new_line;        /* insert after the line's end */
	int column;           /* new_line: column of the key, from 0 */
	char text[EDIT_BYTES];
};

struct editor {
	const struct conf_doc *doc;
	struct edit *edit;
	size_t n;
};

/* ---- Edits ---- */

static int is_alias(const struct conf_doc *d, int map, int node, struct ptcp_err *e)
{
	struct conf_extent m = conf_doc_extent(d, map), x = conf_doc_extent(d, node);

	if (x.first >= m.first && x.end <= m.end)
		return 0;
	return conf_fail(d, map, e, "link: expected values of its own, got an alias, which cannot be "
	    "changed here alone (write the value out)");
}

static int edit_add(struct editor *ed, int map, const char *key, const char *value, struct ptcp_err *e)
{
	int last, first, r;
	size_t n;
	struct edit *x = &ed->edit[ed->n];

	if ((r = conf_want_map(ed->doc, map, "link", 64, &n, e)) < 0)
		return r;
	first = conf_key(ed->doc, map, 0);
	last = conf_value(ed->doc, map, n - 1);
	if ((r = is_alias(ed->doc, map, last, e)) < 0 || (r = is_alias(ed->doc, map, first, e)) < 0)
		return r;
	x->first = x->end = conf_doc_extent(ed->doc, last).end;
	x->number = ed->n;
	x->new_line = !conf_is_flow(ed->doc, map);
	x->column = conf_doc_mark(ed->doc, first).column - 1;
	snprintf(x->text, sizeof x->text, x->new_line ? "%s: %s" : ", %s: %s", key, value);
	ed->n++;
	return 0;
}

static int change(struct editor *ed, int map, const char *key, const char *value, struct ptcp_err *e)
{
	struct edit *x = &ed->edit[ed->n];
	int node = conf_lookup(ed->doc, map, key), r;

	if (value[0] == '\0')
		return 0;
	if (node == map)
		return edit_add(ed, map, key, value, e);
	if ((r = is_alias(ed->doc, map, node, e)) < 0)
		return r;
	x->first = conf_doc_extent(ed->doc, node).first;
	x->end = conf_doc_extent(ed->doc, node).end;
	x->new_line = false;
	snprintf(x->text, sizeof x->text, "%s", value);
	ed->n++;
	return 0;
}

static int collect(struct editor *ed, const struct conf_change *changes, size_t count, struct ptcp_err *e)
{
	int list = conf_lookup(ed->doc, conf_doc_root(ed->doc), "links"), r = 0;
	size_t i;

	for (i = 0; i < count && r == 0; i++) {
		int map = conf_item(ed->doc, list, (size_t)changes[i].link);

		if (changes[i].rate[0] != '\0' && conf_lookup(ed->doc, map, "curve") != map)
			return conf_fail(ed->doc, map, e, "link: has a curve, which no measured rate replaces "
			    "(take 'curve' out to have a rate)");
		if ((r = change(ed, map, "rate", changes[i].rate, e)) == 0)
			r = change(ed, map, "delay", changes[i].delay, e);
	}
	return r;
}

static int by_place(const void *a, const void *b)
{
	const struct edit *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number); /* two additions at one place */
}

/* ---- The new text ---- */

/* Position in the old text, in bytes and characters, and the new text so far. */
struct copy {
	const char *text;
	size_t n, at, chars;
	char *out;
	size_t filled;
};

static void put(struct copy *c, const char *p, size_t n)
{
	memcpy(c->out + c->filled, p, n);
	c->filled += n;
}

static void skip_to(struct copy *c, size_t chars)
{
	while (c->chars < chars && c->at < c->n) {
		c->at++;
		while (c->at < c->n && ((unsigned char)c->text[c->at] & 0xc0) == 0x80)
			c->at++;
		c->chars++;
	}
}

static void copy_to(struct copy *c, size_t chars)
{
	size_t from = c->at;

	skip_to(c, chars);
	put(c, c->text + from, c->at - from);
}

/* Copies the rest of the line: blanks and a comment. */
static void copy_line(struct copy *c)
{
	while (c->at < c->n && c->text[c->at] != '\n')
		copy_to(c, c->chars + 1);
	if (c->at < c->n)
		copy_to(c, c->chars + 1);
	else
		put(c, "\n", 1);
}

static void put_line(struct copy *c, const struct edit *x)
{
	bool crlf = c->filled > 1 && c->out[c->filled - 2] == '\r';
	int i;

	for (i = 0; i < x->column; i++)
		put(c, " ", 1);
	put(c, x->text, strlen(x->text));
	put(c, crlf ? "\r\n" : "\n", crlf ? 2 : 1);
}

static int rewrite(char **out, size_t *out_bytes, const char *text, size_t n, const struct edit *edit,
    size_t count, struct ptcp_err *e)
{
	struct copy c = { .text = text, .n = n };
	size_t i, max = n + 1;

	for (i = 0; i < count; i++)
		max += (size_t)edit[i].column + EDIT_BYTES;
	if ((c.out = malloc(max)) == NULL)
		return err_nomem(e);
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		put(&c, text, c.at = 3);
	for (i = 0; i < count; i++) {
		copy_to(&c, edit[i].first);
		if (edit[i].new_line && (i == 0 || edit[i - 1].first != edit[i].first))
			copy_line(&c);
		if (edit[i].new_line)
			put_line(&c, &edit[i]);
		else
			put(&c, edit[i].text, strlen(edit[i].text));
		skip_to(&c, edit[i].end);
	}
	put(&c, text + c.at, n - c.at);
	*out = c.out;
	*out_bytes = c.filled;
	return 0;
}

/* ---- Verification ---- */

static bool same_number(uint64_t now, uint64_t was, const char *changed, int (*parse)(const char *, uint64_t *))
{
	uint64_t want = was;

	return (changed[0] == '\0' || parse(changed, &want) == 0) && now == want;
}

static bool same_links(const struct ptcp_overlay *now, const struct ptcp_overlay *was,
    const struct conf_change *changes, size_t count)
{
	static const struct conf_change none;
	const struct conf_change **of = calloc(was->nlinks + 1, sizeof *of);
	bool same = of != NULL && now->nlinks == was->nlinks && now->nhosts == was->nhosts;
	size_t i;

	for (i = 0; i < count && of != NULL; i++)
		of[changes[i].link] = &changes[i];
	for (i = 0; same && i < was->nlinks; i++) {
		const struct conf_link *a = &now->links[i], *b = &was->links[i];
		const struct conf_change *c = of[i] != NULL ? of[i] : &none;

		same = a->from == b->from && a->to == b->to &&
		    same_number(a->rate_bps, b->rate_bps, c->rate, units_parse_rate) &&
		    same_number(a->delay_ns, b->delay_ns, c->delay, units_parse_time);
	}
	free(of);
	return same;
}

static int unchangeable(const char *name, struct ptcp_err *e)
{
	return err_set(e, PTCP_ECONFIG, "%s: its links cannot be changed without changing more (write "
	    "each as {from: A, to: B, rate: R, delay: T})", name);
}

static int edit_check(const char *text, size_t n, const char *name, const struct ptcp_overlay *was,
    const struct conf_change *changes, size_t count, struct ptcp_err *e)
{
	struct ptcp_overlay *now = NULL;
	bool same = conf_overlay_parse(&now, text, n, name, e) == 0 && same_links(now, was, changes, count);

	conf_overlay_free(now);
	return same ? 0 : unchangeable(name, e);
}

/* `was`: the overlay before all changes. */
static int edit_listed(char **out, size_t *out_bytes, const char *text, size_t n, const char *name,
    const struct ptcp_overlay *was, const struct conf_change *changes, size_t count, struct ptcp_err *e)
{
	struct conf_doc *doc;
	struct editor ed = { .n = 0 };
	char *now = NULL;
	size_t now_bytes = 0;
	int r;

	if ((r = conf_doc_parse(&doc, text, n, name, e)) < 0)
		return r == PTCP_ENOMEM ? r : unchangeable(name, e);
	ed.doc = doc;
	if ((ed.edit = calloc(2 * count + 1, sizeof *ed.edit)) == NULL) {
		r = err_nomem(e);
		goto out;
	}
	if ((r = collect(&ed, changes, count, e)) < 0)
		goto out;
	sort_array(ed.edit, ed.n, sizeof *ed.edit, by_place);
	if ((r = rewrite(&now, &now_bytes, text, n, ed.edit, ed.n, e)) == 0 &&
	    (r = edit_check(now, now_bytes, name, was, changes, count, e)) == 0) {
		*out = now;
		*out_bytes = now_bytes;
		now = NULL;
	}
out:
	free(now);
	free(ed.edit);
	conf_doc_free(doc);
	return r;
}

/* ---- Links of 'all' ---- */

/* The character after the last of an item: the extent of a block mapping may include later comments. */
static size_t item_end(const struct conf_doc *d, int node)
{
	size_t n;

	while (conf_want_map(d, node, "link", CONF_POINTS_MAX, &n, NULL) == 0 && n > 0 && !conf_is_flow(d, node))
		node = conf_value(d, node, n - 1);
	return conf_doc_extent(d, node).end;
}

static const char *name_text(char out[CONF_NAME_MAX_BYTES + 3], const char *name)
{
	snprintf(out, CONF_NAME_MAX_BYTES + 3, strchr(name, ':') != NULL ? "\"%s\"" : "%s", name);
	return out;
}

/* How the list of links continues. */
struct list_end {
	size_t at;     /* characters before the end; SIZE_MAX: of the text */
	bool new_line; /* continue after the line's end */
	int column;
	const char *head, *before, *after; /* text before all, and around each link */
};

static struct list_end find_end(const struct conf_doc *d)
{
	int root = conf_doc_root(d), list = conf_lookup(d, root, "links");
	size_t n = 0;

	if (list == root)
		return (struct list_end){ SIZE_MAX, true, 2, "links:\n", "- ", "\n" };
	conf_want_list(d, list, "links", CONF_LINKS_MAX, &n, NULL);
	if (n == 0)
		return (struct list_end){ conf_doc_extent(d, list).first + 1, false, 2, "\n", "", ",\n" };
	if (conf_is_flow(d, list))
		return (struct list_end){ item_end(d, conf_item(d, list, n - 1)), false, 0, "", ",\n  ", "" };
	return (struct list_end){ item_end(d, conf_item(d, list, n - 1)), true, conf_doc_mark(d, list).column - 1, "",
	    "- ",
		"\n" };
}

/* The links that are not listed; freed by the caller. */
static char *unlisted_text(const struct ptcp_overlay *o, const struct list_end *end)
{
	char from[CONF_NAME_MAX_BYTES + 3], to[CONF_NAME_MAX_BYTES + 3], *text = NULL;
	size_t i, bytes;
	FILE *f = open_memstream(&text, &bytes);

	for (i = o->nlisted; f != NULL && i < o->nlinks; i++)
		fprintf(f, "%*s%s{from: %s, to: %s}%s", end->column, "", end->before,
		    name_text(from, o->hosts[o->links[i].from].name), name_text(to, o->hosts[o->links[i].to].name),
		    end->after);
	return f != NULL && fclose(f) == 0 ? text : NULL;
}

/* Appends the links that follow from 'all' to the list; the order of the links stays the same. */
static int list_all(char **out, size_t *out_bytes, const char *text, size_t n, const struct conf_doc *d,
    const struct ptcp_overlay *o, struct ptcp_err *e)
{
	struct list_end end = find_end(d);
	struct copy c = { .text = text, .n = n };
	char *links = unlisted_text(o, &end);

	if (links == NULL || (c.out = malloc(n + strlen(end.head) + strlen(links) + 2)) == NULL) {
		free(links);
		return err_nomem(e);
	}
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		put(&c, text, c.at = 3);
	copy_to(&c, end.at);
	if (end.new_line && c.out[c.filled - 1] != '\n')
		copy_line(&c);
	put(&c, end.head, strlen(end.head));
	put(&c, links, strlen(links));
	put(&c, text + c.at, n - c.at);
	free(links);
	*out = c.out;
	*out_bytes = c.filled;
	return 0;
}

static bool changes_unlisted(const struct ptcp_overlay *o, const struct conf_change *changes, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if ((size_t)changes[i].link >= o->nlisted)
			return true;
	return false;
}

int conf_overlay_edit(char **out, size_t *out_bytes, const char *text, size_t n, const char *name,
    const struct conf_change *changes, size_t count, struct ptcp_err *e)
{
	struct conf_doc *doc = NULL;
	struct ptcp_overlay *was = NULL;
	char *listed = NULL;
	int r;

	if ((r = conf_overlay_parse(&was, text, n, name, e)) == 0 && changes_unlisted(was, changes, count) &&
	    (r = conf_doc_parse(&doc, text, n, name, e)) == 0 && (r = list_all(&listed, &n, text, n, doc, was, e)) == 0)
		text = listed;
	if (r == 0)
		r = edit_listed(out, out_bytes, text, n, name, was, changes, count, e);
	conf_doc_free(doc);
	conf_overlay_free(was);
	free(listed);
	return r;
}

/* ---- Shared bottlenecks ---- */

int conf_overlay_add_shared(char **out, size_t *out_bytes, const char *text, size_t n, const char *name,
    const char *shared, struct ptcp_err *e)
{
	struct ptcp_overlay *was = NULL, *now = NULL;
	char *copy = malloc(n + strlen(shared) + 16);
	bool same;
	int len, r;

	if (copy == NULL)
		return err_nomem(e);
	memcpy(copy, text, n);
	len = sprintf(copy + n, "%sshared:\n%s", n > 0 && text[n - 1] != '\n' ? "\n" : "", shared);
	if ((r = conf_overlay_parse(&was, text, n, name, e)) == 0) {
		same = conf_overlay_parse(&now, copy, n + (size_t)len, name, e) == 0 && was->ngroups == 0 &&
		    now->ngroups > 0 && same_links(now, was, NULL, 0);
		if (!same)
			r = err_set(e, PTCP_ECONFIG, "%s: the key 'shared' cannot be appended (write the file as a "
			    "block mapping, without 'shared')", name);
	}
	conf_overlay_free(now);
	conf_overlay_free(was);
	if (r < 0) {
		free(copy);
		return r;
	}
	*out = copy;
	*out_bytes = n + (size_t)len;
	return 0;
}

/* ---- The file ---- */

int conf_save(const char *path, const char *text, size_t n, struct ptcp_err *e)
{
	char real[PATH_MAX], shown[TEXT_NAME_BYTES];
	struct stat st = { .st_mode = 0644 };
	struct atomic_file f;
	bool good;

	text_escape(shown, sizeof shown, path);
	if (realpath(path, real) == NULL) {
		if (errno != ENOENT || strlen(path) >= sizeof real)
			return err_sys(e, PTCP_EIO, "%s", shown);
		strcpy(real, path);
	} else if (stat(real, &st) < 0) {
		return err_sys(e, PTCP_EIO, "%s", shown);
	}
	if (!atomic_file_begin(&f, real))
		return err_sys(e, PTCP_EIO, "%s: a new file beside it", shown);
	good = fwrite(text, 1, n, f.f) == n && fchmod(fileno(f.f), st.st_mode & 07777) == 0;
	if (!atomic_file_end(&f, good, true) || !good)
		return err_sys(e, err_from_errno(errno), "%s: writing", shown);
	return 0;
}
