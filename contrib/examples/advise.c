/* Asks how many streams to use to a host, within an impact budget: the paper's TameParallelTCP call.
 *
 *	cc -o advise advise.c $(pkg-config --cflags --libs libptcp)
 *	./advise HOST[:PORT] PERCENT [SHA256:..] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <ptcp/ptcp.h>

static int advise(const char *host, double percent, const char *pin, struct ptcp_advice *advice,
    struct ptcp_err *err)
{
	struct ptcp_transfer_opts connect;
	struct ptcp_advice_opts opts;
	struct ptcp_task *t;
	int r;

	ptcp_transfer_opts_init(&connect);
	if (pin != NULL) {
		connect.fingerprints = &pin;
		connect.n_fingerprints = 1;
	}
	ptcp_advice_opts_init(&opts);
	opts.impact_percent = percent;
	if ((r = ptcp_advise_new(&t, &connect, host, &opts, err)) < 0)
		return r;
	if ((r = ptcp_task_run(t, err)) == 0)
		r = ptcp_advise_result(t, advice, err);
	ptcp_task_free(t);
	return r;
}

int main(int argc, char **argv)
{
	struct ptcp_advice advice;
	struct ptcp_err err;
	const char *warning;
	size_t i;
	int r;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: advise HOST[:PORT] PERCENT [FINGERPRINT]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	ptcp_advice_init(&advice);
	if ((r = advise(argv[1], atof(argv[2]), argc == 4 ? argv[3] : NULL, &advice, &err)) < 0) {
		fprintf(stderr, "%s: %s\n", ptcp_err_name(r), err.msg);
		return 1;
	}
	printf("%u streams: %.1f Mbit/s", advice.streams, advice.throughput_bps / 1e6);
	if (advice.limit_advice == NULL)
		printf(", %.0f %% from each other flow\n", advice.impact_percent);
	else
		printf("\nbut: %s\n", advice.limit_advice);
	for (i = 0; (warning = ptcp_advice_warning(&advice, i)) != NULL; i++)
		printf("but: %s\n", warning);
	return 0;
}
