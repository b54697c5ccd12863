/* Congestion control of new data streams. What is in use is decided by congestion_choice.c. */
#include <string.h>

#include "session/session_impl.h"

bool congestion_is_ours(const struct session *sess)
{
	uint8_t role = engine_open(sess->engine)->role;
	bool starter_sends = role == WIRE_ACCEPTOR_RECEIVES || role == WIRE_ACCEPTOR_DISCARDS;

	return !sess->o.one_channel && (sess->o.open != NULL) == starter_sends;
}

const char *session_congestion(const struct session *sess) { return sess->congestion.name; }

void congestion_apply(const struct session *sess, int fd)
{
	const struct session_congestion *c = &sess->congestion;
	int code;

	if (c->sets && (code = sock_set_congestion(fd, c->name)) != 0)
		log_at(&sess->o.host->log, LOG_WARN, "congestion", "name=%s why=\"%s\"", c->name, strerror(code));
}
