/* Plots by gnuplot, which may not be installed. */
#ifndef CLI_SHOW_PLOT_H
#define CLI_SHOW_PLOT_H

#include <ptcp/err.h>
#include <stdio.h>

/* Writes a gnuplot script that draws `data` into `file`, starting with plot_begin(). Returns -1 if out of
 * memory; plot_draw() detects failed writes to `f`. */
typedef int plot_fn(FILE *f, const char *file, const void *data);

/* Draws an SVG into `file`. PTCP_EIO if gnuplot is not installed or fails, or if `file` cannot be written;
 * PTCP_ENOMEM. */
int plot_draw(const char *file, plot_fn *write_script, const void *data, struct ptcp_err *e);

/* Starts a script: an SVG of this many pixels on white, without markup in texts. */
#define PLOT_WIDTH 900
void plot_begin(FILE *f, const char *file, size_t width, size_t height);

/* Color i of n, all distinct on white: hues around the circle, in three shades by turns. */
unsigned plot_color(size_t i, size_t n);

/* Marks the answer, `x` on an axis from 0 to `max`, by a line and a label without quotes. */
#define PLOT_ANSWER "#b00020"
void plot_answer(FILE *f, double x, double max, const char *label);

/* Range and ticks of an axis ('x') of whole numbers up to max. */
void plot_counts(FILE *f, char axis, unsigned max);

/* The decimal unit for an axis up to `max`: 1e9 and "G", for example. Axes in units have short, distinct labels. */
double plot_unit(double max, const char **prefix);

#endif
