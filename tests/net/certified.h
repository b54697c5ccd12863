/* What the tests of trust share: certificates made in memory. */
#ifndef TESTS_NET_CERTIFIED_H
#define TESTS_NET_CERTIFIED_H

#include <string.h>

#include "fixture.h"
#include "net/trust/certificate.h"

/* Appends one for the key of `subject`, valid from 100 to 200 unless it says otherwise. */
static inline void certified(struct certificates *all, const struct certificate *what, const struct identity *subject,
    const struct identity *ca)
{
	struct certificate c = *what;
	size_t n;

	if (c.until_s == 0)
		c.until_s = 200;
	if (c.from_s == 0)
		c.from_s = 100;
	if (c.serial == 0)
		c.serial = 1;
	strcpy(c.subject, subject->fingerprint);
	assert_true(all->n + CERTIFICATE_MAX_BYTES <= sizeof all->bytes);
	assert_int_equal(certificate_sign(all->bytes + all->n, &n, &c, ca, NULL), 0);
	all->n += n;
}

#endif
