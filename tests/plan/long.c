/* make check-long: many random overlays.
 *
 *   long [-v COUNT] [-m COUNT] [-c COUNT] [-t COUNT] [-s clp|glpsol] [-h HOSTS] [FIRST_SEED]
 *
 * -v: as many planned by all methods and verified (default 10,000); -c: as many
 * compared with the plain programmes as well (default 400), solved by GLPK in
 * this process or by the program that -s names; -t: as many (200) of at most 12
 * hosts likewise with slots merged into stages as in large overlays; -m: planned with thousands of slots and
 * verified (1,000); -h: at most so many hosts (40). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"

static struct inst in;

static int go(const char *name, uint64_t first, int count, int hosts, enum compare_depth depth,
    enum compare_slots slots, const char *solver)
{
	struct compare_count c = { 0 };
	char what[COMPARE_WHAT_BYTES];
	int i, failed = 0;

	for (i = 0; i < count; i++) {
		struct inst_kind kind = inst_draw(first + (uint64_t)i, 5, hosts);

		inst_make(&in, &kind, first + (uint64_t)i);
		if (compare(&in, depth, slots, solver, &c, what) < 0) {
			printf("# seed %llu: %s\n", (unsigned long long)first + (uint64_t)i, what);
			failed++;
		}
	}
	printf("# %s: %d overlays, %d plans, %d infeasible, %d compared, %d makespans "
	    "unproven, %d relayed\n", name, count, c.planned, c.infeasible, c.compared, c.unproven,
	    c.relayed_unproven);
	printf("%s %s\n", failed == 0 && (count == 0 || c.planned > 0) ? "ok" : "not ok", name);
	fflush(stdout);
	return failed;
}

int main(int argc, char **argv)
{
	int verify = 10000, many = 1000, optimal = 400, stages = 200, hosts = 40, opt, failed;
	const char *solver = NULL;
	uint64_t first;

	while ((opt = getopt(argc, argv, "v:m:c:t:s:h:")) != -1)
		switch (opt) {
		case 'v': verify = atoi(optarg); break;
		case 'm': many = atoi(optarg); break;
		case 'c': optimal = atoi(optarg); break;
		case 't': stages = atoi(optarg); break;
		case 's': solver = optarg; break;
		case 'h': hosts = atoi(optarg); break;
		default: return 2;
		}
	first = optind < argc ? strtoull(argv[optind], NULL, 10) : 1;
	failed = go("optimal", first, optimal, hosts, solver != NULL ? COMPARE_MAKESPAN :
	    COMPARE_ALL, COMPARE_SINGLE, solver);
	failed += go("optimal, stages of slots", first + 500000, stages, hosts > 12 ? 12 : hosts,
	    COMPARE_ALL, COMPARE_STAGES, NULL);
	failed += go("verified", first + 1000000, verify, hosts, COMPARE_VERIFY, COMPARE_SINGLE, NULL);
	failed += go("verified, many slots", first + 2000000, many, hosts > 12 ? 12 : hosts, COMPARE_VERIFY,
	    COMPARE_MANY, NULL);
	return failed > 0;
}
