/* The worked example of the plan's tests: its optimum is known by hand for every method. */
#ifndef TESTS_PLAN_WORKED_H
#define TESTS_PLAN_WORKED_H

/* Section 2 of the paper's comparison: S1 and S2 hold 1 unit each, their direct
 * paths share 1 unit/time, K takes 1 unit/time in and sends 2. A unit is 1 GB,
 * its time 1 s. */
#define WORKED_OVERLAY \
    "destination: D\n" \
    "hosts:\n" \
    "  D: {}\n" \
    "  S1: {data: 1GB, path: /d}\n" \
    "  S2: {data: 1GB, path: /d}\n" \
    "  K: {relay: true, ingress: 8Gbit/s, egress: 16Gbit/s}\n" \
    "links:\n" \
    "  - {from: S1, to: D, rate: 8Gbit/s}\n" \
    "  - {from: S2, to: D, rate: 8Gbit/s}\n" \
    "  - {from: S1, to: K, rate: 8Gbit/s}\n" \
    "  - {from: S2, to: K, rate: 8Gbit/s}\n" \
    "  - {from: K, to: D, rate: 16Gbit/s}\n" \
    "shared:\n" \
    "  - {rate: 8Gbit/s, links: [S1>D, S2>D]}\n"

#endif
