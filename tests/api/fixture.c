#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ptcp_server *lf_server;
char lf_address[32];

static char dir[64], fingerprint[PTCP_FINGERPRINT_BYTES];
static const char *const pins[] = { fingerprint };
static pthread_t thread;
static int fds;

const char *lf_path(const char *name)
{
	static _Thread_local char out[4][256];
	static _Thread_local unsigned i;

	i = (i + 1) % 4;
	snprintf(out[i], sizeof out[i], "%s/%s", dir, name);
	return out[i];
}

int lf_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

int lf_make_dir(void)
{
	snprintf(dir, sizeof dir, "%s/ptcp-lib.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static void *serve(void *arg)
{
	(void)arg;
	assert_int_equal(ptcp_server_run(lf_server, NULL), 0);
	return NULL;
}

int lf_serve(struct ptcp_server_opts *o, struct ptcp_permission *p)
{
	char client[PTCP_FINGERPRINT_BYTES], at[sizeof dir + 8];
	struct ptcp_err e;

	fds = lf_open_fds() + 2; /* that libuv keeps for good */
	snprintf(at, sizeof at, "%s/server", dir);
	o->config_dir = at;
	o->listen = "127.0.0.1:0";
	p->fingerprint = client;
	if (ptcp_key_show(lf_path("client"), client, &e) < 0 || ptcp_authorize(at, p, &e) < 0 ||
	    ptcp_server_new(&lf_server, o, &e) < 0) {
		print_error("%s\n", e.msg);
		return -1;
	}
	strcpy(fingerprint, ptcp_server_fingerprint(lf_server));
	snprintf(lf_address, sizeof lf_address, "127.0.0.1:%u", ptcp_server_port(lf_server));
	return pthread_create(&thread, NULL, serve, NULL);
}

int lf_teardown(void **state)
{
	char command[128];
	int now;

	(void)state;
	ptcp_server_stop(lf_server);
	pthread_join(thread, NULL);
	ptcp_server_free(lf_server);
	now = lf_open_fds();
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	if (system(command) != 0)
		return -1;
	return now <= fds ? 0 : -1;
}

void lf_opts(struct ptcp_transfer_opts *o)
{
	ptcp_transfer_opts_init(o);
	o->config_dir = lf_path("client");
	o->fingerprints = pins;
	o->n_fingerprints = 1;
}
