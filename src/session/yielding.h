/* Paces the sender's streams so that they yield to competing flows (model/yield.h), if OPEN requests it, down to the
 * floor that the starter requests (adapt.h). */
#ifndef SESSION_YIELDING_H
#define SESSION_YIELDING_H

#include <ptcp/ptcp.h>

#include "model/yield.h"
#include "net/sock.h"

struct session;

struct yielding {
	struct mono sampled;
	struct yielding_stream {
		uint32_t generation; /* generation of the slot; another: a new connection */
		struct yield law;
		struct mono stepped; /* with these counters: */
		struct tcpinfo last;
		double least_s;     /* RTT since then; 0: unknown */
		bool released;      /* does not yield: the floor is infinite */
	} stream[PTCP_STREAMS_MAX];
};

/* From now on. */
int yielding_start(struct session *sess, struct ptcp_err *e);
void yielding_pump(struct session *sess, struct mono now);
struct mono yielding_deadline(const struct session *sess);
void yielding_free(struct session *sess);

#endif
