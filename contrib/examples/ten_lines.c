/* Sends a file or directory to a known host, with all defaults.
 *
 *	cc -o ten_lines ten_lines.c $(pkg-config --cflags --libs libptcp)
 *	./ten_lines SOURCE ptcp://HOST/PATH */
#include <stdio.h>

#include <ptcp/ptcp.h>

int main(int argc, char **argv)
{
	const char *source = argc == 3 ? argv[1] : "", *dest = argc == 3 ? argv[2] : "";
	struct ptcp_task *t = NULL;
	struct ptcp_err e;
	int r = ptcp_send_new(&t, NULL, &source, 1, dest, &e);

	if (r == 0)
		r = ptcp_task_run(t, &e);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", ptcp_err_name(r), e.msg);
	ptcp_task_free(t);
	return r < 0;
}
