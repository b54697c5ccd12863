/* Writes the golden frames of tests/wire/samples.h as seeds of the fuzz target, one file
 * a frame: `make fuzz-seeds` after a change there, then commit tests/fuzz/seeds/wire.
 *
 *   seeds_wire DIRECTORY */
#include <stdio.h>

#include "../wire/samples.h"

int main(int argc, char **argv)
{
	uint8_t f[SAMPLE_MAX_BYTES];
	char path[4096];
	size_t i, n;
	FILE *out;

	if (argc != 2) {
		fprintf(stderr, "usage: seeds_wire DIRECTORY\n");
		return 2;
	}
	for (i = 0; i < N_SAMPLES; i++) {
		n = hex_bytes(f, samples[i].hex);
		snprintf(path, sizeof path, "%s/%s", argv[1], samples[i].name);
		if ((out = fopen(path, "wb")) == NULL || fwrite(f, 1, n, out) != n ||
		    fclose(out) != 0) {
			perror(path);
			return 1;
		}
	}
	return 0;
}
