/* Sends a directory and shows how far it is: the blocking form, with a callback.
 *
 *	cc -o send send.c $(pkg-config --cflags --libs libptcp)
 *	./send DIR ptcp://HOST/PATH [SHA256:..] */
#include <signal.h>
#include <stdio.h>

#include <ptcp/ptcp.h>

static void on_event(void *arg, const struct ptcp_event *ev)
{
	(void)arg;
	switch (ev->type) {
	case PTCP_EVENT_PROGRESS:
		printf("%llu of %llu bytes, %.0f Mbit/s\n", (unsigned long long)ev->progress.bytes,
		    (unsigned long long)ev->progress.total_bytes, ev->rate_bps / 1e6);
		break;
	case PTCP_EVENT_FILE: /* only what failed, unless opts.file_events is set */
		fprintf(stderr, "a file failed: %s\n", ev->text);
		break;
	case PTCP_EVENT_WARNING:
		fprintf(stderr, "warning: %s\n", ev->text);
		break;
	default:
		break;
	}
}

int main(int argc, char **argv)
{
	struct ptcp_transfer_opts opts;
	struct ptcp_task *t;
	struct ptcp_result result;
	struct ptcp_err err;
	const char *sources[1], *pin = argv[argc - 1];
	int r;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: send DIR ptcp://HOST/PATH [FINGERPRINT]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	ptcp_transfer_opts_init(&opts);
	opts.event = on_event;
	if (argc == 4) {
		opts.fingerprints = &pin;
		opts.n_fingerprints = 1;
	}
	sources[0] = argv[1];
	if (ptcp_send_new(&t, &opts, sources, 1, argv[2], &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 2;
	}
	r = ptcp_task_run(t, &err);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", ptcp_err_name(r), err.msg);
	ptcp_result_init(&result);
	ptcp_transfer_result(t, &result);
	printf("%llu files, %llu bytes in %.2f s\n", (unsigned long long)result.progress.files,
	    (unsigned long long)result.progress.file_bytes, result.seconds);
	ptcp_task_free(t);
	return r < 0;
}
