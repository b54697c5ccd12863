#include "session/tcp_stats.h"

#include <string.h>

static void add(struct gauged *out, const struct tcpinfo *now, const struct tcpinfo *then, double elapsed_s)
{
	out->times.elapsed_s += elapsed_s;
	out->times.busy_s += now->busy_s - then->busy_s;
	out->times.window_s += now->window_s - then->window_s;
	out->times.buffer_s += now->buffer_s - then->buffer_s;
	out->retransmits += now->retransmits - then->retransmits;
	strcpy(out->congestion, now->congestion);
}

void tcp_stats_read(struct tcp_stats *g, const struct session *sess, double elapsed_s, struct gauged *out)
{
	struct tcpinfo now;
	uint64_t moved;
	unsigned i;

	*out = (struct gauged){ .used_bytes = 0 };
	for (i = 0; i < sess->n_granted && i < PTCP_STREAMS_MAX; i++) {
		if (sess->stream[i] == NULL || !session_look(sess, i, &now)) {
			g->of[i] = NULL;
			continue;
		}
		/* One that has taken the place of another may lie where that lay. */
		if (g->of[i] == sess->stream[i] && now.acked_bytes >= g->last[i].acked_bytes &&
		    now.received_bytes >= g->last[i].received_bytes) {
			moved = now.acked_bytes - g->last[i].acked_bytes +
			    now.received_bytes - g->last[i].received_bytes;
			if (i < sess->n_wanted || sess->probe != NULL) {
				out->used_bytes += moved;
				add(out, &now, &g->last[i], elapsed_s);
			} else {
				out->other_bytes += moved;
			}
		}
		g->of[i] = sess->stream[i];
		g->last[i] = now;
	}
}
