#include "engine/mtu.h"

bool mtu_stalled(struct mtu *m, uint64_t delivered_bytes)
{
	if (delivered_bytes >= MTU_PROOF_BYTES) {
		m->stalls = 0;
		return false;
	}
	if (m->reduced || ++m->stalls < MTU_STALLS)
		return false;
	m->reduced = true;
	return true;
}
