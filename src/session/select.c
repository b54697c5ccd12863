/* SELECT frames: a starter that receives names the entries that it wants. */
#include <string.h>

#include "core/err.h"
#include "session/send_impl.h"

#define FRAME_BYTES (48u << 10) /* size of paths in a frame, at most */

int send_select(struct session *sess, const struct wire_select *f, struct ptcp_err *e)
{
	struct selection *s = sess->send->selection;
	size_t at, n;
	int r;

	for (at = 0; at < f->paths.n; at += n + 1) {
		n = strlen((const char *)f->paths.p + at);
		if ((r = selection_add(s, (const char *)f->paths.p + at, n, e)) < 0)
			return r == PTCP_ENOMEM ? r : err_set(e, PTCP_EPROTO, "malformed path in a SELECT frame");
	}
	if (selection_bytes(s) > WIRE_SELECT_MAX_PATHS_BYTES)
		return err_set(e, PTCP_EPROTO, "more than 4 MiB of selected paths");
	if (f->final)
		sess->send->selecting = false;
	return 0;
}

void session_select(struct session *sess, const struct selection *s)
{
	uint8_t paths[FRAME_BYTES];
	struct wire_select f = { .paths = { paths, 0 } };
	size_t i = 0, n;

	while (!f.final) {
		f.n_paths = 0;
		for (f.paths.n = 0; i < selection_n(s) && f.paths.n < FRAME_BYTES - WIRE_PATH_MAX; i++) {
			const char *path = selection_path(s, i)[0] != '\0' ? selection_path(s, i) : ".";

			n = strlen(path) + 1;
			memcpy(paths + f.paths.n, path, n);
			f.paths.n += n;
			f.n_paths++;
		}
		f.final = i == selection_n(s);
		engine_select(sess->engine, &f);
	}
}
