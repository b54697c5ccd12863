/* The calls of GLPK that planning needs. The library is loaded by the first plan: it takes a third of the time in which
 * the libraries of a process are loaded, and few processes plan. A static executable has it linked in
 * (glpk_linked.c). */
#ifndef PLAN_GLPK_CALLS_H
#define PLAN_GLPK_CALLS_H

#include <glpk.h>
#include <ptcp/err.h>

#define GLPK_CALLS(X) \
	X(add_cols) X(add_rows) X(adv_basis) X(create_prob) X(delete_prob) X(error_hook) X(free_env) \
	X(get_col_dual) X(get_col_prim) X(get_col_stat) X(get_col_type) X(get_col_ub) X(get_num_cols) \
	X(get_num_rows) X(get_obj_val) X(get_prim_stat) X(get_row_dual) X(get_row_stat) X(get_row_ub) X(get_status) \
	X(init_iocp) X(init_smcp) X(intopt) X(ios_best_node) X(ios_node_bound) X(ios_reason) X(mem_limit) \
	X(mip_col_val) X(mip_obj_val) X(mip_status) X(scale_prob) X(set_col_bnds) X(set_col_kind) \
	X(set_col_stat) X(set_mat_col) X(set_mat_row) X(set_obj_coef) X(set_obj_dir) X(set_row_bnds) \
	X(set_row_stat) X(simplex) X(std_basis) X(term_hook) X(term_out)

struct glpk_calls {
#define X(name) __typeof__(glp_##name) *name;
	GLPK_CALLS(X)
#undef X
};
extern struct glpk_calls glpk;

/* Any thread. PTCP_ECONFIG: no such library. */
int glpk_load(struct ptcp_err *e);

#endif
