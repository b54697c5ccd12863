/* libFuzzer target: command lines, a line an argument. The first byte says whose. */
#include "cli/serve.h"
#include "cli/transfer.h"
#include "core/err.h"
#include "fuzz.h"

#define ARGS_MAX 40

static int parse(uint8_t whose, int argc, char **argv, struct ptcp_err *e)
{
	struct transfer_args a;
	struct serve_args s;
	int r;

	if (whose & 1) {
		r = serve_parse(&s, &command_serve, argc, argv, e);
		serve_args_fini(&s);
		return r;
	}
	r = transfer_parse(&a, &command_send, argc, argv, e);
	if (r == 0) {
		MUST(a.n_srcs >= 1 && a.dest != NULL);
		MUST(a.connect.transfer.timeout_s > 0 && a.connect.transfer.timeout_s <= 86400);
		MUST(a.connect.transfer.streams <= PTCP_STREAMS_MAX);
	}
	transfer_args_fini(&a);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	char *args[ARGS_MAX + 1], *argv[ARGS_MAX + 1];
	struct ptcp_err e = { 0 };
	uint8_t whose = take_byte(&in);
	int argc = 0, i, r;

	while (in.n > 0 && argc < ARGS_MAX) {
		args[argc] = take_line(&in);
		argv[argc] = args[argc];
		argc++;
	}
	argv[argc] = NULL;
	r = parse(whose, argc, argv, &e); /* may reorder them */
	MUST(r == 0 || r == OPTIONS_HELP || (r == e.code && e.msg[0] != '\0'));
	for (i = 0; i < argc; i++)
		free(args[i]);
	return 0;
}
