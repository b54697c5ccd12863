#include "plain.h"

#include <glpk.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A stretch of time with constant rates; `slot` counts slots, or stretches where
 * relays pass on at once. */
struct stretch {
	double start, len;
	int slot;
};

struct model {
	const struct inst *in;
	glp_prob *p;
	struct stretch *st;
	int nst, nslots;
	bool late; /* what arrives in a slot leaves in a later one */
	int own, other, left, held; /* first columns, see col() */
	int horizon, peak;
	int *ia, *ja, n, room;
	double *ar;
};

static void add(struct model *m, int row, int col, double v)
{
	if (m->n + 2 > m->room) {
		m->room = m->room == 0 ? 1024 : 2 * m->room;
		m->ia = realloc(m->ia, (size_t)m->room * sizeof *m->ia);
		m->ja = realloc(m->ja, (size_t)m->room * sizeof *m->ja);
		m->ar = realloc(m->ar, (size_t)m->room * sizeof *m->ar);
	}
	m->n++;
	m->ia[m->n] = row;
	m->ja[m->n] = col;
	m->ar[m->n] = v;
}

static int row(struct model *m, int type, double bound)
{
	int r = glp_add_rows(m->p, 1);

	glp_set_row_bnds(m->p, r, type, bound, bound);
	return r;
}

static int own(const struct model *m, int link, int st)
{
	return m->own + link * m->nst + st;
}

static int other(const struct model *m, int link, int st)
{
	return m->other + link * m->nst + st;
}

static int left(const struct model *m, int host, int slot)
{
	return m->left + host * m->nslots + slot;
}

static int held(const struct model *m, int host, int slot)
{
	return m->held + host * m->nslots + slot;
}

static double rate_at(const struct inst *in, int link, double t)
{
	int w;

	for (w = 0; w < in->nwindows; w++)
		if (in->window[w].link == link && in->window[w].from <= t &&
		    t < in->window[w].until)
			return in->window[w].rate / 8.0;
	return in->link[link].rate / 8.0;
}

static void add_columns(struct model *m)
{
	const struct inst *in = m->in;
	int i, s;

	m->own = glp_add_cols(m->p, in->nlinks * m->nst);
	m->other = glp_add_cols(m->p, in->nlinks * m->nst);
	m->left = glp_add_cols(m->p, in->nhosts * m->nslots);
	m->held = glp_add_cols(m->p, in->nhosts * m->nslots);
	m->horizon = glp_add_cols(m->p, 1);
	glp_set_col_bnds(m->p, m->horizon, GLP_LO, 0, 0);
	for (i = 0; i < in->nlinks; i++)
		for (s = 0; s < m->nst; s++) {
			int u = in->link[i].from, v = in->link[i].to;
			bool into = v == 0 || in->relay[v];

			glp_set_col_bnds(m->p, own(m, i, s), into && u != 0 ? GLP_LO : GLP_FX, 0, 0);
			glp_set_col_bnds(m->p, other(m, i, s),
			    into && u != 0 && in->relay[u] ? GLP_LO : GLP_FX, 0, 0);
		}
	for (i = 0; i < in->nhosts; i++)
		for (s = 0; s < m->nslots; s++) {
			bool last = s == m->nslots - 1;
			double most = in->storage[i] == NONE ? 1e9 : in->storage[i];

			glp_set_col_bnds(m->p, left(m, i, s), last ? GLP_FX : GLP_LO, 0, 0);
			glp_set_col_bnds(m->p, held(m, i, s),
			    i == 0 || last || !in->relay[i] || most == 0 ? GLP_FX : GLP_DB, 0, most);
		}
}

/* What each host has before and after each slot. */
static void add_balances(struct model *m)
{
	const struct inst *in = m->in;
	int h, k, s, i, r, q, late;

	for (h = 1; h < in->nhosts; h++)
		for (k = 0; k < m->nslots; k++) {
			double data = in->data[h] == NONE ? 0 : in->data[h];

			r = row(m, GLP_FX, k == 0 ? data : 0);
			q = row(m, GLP_FX, 0);
			late = m->late ? row(m, GLP_UP, 0) : 0;
			add(m, r, left(m, h, k), 1);
			add(m, q, held(m, h, k), -1);
			if (k > 0) {
				add(m, r, left(m, h, k - 1), -1);
				add(m, q, held(m, h, k - 1), 1);
				if (late)
					add(m, late, held(m, h, k - 1), -1);
			}
			for (s = 0; s < m->nst; s++)
				for (i = 0; i < in->nlinks && m->st[s].slot == k; i++) {
					if (in->link[i].from == h) {
						add(m, r, own(m, i, s), 1);
						add(m, q, other(m, i, s), -1);
						if (late)
							add(m, late, other(m, i, s), 1);
					}
					if (in->link[i].to == h) {
						add(m, q, own(m, i, s), 1);
						add(m, q, other(m, i, s), 1);
					}
				}
		}
}

static void add_limit(struct model *m, int st, double rate, const int *links, int n)
{
	bool open = m->st[st].len < 0; /* as long as the horizon variable */
	int r = row(m, GLP_UP, open ? 0 : rate * m->st[st].len), i;

	for (i = 0; i < n; i++) {
		add(m, r, own(m, links[i], st), 1);
		add(m, r, other(m, links[i], st), 1);
	}
	if (open)
		add(m, r, m->horizon, -rate);
}

static void add_limits(struct model *m)
{
	const struct inst *in = m->in;
	int *list = calloc((size_t)in->nlinks + 1, sizeof *list), s, i, g, h, n;

	for (s = 0; s < m->nst; s++) {
		for (i = 0; i < in->nlinks; i++)
			add_limit(m, s, rate_at(in, i, m->st[s].start), &i, 1);
		for (g = 0; g < in->ngroups; g++)
			add_limit(m, s, in->group[g].rate / 8.0, in->group[g].link,
			    in->group[g].nlinks);
		for (h = 0; h < in->nhosts; h++) {
			for (n = i = 0; i < in->nlinks; i++)
				if (in->link[i].to == h)
					list[n++] = i;
			if (in->ingress[h] != NONE)
				add_limit(m, s, in->ingress[h] / 8.0, list, n);
			for (n = i = 0; i < in->nlinks; i++)
				if (in->link[i].from == h)
					list[n++] = i;
			if (in->egress[h] != NONE)
				add_limit(m, s, in->egress[h] / 8.0, list, n);
		}
	}
	free(list);
}

static void build(struct model *m)
{
	m->p = glp_create_prob();
	glp_set_obj_dir(m->p, GLP_MIN);
	add_columns(m);
	add_balances(m);
	add_limits(m);
	glp_load_matrix(m->p, m->n, m->ia, m->ja, m->ar);
	glp_set_obj_coef(m->p, m->horizon, 1);
}

static void drop(struct model *m)
{
	glp_delete_prob(m->p);
	free(m->ia);
	free(m->ja);
	free(m->ar);
	m->ia = m->ja = NULL;
	m->ar = NULL;
	m->n = m->room = 0;
}

/* The optimum as another program prints it, or NAN. */
static double solve_by(struct model *m, const char *solver)
{
	char file[] = "/tmp/plain-XXXXXX.lp", cmd[300], line[300];
	const char *at;
	double v = NAN;
	FILE *f;
	int fd = mkstemps(file, 3);

	if (fd < 0)
		return NAN;
	fclose(fdopen(fd, "w"));
	glp_term_out(GLP_OFF);
	glp_write_lp(m->p, NULL, file);
	snprintf(cmd, sizeof cmd, strcmp(solver, "clp") == 0 ? "clp %s -solve 2>&1" :
	    "glpsol --lp %s -o /dev/stdout 2>&1", file);
	if ((f = popen(cmd, "r")) != NULL) {
		while (fgets(line, sizeof line, f) != NULL) {
			if ((at = strstr(line, "Optimal objective")) != NULL)
				v = strtod(at + 17, NULL);
			else if (strncmp(line, "Objective:", 10) == 0 && (at = strchr(line, '=')) != NULL)
				v = isnan(v) ? strtod(at + 1, NULL) : v;
			else if (strstr(line, "nfeasible") != NULL ||
			    strstr(line, "NO PRIMAL FEASIBLE") != NULL)
				v = INFINITY;
		}
		pclose(f);
	}
	remove(file);
	return isinf(v) ? NAN : v;
}

static double solve(struct model *m, const char *solver)
{
	glp_smcp parm;

	if (solver != NULL)
		return solve_by(m, solver);
	glp_init_smcp(&parm);
	parm.msg_lev = GLP_MSG_OFF;
	parm.meth = GLP_DUALP;
	parm.presolve = GLP_ON;
	if (glp_simplex(m->p, &parm) != 0 || glp_get_status(m->p) != GLP_OPT)
		return NAN;
	return glp_get_obj_val(m->p);
}

/* Least flow over all links at the horizon found, then least storage. */
static void further_goals(struct model *m, int goals, double horizon, struct plain *out)
{
	const struct inst *in = m->in;
	double total = 0, v;
	int *ind = calloc((size_t)(2 * in->nlinks * m->nst) + 1, sizeof *ind), i, s, k = 0, r, c;
	double *one = calloc((size_t)(2 * in->nlinks * m->nst) + 1, sizeof *one);

	for (i = 0; i < in->nhosts; i++)
		total += in->data[i] == NONE ? 0 : in->data[i];
	glp_set_obj_coef(m->p, m->horizon, 0);
	glp_set_col_bnds(m->p, m->horizon, GLP_DB, 0, horizon * (1 + 1e-9) + 1e-12);
	for (i = 0; i < 2 * in->nlinks * m->nst; i++) {
		glp_set_obj_coef(m->p, m->own + i, 1);
		ind[++k] = m->own + i;
		one[k] = 1;
	}
	v = solve(m, NULL);
	out->relayed_mb = v - total;
	if (goals > 2 && !isnan(v)) {
		r = row(m, GLP_UP, v * (1 + 1e-9));
		glp_set_mat_row(m->p, r, k, ind, one);
		for (i = 0; i < 2 * in->nlinks * m->nst; i++)
			glp_set_obj_coef(m->p, m->own + i, 0);
		for (i = 1; i < in->nhosts; i++) {
			c = glp_add_cols(m->p, 1);
			glp_set_col_bnds(m->p, c, GLP_LO, 0, 0);
			glp_set_obj_coef(m->p, c, 1);
			for (s = 0; s < m->nslots; s++) {
				r = row(m, GLP_LO, 0);
				glp_set_mat_row(m->p, r, 2, (int[]){ 0, c, held(m, i, s) },
				    (double[]){ 0, 1, -1 });
			}
		}
		out->storage_mb = solve(m, NULL);
	}
	free(ind);
	free(one);
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int times(const struct inst *in, int *t)
{
	int n = 1, k = 1, w;

	t[0] = 0;
	for (w = 0; w < in->nwindows; w++) {
		t[n++] = in->window[w].from;
		t[n++] = in->window[w].until;
	}
	qsort(t, (size_t)n, sizeof *t, by_value);
	for (w = 1; w < n; w++)
		if (t[w] != t[k - 1])
			t[k++] = t[w];
	return k;
}

void plain_fluid(const struct inst *in, int goals, const char *solver, struct plain *out)
{
	int t[2 * WINDOWS_MAX + 1], n = times(in, t), k, i;
	struct stretch st[2 * WINDOWS_MAX + 1];
	double v;

	memset(out, 0, sizeof *out);
	for (k = 0; k < n && !out->feasible; k++) {
		struct model m = { .in = in, .st = st, .nst = k + 1, .nslots = k + 1 };

		for (i = 0; i <= k; i++)
			st[i] = (struct stretch){ t[i], i < k ? t[i + 1] - t[i] : -1, i };
		build(&m);
		v = solve(&m, solver);
		if (!isnan(v) && (k + 1 == n || v <= t[k + 1] - t[k])) {
			out->feasible = true;
			out->makespan_s = t[k] + v;
			if (goals > 1)
				further_goals(&m, goals, v, out);
		}
		drop(&m);
	}
}

void plain_slots(const struct inst *in, double slot_s, int least_slots, int most_slots,
    int goals, const char *solver, struct plain *out)
{
	int t[2 * WINDOWS_MAX + 1], n = times(in, t), slots, k, i;
	struct stretch *st = calloc((size_t)(most_slots + n + 1), sizeof *st);

	memset(out, 0, sizeof *out);
	for (slots = least_slots; slots <= most_slots && !out->feasible; slots++) {
		struct model m = { .in = in, .st = st, .nslots = slots, .late = true };

		for (k = 0; k < slots; k++) {
			double at = k * slot_s, end = (k + 1) * slot_s;

			for (i = 0; i < n; i++)
				if (t[i] > at && t[i] < end) {
					st[m.nst++] = (struct stretch){ at, t[i] - at, k };
					at = t[i];
				}
			st[m.nst++] = (struct stretch){ at, end - at, k };
		}
		build(&m);
		if (!isnan(solve(&m, solver))) {
			out->feasible = true;
			out->makespan_s = slots * slot_s;
			if (goals > 1)
				further_goals(&m, goals, 0, out);
		}
		drop(&m);
	}
	free(st);
}
