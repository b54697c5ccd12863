/* The channel that a party's control frames travel on. */
#include "core/err.h"
#include "lib/party_impl.h"

void party_flush(struct party *p)
{
	struct buf *b = &session_outbox(p->session)->b;
	size_t n;

	if (p->control == NULL)
		return;
	do {
		if (p->mux != NULL && !mux_is_between(p->mux))
			continue;
		do
			buf_consume(b, n = returning_write(p, buf_head(b), buf_len(b)));
		while (n > 0 && buf_len(b) > 0);
		if (buf_len(b) > 0 || p->over)
			break;
	} while (p->mux != NULL && mux_output(p->mux, p->control));
	chan_flush(p->control);
}

static void on_control(void *arg, const uint8_t *bytes, size_t n)
{
	struct party *p = arg;

	session_input(p->session, bytes, n, mono_now());
}

static void on_pump(void *arg)
{
	struct party *p = arg;

	if (p->control != NULL && !p->over && mux_holds(p->mux))
		mux_input(p->mux, p->control);
	party_pump(p);
}

const struct mux_ops party_mux_ops = { on_control, on_pump };

static void on_readable(void *arg)
{
	struct party *p = arg;
	uint8_t bytes[16384];
	size_t n, total = 0;

	if (p->mux != NULL && !p->over) {
		mux_input(p->mux, p->control);
		session_input(p->session, bytes, 0, mono_now()); /* what blocks bring is heard as well */
	} else {
		while (total < 8 * sizeof bytes && (n = chan_read(p->control, bytes, sizeof bytes)) > 0) {
			total += n;
			returning_heard(p, n);
			session_input(p->session, bytes, n, mono_now());
		}
	}
	party_pump(p);
}

static void on_writable(void *arg)
{
	party_pump(arg);
}

static void on_closed(void *arg, const struct ptcp_err *why)
{
	struct party *p = arg;
	struct ptcp_err cut;

	err_set(&cut, PTCP_EPEER, "control connection: %s (run it again when the other host can be "
	    "reached)", why != NULL ? why->msg : "the peer closed it");
	if (why == NULL)
		p->returning.vain = true; /* who closes in good order has heard all, and does not come back */
	if (!returning_may(p))
		session_closed(p->session, &cut);
	else
		returning_lost(p, why->msg);
	chan_free(p->control); /* `why` goes with it */
	p->control = NULL;
	party_pump(p);
}

static void on_opened(void *arg)
{
	(void)arg;
}

const struct chan_ops party_control_ops = { on_opened, on_readable, on_writable, on_closed };
