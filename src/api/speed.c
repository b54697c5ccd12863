/* How fast this processor does what every byte of a transfer needs. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "net/tls.h"
#include "store/hash.h"

#define BLOCK_BYTES (1u << 20)

static int in_range(double seconds, struct ptcp_err *e)
{
	return seconds > 0 && seconds <= 60 ? 0 :
	    err_set(e, PTCP_EUSAGE, "measuring for a time out of range (more than 0 and up to 60 s)");
}

int ptcp_cipher_speed(enum ptcp_cipher c, double seconds, double *bps, struct ptcp_err *e)
{
	int r = in_range(seconds, e);

	return r < 0 ? r : tls_cipher_speed(c, seconds, bps, e);
}

int ptcp_hash_speed(double seconds, double *bps, struct ptcp_err *e)
{
	volatile uint64_t sink;
	uint8_t *block;
	struct mono start;
	double took = 0, bytes = 0;
	int r;

	if ((r = in_range(seconds, e)) < 0)
		return r;
	if ((block = malloc(BLOCK_BYTES)) == NULL)
		return err_nomem(e);
	memset(block, 0x5a, BLOCK_BYTES);
	for (start = mono_now(); took < seconds; took = (double)mono_diff_ns(mono_now(), start) / 1e9) {
		sink = hash_content(block, BLOCK_BYTES);
		bytes += BLOCK_BYTES;
	}
	(void)sink;
	free(block);
	*bps = bytes * 8 / took;
	return 0;
}
