/* ptcp doctor: causes of slow transfers on this host or on a path, and fixes. */
#include <stdio.h>
#include <string.h>

#include "cli/client_opts.h"
#include "cli/doctor/doctor.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "core/err.h"
#include "core/units.h"

struct doctor_args {
	struct client_opts connect; /* first */
	bool no_speed, check;
	const char *dir;
	double rate_bps;
	const char *target;
	struct doctor_movers movers;
	const char *probe;
};

static int set_rate(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	uint64_t bps;

	if (units_parse_rate(text, &bps) < 0 || bps == 0)
		return opt_reject(o, text, e, "not a rate above 0 (such as 10Gbit/s)");
	((struct doctor_args *)args)->rate_bps = (double)bps;
	return 0;
}

static int add_host(void *args, const struct opt *o, const char *part, struct ptcp_err *e)
{
	struct doctor_movers *m = &((struct doctor_args *)args)->movers;

	if (part[0] == '-')
		return opt_reject(o, part, e, "not the name of a host (such as node1)");
	return opt_append_copy(&m->host, &m->n_hosts, part, e);
}

static int set_hosts(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	return opt_each(args, o, text, e, add_host);
}

#define AT(member) offsetof(struct doctor_args, member)

static const struct opt doctor_options[] = {
	{ "dir", 0, "DIR", "directory for the disk measurement (default: .)", opt_text, AT(dir), 0, 0 },
	{ "rate", 0, "RATE", "desired rate of the path (default: the speed of the interface)", set_rate, 0, 0, 0 },
	{ "no-speed", 0, NULL, "do not measure processor and disk", opt_true, AT(no_speed), 0, 0 },
	{ "movers", 0, "COMMAND", "check that the hosts on which this command starts movers see the directory of --dir",
	    opt_text, AT(movers.command), 0, 0 },
	{ "mover-hosts", 0, "HOST,..", "with --movers: run the command once per host, {host} replaced",
	    set_hosts, 0, 0, 0 },
	{ "mover-ptcp", 0, "PATH", "ptcp on the hosts of the movers (default: the path of this program)", opt_text,
	    AT(movers.ptcp), 0, 0 },
	{ "probe", 0, "FOLDER", "what --movers runs on each host: print what it sees there", opt_text,
	    AT(probe), 0, 0 },
	{ "check", 0, NULL, "exit with status 1 if a finding is bad", opt_true, AT(check), 0, 0 },
	{ "json", 0, NULL, "print a JSON object on standard output", opt_true, AT(connect.log.json), 0, 0 },
	{ .name = NULL },
};

static void tally(const struct doctor *d, size_t count[3])
{
	size_t i;

	count[0] = count[1] = count[2] = 0;
	for (i = 0; i < d->n; i++)
		count[d->of[i].verdict]++;
}

void doctor_text(const struct doctor *d)
{
	size_t i, count[3];

	for (i = 0; i < d->n; i++) {
		const struct finding *f = &d->of[i];

		printf("%-4s  %-18s  %s\n", verdict_name(f->verdict), f->name, f->found);
		if (f->fix[0] != '\0')
			printf("      %-18s  -> %s\n", "", f->fix);
	}
	tally(d, count);
	printf("\n%zu ok, %zu warn, %zu bad\n", count[0], count[1], count[2]);
}

static json_t *finding_json(const struct finding *f)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:s?, s:s?}", "name", f->name, "verdict",
	    verdict_name(f->verdict), "found", f->found, "value",
	    f->unit != NULL ? json_real(f->value) : json_null(), "unit", f->unit, "fix",
	    f->fix[0] != '\0' ? f->fix : NULL);
}

int doctor_json(const struct doctor *d, struct ptcp_err *e)
{
	json_t *list = json_array();
	size_t i, count[3];

	for (i = 0; i < d->n; i++)
		json_array_append_new(list, finding_json(&d->of[i]));
	tally(d, count);
	return json_result(json_pack("{s:o, s:o, s:o, s:o}", "findings", json_whole(list, d->n), "ok",
	    json_count(count[0]), "warn", json_count(count[1]), "bad", json_count(count[2])), e);
}

static int examine(const struct doctor_args *a, struct doctor *d, struct ptcp_err *e)
{
	int r;

	if (a->movers.command != NULL)
		return doctor_movers(d, &a->movers, a->dir, e);
	doctor_server(d);
	doctor_room(d, a->dir);
	doctor_file_system(d, a->dir);
	doctor_host(d);
	if ((r = doctor_path(d, a->target, a->rate_bps, &a->connect.transfer, e)) < 0 ||
	    (r = doctor_identity(d, a->target, &a->connect.transfer, e)) < 0)
		return r;
	if (a->no_speed)
		return 0;
	if ((r = doctor_speed(d, e)) < 0)
		return r;
	return doctor_disk(d, a->dir, e);
}

/* The rules of --movers are those of a transfer. */
static int check_movers(struct doctor_args *a, char *own, size_t cap, struct ptcp_err *e)
{
	const struct doctor_movers *m = &a->movers;

	if (m->command == NULL && (m->n_hosts > 0 || m->ptcp != NULL))
		return err_set(e, PTCP_EUSAGE, "--mover-hosts, --mover-ptcp: only with --movers (give the command)");
	if (m->command != NULL && (strstr(m->command, "{host}") != NULL) != (m->n_hosts > 0))
		return err_set(e, PTCP_EUSAGE,
		    "--movers: {host} and --mover-hosts belong together (give both, or none)");
	if (m->command != NULL && a->target != NULL)
		return err_set(e, PTCP_EUSAGE,
		    "--movers: checks a directory, not a path to %.100s (leave one of them out)", a->target);
	if (m->ptcp == NULL && (a->movers.ptcp = process_own_path(own, cap)) == NULL)
		a->movers.ptcp = "ptcp";
	return 0;
}

/* Status 1, without a sentence: the findings are the sentences. */
static int status_of(const struct doctor_args *a, const struct doctor *d)
{
	size_t count[3];

	tally(d, count);
	return a->check && count[2] > 0 ? EXIT_FAILED : 0;
}

static int run_doctor(const struct command *c, int argc, char **argv)
{
	struct doctor_args a;
	struct doctor d = { .root = "" };
	struct ptcp_err e = { .code = 0 };
	char own[PTCP_PATH_BYTES];
	int n, r;

	memset(&a, 0, sizeof a);
	a.dir = ".";
	if ((r = connect_parse(&a.connect, c, argc, argv, &n, NULL, &e)) == 0) {
		if (n == 1 && (argv[0][0] == '/' || argv[0][0] == '.'))
			a.dir = argv[0];
		else if (n == 1)
			a.target = argv[0];
		if ((r = check_movers(&a, own, sizeof own, &e)) == 0 && a.probe == NULL)
			r = examine(&a, &d, &e);
	}
	if (r == 0 && a.probe != NULL)
		doctor_probe(a.probe);
	else if (r == 0 && a.connect.log.json)
		r = doctor_json(&d, &e);
	else if (r == 0)
		doctor_text(&d);
	opt_copies_free(&a.movers.host, &a.movers.n_hosts);
	client_opts_fini(&a.connect);
	return r == 0 ? status_of(&a, &d) : command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(doctor_options), GROUP_CONNECTION, GROUP_END };

const struct command command_doctor = { "doctor", "[options] [TARGET|DIRECTORY]",
	"find causes of slow transfers and suggest fixes", run_doctor, tables, 0, 1, "takes at most one target" };
