/* GiB/s of the hash chosen for this processor, and of the plain one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "store/hash.h"

#define PER_ROUND (256ull << 20)
#define ROUNDS 5

typedef uint64_t hash_fn(const void *p, size_t n);

static volatile uint64_t kept; /* so that no call is optimised away */

static double gib_per_s(hash_fn *hash, const uint8_t *data, size_t n)
{
	uint64_t done, best = UINT64_MAX, ns;
	struct mono start;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		start = mono_now();
		for (done = 0; done < PER_ROUND; done += n)
			kept ^= hash(data, n);
		ns = mono_diff_ns(mono_now(), start);
		if (ns < best)
			best = ns;
	}
	return (double)done / (1ull << 30) / ((double)best / 1e9);
}

int main(void)
{
	static const size_t sizes[] = { 1 << 10, 10 << 10, 64 << 10, 256 << 10, 4 << 20, 64 << 20 };
	uint8_t *data = malloc(64 << 20);
	size_t i;

	if (data == NULL)
		return 1;
	for (i = 0; i < 64 << 20; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	printf("%10s %12s %12s   GiB/s, best of %d\n", "bytes", "chosen", "plain", ROUNDS);
	for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
		printf("%10zu %12.1f %12.1f\n", sizes[i], gib_per_s(hash_content, data, sizes[i]),
		    gib_per_s(hash_content_plain, data, sizes[i]));
	free(data);
	return 0;
}
