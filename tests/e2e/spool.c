/* A transfer over one path whose relays may store: what only programs ask for.
 *
 *   spool send|recv FROM TO VIA BYTES STREAMS TIMEOUT_S FINGERPRINT...
 *
 * Prints "CARRIED VERIFIED" bytes of file data whenever they change, and at the end "done" or the reason. With MOVERS
 * in the environment this command starts movers, of the program PTCP. */
#include <ptcp/ptcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_event(void *arg, const struct ptcp_event *ev)
{
	static uint64_t carried, verified;

	(void)arg;
	if (ev->type != PTCP_EVENT_PROGRESS || (carried == ev->paths[0].bytes && verified == ev->progress.bytes))
		return;
	carried = ev->paths[0].bytes;
	verified = ev->progress.bytes;
	printf("%llu %llu\n", (unsigned long long)carried, (unsigned long long)verified);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct ptcp_transfer_opts o;
	struct ptcp_task *t;
	struct ptcp_err e;
	const char *from;
	uint64_t hold;
	int r;

	if (argc < 9) {
		fprintf(stderr, "usage: spool send|recv FROM TO VIA BYTES STREAMS TIMEOUT_S FINGERPRINT...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	ptcp_transfer_opts_init(&o);
	from = argv[2];
	o.paths = (const char *const *)&argv[4];
	o.n_paths = 1;
	hold = strtoull(argv[5], NULL, 10);
	o.path.spool_bytes = &hold;
	o.streams = (unsigned)atoi(argv[6]);
	o.timeout_s = atof(argv[7]);
	o.retry_for_s = 10;
	o.fingerprints = (const char *const *)&argv[8];
	o.n_fingerprints = (size_t)argc - 8;
	o.event = on_event;
	if ((o.mover.command = getenv("MOVERS")) != NULL)
		o.mover.ptcp = getenv("PTCP");
	r = strcmp(argv[1], "send") == 0 ? ptcp_send_new(&t, &o, &from, 1, argv[3], &e) :
	    ptcp_recv_new(&t, &o, &from, 1, argv[3], &e);
	if (r == 0) {
		r = ptcp_task_run(t, &e);
		ptcp_task_free(t);
	}
	printf("%s\n", r == 0 ? "done" : e.msg);
	return r == 0 ? 0 : 1;
}
