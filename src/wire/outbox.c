#include "wire/outbox.h"

#include <string.h>

#include "core/err.h"
#include "core/text.h"

static struct span text_of(const struct ptcp_err *why)
{
	size_t n = strnlen(why->msg, sizeof why->msg);

	return (struct span){ (const uint8_t *)why->msg, n < WIRE_TEXT_MAX ? n : WIRE_TEXT_MAX };
}

void outbox_put_error(struct outbox *o, const struct ptcp_err *why)
{
	struct wire_error f = { (uint16_t)-why->code, text_of(why) };

	OUTBOX_PUT(o, error, ERROR, &f);
}

void outbox_put_fail(struct outbox *o, uint64_t id, const struct ptcp_err *why)
{
	struct wire_fail f = { id, (uint16_t)-why->code, text_of(why) };

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

void outbox_reason(struct ptcp_err *out, uint16_t code, struct span text)
{
	char raw[WIRE_TEXT_MAX + 1], shown[sizeof out->msg];

	memcpy(raw, text.n > 0 ? (const char *)text.p : "", text.n);
	raw[text.n] = '\0';
	text_escape(shown, sizeof shown, raw[0] != '\0' ? raw : ptcp_err_text(code_of(code)));
	err_set(out, code_of(code), "%s", shown);
	out->sys = OUTBOX_FROM_PEER;
}
