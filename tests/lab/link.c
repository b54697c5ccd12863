#include "link.h"

#include <stddef.h>

#include "core/units.h"

void link_init(struct link *l, const struct link_conf *conf, uint64_t seed)
{
	*l = (struct link){ .conf = *conf, .sent_at_ns = NEVER_NS, .tokens_bytes = (double)conf->police_bytes };
	rng_init(&l->rng, seed);
	red_init(&l->red);
}

static void push(struct packet_list *list, struct packet *p)
{
	p->next = NULL;
	if (list->tail)
		list->tail->next = p;
	else
		list->head = p;
	list->tail = p;
}

static struct packet *shift(struct packet_list *list)
{
	struct packet *p = list->head;

	list->head = p->next;
	if (list->head == NULL)
		list->tail = NULL;
	p->next = NULL;
	return p;
}

static uint64_t sending_ns(const struct link *l, uint32_t bytes)
{
	if (l->conf.rate_bps == 0) /* taken away while packets waited */
		return 0;
	return (uint64_t)((double)bytes * 8e9 / (double)l->conf.rate_bps + 0.5);
}

/* Put on the wire what was sent at `now_ns`. Without reordering this is a push at
 * the tail; with it, a walk over the few packets that will be overtaken. */
static void travel(struct link *l, struct packet *p, uint64_t now_ns)
{
	struct packet **at = &l->wire.head;

	p->due_ns = now_ns + l->conf.delay_ns;
	if (l->conf.jitter_ns > 0)
		p->due_ns += (uint64_t)(rng_unit(&l->rng) * (double)(l->conf.jitter_ns + 1));
	if (!l->conf.reorder && p->due_ns < l->last_due_ns)
		p->due_ns = l->last_due_ns;
	if (p->due_ns > l->last_due_ns)
		l->last_due_ns = p->due_ns;
	l->travelling++;
	if (l->wire.tail == NULL || l->wire.tail->due_ns <= p->due_ns) {
		push(&l->wire, p);
		return;
	}
	while ((*at)->due_ns <= p->due_ns)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
}

static int lost(struct link *l)
{
	if (l->conf.loss_ratio <= 0 || rng_unit(&l->rng) >= l->conf.loss_ratio)
		return 0;
	l->stats.drop_loss++;
	return 1;
}

static void start_sending(struct link *l, uint64_t now_ns)
{
	uint64_t ns = sending_ns(l, l->queue.head->bytes);

	l->sent_at_ns = now_ns + ns;
	l->stats.busy_ns += ns;
}

/* Whether the queue takes one more packet; counts the drop if not. */
static int admit(struct link *l, uint32_t bytes, uint64_t now_ns)
{
	const struct link_conf *c = &l->conf;

	if (c->red.max_packets > 0 && red_drop(&l->red, &c->red, l->waiting, now_ns,
	    sending_ns(l, bytes), &l->rng)) {
		l->stats.drop_red++;
		return 0;
	}
	if (l->queue.head == NULL)
		return 1;
	if ((c->queue_packets > 0 && l->waiting >= c->queue_packets) ||
	    (c->queue_bytes > 0 && l->waiting_bytes + bytes > c->queue_bytes)) {
		l->stats.drop_queue++;
		return 0;
	}
	return 1;
}

/* Whether the policer lets it pass; counts the drop if not. */
static int conforms(struct link *l, uint32_t bytes, uint64_t now_ns)
{
	const struct link_conf *c = &l->conf;

	if (c->police_bps == 0)
		return 1;
	l->tokens_bytes += (double)(now_ns - l->tokens_at_ns) * (double)c->police_bps / 8e9;
	if (l->tokens_bytes > (double)c->police_bytes)
		l->tokens_bytes = (double)c->police_bytes;
	l->tokens_at_ns = now_ns;
	if (l->tokens_bytes < bytes) {
		l->stats.drop_police++;
		return 0;
	}
	l->tokens_bytes -= bytes;
	return 1;
}

int link_offer(struct link *l, struct packet *p, uint64_t now_ns)
{
	l->stats.in_packets++;
	l->stats.in_bytes += p->bytes;
	if (l->cut) {
		l->stats.drop_cut++;
		return 0;
	}
	if (!conforms(l, p->bytes, now_ns))
		return 0;
	if (l->conf.rate_bps == 0 && l->queue.head == NULL) {
		if (lost(l))
			return 0;
		travel(l, p, now_ns);
		return 1;
	}
	if (!admit(l, p->bytes, now_ns))
		return 0;
	push(&l->queue, p);
	if (l->queue.head == p) {
		start_sending(l, now_ns);
		return 1;
	}
	l->waiting++;
	l->waiting_bytes += p->bytes;
	if (l->waiting > l->stats.most_waiting)
		l->stats.most_waiting = l->waiting;
	return 1;
}

uint64_t link_next_ns(const struct link *l)
{
	uint64_t due_ns = l->wire.head ? l->wire.head->due_ns : NEVER_NS;

	return due_ns < l->sent_at_ns ? due_ns : l->sent_at_ns;
}

uint64_t link_arrival_ns(const struct link *l)
{
	uint64_t ns = l->wire.head ? l->wire.head->due_ns : NEVER_NS;

	if (l->sent_at_ns != NEVER_NS && l->sent_at_ns + l->conf.delay_ns < ns)
		ns = l->sent_at_ns + l->conf.delay_ns;
	return ns;
}

static enum link_event finish_sending(struct link *l, struct packet **out)
{
	uint64_t now_ns = l->sent_at_ns;
	struct packet *p = shift(&l->queue);

	l->sent_at_ns = NEVER_NS;
	if (l->queue.head) {
		l->waiting--;
		l->waiting_bytes -= l->queue.head->bytes;
		start_sending(l, now_ns);
	} else {
		red_idle(&l->red, now_ns);
	}
	if (lost(l)) {
		*out = p;
		return LINK_LOST;
	}
	travel(l, p, now_ns);
	return LINK_SENT;
}

enum link_event link_step(struct link *l, uint64_t now_ns, struct packet **p)
{
	if (link_next_ns(l) > now_ns)
		return LINK_NOTHING;
	if (l->wire.head == NULL || l->wire.head->due_ns > l->sent_at_ns)
		return finish_sending(l, p);
	*p = shift(&l->wire);
	l->travelling--;
	l->stats.out_packets++;
	l->stats.out_bytes += (*p)->bytes;
	return LINK_ARRIVED;
}

void link_change(struct link *l, const struct link_conf *conf, uint64_t now_ns)
{
	uint64_t old_bps = l->conf.rate_bps;

	l->conf = *conf;
	if (conf->red.max_packets <= 0)
		red_init(&l->red);
	if (l->queue.head && old_bps != conf->rate_bps && l->sent_at_ns > now_ns) {
		uint64_t left_ns = l->sent_at_ns - now_ns;
		uint64_t new_ns = (uint64_t)((double)left_ns * (double)old_bps /
		    (double)conf->rate_bps + 0.5);

		/* Without a rate there is no bottleneck: all goes at once. */
		if (conf->rate_bps == 0)
			new_ns = 0;
		l->sent_at_ns = now_ns + new_ns;
		l->stats.busy_ns += new_ns - left_ns;
	}
}

struct packet *link_cut(struct link *l)
{
	struct packet *all = l->queue.head;

	if (l->queue.tail)
		l->queue.tail->next = l->wire.head;
	else
		all = l->wire.head;
	l->stats.drop_cut += l->waiting + (l->queue.head != NULL) + l->travelling;
	l->queue = l->wire = (struct packet_list){ NULL, NULL };
	l->waiting = l->waiting_bytes = l->travelling = 0;
	l->sent_at_ns = NEVER_NS;
	l->cut = 1;
	return all;
}

void link_restore(struct link *l)
{
	l->cut = 0;
}
