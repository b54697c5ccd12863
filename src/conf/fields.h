/* Maps of a YAML document read by a table of fields, as all our files have them. */
#ifndef CONF_FIELDS_H
#define CONF_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "conf/yaml.h"

#define CONF_UNSET UINT64_MAX /* a number that was not given */

enum conf_type {
	CONF_TEXT, /* char *, on the heap, the caller's */
	CONF_SIZE, /* uint64_t, bytes */
	CONF_RATE, /* uint64_t, bit/s */
	CONF_TIME, /* uint64_t, ns */
	CONF_BOOL, /* bool */
	CONF_PERCENT, /* double, as a ratio from 0 to 1 */
	CONF_NODE, /* int, to be read by the caller */
};

struct conf_field {
	const char *key; /* NULL ends a table */
	enum conf_type type;
	size_t offset;   /* of the field in the caller's struct */
	int required;
};

/* Reads a map by a table of fields into `dst`, which holds the defaults. On
 * failure, texts already read are in `dst` and remain the caller's to free. */
int conf_read_map(const struct conf_doc *d, int node, const char *what,
    const struct conf_field *fields, void *dst, struct ptcp_err *e);

/* Node of the value of `key` in a map, or the map itself if it is not there: the
 * place to point at when a value is wrong together with others. */
int conf_lookup(const struct conf_doc *d, int map, const char *key);

#endif
