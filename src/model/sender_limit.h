/* What limited some streams: the network, or something that more streams do not cure.
 *
 * From the times that the kernel keeps of a TCP sender (tcp_info in Linux, Francis Yan
 * and Yuchung Cheng, "tcp: instrument tcp sender limits chronographs"). */
#ifndef MODEL_SENDER_LIMIT_H
#define MODEL_SENDER_LIMIT_H

#include <stdbool.h>

/* enum, name in JSON, what to do about it (NULL: nothing) */
#define LIMIT_LIST(X)                                                          \
	X(LIMIT_UNKNOWN, "unknown", NULL)                                      \
	X(LIMIT_NETWORK, "network", NULL)                                      \
	X(LIMIT_SEND_BUFFER, "send-buffer",                                    \
	    "the sender's buffers limited the probes, not the network: more streams are the wrong cure " \
	    "(raise net.ipv4.tcp_wmem on the sending host)")                   \
	X(LIMIT_RECEIVE_WINDOW, "receive-window",                              \
	    "the receiver's window limited the probes, not the network: more streams are the wrong cure " \
	    "(raise net.ipv4.tcp_rmem on the receiving host, if its processor keeps up)") \
	X(LIMIT_APPLICATION, "application",                                    \
	    "the sender's processor limited the probes, not the network: more streams are the wrong cure " \
	    "(see what else runs there, or take --cipher none where the network is safe)")

enum limit {
#define X(id, name, advice) id,
	LIMIT_LIST(X)
#undef X
};

const char *limit_name(enum limit l);
const char *limit_advice(enum limit l);

/* Summed over streams, in seconds. `busy` includes the next two. */
struct limit_times {
	double elapsed_s;     /* that they existed */
	double busy_s;        /* with data to send or unacknowledged */
	double window_s;      /* held up by the receiver's window */
	double buffer_s;      /* held up by the sender's buffer */
};

/* What held the streams up for most of the time; UNKNOWN if no time has passed. */
enum limit limit_of(const struct limit_times *t);

/* Whether windows or buffers held the streams up for over a twentieth of the time that they were busy: up to some
 * number they then take nothing from each other, which no model of shares knows. In laboratories it was 5 % and more
 * where windows are short, even if losses interrupted that most of the time, and 0.3 % at the most elsewhere. */
bool limit_by_parts(const struct limit_times *t);

#endif
