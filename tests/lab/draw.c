/* Draws a random path from a seed and prints it as a topology for `lab up`, or as one line of JSON.
 *
 *   draw [-j] [-r MAX_RATE] SEED
 *
 * The same seed and maximum rate (default: 300Mbit/s) give the same path. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/units.h"
#include "random_path.h"

static int usage(void)
{
	fputs("usage: draw [-j] [-r MAX_RATE] SEED (a rate from 5Mbit/s on, such as 100Mbit/s)\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	uint64_t max_bps = (uint64_t)(RANDOM_RATE_MAX_MBPS * 1e6);
	struct random_path p;
	unsigned long long seed;
	bool json = false;
	char *end;
	int c;

	while ((c = getopt(argc, argv, "jr:")) != -1) {
		if (c == 'j')
			json = true;
		else if (c != 'r' || units_parse_rate(optarg, &max_bps) < 0 ||
		    (double)max_bps < RANDOM_RATE_MIN_MBPS * 1e6)
			return usage();
	}
	if (optind != argc - 1)
		return usage();
	errno = 0;
	seed = strtoull(argv[optind], &end, 10);
	if (errno != 0 || end == argv[optind] || *end != '\0' || argv[optind][0] == '-')
		return usage();
	random_path_draw(&p, seed, (double)max_bps / 1e6);
	(json ? random_path_json : random_path_topology)(&p, stdout);
	return 0;
}
