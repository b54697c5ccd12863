/* Pictures: a script for gnuplot, which is a program that may be missing. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdio.h>

#include <ptcp/err.h>

/* Writes the script that draws `what` into `file`, beginning with plot_begin(). Returns -1
 * without memory; a failure of `f` is plot_draw()'s to see. */
typedef int plot_fn(FILE *f, const char *file, const void *what);

/* Draws into `file` as SVG. PTCP_EIO if gnuplot is not installed, fails, or the file
 * cannot be written; PTCP_ENOMEM. */
int plot_draw(const char *file, plot_fn *write_script, const void *what, struct ptcp_err *e);

/* The first lines of every script: an SVG of 900 by `height` pixels, without markup in texts. */
void plot_begin(FILE *f, const char *file, size_t height);

#endif
