#include "cli/transfer.h"

int cmd_recv(const struct command *c, int argc, char **argv)
{
	return transfer_command(c, argc, argv, ptcp_recv_new);
}
