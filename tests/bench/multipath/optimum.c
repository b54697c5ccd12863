#include <glpk.h>
#include <stdlib.h>

#include "bench/multipath/study.h"

/* Maximise the sum of x_ip with sum_p x_ip <= demand_i and the sum over the
 * paths through relay j <= capacity_j. */
double study_optimum(const struct study *s)
{
	size_t n = s->sources * s->k, i, p;
	int *rows = calloc(2 * n + 1, sizeof *rows), *cols = calloc(2 * n + 1, sizeof *cols);
	double *ones = calloc(2 * n + 1, sizeof *ones), best;
	glp_prob *lp = glp_create_prob();
	glp_smcp how;
	int at = 0;

	glp_term_out(GLP_OFF);
	glp_set_obj_dir(lp, GLP_MAX);
	glp_add_rows(lp, (int)(s->sources + s->relays));
	for (i = 0; i < s->sources; i++)
		glp_set_row_bnds(lp, (int)i + 1, GLP_UP, 0, s->demand[i]);
	for (i = 0; i < s->relays; i++)
		glp_set_row_bnds(lp, (int)(s->sources + i) + 1, GLP_UP, 0, s->capacity[i]);
	glp_add_cols(lp, (int)n);
	for (i = 0; i < s->sources; i++)
		for (p = 0; p < s->k; p++) {
			int col = (int)(i * s->k + p) + 1;

			glp_set_col_bnds(lp, col, GLP_LO, 0, 0);
			glp_set_obj_coef(lp, col, 1);
			rows[++at] = (int)i + 1;
			cols[at] = col;
			ones[at] = 1;
			rows[++at] = (int)(s->sources + s->relay[i][p]) + 1;
			cols[at] = col;
			ones[at] = 1;
		}
	glp_load_matrix(lp, at, rows, cols, ones);
	glp_init_smcp(&how);
	how.msg_lev = GLP_MSG_OFF;
	if (glp_simplex(lp, &how) != 0 || glp_get_status(lp) != GLP_OPT)
		abort();
	best = glp_get_obj_val(lp);
	glp_delete_prob(lp);
	free(rows);
	free(cols);
	free(ones);
	return best;
}
