/* Whether the daemon at a target is the one whose fingerprint was given, and lets this client in. */
#include <string.h>

#include "cli/doctor.h"
#include "cli/measure_opts.h"
#include "core/err.h"

/* As any client is answered: here about what it has left there, which may be nothing. */
static int ask(const char *target, const struct connect_args *a, struct ptcp_err *e)
{
	struct ptcp_transfer_opts o;
	struct ptcp_transfer *t = NULL;
	int r;

	ptcp_transfer_opts_init(&o);
	connect_apply(a, &o);
	o.trust = NULL; /* what was given decides */
	if ((r = ptcp_status_new(&t, &o, target, false, e)) == 0)
		r = probe_run(t, e);
	ptcp_transfer_free(t);
	return r;
}

/* Of "what: why (what to do)", what to do, cut off; else something that may help. */
static const char *cut_advice(char *sentence)
{
	char *at = strstr(sentence, " (");

	if (at == NULL)
		return "compare it with what ptcp key show prints there";
	*at = '\0';
	at += 2;
	at[strcspn(at, ")")] = '\0';
	return at;
}

int doctor_identity(struct doctor *d, const char *target, const struct connect_args *a, struct ptcp_err *e)
{
	const char *advice;
	int r;

	if (target == NULL || a->n_fingerprints == 0)
		return 0;
	if ((r = ask(target, a, e)) == PTCP_ECANCELED)
		return r;
	if (r == 0) {
		doctor_add(d, "identity", VERDICT_OK, 0, NULL, "the daemon there has the fingerprint, and lets this client in");
		return 0;
	}
	advice = cut_advice(e->msg);
	doctor_mend(doctor_add(d, "identity", VERDICT_BAD, 0, NULL, "%s", e->msg), "%s", advice);
	return 0;
}
