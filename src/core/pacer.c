#include "core/pacer.h"

#define QUANTUM_NS (4 * NS_PER_MS)  /* duration of a quantum at the rate */
#define MIN_BYTES (4u << 10)
#define RECHECK_NS (NS_PER_S / 4) /* interval at which waiting threads check for a new rate */
#define THROTTLED_NS (2 * RECHECK_NS)

void pacer_init(struct pacer *p)
{
	atomic_init(&p->bps, 0);
	atomic_init(&p->next_ns, 0);
	atomic_init(&p->throttled_ns, 0);
}

void pacer_set(struct pacer *p, uint64_t bps, struct mono now)
{
	if (atomic_exchange(&p->bps, bps) != bps)
		atomic_store(&p->next_ns, now.ns);
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

size_t pacer_take(struct pacer *p, struct mono now, struct mono *at)
{
	uint64_t bps = atomic_load(&p->bps), next = atomic_load(&p->next_ns), from, cost;
	size_t quantum = quantum_bytes(bps);

	if (bps == 0)
		return PACER_MAX_QUANTUM_BYTES;
	cost = pacer_quantum_ns(bps);
	do {
		if (next > now.ns) {
			atomic_store_explicit(&p->throttled_ns, now.ns, memory_order_relaxed);
			*at = mono_add_ns(now, next - now.ns < RECHECK_NS ? next - now.ns : RECHECK_NS);
			return 0;
		}
		from = now.ns - next > PACER_BURST_NS ? now.ns - PACER_BURST_NS : next;
	} while (!atomic_compare_exchange_weak(&p->next_ns, &next, from + cost));
	return quantum;
}
