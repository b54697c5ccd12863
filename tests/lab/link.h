/* One direction of a link: queue, serialising bottleneck, loss, propagation.
 * Pure: time and packets come in, packets and the time of the next event come
 * out. All times are ns of one clock that never goes back.
 *
 * A packet that finds the transmitter busy waits in the queue, if drop-tail limit
 * and RED let it in; limits count waiting packets, not the one being sent (as
 * ns-2 does). Before the queue, a policer drops what exceeds its rate and burst (a
 * token bucket). It is sent in bytes * 8 / rate, each directly after the one before
 * on the link's own schedule, however late the caller is. Random loss strikes
 * after sending, so lost packets use capacity too. Then it travels for delay plus
 * a uniform 0..jitter; packets overtake each other only with `reorder`. */
#ifndef LAB_LINK_H
#define LAB_LINK_H

#include <stdint.h>

#include "red.h"
#include "rng.h"

#define NEVER_NS UINT64_MAX

struct packet {
	struct packet *next;
	uint64_t due_ns; /* when it reaches the far end of its link */
	uint32_t bytes;  /* as the link counts them: the IP packet */
	uint16_t to;     /* final node; for who carries packets between links */
};

struct link_conf {
	uint64_t rate_bps;      /* 0: no bottleneck, hence no queue */
	uint64_t delay_ns, jitter_ns;
	double loss_ratio;
	uint64_t queue_packets; /* 0: no limit in packets */
	uint64_t queue_bytes;   /* 0: no limit in bytes */
	int reorder;            /* jitter may change the order */
	struct red_conf red;
	uint64_t police_bps, police_bytes; /* token bucket: its rate, and its burst; 0: none */
};

struct link_stats {
	uint64_t in_packets, in_bytes;   /* offered */
	uint64_t out_packets, out_bytes; /* arrived at the far end */
	uint64_t drop_queue, drop_red, drop_loss, drop_cut, drop_police;
	uint64_t most_waiting;           /* packets */
	uint64_t busy_ns;                /* time spent sending */
};

struct packet_list {
	struct packet *head, *tail;
};

struct link {
	struct link_conf conf;
	struct link_stats stats;
	struct rng rng;
	struct red red;
	struct packet_list queue;      /* its head is being sent */
	uint64_t waiting, waiting_bytes; /* in the queue without its head */
	uint64_t sent_at_ns;           /* when the head will be sent; NEVER_NS */
	struct packet_list wire;       /* by due_ns */
	uint64_t travelling;           /* on the wire, packets */
	uint64_t last_due_ns;
	int cut;
	double tokens_bytes;           /* of the policer, at tokens_at_ns */
	uint64_t tokens_at_ns;
};

enum link_event { LINK_NOTHING, LINK_SENT, LINK_LOST, LINK_ARRIVED };

void link_init(struct link *l, const struct link_conf *conf, uint64_t seed);

/* Take the packet (1), or refuse it and leave it to the caller (0). */
int link_offer(struct link *l, struct packet *p, uint64_t now_ns);

/* When link_step() has something to do; NEVER_NS if it waits for packets. */
uint64_t link_next_ns(const struct link *l);

/* No packet arrives at the far end before this; NEVER_NS if there is none. */
uint64_t link_arrival_ns(const struct link *l);

/* Carry out the one next event if it is due by `now_ns`. LINK_LOST and
 * LINK_ARRIVED hand a packet to the caller; it arrived at p->due_ns. */
enum link_event link_step(struct link *l, uint64_t now_ns, struct packet **p);

/* New parameters from now on: what is left of the packet being sent goes at the
 * new rate, the delay is that of packets sent later. A shorter queue limit drops
 * nothing that already waits. Call with all events up to now carried out. */
void link_change(struct link *l, const struct link_conf *conf, uint64_t now_ns);

/* Lose everything queued and travelling, and all that comes until restored.
 * Returns the lost packets as a list for the caller. Idempotent. */
struct packet *link_cut(struct link *l);
void link_restore(struct link *l);

#endif
