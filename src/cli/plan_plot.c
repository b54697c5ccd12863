#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/plan_show.h"
#include "core/err.h"
#include "core/text.h"

extern char **environ;

static const char *host_name(const struct ptcp_overlay *o, int host)
{
	struct ptcp_overlay_host h;

	ptcp_overlay_host(o, (size_t)host, &h);
	return h.name;
}

/* A gnuplot string: names cannot hold a quote, a file name can. */
static void quoted(FILE *f, const char *text)
{
	putc('\'', f);
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			putc('\'', f);
		putc(*text, f);
	}
	putc('\'', f);
}

/* Rows of the picture: links in use, from the top in the order of first use. */
static size_t number_links(const struct plan_shown *s, int *row)
{
	size_t i, n = 0, hosts = ptcp_overlay_hosts(s->overlay);
	struct ptcp_plan_step st;

	for (i = 0; i < hosts * hosts; i++)
		row[i] = -1;
	for (i = 0; i < ptcp_plan_steps(s->plan); i++) {
		int *r;

		ptcp_plan_step(s->plan, i, &st);
		r = &row[(size_t)st.from * hosts + (size_t)st.to];
		if (*r < 0)
			*r = (int)n++;
	}
	return n;
}

static void write_links(FILE *f, const struct plan_shown *s, const int *row, size_t rows)
{
	size_t i, hosts = ptcp_overlay_hosts(s->overlay), n = 0;
	struct ptcp_plan_step st;

	fprintf(f, "$links << EOD\n");
	for (i = 0; i < ptcp_plan_steps(s->plan); i++) {
		ptcp_plan_step(s->plan, i, &st);
		fprintf(f, "%.9g %d %.9g %d\n", st.start_s,
		    row[(size_t)st.from * hosts + (size_t)st.to], st.end_s - st.start_s,
		    st.source);
	}
	fprintf(f, "EOD\nset yrange [%zu.5:-0.5]\nset ytics (", rows > 0 ? rows - 1 : 0);
	for (i = 0; i < hosts * hosts; i++)
		if (row[i] >= 0)
			fprintf(f, "%s'%s>%s' %d", n++ == 0 ? "" : ", ",
			    host_name(s->overlay, (int)(i / hosts)),
			    host_name(s->overlay, (int)(i % hosts)), row[i]);
	fprintf(f, ")\n");
}

struct held {
	double t, rate;
};

static int by_time(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return x->t < y->t ? -1 : x->t > y->t;
}

/* What a host holds for others over time, as a line of straight pieces. */
static size_t write_held(FILE *f, const struct plan_shown *s, int host, struct held *h)
{
	struct ptcp_plan_piece p;
	size_t i, k, n = 0;
	double held = 0, rate = 0, b;

	for (i = 0; i < ptcp_plan_pieces(s->plan); i++) {
		ptcp_plan_piece(s->plan, i, &p);
		for (k = 1; k < p.nhops; k++) {
			const struct ptcp_plan_hop *in = &p.hops[k - 1], *out = &p.hops[k];

			if (in->to != host)
				continue;
			b = (double)p.bytes;
			h[n++] = (struct held){ in->start_s, b / (in->end_s - in->start_s) };
			h[n++] = (struct held){ in->end_s, -b / (in->end_s - in->start_s) };
			h[n++] = (struct held){ out->start_s, -b / (out->end_s - out->start_s) };
			h[n++] = (struct held){ out->end_s, b / (out->end_s - out->start_s) };
		}
	}
	if (n == 0)
		return 0;
	qsort(h, n, sizeof *h, by_time);
	fprintf(f, "$held%d << EOD\n0 0\n", host);
	for (i = 0; i < n; i++) {
		if (i > 0)
			held += rate * (h[i].t - h[i - 1].t);
		fprintf(f, "%.9g %.9g\n", h[i].t, held > 0 ? held : 0);
		rate += h[i].rate;
	}
	fprintf(f, "EOD\n");
	return n;
}

static int write_script(FILE *f, const char *file, const struct plan_shown *s)
{
	size_t hosts = ptcp_overlay_hosts(s->overlay), rows, i, hops = 0, shown = 0;
	int *row = calloc(hosts * hosts + 1, sizeof *row);
	char *holds = calloc(hosts + 1, 1);
	struct ptcp_plan_info info;
	struct ptcp_plan_piece p;
	struct held *h;

	for (i = 0; i < ptcp_plan_pieces(s->plan); i++) {
		ptcp_plan_piece(s->plan, i, &p);
		hops += p.nhops;
	}
	h = calloc(4 * hops + 1, sizeof *h);
	if (row == NULL || holds == NULL || h == NULL) {
		free(row);
		free(holds);
		free(h);
		return -1;
	}
	ptcp_plan_info(s->plan, &info);
	rows = number_links(s, row);
	fprintf(f, "set terminal svg size 900,%zu dynamic noenhanced\nset output ",
	    360 + 18 * rows);
	quoted(f, file);
	fprintf(f, "\nset multiplot layout 2,1\nset xrange [0:%.9g]\nset xlabel 'time (s)'\n"
	    "set grid x\nset key outside\nset title '%s: %.6g s'\n", info.makespan_s > 0 ?
	    info.makespan_s : 1, ptcp_plan_method_name(info.method), info.makespan_s);
	write_links(f, s, row, rows);
	fprintf(f, "plot ");
	for (i = 0; i < hosts; i++) {
		struct ptcp_overlay_host host;

		ptcp_overlay_host(s->overlay, i, &host);
		if (host.data_bytes > 0)
			fprintf(f, "%s$links using ($4==%zu?$1:NaN):2:3:(0) with vectors nohead lw 8 "
			    "title '%s'", shown++ == 0 ? "" : ", ", i, host.name);
	}
	fprintf(f, "%s\nset title 'held for others'\nunset yrange\nset yrange [0:*]\nset ytics auto\n"
	    "set format y '%%.1s %%cB'\n", shown == 0 ? "NaN notitle" : "");
	for (i = 0; i < hosts; i++)
		holds[i] = write_held(f, s, (int)i, h) > 0;
	fprintf(f, "plot 0 notitle");
	for (i = 0; i < hosts; i++)
		if (holds[i])
			fprintf(f, ", $held%zu with lines lw 2 title '%s'", i,
			    host_name(s->overlay, (int)i));
	fprintf(f, "\nunset multiplot\n");
	free(row);
	free(holds);
	free(h);
	return 0;
}

/* The last line that is not blank, shown safely. */
static const char *last_words(FILE *said, char out[TEXT_NAME_BYTES])
{
	char line[200];

	strcpy(out, "no message");
	rewind(said);
	while (fgets(line, sizeof line, said) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[strspn(line, " \t^")] != '\0')
			text_escape(out, TEXT_NAME_BYTES, line + strspn(line, " \t"));
	}
	return out;
}

/* What gnuplot says goes into `said`, so that stderr has nothing but our lines. */
static int run_gnuplot(const char *script, const char *file, FILE *said, struct ptcp_err *e)
{
	char *argv[] = { "gnuplot", (char *)script, NULL };
	char words[TEXT_NAME_BYTES];
	posix_spawn_file_actions_t actions;
	int r, status;
	pid_t pid;

	if ((r = posix_spawn_file_actions_init(&actions)) != 0)
		return err_nomem(e);
	if ((r = posix_spawn_file_actions_adddup2(&actions, fileno(said), 2)) == 0)
		r = posix_spawnp(&pid, "gnuplot", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r == ENOENT)
		return err_set(e, PTCP_EIO, "--plot %s: gnuplot is not installed (install it, or "
		    "leave --plot out)", file);
	if (r != 0)
		return err_set(e, PTCP_EIO, "--plot %s: starting gnuplot: %s", file, strerror(r));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, PTCP_EIO, "--plot %s: waiting for gnuplot", file);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, PTCP_EIO, "--plot %s: gnuplot: %s (see that the file can be "
		    "written)", file, last_words(said, words));
	return 0;
}

/* gnuplot reads a file, not a pipe: a pipe it closes early would kill us. */
int plan_plot(const char *file, const struct plan_shown *s, struct ptcp_err *e)
{
	const char *dir = getenv("TMPDIR");
	char *script = NULL;
	char shown[TEXT_NAME_BYTES];
	FILE *f = NULL, *said;
	int fd, failed, r;

	text_escape(shown, sizeof shown, file);
	if (asprintf(&script, "%s/ptcp-plan-XXXXXX", dir != NULL && *dir != '\0' ? dir : "/tmp") < 0)
		return err_nomem(e);
	if ((fd = mkstemp(script)) < 0 || (f = fdopen(fd, "w")) == NULL) {
		r = err_sys(e, PTCP_EIO, "--plot %s: a temporary file", shown);
		if (fd >= 0) {
			close(fd);
			unlink(script);
		}
		free(script);
		return r;
	}
	r = write_script(f, file, s) < 0 ? err_nomem(e) : 0;
	failed = ferror(f);
	if ((fclose(f) != 0 || failed) && r == 0)
		r = err_sys(e, PTCP_EIO, "--plot %s: writing %s", shown, script);
	if (r == 0 && (said = tmpfile()) == NULL)
		r = err_sys(e, PTCP_EIO, "--plot %s: a temporary file", shown);
	else if (r == 0) {
		r = run_gnuplot(script, shown, said, e);
		fclose(said);
	}
	unlink(script);
	free(script);
	return r;
}
