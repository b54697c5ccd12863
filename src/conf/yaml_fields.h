/* Reads maps of a YAML document by a table of fields. */
#ifndef CONF_YAML_FIELDS_H
#define CONF_YAML_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "conf/yaml.h"

#define CONF_UNSET UINT64_MAX /* number not given */

enum conf_type {
	CONF_TEXT, /* char *, on the heap, the caller's */
	CONF_SIZE, /* uint64_t, bytes */
	CONF_RATE, /* uint64_t, bit/s */
	CONF_TIME, /* uint64_t, ns */
	CONF_BOOL, /* bool */
	CONF_PERCENT, /* double, as a ratio from 0 to 1 */
	CONF_NODE, /* int, read by the caller */
};

struct conf_field {
	const char *key; /* NULL ends a table */
	enum conf_type type;
	size_t offset;   /* offset of the field in the caller's struct */
	int required;
};

/* Reads a map by a table of fields into `dst`, which holds the defaults. On failure the caller frees the
 * texts in `dst`. */
int conf_read_map(const struct conf_doc *d, int node, const char *what,
    const struct conf_field *fields, void *dst, struct ptcp_err *e);

/* Node of the value of `key` in a map, or the map itself without the key: the place for errors about
 * combined values. */
int conf_lookup(const struct conf_doc *d, int map, const char *key);

#endif
