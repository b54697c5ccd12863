/* What the laboratory measured of the study (see the head of `lab` for the file), and confidence
 * intervals. */
#ifndef TESTS_BENCH_COLLECT_MEASURED_H
#define TESTS_BENCH_COLLECT_MEASURED_H

#include <stddef.h>

/* Mean, and half of the 95 % confidence interval of it (Student's t); 0 with fewer than two values. */
struct interval {
	double mean, half;
	size_t n;
};
struct interval interval_of(const double *x, size_t n);

/* Prints tables of the file; 0, or 1 if it cannot be read. */
int report_measured(const char *file);

#endif
