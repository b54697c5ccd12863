/* An overlay from its text, for tests. */
#ifndef TESTS_PLAN_PARSED_H
#define TESTS_PLAN_PARSED_H

#include <ptcp/plan.h>
#include <string.h>

static inline struct ptcp_overlay *overlay_of(const char *text)
{
	struct ptcp_overlay *o;
	struct ptcp_err e;

	if (ptcp_overlay_parse(&o, text, strlen(text), "test", &e) < 0)
		fail_msg("%s", e.msg);
	return o;
}

#endif
