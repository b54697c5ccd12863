#include "core/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ptcp_err_name(int code)
{
	switch (code) {
#define X(name, value, text) case name: return #name;
	PTCP_ERRORS(X)
#undef X
	default: return "PTCP_?";
	}
}

const char *ptcp_err_text(int code)
{
	switch (code) {
#define X(name, value, text) case name: return text;
	PTCP_ERRORS(X)
#undef X
	default: return "unknown error";
	}
}

const char *ptcp_cause_name(int sys)
{
	switch (sys) {
#define X(name, number) case name: return #name;
	PTCP_CAUSES(X)
#undef X
	default: return NULL;
	}
}

/* The message "fmt", or with `tail` "fmt: tail". */
static void format(struct ptcp_err *e, const char *fmt, va_list ap, const char *tail)
{
	size_t n;

	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	n = strlen(e->msg);
	if (tail != NULL)
		snprintf(e->msg + n, sizeof e->msg - n, ": %s", tail);
}

int err_set(struct ptcp_err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return code;
	e->code = code;
	e->sys = 0;
	e->from_peer = false;
	va_start(ap, fmt);
	format(e, fmt, ap, NULL);
	va_end(ap);
	return code;
}

int err_sys(struct ptcp_err *e, int code, const char *fmt, ...)
{
	int sys = errno;
	va_list ap;

	if (e == NULL)
		return code;
	e->code = code;
	e->sys = sys;
	e->from_peer = false;
	va_start(ap, fmt);
	format(e, fmt, ap, strerror(sys));
	va_end(ap);
	errno = sys;
	return code;
}

int err_because(struct ptcp_err *e, int code, int sys, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL)
		return code;
	*e = (struct ptcp_err){ .code = code, .sys = sys };
	va_start(ap, fmt);
	format(e, fmt, ap, NULL);
	va_end(ap);
	return code;
}

int err_while(struct ptcp_err *e, int code, const char *fmt, ...)
{
	struct ptcp_err old;
	va_list ap;

	if (e == NULL)
		return code;
	old = *e;
	va_start(ap, fmt);
	format(e, fmt, ap, old.msg);
	va_end(ap);
	return code;
}

int err_nomem(struct ptcp_err *e)
{
	if (e == NULL)
		return PTCP_ENOMEM;
	e->code = PTCP_ENOMEM;
	e->sys = 0;
	e->from_peer = false;
	strcpy(e->msg, ptcp_err_text(PTCP_ENOMEM)); /* no formatting: callers prepare for a rare failure */
	return PTCP_ENOMEM;
}

int err_from_errno(int sys)
{
	switch (sys) {
	case ENOSPC:
	case EDQUOT:
		return PTCP_ENOSPC;
	case ENOMEM:
		return PTCP_ENOMEM;
	default:
		return PTCP_EIO;
	}
}

int err_cause(const struct ptcp_err *e)
{
	if (e->sys != 0)
		return e->sys;
	switch (e->code) {
	case PTCP_ENOSPC: return ENOSPC;
	case PTCP_ENOMEM: return ENOMEM;
	case PTCP_EREFUSED: return EACCES;
	case PTCP_EVANISHED: return ENOENT;
	case PTCP_ETIMEOUT: return ETIMEDOUT;
	default: return 0;
	}
}
