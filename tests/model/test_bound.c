/* The quickest-flow bound, against a linear programme, and quickest paths against it. */
#include "model/near.h"

#include <glpk.h>
#include <string.h>

#include "model/bound.h"
#include "model/divide.h"
#include "model/overlay.h"
#include "model/overlay_paths.h"

/* The most bits that a steady flow, each bit spending its path's delay on the way,
 * can deliver within `finish` seconds: max of finish x value - sum of delay x flow. */
static double most_bits(const struct overlay *o, double finish)
{
	int rows[2 * OVERLAY_LINKS + 1], cols[2 * OVERLAY_LINKS + 1], at = 0, to;
	double coef[2 * OVERLAY_LINKS + 1], best;
	glp_prob *lp = glp_create_prob();
	glp_smcp how;
	size_t i;

	to = (int)o->graph.hosts;
	glp_term_out(GLP_OFF);
	glp_set_obj_dir(lp, GLP_MAX);
	glp_add_rows(lp, to);
	for (i = 1; (int)i <= to; i++)
		if (i == 1 || (int)i == to)
			glp_set_row_bnds(lp, (int)i, GLP_FR, 0, 0);
		else
			glp_set_row_bnds(lp, (int)i, GLP_FX, 0, 0);
	glp_add_cols(lp, (int)o->graph.link_count);
	for (i = 0; i < o->graph.link_count; i++) {
		const struct paths_link *l = &o->links[i];
		bool allowed = l->from == 0 || o->relay[l->from];
		double gain = ((int)l->to + 1 == to) - ((int)l->from + 1 == to);

		glp_set_col_bnds(lp, (int)i + 1, allowed ? GLP_DB : GLP_FX, 0,
		    allowed ? l->rate_bps / 1e6 : 0);
		glp_set_obj_coef(lp, (int)i + 1, finish * gain - l->delay_s);
		rows[++at] = (int)l->from + 1;
		cols[at] = (int)i + 1;
		coef[at] = -1;
		rows[++at] = (int)l->to + 1;
		cols[at] = (int)i + 1;
		coef[at] = 1;
	}
	glp_load_matrix(lp, at, rows, cols, coef);
	glp_init_smcp(&how);
	how.msg_lev = GLP_MSG_OFF;
	assert_int_equal(glp_simplex(lp, &how), 0);
	best = glp_get_obj_val(lp) * 1e6;
	glp_delete_prob(lp);
	return best;
}

/* The bound is the time in which the linear programme delivers just the size, and
 * m paths taken one after the other never end sooner. */
static void equals_linear_programme(void **state)
{
	static struct overlay o, left;
	struct paths_node scratch[OVERLAY_HOSTS];
	size_t rows[4][OVERLAY_HOSTS], order[4], found, i;
	struct paths_path p[4];
	struct divide_part parts[4];
	double flow[OVERLAY_LINKS], bound, finish, gap, worst = 1, sum = 0;
	struct rng r = { 3 };
	int round, tried = 0;
	uint64_t size;

	(void)state;
	for (i = 0; i < 4; i++)
		p[i].links = rows[i];
	for (round = 0; round < 300; round++) {
		overlay_random(&o, 5 + rng_below(&r, 16), &r);
		size = (uint64_t)pow(10, 3 + 7 * rng_uniform(&r));
		bound = bound_s(&o.graph, 0, o.graph.hosts - 1, size, flow, scratch);
		if (isinf(bound))
			continue;
		assert_near(most_bits(&o, bound), 8 * (double)size, 1e-6);
		left = o;
		left.graph.links = left.links;
		assert_int_equal(bound_greedy(p, 4, &found, &left.graph, 0,
		    o.graph.hosts - 1, size, scratch, NULL), 0);
		for (i = 0; i < found; i++)
			parts[i] = (struct divide_part){ p[i].rate_bps, p[i].delay_s, 0 };
		assert_int_equal(divide_bytes(parts, order, found, size, &finish, NULL), 0);
		gap = finish / bound;
		assert_true(gap >= 1 - 1e-9);
		worst = fmax(worst, gap);
		sum += gap;
		tried++;
	}
	assert_true(tried > 250);
	print_message("# four paths one after the other end %.3f times (worst %.2f) later than "
	    "the bound\n", sum / tried, worst);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_linear_programme),
	};
	return cmocka_run_group_tests_name("model/bound", tests, NULL, NULL);
}
