#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "patience.h"

struct vf vf;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

/* Any thread. */
static void on_log(void *arg, enum ptcp_log_level level, const char *component, const char *text)
{
	size_t n;

	(void)arg;
	(void)level;
	pthread_mutex_lock(&log_lock);
	n = strlen(vf.log);
	snprintf(vf.log + n, sizeof vf.log - n, "%s %s\n", component, text);
	pthread_mutex_unlock(&log_lock);
}

void vf_forget_log(void) { vf.log[0] = '\0'; }
bool vf_logged(const char *text) { return strstr(vf.log, text) != NULL; }

int vf_setup(void **state)
{
	struct loop *l;

	if (loop_new(&l, NULL) < 0) /* libuv's first loop opens descriptors that stay */
		return -1;
	loop_free(l);
	if (fx_setup(state) != 0)
		return -1;
	alarm(patience_s(20));
	memset(&vf, 0, sizeof vf);
	fx_mkdir("root");
	fx_mkdir("config");
	setenv("XDG_STATE_HOME", fx_path("state"), 1);
	snprintf(vf.root, sizeof vf.root, "%s", fx_path("root"));
	ptcp_server_opts_init(&vf.o);
	context_log(&vf.context, on_log, NULL, PTCP_LOG_DEBUG);
	if (loop_new(&vf.control, NULL) < 0 || context_init(&vf.context, vf.control, fx_path("config"), 1,
	    0, 0, NULL) < 0 || own_dirs_open(&vf.own_dirs, fx_path("config"), NULL) < 0)
		return -1;
	vf_begin();
	return 0;
}

int vf_teardown(void **state)
{
	request_fini(&vf.request);
	own_dirs_close(&vf.own_dirs);
	context_fini(&vf.context);
	loop_free(vf.control);
	alarm(0);
	return fx_teardown(state);
}

void vf_wait(const unsigned *count, unsigned n)
{
	while (*count < n)
		loop_run_once(vf.control, true);
}

void vf_path(uint8_t flags, const char *path)
{
	vf.paths_bytes += wire_path_encode(vf.paths + vf.paths_bytes, flags,
	    (struct span){ (const uint8_t *)path, strlen(path) });
	vf.n_paths++;
}

struct span vf_paths(void) { return (struct span){ vf.paths, vf.paths_bytes }; }

void vf_begin(void)
{
	request_fini(&vf.request);
	vf.paths_bytes = vf.n_paths = vf.n_found = 0;
	vf.why = (struct ptcp_err){ 0 };
	vf.request = (struct request){ .context = &vf.context, .root = vf.root, .own_dirs = &vf.own_dirs, .o = &vf.o,
		.client = "SHA256:client" };
}

static void on_found(struct request *a, const struct ptcp_err *why)
{
	assert_ptr_equal(a, &vf.request);
	if (why != NULL)
		vf.why = *why;
	vf.n_found++;
}

int vf_find_taken(void)
{
	request_find(&vf.request, on_found);
	vf_wait(&vf.n_found, 1);
	return vf.why.code;
}

int vf_find(uint8_t role, uint32_t flags)
{
	const struct wire_open o = { .role = role, .flags = flags, .streams = 4, .n_paths = (uint16_t)vf.n_paths,
		.paths = vf_paths(), .cipher = PTCP_CIPHER_AES128GCM };
	struct ptcp_err e;

	if (request_take(&vf.request, &o, &e) < 0)
		fail_msg("refused: %s", e.msg);
	return vf_find_taken();
}
