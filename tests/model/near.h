/* What the tests of src/model share: the includes cmocka wants and a comparison
 * of doubles that names the line. */
#ifndef TESTS_MODEL_NEAR_H
#define TESTS_MODEL_NEAR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

/* |a - b| <= ratio * max(|a|, |b|); equal infinities are near, NAN never is. */
#define assert_near(a, b, ratio) near_or_fail(a, b, ratio, #a, __FILE__, __LINE__)

static inline void near_or_fail(double a, double b, double ratio, const char *what,
    const char *file, int line)
{
	if (a == b || fabs(a - b) <= ratio * fmax(fabs(a), fabs(b)))
		return;
	print_error("%s is %.17g, not %.17g\n", what, a, b);
	_fail(file, line);
}

#endif
