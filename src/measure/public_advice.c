/* Advice from probes: the public functions of the model. */
#include <math.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "core/opts.h"
#include "measure/prober.h"
#include "model/advice.h"
#include "model/parameters.h"
#include "model/probe.h"

/* The public values equal the model's. */
_Static_assert((int)PTCP_MODEL_AUTO == FIT_AUTO &&
    (int)PTCP_MODEL_PARTIAL_QUADRATIC == FIT_PARTIAL_QUADRATIC &&
    (int)PTCP_MODEL_FAIR_SHARE == FIT_FAIR_SHARE && (int)PTCP_MODEL_QUADRATIC == FIT_QUADRATIC &&
    (int)PTCP_MODEL_LINEAR == FIT_LINEAR && (int)PTCP_MODELS == FIT_LINEAR + 1, "models");
_Static_assert((int)PTCP_LIMITED_BY_IMPACT == ADVICE_BY_IMPACT &&
    (int)PTCP_LIMITED_BY_GAIN == ADVICE_BY_GAIN &&
    (int)PTCP_LIMITED_BY_MAX_STREAMS == ADVICE_BY_MAX &&
    (int)PTCP_LIMITED_BY_SATURATION == ADVICE_BY_SATURATED, "limits");
_Static_assert((int)PTCP_LIMIT_UNKNOWN == LIMIT_UNKNOWN &&
    (int)PTCP_LIMIT_NETWORK == LIMIT_NETWORK && (int)PTCP_LIMIT_SEND_BUFFER == LIMIT_SEND_BUFFER &&
    (int)PTCP_LIMIT_RECEIVE_WINDOW == LIMIT_RECEIVE_WINDOW &&
    (int)PTCP_LIMIT_APPLICATION == LIMIT_APPLICATION, "limits");
_Static_assert(PTCP_PROBES_MAX == FIT_PROBES_MAX &&
    PTCP_ADVICE_STREAMS_MAX == ADVICE_STREAMS_MAX && PTCP_ADVICE_CURVE == ADVICE_CURVE_MAX &&
    (int)PTCP_OTHERS_NONE_SEEN == ADVICE_OTHERS_NONE && (int)PTCP_OTHERS_SOME == ADVICE_OTHERS_SOME &&
    sizeof ((struct ptcp_advice *)0)->used == sizeof ((struct fit *)0)->used, "sizes");

const char *ptcp_model_name(enum ptcp_model m)
{
	return (unsigned)m < PTCP_MODELS ? fit_model_name((enum fit_model)m) : NULL;
}

bool ptcp_model_parse(const char *name, enum ptcp_model *out)
{
	enum fit_model m;

	if (fit_model_by_name(&m, name) < 0)
		return false;
	*out = (enum ptcp_model)m;
	return true;
}

const char *ptcp_limited_by_name(enum ptcp_limited_by l)
{
	return advice_limit_name((enum advice_limit)l);
}

const char *ptcp_limit_name(enum ptcp_limit l)
{
	return limit_name((enum limit)l);
}

void ptcp_advice_opts_init(struct ptcp_advice_opts *o)
{
	*o = (struct ptcp_advice_opts){
		.size = sizeof *o, PTCP_OPTIONS_ADVISE(PTCP_NO_ROW, OPTS_INITIAL)
	};
}

void ptcp_advice_init(struct ptcp_advice *a)
{
	*a = (struct ptcp_advice){ .size = sizeof *a, .check_bps = NAN, .path_rate_bps = NAN };
}

const char *ptcp_others_name(enum ptcp_others o)
{
	return advice_others_name((enum advice_others)o);
}

static struct ptcp_advice_point to_public(const struct advice_point *p)
{
	return (struct ptcp_advice_point){ p->throughput_bps, p->throughput_low_bps, p->throughput_high_bps,
		p->impact_ratio * 100, p->impact_low_ratio * 100, p->impact_high_ratio * 100,
		p->impact_total_ratio * 100 };
}

/* The prices of this budget, of half, and of no budget. */
static void fill_choices(struct ptcp_advice *out, const struct advice *a, const struct advice_opts *o)
{
	const double budget[PTCP_CHOICES] = { o->budget_ratio, o->budget_ratio / 2, 1 };
	enum advice_limit unused;
	struct advice_point p;
	size_t i;

	for (i = 0; i < PTCP_CHOICES; i++) {
		struct ptcp_choice *c = &out->choices[i];

		c->impact_percent = budget[i] * 100;
		c->streams = advice_for_budget(a, o, budget[i], &unused);
		advice_at(a, c->streams, &p);
		c->throughput_bps = p.throughput_bps;
	}
}

static void fill_path_limit(struct ptcp_advice *out, const struct path_limit_found *l)
{
	_Static_assert(sizeof out->path_advice == PATH_LIMIT_TEXT_BYTES, "sizes");
	out->path_limit = l->limit != PATH_LIMIT_NONE ? path_limit_name(l->limit) : NULL;
	path_limit_text(out->path_advice, l);
	if (l->limit == PATH_LIMIT_POLICER && l->alone)
		out->path_rate_bps = PATH_LIMIT_RATE_PART * l->rate_bps;
}

static void fill(struct ptcp_advice *out, const struct advice *a)
{
	unsigned n;

	out->throughput_low_bps = a->throughput_low_bps;
	out->throughput_high_bps = a->throughput_high_bps;
	out->impact_low_percent = a->impact_low_ratio * 100;
	out->impact_high_percent = a->impact_high_ratio * 100;
	out->others = (enum ptcp_others)a->others;
	out->n_curve = a->n_curve;
	for (n = 0; n < a->n_curve; n++)
		out->curve[n] = to_public(&a->curve[n]);
	fill_path_limit(out, &a->path_limit);
	out->measured = a->measured;
	out->streams = a->streams;
	out->throughput_bps = a->throughput_bps;
	out->impact_percent = a->impact_ratio * 100;
	out->impact_total_percent = a->impact_total_ratio * 100;
	out->limited_by = (enum ptcp_limited_by)a->limited_by;
	out->confident = a->confident;
	out->warnings = a->warnings;
	out->next_probe = a->next_probe;
	out->congestion_advice = a->congestion_advice;
	out->model = (enum ptcp_model)a->fit.model;
	memcpy(out->raw, a->fit.raw, sizeof out->raw);
	memcpy(out->used, a->fit.used, sizeof out->used);
}

int ptcp_advice_from_probes(struct ptcp_advice *a, const struct ptcp_probe *p, size_t n,
    const struct ptcp_advice_opts *o, struct ptcp_err *e)
{
	return advice_of_probes(a, p, n, NULL, o, e);
}

int advice_of_probes(struct ptcp_advice *a, const struct ptcp_probe *p, size_t n,
    const struct evidence *evidence, const struct ptcp_advice_opts *o, struct ptcp_err *e)
{
	struct advice_opts model_opts;
	struct ptcp_advice_opts opts;
	struct ptcp_advice all = { .check_bps = NAN, .path_rate_bps = NAN };
	struct probe probes[FIT_PROBES_MAX];
	struct advice found;
	size_t i;
	int r;

	ptcp_advice_opts_init(&opts);
	if ((r = opts_copy(&opts, sizeof opts, o, "ptcp_advice_opts_init", e)) < 0)
		return r;
	if ((unsigned)opts.model >= PTCP_MODELS)
		return err_set(e, PTCP_EUSAGE, "advice: no such model");
	if (n > FIT_PROBES_MAX)
		return err_set(e, PTCP_EUSAGE, "probes: more than %d (leave some out)", FIT_PROBES_MAX);
	for (i = 0; i < n; i++) {
		if (p[i].error_bps <= 0)
			return err_set(e, PTCP_EUSAGE, "probes: %g bit/s is not an error of a rate (NAN: unknown)",
			    p[i].error_bps);
		probes[i] = probe_of_public(&p[i]);
	}
	advice_opts_init(&model_opts);
	model_opts.model = (enum fit_model)opts.model;
	model_opts.budget_ratio = opts.impact_percent / 100;
	model_opts.min_gain_ratio = opts.min_gain_percent / 100;
	model_opts.max_streams = opts.max_streams;
	model_opts.congestion = advice_congestion_by_name(opts.congestion);
	model_opts.prior_others = evidence != NULL && opts.model == PTCP_MODEL_AUTO ? FIT_PRIOR_OTHERS : 0;
	r = evidence != NULL && evidence->n > 0 && opts.model == PTCP_MODEL_AUTO ?
	    advice_from_evidence(&found, evidence, &model_opts, e) :
	    advice_from_probes(&found, probes, n, &model_opts, e);
	if (r < 0)
		return r;
	fill(&all, &found);
	fill_choices(&all, &found, &model_opts);
	all.budget_percent = opts.impact_percent;
	all.min_gain_percent = opts.min_gain_percent;
	all.max_streams = found.measured && found.n_curve < opts.max_streams ? found.n_curve : opts.max_streams;
	if (opts.congestion != NULL)
		snprintf(all.congestion, sizeof all.congestion, "%s", opts.congestion);
	memcpy(all.probes, p, n * sizeof *p);
	all.n_probes = n;
	results_copy(a, &all, sizeof all);
	return 0;
}

/* ---- Where hosts limit ---- */

static struct ptcp_advice_point measured_point(const struct ptcp_advice *a, unsigned n)
{
	struct probe probes[PTCP_PROBES_MAX];
	double error_ratio, bps, factor;
	size_t i;

	for (i = 0; i < a->n_probes; i++)
		probes[i] = probe_of_public(&a->probes[i]);
	bps = probe_between(probes, a->n_probes, n, &error_ratio);
	factor = exp(ADVICE_RANGE_SD * error_ratio);
	return (struct ptcp_advice_point){ bps, bps / factor, bps * factor, NAN, NAN, NAN, NAN };
}

void advice_of_hosts(struct ptcp_advice *a)
{
	unsigned most = 1, n;
	double best_bps = 0;
	size_t i;

	for (i = 0; i < a->n_probes; i++)
		most = a->probes[i].streams > most ? a->probes[i].streams : most;
	if (a->max_streams > most)
		a->max_streams = most;
	a->n_curve = a->max_streams < PTCP_ADVICE_CURVE ? a->max_streams : PTCP_ADVICE_CURVE;
	for (n = 1; n <= a->n_curve; n++) {
		a->curve[n - 1] = measured_point(a, n);
		best_bps = fmax(best_bps, a->curve[n - 1].throughput_bps);
	}
	for (n = 1; a->curve[n - 1].throughput_bps < ADVICE_RESOLUTION * best_bps; n++)
		;
	a->streams = n;
	a->throughput_bps = a->curve[n - 1].throughput_bps;
	a->throughput_low_bps = a->curve[n - 1].throughput_low_bps;
	a->throughput_high_bps = a->curve[n - 1].throughput_high_bps;
	a->impact_percent = a->impact_low_percent = a->impact_high_percent = a->impact_total_percent = NAN;
	a->others = PTCP_OTHERS_UNKNOWN;
	a->path_limit = NULL;
	a->path_advice[0] = '\0';
	a->path_rate_bps = NAN;
	a->measured = true;
	a->limited_by = PTCP_LIMITED_BY_SATURATION;
	a->confident = false;
	a->warnings = 0; /* warnings of the network's model */
	a->next_probe = 0;
	a->congestion_advice = NULL;
	for (i = 0; i < PTCP_CHOICES; i++) {
		a->choices[i].streams = n;
		a->choices[i].throughput_bps = a->throughput_bps;
	}
}

/* ---- The answer at other numbers ---- */

void ptcp_advice_at(const struct ptcp_advice *a, unsigned streams, struct ptcp_advice_point *out)
{
	struct advice found = { .fit = { .model = (enum fit_model)a->model } };
	struct advice_point p;

	streams = streams > 0 ? streams : 1;
	if (a->measured && streams > a->n_curve)
		streams = a->n_curve; /* no prediction beyond the measured levels */
	if (streams <= a->n_curve) {
		*out = a->curve[streams - 1];
		return;
	}
	memcpy(found.fit.used, a->used, sizeof found.fit.used);
	advice_at(&found, streams, &p);
	*out = to_public(&p);
}

const char *ptcp_advice_warning(const struct ptcp_advice *a, size_t i)
{
	return advice_warning_text(a->warnings, i);
}
