/* Strict YAML: unknown keys and duplicate keys are errors. Shared by all configuration files.
 *
 * A document is a tree of nodes named by small integers. Failures are PTCP_ECONFIG with a sentence that
 * begins "FILE:LINE:COLUMN: " and names the expected value, or PTCP_EIO for an unreadable file. */
#ifndef CONF_YAML_H
#define CONF_YAML_H

#include <ptcp/err.h>
#include <stddef.h>

#define CONF_FILE_MAX_BYTES (16u << 20)
#define CONF_SCALAR_MAX_BYTES 4096
#define CONF_DEPTH_MAX 32
#define CONF_NODES_MAX 2000000

/* Reads a whole file, freed by the caller: at most CONF_FILE_MAX_BYTES and one more, which reveals a file too long.
 * `shown` names the file in errors. *fault (fault may be NULL): trusted_file_fault(). PTCP_EIO, with e->sys. */
int conf_read_file(char **out, size_t *n, const char *path, const char *shown, const char **fault,
    struct ptcp_err *e);

struct conf_doc;

struct conf_mark {
	int line, column; /* counted from 1 */
};

/* `name` names the file in errors. Does not keep the text. */
int conf_doc_parse(struct conf_doc **out, const char *text, size_t n, const char *name, struct ptcp_err *e);
/* `fault`: as conf_read_file() has it. */
int conf_doc_load(struct conf_doc **out, const char *path, const char **fault, struct ptcp_err *e);
void conf_doc_free(struct conf_doc *d); /* NULL is fine */

int conf_doc_root(const struct conf_doc *d);
struct conf_mark conf_doc_mark(const struct conf_doc *d, int node);

/* First character and the character after the last, counted from the start of the text without a byte order
 * mark. An alias has the extent of its anchor. */
struct conf_extent {
	size_t first, end;
};
struct conf_extent conf_doc_extent(const struct conf_doc *d, int node);
/* Whether a map or list is written within braces or brackets. */
int conf_is_flow(const struct conf_doc *d, int node);

/* Sets `e` to "FILE:LINE:COLUMN: fmt" and returns PTCP_ECONFIG. */
int conf_fail(const struct conf_doc *d, int node, struct ptcp_err *e,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* `what` names the value in errors ("hosts"). More than `max` entries are an error. */
int conf_want_map(const struct conf_doc *d, int node, const char *what, size_t max,
    size_t *n, struct ptcp_err *e);
int conf_want_list(const struct conf_doc *d, int node, const char *what, size_t max,
    size_t *n, struct ptcp_err *e);
/* The i-th key, value or item of a node accepted by one of the two functions above. */
int conf_key(const struct conf_doc *d, int map, size_t i);
int conf_value(const struct conf_doc *d, int map, size_t i);
int conf_item(const struct conf_doc *d, int list, size_t i);

/* Text of a scalar, without control characters; owned by `d`. */
int conf_want_text(const struct conf_doc *d, int node, const char *what,
    const char **out, struct ptcp_err *e);

/* Escapes text for an error message: control and non-ASCII bytes as \xNN, truncated with "..". Returns
 * buf. */
#define CONF_QUOTED_BYTES 80
const char *conf_quoted(char buf[CONF_QUOTED_BYTES], const char *text);

#endif
