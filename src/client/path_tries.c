#include "client/path_tries.h"

void path_tries_begin(struct path_tries *p, unsigned first, unsigned n)
{
	*p = (struct path_tries){ .path = first, .n = n };
}

bool path_tries_failed(struct path_tries *p, bool slow, const struct ptcp_err *why)
{
	if (p->n_failed++ == 0 || (why->code == PTCP_EBUSY && p->why.code != PTCP_EBUSY))
		p->why = *why;
	if (p->n == 1 || !slow || p->patient)
		return true;
	p->slow |= UINT64_C(1) << p->path;
	return false;
}

bool path_tries_next(struct path_tries *p)
{
	if (p->n_failed < p->n) {
		p->path = (p->path + 1) % p->n;
		return true;
	}
	if (p->slow == 0)
		return false;
	p->patient = true;
	for (p->path = 0; (p->slow >> p->path & 1) == 0; p->path++)
		;
	p->slow &= ~(UINT64_C(1) << p->path);
	return true;
}
