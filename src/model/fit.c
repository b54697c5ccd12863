#include "model/fit.h"

#include <math.h>
#include <string.h>

#include "core/err.h"
#include "core/units.h"

static const char *const names[] = {
#define X(id, name) name,
	FIT_MODEL_LIST(X)
#undef X
};

#define MODEL_COUNT (sizeof names / sizeof *names)

const char *fit_model_name(enum fit_model m)
{
	return (size_t)m < MODEL_COUNT ? names[m] : "?";
}

int fit_model_by_name(enum fit_model *out, const char *name)
{
	size_t i;

	for (i = 0; i < MODEL_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*out = (enum fit_model)i;
			return 0;
		}
	return -1;
}

/* Each model is sum_j coefficient_j n^power[j] = y(n)^root. */
struct shape {
	int terms, root;
	int power[FIT_TERMS_MAX];
};

static const struct shape *shape_of(enum fit_model m)
{
	static const struct shape partial = { 2, 2, { 2, 0, 0 } };
	static const struct shape fair = { 2, 1, { 1, 0, 0 } };
	static const struct shape quadratic = { 3, 2, { 2, 1, 0 } };
	static const struct shape linear = { 2, 2, { 1, 0, 0 } };

	switch (m) {
	case FIT_PARTIAL_QUADRATIC: return &partial;
	case FIT_QUADRATIC: return &quadratic;
	case FIT_LINEAR: return &linear;
	case FIT_AUTO:
	case FIT_FAIR_SHARE: break;
	}
	return &fair;
}

static double term(const struct shape *s, int j, double n)
{
	return s->power[j] == 0 ? 1 : s->power[j] == 1 ? n : n * n;
}

static double target(const struct shape *s, const struct probe *p)
{
	double y = p->streams / p->throughput_bps;

	return s->root == 2 ? y * y : y;
}

/* ---- Least squares ---- */

/* Rows are divided by target and deviation, leaving relative errors. */
struct system {
	size_t rows;
	double col[FIT_TERMS_MAX][FIT_PROBES_MAX + 1]; /* one more for the prior */
	double rhs[FIT_PROBES_MAX + 1];
};

static void build(struct system *m, const struct shape *s, const struct probe *p, size_t count)
{
	double weight;
	size_t i;
	int j;

	m->rows = count;
	for (i = 0; i < count; i++) {
		weight = 1 / (s->root * probe_error_ratio(&p[i]));
		m->rhs[i] = weight;
		for (j = 0; j < s->terms; j++)
			m->col[j][i] = weight * term(s, j, p[i].streams) / target(s, &p[i]);
	}
}

static double dot(const double *x, const double *y, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

/* Least squares with the columns in `set` only (others get 0), by modified Gram-Schmidt, as accurate as
 * elimination for a square system. Returns the sum of squared residuals. */
static double solve(const struct system *m, unsigned set, double *x)
{
	struct system q = *m;
	double r[FIT_TERMS_MAX][FIT_TERMS_MAX] = { { 0 } }, z[FIT_TERMS_MAX] = { 0 };
	int used[FIT_TERMS_MAX], k = 0, i, j;
	size_t row;

	for (j = 0; j < FIT_TERMS_MAX; j++) {
		x[j] = 0;
		if (set & 1u << j)
			used[k++] = j;
	}
	for (i = 0; i < k; i++) {
		double *a = q.col[used[i]];

		r[i][i] = sqrt(dot(a, a, m->rows));
		for (row = 0; row < m->rows; row++)
			a[row] /= r[i][i];
		for (j = i + 1; j < k; j++) {
			double *b = q.col[used[j]];

			r[i][j] = dot(a, b, m->rows);
			for (row = 0; row < m->rows; row++)
				b[row] -= r[i][j] * a[row];
		}
		z[i] = dot(a, q.rhs, m->rows);
		for (row = 0; row < m->rows; row++)
			q.rhs[row] -= z[i] * a[row];
	}
	for (i = k - 1; i >= 0; i--) {
		for (j = i + 1; j < k; j++)
			z[i] -= r[i][j] * z[j];
		z[i] /= r[i][i];
		x[used[i]] = z[i];
	}
	return dot(q.rhs, q.rhs, m->rows);
}

/* The best solution without a negative coefficient: with at most three columns, the best over all subsets
 * of columns. */
static void solve_nonnegative(const struct system *m, int terms, double *x)
{
	double try[FIT_TERMS_MAX], residual, best = INFINITY;
	unsigned set;

	for (set = 1; set < 1u << terms; set++) {
		residual = solve(m, set, try);
		if (try[0] >= 0 && try[1] >= 0 && try[2] >= 0 && residual < best) {
			best = residual;
			memcpy(x, try, sizeof try);
		}
	}
}

/* ---- One model ---- */

static int fit_check(const struct probe *p, size_t count, struct ptcp_err *e)
{
	double y;
	size_t i;

	if (count > FIT_PROBES_MAX)
		return err_set(e, PTCP_EUSAGE, "probes: more than %d", FIT_PROBES_MAX);
	for (i = 0; i < count; i++) {
		if (p[i].streams == 0)
			return err_set(e, PTCP_EUSAGE, "probes: a probe with 0 streams (give at least 1)");
		y = p[i].streams / p[i].throughput_bps;
		if (!(p[i].throughput_bps > 0) || !isnormal(y * y))
			return err_set(e, PTCP_EUSAGE,
			    "probes: %g bit/s with %u stream%s is not a rate (must be positive)",
			    p[i].throughput_bps, p[i].streams, plural(p[i].streams));
		if (!(p[i].error_bps >= 0) || !isfinite(p[i].error_bps))
			return err_set(e, PTCP_EUSAGE,
			    "probes: %g bit/s is not an error of a rate", p[i].error_bps);
	}
	return 0;
}

static size_t count_levels(const struct probe *p, size_t count)
{
	size_t i, j, levels = 0;

	for (i = 0; i < count; i++) {
		for (j = 0; j < i && p[j].streams != p[i].streams; j++)
			;
		levels += i == j;
	}
	return levels;
}

static void judge(struct fit *f, const struct shape *s, const struct probe *lo, const struct probe *hi)
{
	double scale = target(s, hi), raw[FIT_TERMS_MAX];
	int j;

	for (j = 0; j < s->terms; j++) {
		bool nothing = fabs(f->raw[j]) * term(s, j, hi->streams) < 1e-9 * scale;

		raw[j] = nothing ? 0 : f->raw[j];
		if (nothing || f->used[j] * term(s, j, hi->streams) < 1e-9 * scale)
			f->used[j] = 0;
	}
	if (lo->streams * 3 > hi->streams)
		f->flags |= FIT_CLOSE_LEVELS;
	if (f->used[0] == 0 && (s->terms == 2 || f->used[1] == 0))
		f->flags |= FIT_NO_CONGESTION;
	if (s->terms == 2 && s->power[0] == s->root) {
		if (raw[1] < 0)
			f->flags |= FIT_FALLS;
	} else if (hi->throughput_bps < lo->throughput_bps) {
		f->flags |= FIT_FALLS;
	}
	if (s->terms == 2 && (f->flags & FIT_FALLS) != 0) {
		f->used[0] = target(s, lo) / term(s, 0, lo->streams);
		f->used[1] = 0;
	}
}

/* Takes y(1) from the probe with the fewest streams, to keep the row linear. */
static void add_prior(struct system *m, const struct shape *s, const struct probe *lo, double others)
{
	double y1 = target(s, lo) * (1 + others) / (lo->streams + others);

	m->col[0][m->rows] = -others / (y1 * FIT_PRIOR_SD);
	m->col[1][m->rows] = 1 / (y1 * FIT_PRIOR_SD);
	m->rhs[m->rows++] = 0;
}

static int fit_one(struct fit *out, enum fit_model m, double others, const struct probe *p, size_t count,
    struct ptcp_err *e)
{
	const struct shape *s = shape_of(m);
	const struct probe *lo = p, *hi = p;
	struct fit f = { .model = m };
	struct system sys;
	bool takes_prior = others > 0 && m == FIT_FAIR_SHARE, needs_prior;
	double miss;
	size_t i;

	needs_prior = count_levels(p, count) < (size_t)s->terms;
	if (count_levels(p, count) + takes_prior < (size_t)s->terms)
		return err_set(e, PTCP_EUSAGE,
		    "probes: %s needs %d different numbers of streams (give more probes)",
		    fit_model_name(m), s->terms);
	for (i = 1; i < count; i++) {
		if (p[i].streams < lo->streams)
			lo = &p[i];
		if (p[i].streams > hi->streams)
			hi = &p[i];
	}
	f.fewest = lo->streams;
	f.most = hi->streams;
	build(&sys, s, p, count);
	if (needs_prior)
		add_prior(&sys, s, lo, others);
	solve(&sys, (1u << s->terms) - 1, f.raw);
	solve_nonnegative(&sys, s->terms, f.used);
	judge(&f, s, lo, hi);
	if (takes_prior && !(f.flags & FIT_FALLS)) {
		if (!needs_prior)
			add_prior(&sys, s, lo, others);
		solve_nonnegative(&sys, s->terms, f.used);
		f.prior_others = others;
		if (f.used[0] > 0)
			f.flags &= ~(unsigned)FIT_NO_CONGESTION;
	}
	for (i = 0; i < count; i++) {
		miss = fit_throughput_bps(&f, p[i].streams) / p[i].throughput_bps - 1;
		f.misfit += pow(miss / probe_error_ratio(&p[i]), 2);
		f.worst_ratio = fmax(f.worst_ratio, fabs(miss));
	}
	*out = f;
	return 0;
}

static double criterion(const struct fit *f)
{
	return f->misfit + 2 * shape_of(f->model)->terms;
}

/* Fair share, or a rival with a better criterion on these probes. */
static int choose(enum fit_model *out, const struct probe *p, size_t count, struct ptcp_err *e)
{
	static const enum fit_model rivals[] = { FIT_PARTIAL_QUADRATIC, FIT_QUADRATIC };
	struct fit f;
	double bar;
	size_t i;
	int r;

	*out = FIT_FAIR_SHARE;
	if (count_levels(p, count) == 1)
		return 0;
	if ((r = fit_one(&f, FIT_FAIR_SHARE, 0, p, count, e)) < 0)
		return r;
	bar = criterion(&f) - 2;
	for (i = 0; i < sizeof rivals / sizeof *rivals; i++) {
		if (count_levels(p, count) <= (size_t)shape_of(rivals[i])->terms)
			continue;
		if ((r = fit_one(&f, rivals[i], 0, p, count, e)) < 0)
			return r;
		if (criterion(&f) < bar) {
			bar = criterion(&f);
			*out = rivals[i];
		}
	}
	return 0;
}

int fit_probes_prior(struct fit *out, enum fit_model m, double others, const struct probe *p,
    size_t count, struct ptcp_err *e)
{
	int r = fit_check(p, count, e);

	if (r == 0 && m == FIT_AUTO)
		r = choose(&m, p, count, e);
	return r < 0 ? r : fit_one(out, m, others, p, count, e);
}

int fit_probes(struct fit *out, enum fit_model m, const struct probe *p, size_t count, struct ptcp_err *e)
{
	return fit_probes_prior(out, m, 0, p, count, e);
}

int fit_like(struct fit *out, const struct fit *like, const struct probe *p, size_t count, struct ptcp_err *e)
{
	int r = fit_check(p, count, e);

	return r < 0 ? r : fit_one(out, like->model, like->prior_others, p, count, e);
}

/* ---- The curves ---- */

/* y(n) = n / BW(n) */
static double inverse_share(const struct fit *f, double n)
{
	const struct shape *s = shape_of(f->model);
	double sum = 0;
	int j;

	for (j = 0; j < s->terms; j++)
		sum += f->used[j] * term(s, j, n);
	return s->root == 2 ? sqrt(sum) : sum;
}

double fit_throughput_bps(const struct fit *f, double streams)
{
	return streams / inverse_share(f, streams);
}

double fit_impact_ratio(const struct fit *f, double streams)
{
	return 1 - inverse_share(f, 1) / inverse_share(f, streams);
}

double fit_impact_total_ratio(const struct fit *f, double streams)
{
	return 1 - inverse_share(f, 0) / inverse_share(f, streams);
}
