#include "core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void log_write(const struct log *l, enum log_level level, const char *component, const char *fmt, ...)
{
	int saved = errno;
	char msg[1024];
	va_list ap;

	if (l->write == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	l->write(l->arg, level, component, msg);
	errno = saved;
}
