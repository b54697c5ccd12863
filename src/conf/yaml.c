#include "conf/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/sorted.h"
#include "core/text.h"
#include "core/trusted_file.h"

struct conf_doc {
	yaml_document_t yaml;
	char *name;
};

const char *conf_quoted(char buf[CONF_QUOTED_BYTES], const char *text)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (n + 7 > CONF_QUOTED_BYTES) {
			memcpy(buf + n, "..", 2);
			n += 2;
			break;
		}
		if (c >= 0x20 && c < 0x7f) {
			buf[n++] = (char)c;
		} else {
			buf[n++] = '\\';
			buf[n++] = 'x';
			buf[n++] = hex[c >> 4];
			buf[n++] = hex[c & 15];
		}
	}
	buf[n] = '\0';
	return buf;
}

static const yaml_node_t *node_peek(const struct conf_doc *d, int node)
{
	return &d->yaml.nodes.start[node - 1];
}

struct conf_mark conf_doc_mark(const struct conf_doc *d, int node)
{
	const yaml_mark_t *m = &node_peek(d, node)->start_mark;

	return (struct conf_mark){ (int)m->line + 1, (int)m->column + 1 };
}

struct conf_extent conf_doc_extent(const struct conf_doc *d, int node)
{
	const yaml_node_t *n = node_peek(d, node);

	return (struct conf_extent){ n->start_mark.index, n->end_mark.index };
}

int conf_is_flow(const struct conf_doc *d, int node)
{
	const yaml_node_t *n = node_peek(d, node);

	return n->type == YAML_SEQUENCE_NODE ? n->data.sequence.style == YAML_FLOW_SEQUENCE_STYLE :
	    n->data.mapping.style == YAML_FLOW_MAPPING_STYLE;
}

int conf_fail(const struct conf_doc *d, int node, struct ptcp_err *e, const char *fmt, ...)
{
	struct conf_mark m = conf_doc_mark(d, node);
	char text[sizeof e->msg];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return err_set(e, PTCP_ECONFIG, "%s:%d:%d: %s", d->name, m.line, m.column, text);
}

static int parser_failed(const yaml_parser_t *p, const char *name, struct ptcp_err *e)
{
	const yaml_mark_t *m = &p->problem_mark;
	const char *why = p->problem != NULL ? p->problem : "not valid YAML";

	if (p->error == YAML_MEMORY_ERROR)
		return err_nomem(e);
	if (p->error == YAML_READER_ERROR)
		return err_set(e, PTCP_ECONFIG, "%s:1:1: expected UTF-8 text: %s at byte %zu",
		    name, why, p->problem_offset);
	return err_set(e, PTCP_ECONFIG, "%s:%zu:%zu: expected YAML: %s%s%s", name,
	    m->line + 1, m->column + 1, why, p->context != NULL ? " " : "",
	    p->context != NULL ? p->context : "");
}

/* libyaml's time and memory grow with the square of the depth: checks depth and node count before libyaml
 * builds the document. */
static int check_size(const char *text, size_t n, const char *name, struct ptcp_err *e)
{
	yaml_parser_t p;
	yaml_event_t ev;
	size_t depth = 0, nodes = 0, max = CONF_NODES_MAX;
	int r = 0, end = 0;

	if (!yaml_parser_initialize(&p))
		return err_nomem(e);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
	while (r == 0 && !end) {
		if (!yaml_parser_parse(&p, &ev)) {
			r = parser_failed(&p, name, e);
			break;
		}
		if (ev.type == YAML_SEQUENCE_START_EVENT || ev.type == YAML_MAPPING_START_EVENT)
			depth++;
		else if (ev.type == YAML_SEQUENCE_END_EVENT || ev.type == YAML_MAPPING_END_EVENT)
			depth--;
		end = ev.type == YAML_STREAM_END_EVENT;
		if (depth > CONF_DEPTH_MAX)
			r = err_set(e, PTCP_ECONFIG, "%s:%zu:%zu: expected at most %d levels", name,
			    ev.start_mark.line + 1, ev.start_mark.column + 1, CONF_DEPTH_MAX);
		else if (++nodes > max)
			r = err_set(e, PTCP_ECONFIG, "%s:%zu:%zu: expected at most %zu values", name,
			    ev.start_mark.line + 1, ev.start_mark.column + 1, max);
		yaml_event_delete(&ev);
	}
	yaml_parser_delete(&p);
	return r;
}

/* libyaml would silently ignore a second document. */
static int check_single(yaml_parser_t *p, const char *name, struct ptcp_err *e)
{
	yaml_document_t rest;
	const yaml_node_t *root;
	int r = 0;

	if (!yaml_parser_load(p, &rest))
		return parser_failed(p, name, e);
	root = yaml_document_get_root_node(&rest);
	if (root != NULL)
		r = err_set(e, PTCP_ECONFIG, "%s:%zu:%zu: expected the end of the file, "
		    "got a second document", name, root->start_mark.line + 1, root->start_mark.column + 1);
	yaml_document_delete(&rest);
	return r;
}

int conf_doc_parse(struct conf_doc **out, const char *text, size_t n, const char *name, struct ptcp_err *e)
{
	struct conf_doc *d = calloc(1, sizeof *d);
	yaml_parser_t p;
	int r;

	if (d == NULL || (d->name = strdup(name)) == NULL) {
		free(d);
		return err_nomem(e);
	}
	if (n > CONF_FILE_MAX_BYTES) {
		r = err_set(e, PTCP_ECONFIG, "%s:1:1: expected at most %u bytes, got %zu",
		    name, CONF_FILE_MAX_BYTES, n);
		goto fail;
	}
	if ((r = check_size(text, n, name, e)) < 0)
		goto fail;
	if (!yaml_parser_initialize(&p)) {
		r = err_nomem(e);
		goto fail;
	}
	yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
	if (!yaml_parser_load(&p, &d->yaml)) {
		r = parser_failed(&p, name, e);
		yaml_parser_delete(&p);
		goto fail;
	}
	if (yaml_document_get_root_node(&d->yaml) == NULL)
		r = err_set(e, PTCP_ECONFIG, "%s:1:1: expected a map of keys, got nothing", name);
	else
		r = check_single(&p, name, e);
	yaml_parser_delete(&p);
	if (r < 0) {
		yaml_document_delete(&d->yaml);
		goto fail;
	}
	*out = d;
	return 0;
fail:
	free(d->name);
	free(d);
	return r;
}

static int unreadable(const char *shown, struct ptcp_err *e)
{
	int sys = errno, r;

	r = err_set(e, PTCP_EIO, "%s: %s (name a file that can be read)", shown, strerror(sys));
	if (e != NULL)
		e->sys = sys;
	return r;
}

static int read_all(int fd, char *buf, size_t max, size_t *n, const char *shown, struct ptcp_err *e)
{
	ssize_t got;

	for (*n = 0; *n < max; *n += (size_t)got) {
		got = read(fd, buf + *n, max - *n);
		if (got < 0 && errno == EINTR)
			got = 0;
		else if (got < 0)
			return unreadable(shown, e);
		else if (got == 0)
			break;
	}
	return 0;
}

int conf_read_file(char **out, size_t *n, const char *path, const char *shown, const char **fault, struct ptcp_err *e)
{
	const size_t max = CONF_FILE_MAX_BYTES + 1;
	char *buf = NULL;
	struct stat st;
	int fd, r;

	/* O_NONBLOCK: opening a FIFO must not block. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return unreadable(shown, e);
	if (fstat(fd, &st) < 0)
		r = unreadable(shown, e);
	else if (S_ISDIR(st.st_mode))
		r = err_set(e, PTCP_EIO, "%s: is a directory (a file was expected)", shown);
	else if ((buf = malloc(max)) == NULL)
		r = err_nomem(e);
	else
		r = read_all(fd, buf, max, n, shown, e);
	if (fault != NULL)
		*fault = trusted_file_fault(fd, path);
	fd_close(&fd);
	if (r < 0)
		free(buf);
	else
		*out = buf;
	return r;
}

int conf_doc_load(struct conf_doc **out, const char *path, const char **fault, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *buf;
	size_t n;
	int r;

	text_escape(shown, sizeof shown, path);
	if ((r = conf_read_file(&buf, &n, path, shown, fault, e)) < 0)
		return r;
	r = conf_doc_parse(out, buf, n, shown, e);
	free(buf);
	return r;
}

void conf_doc_free(struct conf_doc *d)
{
	if (d == NULL)
		return;
	yaml_document_delete(&d->yaml);
	free(d->name);
	free(d);
}

int conf_doc_root(const struct conf_doc *d)
{
	(void)d;
	return 1; /* libyaml numbers nodes from the root */
}

static const char *kind(const yaml_node_t *n)
{
	switch (n->type) {
	case YAML_SCALAR_NODE: return "a single value";
	case YAML_SEQUENCE_NODE: return "a list";
	case YAML_MAPPING_NODE: return "a map";
	default: return "nothing";
	}
}

/* Rejects explicit tags (!!int, !mine): they request a meaning not implemented here. */
static int want(const struct conf_doc *d, int node, yaml_node_type_t type, const char *tag,
    const char *expected, const char *what, struct ptcp_err *e)
{
	const yaml_node_t *n = node_peek(d, node);
	char q[CONF_QUOTED_BYTES];

	if (n->type != type)
		return conf_fail(d, node, e, "%s: expected %s, got %s", what, expected, kind(n));
	if (n->tag != NULL && strcmp((const char *)n->tag, tag) != 0)
		return conf_fail(d, node, e, "%s: expected no tag, got %s", what,
		    conf_quoted(q, (const char *)n->tag));
	return 0;
}

int conf_want_text(const struct conf_doc *d, int node, const char *what, const char **out, struct ptcp_err *e)
{
	const yaml_node_t *n = node_peek(d, node);
	const unsigned char *s;
	size_t i, len;
	int r;

	if ((r = want(d, node, YAML_SCALAR_NODE, YAML_STR_TAG, "a single value", what, e)) < 0)
		return r;
	s = n->data.scalar.value;
	len = n->data.scalar.length;
	if (len > CONF_SCALAR_MAX_BYTES)
		return conf_fail(d, node, e, "%s: expected at most %d bytes, got %zu", what,
		    CONF_SCALAR_MAX_BYTES, len);
	for (i = 0; i < len; i++)
		if (s[i] < 0x20 || s[i] == 0x7f)
			return conf_fail(d, node, e, "%s: expected text without control "
			    "characters, got \\x%02x", what, s[i]);
	*out = (const char *)s;
	return 0;
}

static int check_count(const struct conf_doc *d, int node, const char *what, size_t n, size_t max,
    struct ptcp_err *e)
{
	return n <= max ? 0 : conf_fail(d, node, e, "%s: expected at most %zu entries, got %zu", what, max, n);
}

static int check_twice(const struct conf_doc *d, int map, const char *what, size_t n, struct ptcp_err *e);

int conf_want_map(const struct conf_doc *d, int node, const char *what, size_t max, size_t *n,
    struct ptcp_err *e)
{
	const yaml_node_t *m = node_peek(d, node);
	size_t count;
	int r;

	if ((r = want(d, node, YAML_MAPPING_NODE, YAML_MAP_TAG, "a map of keys", what, e)) < 0)
		return r;
	count = (size_t)(m->data.mapping.pairs.top - m->data.mapping.pairs.start);
	if ((r = check_count(d, node, what, count, max, e)) < 0 || (r = check_twice(d, node, what, count, e)) < 0)
		return r;
	*n = count;
	return 0;
}

int conf_want_list(const struct conf_doc *d, int node, const char *what, size_t max, size_t *n,
    struct ptcp_err *e)
{
	const yaml_node_t *m = node_peek(d, node);
	size_t count;
	int r;

	if ((r = want(d, node, YAML_SEQUENCE_NODE, YAML_SEQ_TAG, "a list", what, e)) < 0)
		return r;
	count = (size_t)(m->data.sequence.items.top - m->data.sequence.items.start);
	if ((r = check_count(d, node, what, count, max, e)) < 0)
		return r;
	*n = count;
	return 0;
}

int conf_key(const struct conf_doc *d, int map, size_t i)
{
	return node_peek(d, map)->data.mapping.pairs.start[i].key;
}

int conf_value(const struct conf_doc *d, int map, size_t i)
{
	return node_peek(d, map)->data.mapping.pairs.start[i].value;
}

int conf_item(const struct conf_doc *d, int list, size_t i)
{
	return node_peek(d, list)->data.sequence.items.start[i];
}

struct key_at {
	const char *text;
	int node;
};

static int by_text(const void *a, const void *b)
{
	const struct key_at *x = a, *y = b;
	int c = strcmp(x->text, y->text);

	return c != 0 ? c : (x->node > y->node) - (x->node < y->node);
}

/* Sorts the keys: a large map must not take quadratic time. */
static int check_twice(const struct conf_doc *d, int map, const char *what, size_t n, struct ptcp_err *e)
{
	struct key_at *keys;
	char q[CONF_QUOTED_BYTES];
	size_t i;
	int r = 0;

	if (n == 0)
		return 0;
	if ((keys = calloc(n, sizeof *keys)) == NULL)
		return err_nomem(e);
	for (i = 0; i < n && r == 0; i++) {
		keys[i].node = conf_key(d, map, i);
		r = conf_want_text(d, keys[i].node, what, &keys[i].text, e);
	}
	if (r == 0)
		sort_array(keys, n, sizeof *keys, by_text);
	for (i = 1; i < n && r == 0; i++)
		if (strcmp(keys[i - 1].text, keys[i].text) == 0)
			r = conf_fail(d, keys[i].node, e, "%s: expected each key once, "
			    "got '%s' again", what, conf_quoted(q, keys[i].text));
	free(keys);
	return r;
}
