/* ptcp doctor: what on this host, or the way to another, slows transfers, and what mends it. */
#include <stddef.h>
#include <string.h>

#include "cli/doctor.h"
#include "cli/options.h"
#include "core/err.h"
#include "core/units.h"

struct doctor_args {
	struct connect_args connect; /* first */
	bool no_speed;
	const char *dir;
	double rate_bps;
	const char *target;
};

static int set_rate(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	uint64_t bps;

	if (units_parse_rate(text, &bps) < 0 || bps == 0)
		return opt_reject(o, text, e, "not a rate above 0 (such as 10Gbit/s)");
	((struct doctor_args *)args)->rate_bps = (double)bps;
	return 0;
}

static const struct opt own_options[] = {
	{ "dir", 0, "DIR", "whose disk is measured (.)", opt_text, offsetof(struct doctor_args, dir) },
	{ "rate", 0, "RATE", "what the way to the target should carry (what the interface does)", set_rate, 0 },
	{ "no-speed", 0, NULL, "do not measure processor and disk", opt_true,
	    offsetof(struct doctor_args, no_speed) },
	{ "json", 0, NULL, "one JSON object on stdout", opt_true, offsetof(struct doctor_args, connect.talk.json) },
	{ .name = NULL },
};

const struct opt *const doctor_options[] = { own_options, connect_options, NULL };

static int examine(const struct doctor_args *a, struct doctor *d, struct ptcp_err *e)
{
	int r;

	doctor_host(d);
	if ((r = doctor_path(d, a->target, a->rate_bps, &a->connect, e)) < 0 ||
	    (r = doctor_identity(d, a->target, &a->connect, e)) < 0)
		return r;
	if (a->no_speed)
		return 0;
	if ((r = doctor_speed(d, e)) < 0)
		return r;
	return doctor_disk(d, a->dir, e);
}

int cmd_doctor(const struct command *c, int argc, char **argv)
{
	struct doctor_args a = { .dir = "." };
	struct doctor d = { .root = "" };
	struct ptcp_err e = { .code = 0 };
	int n = 0, r;

	connect_init(&a.connect);
	r = options_parse(c, argc, argv, &a, &n, &e);
	if (r == 0 && n > 1)
		r = err_set(&e, PTCP_EUSAGE, "%s: takes one target, or none (leave the others out)", c->name);
	a.target = n == 1 ? argv[0] : NULL;
	if (r == 0)
		r = examine(&a, &d, &e);
	if (r == 0 && a.connect.talk.json)
		r = doctor_json(&d, &e);
	else if (r == 0)
		doctor_text(&d);
	connect_fini(&a.connect);
	return command_end(c, r, &e);
}
