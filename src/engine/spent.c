#include "engine/spent.h"

/* Takes up to `part` from *rest. */
static double part_of(double *rest, double part)
{
	double taken = part < 0 ? 0 : part < *rest ? part : *rest;

	*rest -= taken;
	return taken;
}

static double bounded(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

void spent_add(struct spent *t, const struct spent_sample *x, bool sends)
{
	const enum ptcp_spent sender_disk = sends ? PTCP_SPENT_OUR_DISK : PTCP_SPENT_PEER_DISK,
	    sender_cpu = sends ? PTCP_SPENT_OUR_PROCESSOR : PTCP_SPENT_PEER_PROCESSOR,
	    receiver_disk = sends ? PTCP_SPENT_PEER_DISK : PTCP_SPENT_OUR_DISK,
	    receiver_cpu = sends ? PTCP_SPENT_PEER_PROCESSOR : PTCP_SPENT_OUR_PROCESSOR;
	double busy = x->tcp_known ? bounded(x->busy) : 1, idle = 1 - busy, window, buffer;
	double share[PTCP_SPENT_CAUSES] = { 0 };
	unsigned i;

	if (x->limited) {
		t->s[PTCP_SPENT_LIMIT] += x->seconds;
		return;
	}
	if (!x->tcp_known) { /* all that is left is the path */
		share[sender_disk] = part_of(&busy, x->sender.disk);
		share[receiver_disk] += part_of(&busy, x->receiver.disk);
		share[sender_cpu] = part_of(&busy, x->sender.processor);
		share[receiver_cpu] += part_of(&busy, x->receiver.processor);
	}
	window = x->tcp_known ? part_of(&busy, x->window) : 0;
	buffer = x->tcp_known ? part_of(&busy, x->buffer) : 0;
	/* the sender */
	if (x->verifying)
		share[PTCP_SPENT_VERIFYING] = part_of(&idle, 1);
	share[sender_disk] += part_of(&idle, x->sender.disk);
	share[sender_cpu] += part_of(&idle, x->sender.processor);
	/* the receiver, whose acknowledgments of files the sender may await with idle connections */
	share[receiver_disk] += part_of(&window, x->receiver.disk);
	share[receiver_cpu] += part_of(&window, x->receiver.processor);
	share[receiver_disk] += part_of(&idle, x->receiver.disk);
	share[PTCP_SPENT_IDLE] += idle;
	share[PTCP_SPENT_WINDOW] += window;
	share[PTCP_SPENT_BUFFER] += buffer;
	share[PTCP_SPENT_PATH] += busy;
	for (i = 0; i < PTCP_SPENT_CAUSES; i++)
		t->s[i] += share[i] * x->seconds;
}
