/* Errors of libptcp and libptcp-plan.
 *
 * A function that can fail returns 0 or a negative PTCP_E* and fills the caller's struct ptcp_err (which may be NULL)
 * with the same code, the cause as an errno (or 0) and one sentence "what: why (what to do)" without a newline.
 * Control bytes of names in the sentence are escaped. The struct is unchanged on success. */
#ifndef PTCP_ERR_H
#define PTCP_ERR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PTCP_API __attribute__((visibility("default")))
#else
#define PTCP_API
#endif

/* name, value, default text */
#define PTCP_ERRORS(X)                                                         \
	X(PTCP_ENOMEM, -1, "out of memory")                                    \
	X(PTCP_EUSAGE, -2, "wrong argument")                                   \
	X(PTCP_ECONFIG, -3, "bad configuration")                               \
	X(PTCP_ECONNECT, -4, "could not connect")                              \
	X(PTCP_EREFUSED, -5, "refused")                                        \
	X(PTCP_EVERIFY, -6, "data did not verify")                             \
	X(PTCP_EPARTIAL, -7, "some files failed")                              \
	X(PTCP_EINFEASIBLE, -8, "plan infeasible")                             \
	X(PTCP_ECANCELED, -9, "interrupted")                                   \
	X(PTCP_EPROTO, -10, "the peer broke the protocol")                     \
	X(PTCP_EPEER, -11, "the peer failed")                                  \
	X(PTCP_ETIMEOUT, -12, "no progress")                                   \
	X(PTCP_EIO, -13, "input/output error")                                 \
	X(PTCP_ENOSPC, -14, "no space left")                                   \
	X(PTCP_ECHANGED, -15, "the source changed while it was sent")          \
	X(PTCP_ENOTYET, -16, "not available yet")                              \
	X(PTCP_ERANGE, -17, "value out of range")                              \
	X(PTCP_EBUSY, -18, "too busy")                                         \
	X(PTCP_ESUPERSEDED, -19, "superseded by a newer run")                  \
	X(PTCP_EVANISHED, -20, "files vanished before they were sent")         \
	X(PTCP_EPARENT, -21, "its directory failed")                           \
	X(PTCP_ESTOPPED, -22, "stopped at the requested time")

enum ptcp_code {
#define X(name, value, text) name = value,
	PTCP_ERRORS(X)
#undef X
};

/* Causes: values of errno that the protocol transfers, with their numbers in the protocol, which no operating system
 * changes. Name, number */
#define PTCP_CAUSES(X)                                                         \
	X(ENOENT, 1) X(EACCES, 2) X(EPERM, 3) X(EEXIST, 4) X(ENOTDIR, 5)       \
	X(EISDIR, 6) X(ENOTEMPTY, 7) X(ENOSPC, 8) X(EDQUOT, 9) X(EROFS, 10)    \
	X(EFBIG, 11) X(ENAMETOOLONG, 12) X(ELOOP, 13) X(EXDEV, 14)             \
	X(EMLINK, 15) X(EINVAL, 16) X(EILSEQ, 17) X(ESTALE, 18) X(EBUSY, 19)   \
	X(ETXTBSY, 20) X(EIO, 21) X(ENODEV, 22) X(ENXIO, 23) X(EMFILE, 24)     \
	X(ENFILE, 25) X(ENOMEM, 26) X(E2BIG, 27) X(EOPNOTSUPP, 28)             \
	X(ENOSYS, 29) X(EAGAIN, 30) X(ETIMEDOUT, 31) X(ECONNREFUSED, 32)       \
	X(ECONNRESET, 33) X(ECONNABORTED, 34) X(EPIPE, 35) X(ENOTCONN, 36)     \
	X(EHOSTUNREACH, 37) X(ENETUNREACH, 38) X(EADDRINUSE, 39)               \
	X(EADDRNOTAVAIL, 40)

struct ptcp_err {
	int code;       /* a PTCP_E* */
	/* Cause of the failure as this system's errno, also if the other host has failed; 0: another one. If several
	 * files failed: the cause that all of them share, else 0 */
	int sys;
	bool from_peer; /* the other host has reported the failure, which concerns its files or rights */
	char msg[512];  /* one sentence */
};

/* The name ("PTCP_EIO") and default text of a code; "PTCP_?" for an unknown code. */
PTCP_API const char *ptcp_err_name(int code);
PTCP_API const char *ptcp_err_text(int code);
/* The name of a cause, such as "ENOENT" for ENOENT; NULL: 0, or none of PTCP_CAUSES. */
PTCP_API const char *ptcp_cause_name(int sys);

#ifdef __cplusplus
}
#endif
#endif
