#include "xfer/outbox.h"

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

void outbox_reason(struct ptcp_err *out, uint16_t code, struct span text)
{
	char raw[WIRE_TEXT_MAX + 1], shown[sizeof out->msg];
	int known = -(int)code;

	memcpy(raw, text.n > 0 ? (const char *)text.p : "", text.n);
	raw[text.n] = '\0';
	text_escape(shown, sizeof shown, text.n > 0 ? raw : ptcp_err_text(known));
	if (strcmp(ptcp_err_name(known), "PTCP_?") == 0)
		known = PTCP_EPEER;
	err_set(out, known, "%s", shown);
}
