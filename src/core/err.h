/* Filling a struct ptcp_err, see <ptcp/err.h>. */
#ifndef CORE_ERR_H
#define CORE_ERR_H

#include <ptcp/err.h>

/* Each returns `code`, so that a failure is one statement. `e` may be NULL. */
int err_set(struct ptcp_err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set(), and appends ": strerror(errno)"; errno is preserved. */
int err_sys(struct ptcp_err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set(), with the cause `sys`, an errno that the sentence describes in words of its own. */
int err_because(struct ptcp_err *e, int code, int sys, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Prefixes the sentence in `e` with "fmt: " and returns `code` unchanged. */
int err_while(struct ptcp_err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* PTCP_ENOMEM with its default text. */
int err_nomem(struct ptcp_err *e);

/* The code for an errno of a file operation: PTCP_ENOSPC for a full disk or quota, PTCP_ENOMEM, else
 * PTCP_EIO. */
int err_from_errno(int sys);

/* The cause of a failure for users and peers: e->sys, or without it the errno that the code stands for, or 0. */
int err_cause(const struct ptcp_err *e);

#endif
