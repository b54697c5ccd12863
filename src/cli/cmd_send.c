#include "cli/transfer.h"

int cmd_send(const struct command *c, int argc, char **argv)
{
	return transfer_command(c, argc, argv, ptcp_send_new);
}
