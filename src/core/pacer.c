#include "core/pacer.h"

#define PIECE_NS (4 * NS_PER_MS)  /* of time at the rate */
#define LEAST_BYTES (4u << 10)
#define LOOK_NS (NS_PER_S / 4)    /* who waits looks so often whether the rate is another */
#define HOLDS_NS (2 * LOOK_NS)

void pacer_init(struct pacer *p)
{
	atomic_init(&p->bps, 0);
	atomic_init(&p->next_ns, 0);
	atomic_init(&p->held_ns, 0);
}

void pacer_set(struct pacer *p, uint64_t bps, struct mono now)
{
	if (atomic_exchange(&p->bps, bps) != bps)
		atomic_store(&p->next_ns, now.ns);
}

int pacer_holds(const struct pacer *p, struct mono now)
{
	uint64_t held = atomic_load(&p->held_ns);

	return pacer_limits(p) && held > 0 && (now.ns < held || now.ns - held < HOLDS_NS);
}

static size_t piece_bytes(uint64_t bps)
{
	double n = (double)bps / 8 * ((double)PIECE_NS / (double)NS_PER_S);

	return n < LEAST_BYTES ? LEAST_BYTES : n > PACER_PIECE_BYTES ? PACER_PIECE_BYTES : (size_t)n;
}

uint64_t pacer_piece_ns(uint64_t bps)
{
	return 8 * piece_bytes(bps) * NS_PER_S / bps;
}

size_t pacer_take(struct pacer *p, struct mono now, struct mono *at)
{
	uint64_t bps = atomic_load(&p->bps), next = atomic_load(&p->next_ns), from, cost;
	size_t piece = piece_bytes(bps);

	if (bps == 0)
		return PACER_PIECE_BYTES;
	cost = pacer_piece_ns(bps);
	do {
		if (next > now.ns) {
			atomic_store_explicit(&p->held_ns, now.ns, memory_order_relaxed);
			*at = mono_add_ns(now, next - now.ns < LOOK_NS ? next - now.ns : LOOK_NS);
			return 0;
		}
		from = now.ns - next > PACER_BURST_NS ? now.ns - PACER_BURST_NS : next;
	} while (!atomic_compare_exchange_weak(&p->next_ns, &next, from + cost));
	return piece;
}
