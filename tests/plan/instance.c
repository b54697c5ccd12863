#include "instance.h"

#include <stdlib.h>
#include <string.h>

/* splitmix64 */
uint64_t inst_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

int inst_between(uint64_t *state, int lo, int hi)
{
	return lo + (int)(inst_random(state) % (uint64_t)(hi - lo + 1));
}

static bool chance(uint64_t *s, double p)
{
	return (double)(inst_random(s) >> 11) / 9007199254740992.0 < p;
}

/* A rate from lo on, or rarely, 0. */
static int limit(uint64_t *s, int lo, int hi)
{
	return chance(s, 0.05) ? 0 : inst_between(s, lo, hi);
}

static void make_hosts(struct inst *in, const struct inst_kind *k, uint64_t *s)
{
	int sources = inst_between(s, 1, k->hosts > 2 ? k->hosts * 2 / 3 : 1), h;

	for (h = 0; h < k->hosts; h++) {
		in->data[h] = in->storage[h] = in->ingress[h] = in->egress[h] = NONE;
		if (h >= 1 && h <= sources)
			in->data[h] = inst_between(s, 1, 5000) * (k->load > 0 ? k->load : 1);
		in->relay[h] = h > sources || (h >= 1 && (k->relays || chance(s, 0.4)));
		if (in->relay[h] && k->storage && chance(s, 0.6))
			in->storage[h] = inst_between(s, 0, 3) == 0 ? 0 : inst_between(s, 1, 2000);
		if (k->limits && chance(s, 0.3))
			in->ingress[h] = limit(s, 50, 3000);
		if (k->limits && chance(s, 0.3))
			in->egress[h] = limit(s, 50, 3000);
	}
}

static void make_groups(struct inst *in, const struct inst_kind *k, uint64_t *s)
{
	int g, i, j, l;

	for (g = 0; g < k->groups; g++) {
		struct inst_group *gr = &in->group[g];
		int want = inst_between(s, 2, GROUP_LINKS_MAX);

		gr->rate = limit(s, 50, 1500);
		for (i = 0; i < want; i++) {
			l = inst_between(s, 0, in->nlinks - 1);
			for (j = 0; j < gr->nlinks && gr->link[j] != l; j++)
				;
			if (j == gr->nlinks)
				gr->link[gr->nlinks++] = l;
		}
	}
	in->ngroups = k->groups;
}

/* of_link windows for each of some links, each in its own part of the span. */
static void make_series(struct inst *in, const struct inst_kind *k, uint64_t *s)
{
	int links = k->windows / k->of_link < in->nlinks ? k->windows / k->of_link : in->nlinks, from, until, i;

	while (in->nwindows < links * k->of_link) {
		int link = inst_between(s, 0, in->nlinks - 1);

		for (i = 0; i < in->nwindows && in->window[i].link != link; i++)
			;
		if (i < in->nwindows)
			continue;
		for (i = 0; i < k->of_link; i++) {
			from = inst_between(s, k->span * i / k->of_link, k->span * (i + 1) / k->of_link - 1);
			until = inst_between(s, from + 1, k->span * (i + 1) / k->of_link);
			in->window[in->nwindows++] = (struct inst_window){ link, from, until,
				chance(s, 0.5) ? 0 : inst_between(s, 0, 1500) };
		}
	}
}

static void make_windows(struct inst *in, const struct inst_kind *k, uint64_t *s)
{
	int w, i;

	for (w = 0; w < k->windows; w++) {
		struct inst_window *win = &in->window[in->nwindows];

		win->link = inst_between(s, 0, in->nlinks - 1);
		win->from = inst_between(s, 0, k->span);
		win->until = win->from + inst_between(s, 1, k->span);
		win->rate = chance(s, 0.5) ? 0 : inst_between(s, 0, 1500);
		for (i = 0; i < in->nwindows && in->window[i].link != win->link; i++)
			;
		in->nwindows += i == in->nwindows; /* one a link: none overlap */
	}
}

void inst_make(struct inst *in, const struct inst_kind *k, uint64_t seed)
{
	uint64_t s = seed;
	int i, j;

	memset(in, 0, sizeof *in);
	in->nhosts = k->hosts;
	make_hosts(in, k, &s);
	for (i = 0; i < k->hosts; i++)
		for (j = 0; j < k->hosts; j++)
			if (i != j && (chance(&s, k->density) || (j == 0 && chance(&s, 0.7))))
				in->link[in->nlinks++] = (struct inst_link){ i, j, limit(&s, 10, 1000) };
	if (in->nlinks == 0)
		in->link[in->nlinks++] = (struct inst_link){ 1, 0, 100 };
	make_groups(in, k, &s);
	if (k->of_link > 0)
		make_series(in, k, &s);
	else
		make_windows(in, k, &s);
}

struct inst_kind inst_draw(uint64_t seed, int lo, int hi)
{
	uint64_t s = seed ^ 0x5eed;
	struct inst_kind k = { .span = 60 };

	k.hosts = inst_between(&s, lo, hi);
	k.density = k.hosts <= 8 ? 0.6 : 5.0 / k.hosts;
	k.groups = chance(&s, 0.6) ? inst_between(&s, 1, k.hosts) : 0;
	k.windows = chance(&s, 0.4) ? inst_between(&s, 1, 6) : 0;
	k.storage = chance(&s, 0.5);
	k.limits = chance(&s, 0.5);
	return k;
}

static void print_host(FILE *f, const struct inst *in, int h)
{
	fprintf(f, "  H%d: {relay: %s", h, in->relay[h] ? "true" : "false");
	if (in->data[h] != NONE)
		fprintf(f, ", path: /data, data: %dMB", in->data[h]);
	if (in->storage[h] != NONE)
		fprintf(f, ", storage: %dMB", in->storage[h]);
	if (in->ingress[h] != NONE)
		fprintf(f, ", ingress: %dMbit/s", in->ingress[h]);
	if (in->egress[h] != NONE)
		fprintf(f, ", egress: %dMbit/s", in->egress[h]);
	fputs("}\n", f);
}

char *inst_text(const struct inst *in)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int i, j;

	fputs("destination: H0\nhosts:\n", f);
	for (i = 0; i < in->nhosts; i++)
		print_host(f, in, i);
	fputs("links:\n", f);
	for (i = 0; i < in->nlinks; i++)
		fprintf(f, "  - {from: H%d, to: H%d, rate: %dMbit/s}\n", in->link[i].from,
		    in->link[i].to, in->link[i].rate);
	if (in->ngroups > 0)
		fputs("shared:\n", f);
	for (i = 0; i < in->ngroups; i++) {
		fprintf(f, "  - {rate: %dMbit/s, links: [", in->group[i].rate);
		for (j = 0; j < in->group[i].nlinks; j++) {
			const struct inst_link *l = &in->link[in->group[i].link[j]];

			fprintf(f, "%sH%d>H%d", j > 0 ? ", " : "", l->from, l->to);
		}
		fputs("]}\n", f);
	}
	if (in->nwindows > 0)
		fputs("windows:\n", f);
	for (i = 0; i < in->nwindows; i++) {
		const struct inst_window *w = &in->window[i];
		const struct inst_link *l = &in->link[w->link];

		fprintf(f, "  - {link: H%d>H%d, from: %ds, until: %ds, rate: %dMbit/s}\n", l->from,
		    l->to, w->from, w->until, w->rate);
	}
	fclose(f);
	return text;
}
