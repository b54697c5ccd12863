#include "cli/overlay_names.h"

#include <stdio.h>

const char *host_name(const struct ptcp_overlay *o, int host)
{
	struct ptcp_overlay_host h;

	ptcp_overlay_host(o, (size_t)host, &h);
	return h.name;
}

const char *link_name(char out[LINK_NAME_BYTES], const struct ptcp_overlay *o, int from, int to)
{
	snprintf(out, LINK_NAME_BYTES, "%s>%s", host_name(o, from), host_name(o, to));
	return out;
}
