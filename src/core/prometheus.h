/* The text format 0.0.4 of Prometheus. Names get the prefix "ptcp_"; a help is a sentence. */
#ifndef CORE_PROMETHEUS_H
#define CORE_PROMETHEUS_H

#include <stdio.h>

#include "core/err.h"

/* Begins a metric; `type` is "counter" or "gauge". */
void prometheus_head(FILE *f, const char *name, const char *type, const char *help);
/* A gauge with one sample. */
void prometheus_gauge(FILE *f, const char *name, const char *help, double value);
/* A sample with one label. */
void prometheus_sample(FILE *f, const char *name, const char *label, const char *text, double value);
/* The text of a label, escaped. */
void prometheus_text(FILE *f, const char *text);

/* Replaces `path`, readable by all, with what print(f, arg) writes, for the textfile collector of the node exporter.
 * PTCP_ECONFIG. */
int prometheus_write(const char *path, void (*print)(FILE *f, void *arg), void *arg, struct ptcp_err *e);

#endif
