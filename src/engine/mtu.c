#include "engine/mtu.h"

bool mtu_suspect(struct mtu *m, const struct mtu_lost *lost)
{
	if (lost->delivered_bytes >= MTU_PROOF_BYTES) {
		m->stalls = 0;
		return false;
	}
	if (m->reduced || lost->silent_s < MTU_SILENT_S || ++m->stalls < MTU_STALLS)
		return false;
	m->reduced = true;
	return true;
}
