#include "collect/late.h"

#include <math.h>

#define MAKE_UP_S 5.0       /* as long as rates take to show */
#define AHEAD_S 1.0         /* until nothing is made up for any more: each plan begins anew, and it would add up */
#define SPARES_FROM_S 1.0   /* behind: more than to connect costs */
#define SPARES_RATIO 0.05   /* of what it is given: less is not worth their help */

void late_see(struct late *l, double behind_bytes, double given_bps, double got_bps)
{
	double behind_bps = behind_bytes * 8 / (behind_bytes > 0 ? MAKE_UP_S : AHEAD_S);
	double with_short = behind_bps + fmax(0, given_bps - got_bps);

	if (l->spares)
		l->spares = with_short > SPARES_RATIO * given_bps;
	else
		l->spares = behind_bytes * 8 > SPARES_FROM_S * given_bps;
	l->spares = l->spares && given_bps > 0;
	l->more_bps = fmax(0, l->spares ? with_short : behind_bps);
}
