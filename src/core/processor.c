#include "core/processor.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>

#define WAIT_RATIO 4.0      /* waiting, in units of the time that threads ran, */
#define WAIT_MIN_RATIO 0.25 /* waiting, in units of the time since the latest call */

/* Adds the times of one thread. */
static void add_thread(const char *id, double *ran_s, double *waited_s)
{
	char path[64];
	unsigned long long ran_ns, waited_ns;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", id);
	if ((f = fopen(path, "re")) == NULL)
		return;
	if (fscanf(f, "%llu %llu", &ran_ns, &waited_ns) == 2) {
		*ran_s += (double)ran_ns / 1e9;
		*waited_s += (double)waited_ns / 1e9;
	}
	fclose(f);
}

bool processor_is_starved(struct processor *p, double now_s)
{
	struct processor now = { .at_s = now_s };
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;
	double ran_s, waited_s, passed_s = now_s - p->at_s;
	bool known = p->ran_s > 0;

	if (d == NULL)
		return false;
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			add_thread(e->d_name, &now.ran_s, &now.waited_s);
	closedir(d);
	ran_s = fmax(0, now.ran_s - p->ran_s); /* less than 0: threads have ended */
	waited_s = now.waited_s - p->waited_s;
	*p = now;
	return known && waited_s > WAIT_MIN_RATIO * passed_s && waited_s > WAIT_RATIO * ran_s;
}
