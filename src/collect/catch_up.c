#include "collect/catch_up.h"

#include <math.h>

#define MAKE_UP_S 5.0    /* as long as rates take to show */
#define AHEAD_S 1.0      /* each plan begins anew, and being ahead would add up */
#define BEGIN_RATIO 0.4  /* of what it is given: late and short by so much together, */
#define SHORT_RATIO 0.1  /* and short by so much: who only began late goes on as planned */
#define END_RATIO 0.05

double catch_up_bps(double before_bps, double behind_bytes, double given_bps, double got_bps)
{
	double lacks = fmax(0, given_bps - got_bps);
	double more = behind_bytes * 8 / (behind_bytes > 0 ? MAKE_UP_S : AHEAD_S) + lacks;

	if (!(before_bps > 0) && !(lacks > SHORT_RATIO * given_bps))
		return 0;
	return more > (before_bps > 0 ? END_RATIO : BEGIN_RATIO) * given_bps && given_bps > 0 ? more : 0;
}
