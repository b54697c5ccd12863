/* Commands of the emulator's control socket. */
#include "emu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/clock.h"
#include "params.h"

static char *say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *say(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return text;
}

/* ------------------------------------------------------------- selecting */

/* Whether `word` means direction d of link l: "all", NAME, NAME/fwd, NAME/rev. */
static int means(const char *word, const struct topo_link *l, int d)
{
	size_t len = strlen(l->name);

	if (strcmp(word, "all") == 0 || strcmp(word, l->name) == 0)
		return 1;
	return strncmp(word, l->name, len) == 0 &&
	    strcmp(word + len, d ? "/rev" : "/fwd") == 0;
}

typedef void link_fn(struct emu *m, int link, struct link_conf *c);

/* Change c by "key=value" words; NULL or the complaint. */
static char *apply(struct link_conf *c, int n, char **settings)
{
	for (int i = 0; i < n; i++) {
		char key[16], *value = strchr(settings[i], '=');
		struct ptcp_err e;

		if (value == NULL)
			return say("error: \"%s\" should be key=value\n", settings[i]);
		snprintf(key, sizeof key, "%.*s", (int)(value - settings[i]), settings[i]);
		if (params_set(c, key, value + 1, &e) < 0)
			return say("error: %s\n", e.msg);
	}
	return NULL;
}

/* Call fn for each link meant, with its parameters changed by the settings. NULL, or
 * the complaint; then fn was called for none. */
static char *each_meant(struct emu *m, const char *word, link_fn *fn, int n, char **settings)
{
	struct link_conf c;
	char *error = apply(&(struct link_conf){ 0 }, n, settings);
	int found = 0;

	for (int i = 0; error == NULL && i < m->topo->links; i++)
		for (int d = 0; d <= m->topo->link[i].both; d++) {
			int at = emu_link(m->topo, i, d);

			if (!means(word, &m->topo->link[i], d))
				continue;
			c = m->net.link[at].link.conf;
			apply(&c, n, settings); /* what suits one link suits all */
			fn(m, at, &c);
			found = 1;
		}
	if (error == NULL && !found)
		error = say("error: there is no link \"%s\"\n", word);
	return error;
}

static uint64_t run_to_now(struct emu *m)
{
	uint64_t now_ns = vclock_tick(&m->clock, mono_now().ns, 0);

	if (now_ns > m->settled_ns)
		m->settled_ns = now_ns;
	net_run(&m->net, m->settled_ns);
	return m->settled_ns;
}

static void change(struct emu *m, int link, struct link_conf *c)
{
	net_change(&m->net, link, c, run_to_now(m));
}

static void cut(struct emu *m, int link, struct link_conf *c)
{
	(void)c;
	run_to_now(m);
	net_cut(&m->net, link);
}

static void restore(struct emu *m, int link, struct link_conf *c)
{
	(void)c;
	link_restore(&m->net.link[link].link);
}

/* ----------------------------------------------------------------- stats */

static void emu_stats(FILE *f, struct emu *m)
{
	const struct vclock *k = &m->clock;
	double uptime_s = (double)(k->seen_ns - k->started_ns) / 1e9;
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	fprintf(f, "emulator uptime_s=%.3f stalls=%llu stalled_ms=%.3f longest_ms=%.3f "
	    "scheduling=%s cpu_s=%.3f delivered=%llu late_mean_us=%.1f late_max_us=%.1f "
	    "late_1ms=%llu missed=%llu refused=%llu strange=%llu unroutable=%llu\n",
	    uptime_s, (unsigned long long)k->stalls, (double)k->stalled_ns / 1e6,
	    (double)k->longest_ns / 1e6, m->scheduling,
	    (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
	    (unsigned long long)m->delivered,
	    m->delivered ? (double)m->late_sum_ns / 1e3 / (double)m->delivered : 0,
	    (double)m->late_max_ns / 1e3, (unsigned long long)m->late_1ms,
	    (unsigned long long)packetio_missed(m->io), (unsigned long long)m->refused,
	    (unsigned long long)m->strange, (unsigned long long)m->net.unroutable);
}

static void link_stats(FILE *f, struct emu *m, int i, int d)
{
	const struct topo_link *tl = &m->topo->link[i];
	const struct link *l = &m->net.link[emu_link(m->topo, i, d)].link;
	const struct link_stats *s = &l->stats;
	char params[300];

	params_text(params, sizeof params, &l->conf);
	fprintf(f, "link=%s/%s from=%s to=%s state=%s in_packets=%llu in_bytes=%llu "
	    "out_packets=%llu out_bytes=%llu drop_queue=%llu drop_red=%llu drop_loss=%llu "
	    "drop_cut=%llu drop_police=%llu waiting=%llu most_waiting=%llu travelling=%llu busy_ms=%.3f %s\n",
	    tl->name, d ? "rev" : "fwd", m->topo->node[tl->ends[d]].name,
	    m->topo->node[tl->ends[1 - d]].name, l->cut ? "cut" : "up",
	    (unsigned long long)s->in_packets, (unsigned long long)s->in_bytes,
	    (unsigned long long)s->out_packets, (unsigned long long)s->out_bytes,
	    (unsigned long long)s->drop_queue, (unsigned long long)s->drop_red,
	    (unsigned long long)s->drop_loss, (unsigned long long)s->drop_cut,
	    (unsigned long long)s->drop_police,
	    (unsigned long long)l->waiting, (unsigned long long)s->most_waiting,
	    (unsigned long long)l->travelling, (double)s->busy_ns / 1e6, params);
}

static char *stats(struct emu *m, const char *word)
{
	char *text = NULL;
	size_t bytes;
	int found = strcmp(word, "all") == 0;
	FILE *f = open_memstream(&text, &bytes);

	if (f == NULL)
		return NULL;
	run_to_now(m);
	fputs("ok\n", f);
	emu_stats(f, m);
	for (int i = 0; i < m->topo->links; i++)
		for (int d = 0; d <= m->topo->link[i].both; d++)
			if (means(word, &m->topo->link[i], d)) {
				link_stats(f, m, i, d);
				found = 1;
			}
	if (fclose(f) != 0 || !found) {
		free(text);
		return say("error: there is no link \"%s\"\n", word);
	}
	return text;
}

char *emu_command(void *emu, int n, char **words)
{
	struct emu *m = emu;
	char *error;

	if (n >= 1 && n <= 2 && strcmp(words[0], "stats") == 0)
		return stats(m, n == 2 ? words[1] : "all");
	if (n >= 3 && strcmp(words[0], "set") == 0)
		error = each_meant(m, words[1], change, n - 2, words + 2);
	else if (n == 2 && strcmp(words[0], "cut") == 0)
		error = each_meant(m, words[1], cut, 0, NULL);
	else if (n == 2 && strcmp(words[0], "restore") == 0)
		error = each_meant(m, words[1], restore, 0, NULL);
	else
		error = say("error: unknown command\n");
	return error ? error : say("ok\n");
}
