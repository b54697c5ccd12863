#include "wire/outbox.h"

#include <errno.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"

static uint8_t cause_of(int sys)
{
	switch (sys) {
#define X(name, number) case name: return number;
	PTCP_CAUSES(X)
#undef X
	default: return 0;
	}
}

static int errno_of(uint8_t cause)
{
	switch (cause) {
#define X(name, number) case number: return name;
	PTCP_CAUSES(X)
#undef X
	default: return 0;
	}
}

struct wire_why outbox_why(const struct ptcp_err *why)
{
	return (struct wire_why){ (uint16_t)-why->code, cause_of(err_cause(why)),
		{ (const uint8_t *)why->msg, strnlen(why->msg, WIRE_TEXT_MAX) } };
}

void outbox_put_error(struct outbox *o, const struct ptcp_err *why)
{
	struct wire_error f = { outbox_why(why) };

	OUTBOX_PUT(o, error, ERROR, &f);
}

void outbox_put_fail(struct outbox *o, uint64_t id, const struct ptcp_err *why)
{
	struct wire_fail f = { id, outbox_why(why) };

	OUTBOX_PUT(o, fail, FAIL, &f);
}

/* Codes that a peer may report about its own side. Other codes would read as if they concerned this side: usage,
 * configuration, interrupt. */
static int code_of(uint16_t wire)
{
	switch (-(int)wire) {
	case PTCP_ENOMEM:
	case PTCP_EREFUSED:
	case PTCP_EVERIFY:
	case PTCP_EPROTO:
	case PTCP_ETIMEOUT:
	case PTCP_EIO:
	case PTCP_ENOSPC:
	case PTCP_ECHANGED:
	case PTCP_EVANISHED:
	case PTCP_EPARENT:
	case PTCP_ENOTYET:
	case PTCP_ESUPERSEDED:
	case PTCP_EBUSY:
		return -(int)wire;
	default:
		return PTCP_EPEER;
	}
}

void outbox_reason(struct ptcp_err *out, const struct wire_why *w)
{
	char raw[WIRE_TEXT_MAX + 1], shown[sizeof out->msg];
	int code = code_of(w->code);

	span_copy(raw, w->text);
	text_escape(shown, sizeof shown, raw[0] != '\0' ? raw : ptcp_err_text(code));
	err_set(out, code, "%s", shown);
	out->sys = errno_of(w->cause);
	out->from_peer = true;
}
