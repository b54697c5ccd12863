#include "core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void log_write(const struct log *l, enum log_level level, const char *component, const char *fmt, ...)
{
	int saved = errno;
	char msg[2048];
	va_list ap;

	if (l->write == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	l->write(l->arg, level, component, msg);
	errno = saved;
}

bool log_limit_allows(struct log_limit *l, struct mono now, unsigned *left_out)
{
	*left_out = 0;
	if (l->n == 0 || mono_diff_ns(now, l->since) >= 60 * NS_PER_S) {
		*left_out = l->left_out;
		*l = (struct log_limit){ .since = now };
	}
	if (l->n < LOG_LIMIT_LINES) {
		l->n++;
		return true;
	}
	l->left_out++;
	return false;
}
