/* What a source that is late does about it. Rates alone would keep it as late to the end, and where flows of others
 * leave its streams less than the plan counts on, make it ever later. So it may have more, on each path up to what its
 * links are taken for, and on paths that the plan gives nothing, too. Pure. */
#ifndef COLLECT_CATCH_UP_H
#define COLLECT_CATCH_UP_H

/* How much more each of its paths may have now, having had `before_bps`. `behind_bytes`: what has yet to come and
 * should have by the plan; negative where it is ahead. given_bps: what its paths are given together, and of it got_bps
 * what comes, of late. It takes a good deal to begin, and paths that fall short; then it goes on until the source is as
 * far ahead as makes up for what its own paths lack. */
double catch_up_bps(double before_bps, double behind_bytes, double given_bps, double got_bps);

#endif
