#include "core/pacer.h"

#define QUANTUM_NS (4 * NS_PER_MS)  /* duration of a quantum at the rate */
#define MIN_BYTES (4u << 10)
#define RECHECK_NS (NS_PER_S / 4) /* interval at which waiting users check for a new rate */
#define THROTTLED_NS (2 * RECHECK_NS)

void pacer_init(struct pacer *p)
{
	atomic_init(&p->bps, 0);
	atomic_init(&p->next_ns, 0);
	atomic_init(&p->changes, 0);
	atomic_init(&p->throttled_ns, 0);
}

void pacer_set(struct pacer *p, uint64_t bps, struct mono now)
{
	if (atomic_exchange(&p->bps, bps) == bps)
		return;
	atomic_store(&p->next_ns, now.ns);
	atomic_fetch_add(&p->changes, 1);
}

int pacer_throttles(const struct pacer *p, struct mono now)
{
	uint64_t last = atomic_load(&p->throttled_ns);

	return pacer_limits(p) && last > 0 && (now.ns < last || now.ns - last < THROTTLED_NS);
}

static size_t quantum_bytes(uint64_t bps)
{
	double n = (double)bps / 8 * ((double)QUANTUM_NS / (double)NS_PER_S);

	return n < MIN_BYTES ? MIN_BYTES : n > PACER_MAX_QUANTUM_BYTES ? PACER_MAX_QUANTUM_BYTES : (size_t)n;
}

uint64_t pacer_quantum_ns(uint64_t bps) { return 8 * quantum_bytes(bps) * NS_PER_S / bps; }

static void reserve(struct pacer *p, struct pacer_turn *t, uint64_t bps, struct mono now)
{
	uint64_t next = atomic_load(&p->next_ns), cost = pacer_quantum_ns(bps);

	t->of = p;
	t->bytes = quantum_bytes(bps);
	do
		t->at_ns = next + PACER_BURST_NS < now.ns ? now.ns - PACER_BURST_NS : next;
	while (!atomic_compare_exchange_weak(&p->next_ns, &next, t->at_ns + cost));
}

size_t pacer_take(struct pacer *p, struct pacer_turn *t, struct mono now, struct mono *at)
{
	unsigned changes = atomic_load(&p->changes);
	uint64_t bps = atomic_load(&p->bps);

	if (bps == 0) {
		t->of = NULL;
		return PACER_MAX_QUANTUM_BYTES;
	}
	if (t->of != p || t->changes != changes) {
		t->changes = changes;
		reserve(p, t, bps, now);
	}
	if (t->at_ns > now.ns) {
		atomic_store_explicit(&p->throttled_ns, now.ns, memory_order_relaxed);
		*at = mono_add_ns(now, t->at_ns - now.ns < RECHECK_NS ? t->at_ns - now.ns : RECHECK_NS);
		return 0;
	}
	t->of = NULL;
	return t->bytes;
}
