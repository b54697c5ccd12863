#include <ptcp/ptcp.h>

const char *ptcp_version(void)
{
	return PTCP_VERSION;
}
