#include "campaign/way.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>


static bool held(const struct way *w)
{
	return w->from < w->to;
}

static enum way_verdict strike(struct way *w, struct mono now, const char *name)
{
	const struct fault *f = &w->fault[w->next++];

	fprintf(stderr, "%s %llu: %s %u\n", name, (unsigned long long)f->at_bytes, mode_name[f->kind],
	    f->amount);
	switch (f->kind) {
	case MODE_CRAWL:
		w->crawl = f->amount;
		return WAY_ON;
	case MODE_STALL:
		w->hold = mono_add_ns(now, (uint64_t)f->amount * NS_PER_MS);
		return WAY_ON;
	case MODE_HALF:
		shutdown(w->out, SHUT_WR);
		w->shut = true;
		return WAY_ON;
	case MODE_CORRUPT:
		w->flip = (uint8_t)(1u << f->amount);
		return WAY_ON;
	case MODE_LOSE:
		w->lose = f->amount;
		return WAY_ON;
	case MODE_CUT:
		return WAY_CLOSE;
	default:
		return WAY_RESET;
	}
}

/* Takes in up to the next fault; true if something came. */
static bool fill(struct way *w, const struct plan *p, struct mono now, uint64_t *budget,
    enum way_verdict *v)
{
	size_t most = sizeof w->buf, lost;
	ssize_t n;

	if (w->next < w->faults && w->fault[w->next].at_bytes - w->passed_bytes < most)
		most = (size_t)(w->fault[w->next].at_bytes - w->passed_bytes);
	if (*budget < most)
		most = (size_t)*budget;
	if (most == 0)
		return false;
	n = recv(w->in, w->buf, most, 0);
	if (n == 0)
		w->ended = true;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		*v = WAY_RESET;
	if (n <= 0)
		return false;
	*budget -= (size_t)n;
	w->passed_bytes += (size_t)n;
	w->buf[0] ^= w->flip;
	w->flip = 0;
	lost = (size_t)n < w->lose ? (size_t)n : w->lose;
	w->lose -= (unsigned)lost;
	w->from = w->shut ? (size_t)n : lost;
	w->to = (size_t)n;
	if (p->delay_ms > 0)
		w->hold = mono_add_ns(now, (uint64_t)p->delay_ms * NS_PER_MS);
	return true;
}

/* Hands out what is held; true if something went. */
static bool drain(struct way *w, enum way_verdict *v)
{
	ssize_t n = send(w->out, w->buf + w->from, w->crawl > 0 ? 1 : w->to - w->from, MSG_NOSIGNAL);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			*v = WAY_RESET;
		return false;
	}
	w->crawl -= w->crawl > 0;
	w->from += (size_t)n;
	return true;
}

enum way_verdict way_step(struct way *w, const struct plan *p, struct mono now, uint64_t *budget,
    const char *name)
{
	enum way_verdict v = WAY_ON;
	bool moved = true;

	while (moved && v == WAY_ON && w->hold.ns <= now.ns) {
		moved = false;
		if (held(w))
			moved = drain(w, &v);
		else if (w->next < w->faults && w->fault[w->next].at_bytes <= w->passed_bytes)
			moved = (v = strike(w, now, name)) == WAY_ON;
		else if (!w->ended)
			moved = fill(w, p, now, budget, &v);
		else if (!w->shut)
			w->shut = shutdown(w->out, SHUT_WR) == 0 || errno == ENOTCONN;
	}
	return v;
}

void way_wants(const struct way *w, struct mono now, bool budget, short *in, short *out)
{
	bool moves = w->hold.ns <= now.ns;

	*out = moves && held(w) ? POLLOUT : 0;
	*in = moves && !held(w) && !w->ended && budget ? POLLIN : 0;
}
