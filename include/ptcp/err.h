/* Errors of libptcp and libptcp-plan.
 *
 * A function that can fail returns 0 or a negative PTCP_E* and fills the caller's struct ptcp_err (which may be NULL)
 * with the same code, the underlying errno (or 0) and one sentence "what: why (what to do)" without a newline.
 * Control bytes of names in the sentence are escaped. The struct is unchanged on success. */
#ifndef PTCP_ERR_H
#define PTCP_ERR_H

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

struct ptcp_err {
	int code;      /* a PTCP_E* */
	int sys;       /* errno, or 0 */
	char msg[512]; /* one sentence */
};

/* The name ("PTCP_EIO") and default text of a code; "PTCP_?" for an unknown code. */
PTCP_API const char *ptcp_err_name(int code);
PTCP_API const char *ptcp_err_text(int code);

#ifdef __cplusplus
}
#endif
#endif
