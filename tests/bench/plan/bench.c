/* make plan-bench: how long planning takes, beside the plain formulation.
 *
 *   bench [LIMIT_S [TEXT]]
 *
 * Full meshes as in the table below, one thread each; CPU seconds, and the most
 * memory of the process that planned. "all arcs" is the same programme without
 * columns left out at first. The plain formulation (tests/plan/plain.h) has a
 * variable for every link and slot; it is given LIMIT_S seconds (default 60). TEXT: only the rows whose names
 * contain the text. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "instance.h"
#include "plain.h"
#include "plan/plan.h"

#define SLOTS 200

struct row {
	const char *name;
	struct inst_kind kind;
};

static const struct row rows[] = {
	{ "20 hosts", { .hosts = 20, .density = 1 } },
	{ "40 hosts", { .hosts = 40, .density = 1 } },
	{ "100 hosts", { .hosts = 100, .density = 1 } },
	{ "100 hosts, host limits", { .hosts = 100, .density = 1, .limits = true } },
	{ "100 hosts, 200 shared", { .hosts = 100, .density = 1, .groups = 200 } },
	{ "100 hosts, 200 shared, limits", { .hosts = 100, .density = 1, .groups = 200,
	    .limits = true } },
	{ "100 hosts, storage", { .hosts = 100, .density = 1, .storage = true } },
	{ "100 hosts, 8 windows", { .hosts = 100, .density = 1, .windows = 8, .span = 60 } },
	{ "20 hosts, 200 windows", { .hosts = 20, .density = 1, .windows = 200, .span = 20 } },
	{ "50 hosts, 40 windows", { .hosts = 50, .density = 1, .windows = 40, .span = 20 } },
	{ "20 relays, 200 windows", { .hosts = 20, .density = 1, .windows = 200, .of_link = 10, .span = 200,
	    .load = 10, .relays = true } },
	{ "50 relays, 40 windows", { .hosts = 50, .density = 1, .windows = 40, .of_link = 20, .span = 200,
	    .load = 10, .relays = true } },
	{ "1,000 relays, 10 links each, 8 windows", { .hosts = 1000, .density = 0.01, .windows = 8,
	    .of_link = 4, .span = 60, .relays = true } },
	{ "1,000 hosts, 10 links each", { .hosts = 1000, .density = 0.01 } },
	{ "200 hosts", { .hosts = 200, .density = 1 } },
	{ "200 hosts, 200 shared, limits", { .hosts = 200, .density = 1, .groups = 200,
	    .limits = true } },
};

static struct inst in;

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

enum what { FLUID, FLUID_ALL_ARCS, COORDINATED, COORDINATED_PLAIN, FLUID_PLAIN };

/* The result of one measurement, from the child that made it. */
struct link_table {
	double cpu_s, makespan_s, bound_s, relayed_gap;
	long memory_mib;
	int code;
};

static void plan_one(enum what what, double slot_s, struct link_table *t)
{
	struct plan_tuning tuning;
	struct ptcp_plan_opts opts;
	struct ptcp_plan_info info;
	struct ptcp_overlay *o;
	struct ptcp_plan *p;
	struct ptcp_err e;
	char *text = inst_text(&in);
	double start;

	if (ptcp_overlay_parse(&o, text, strlen(text), "bench", &e) < 0)
		exit(1);
	plan_tuning_init(&tuning);
	tuning.all_arcs = what == FLUID_ALL_ARCS;
	ptcp_plan_opts_init(&opts);
	opts.method = what == COORDINATED ? PTCP_PLAN_COORDINATED : PTCP_PLAN_PIPELINED;
	opts.slot_s = slot_s;
	start = cpu_s();
	t->code = plan_make(&p, o, &opts, &tuning, &e);
	t->cpu_s = cpu_s() - start;
	if (t->code < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return;
	}
	ptcp_plan_info(p, &info);
	t->makespan_s = info.makespan_s;
	t->bound_s = info.bound_s;
	t->relayed_gap = (info.relayed_bytes - info.relayed_bound_bytes) / info.data_bytes;
}

static void plain_one(enum what what, double slot_s, double fluid_s, struct link_table *t)
{
	double start = cpu_s();
	struct plain p;
	int slots = (int)(fluid_s / slot_s) + 1;

	if (what == FLUID_PLAIN)
		plain_fluid(&in, 1, NULL, &p);
	else
		plain_slots(&in, slot_s, slots, slots + 1, 1, NULL, &p);
	t->cpu_s = cpu_s() - start;
	t->makespan_s = t->bound_s = p.makespan_s;
	t->code = p.feasible ? 0 : -1;
}

/* Each in a process of its own, so that memory is its own; 0 if it took too long. */
static int measure(enum what what, double slot_s, double fluid_s, unsigned limit_s,
    struct link_table *t)
{
	struct rusage u;
	int pipes[2];
	pid_t pid;
	int status;

	if (pipe(pipes) < 0)
		exit(1);
	fflush(stdout);
	if ((pid = fork()) == 0) {
		memset(t, 0, sizeof *t);
		alarm(limit_s);
		if (what >= COORDINATED_PLAIN)
			plain_one(what, slot_s, fluid_s, t);
		else
			plan_one(what, slot_s, t);
		_exit(write(pipes[1], t, sizeof *t) == sizeof *t ? 0 : 1);
	}
	close(pipes[1]);
	memset(t, 0, sizeof *t);
	status = read(pipes[0], t, sizeof *t) == sizeof *t;
	close(pipes[0]);
	wait4(pid, NULL, 0, &u);
	t->memory_mib = u.ru_maxrss / 1024;
	return status;
}

static void show(const char *name, int done, const struct link_table *t, unsigned limit_s)
{
	if (!done)
		printf("    %-34s over %u s (or over memory)   %5ld MiB\n", name, limit_s,
		    t->memory_mib);
	else
		printf("    %-34s %8.3f s CPU %5ld MiB  makespan %.6f s  bound %.6f  relayed gap %.2g\n",
		    name, t->cpu_s, t->memory_mib, t->makespan_s, t->bound_s, t->relayed_gap);
}

int main(int argc, char **argv)
{
	unsigned limit = argc > 1 ? (unsigned)atoi(argv[1]) : 60;
	struct link_table t, fluid;
	size_t i;
	int done;

	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (argc > 2 && strstr(rows[i].name, argv[2]) == NULL)
			continue;
		inst_make(&in, &rows[i].kind, 1);
		printf("%s (%d links)\n", rows[i].name, in.nlinks);
		done = measure(FLUID, 0, 0, 600, &fluid);
		show("pipelined", done, &fluid, 600);
		show("pipelined, all arcs", measure(FLUID_ALL_ARCS, 0, 0, 600, &t), &t, 600);
		done = measure(FLUID_PLAIN, 0, 0, limit, &t);
		show("pipelined, plain", done, &t, limit);
		done = measure(COORDINATED, fluid.makespan_s / (SLOTS - 1.5), 0, 600, &t);
		show("coordinated, 200 slots", done, &t, 600);
		done = measure(COORDINATED_PLAIN, fluid.makespan_s / (SLOTS - 1.5),
		    fluid.makespan_s, limit, &t);
		show("coordinated, 200 slots, plain", done, &t, limit);
	}
	return 0;
}
