/* Plots by gnuplot, which may not be installed. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdio.h>

#include <ptcp/err.h>

/* Writes a gnuplot script that draws `data` into `file`, starting with plot_begin(). Returns -1 if out of
 * memory; plot_draw() detects failed writes to `f`. */
typedef int plot_fn(FILE *f, const char *file, const void *data);

/* Draws an SVG into `file`. PTCP_EIO if gnuplot is not installed or fails, or if `file` cannot be written;
 * PTCP_ENOMEM. */
int plot_draw(const char *file, plot_fn *write_script, const void *data, struct ptcp_err *e);

/* Starts a script: an SVG of 900 by `height` pixels on white, without markup in texts. */
void plot_begin(FILE *f, const char *file, size_t height);

/* The decimal unit for an axis up to `max`: 1e9 and "G", for example. Axes in units have short, distinct labels. */
double plot_unit(double max, const char **prefix);

#endif
