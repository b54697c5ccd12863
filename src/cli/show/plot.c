#include "cli/show/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/process.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"

extern char **environ;

void plot_begin(FILE *f, const char *file, size_t width, size_t height)
{
	fprintf(f, "set terminal svg size %zu,%zu dynamic noenhanced background rgb 'white'\nset output '", width,
	    height);
	for (; *file != '\0'; file++) {
		if (*file == '\'') /* gnuplot doubles quotes within quotes */
			putc('\'', f);
		putc(*file, f);
	}
	fprintf(f, "'\n");
}

double plot_unit(double max, const char **prefix)
{
	static const struct { const char *prefix; double unit; } units[] = { { "T", 1e12 }, { "G", 1e9 }, { "M", 1e6 },
		{ "k", 1e3 }, { "", 1 } };
	size_t i = 0;

	while (units[i].unit > 1 && max < units[i].unit)
		i++;
	*prefix = units[i].prefix;
	return units[i].unit;
}

void plot_answer(FILE *f, double x, double max, const char *label)
{
	bool right = x > max / 2; /* towards the half with more room */

	fprintf(f, "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead front dt 2 lw 2 lc rgb '" PLOT_ANSWER "'\n"
	    "set label '%s' at %.9g, graph 1 %s offset 0,0.7 textcolor rgb '" PLOT_ANSWER "'\nset tmargin 5\n"
	    "set title offset 0,1\n", x, x, label, x, right ? "right" : "left");
}

void plot_counts(FILE *f, char axis, unsigned max)
{
	fprintf(f, "set %crange [0:%u]\nset %ctics 0,%u\n", axis, max + max / 20 + 1, axis, max / 10 + 1);
}

/* The last message of gnuplot, escaped. */
static const char *last_message(FILE *messages, char out[TEXT_NAME_BYTES])
{
	char line[200];

	strcpy(out, "no message");
	rewind(messages);
	while (fgets(line, sizeof line, messages) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[strspn(line, " \t^")] != '\0')
			text_escape(out, TEXT_NAME_BYTES, line + strspn(line, " \t"));
	}
	return out;
}

/* `messages` takes gnuplot's stderr: our stderr has only our lines. */
static int run_gnuplot(const char *script, const char *shown, FILE *messages, struct ptcp_err *e)
{
	char *argv[] = { "gnuplot", (char *)script, NULL };
	char message[TEXT_NAME_BYTES];
	posix_spawn_file_actions_t actions;
	int r, status;
	pid_t pid;

	if ((r = posix_spawn_file_actions_init(&actions)) != 0)
		return err_nomem(e);
	if ((r = posix_spawn_file_actions_adddup2(&actions, fileno(messages), 2)) == 0)
		r = posix_spawnp(&pid, "gnuplot", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r == ENOENT)
		return err_set(e, PTCP_EIO, "--plot %s: gnuplot is not installed (install gnuplot, or "
		    "leave --plot out)", shown);
	if (r != 0)
		return err_set(e, PTCP_EIO, "--plot %s: starting gnuplot: %s", shown, strerror(r));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, PTCP_EIO, "--plot %s: waiting for gnuplot", shown);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, PTCP_EIO, "--plot %s: gnuplot: %s (check that the file is "
		    "writable)", shown, last_message(messages, message));
	return 0;
}

/* gnuplot reads a file instead of a pipe: writing to a closed pipe would fail. */
int plot_draw(const char *file, plot_fn *write_script, const void *data, struct ptcp_err *e)
{
	const char *dir = getenv("TMPDIR");
	char *script = NULL;
	char shown[TEXT_NAME_BYTES];
	FILE *f = NULL, *messages;
	int fd, failed, r;

	text_escape(shown, sizeof shown, file);
	if (asprintf(&script, "%s/ptcp-plot-XXXXXX", dir != NULL && *dir != '\0' ? dir : "/tmp") < 0)
		return err_nomem(e);
	if ((fd = mkostemp(script, O_CLOEXEC)) >= 0 && (f = fd_file(&fd, "w")) == NULL)
		unlink(script);
	if (f == NULL) {
		r = err_sys(e, PTCP_EIO, "--plot %s: a temporary file", shown);
		free(script);
		return r;
	}
	r = write_script(f, file, data) < 0 ? err_nomem(e) : 0;
	failed = ferror(f);
	if ((fclose(f) != 0 || failed) && r == 0)
		r = err_sys(e, PTCP_EIO, "--plot %s: writing %s", shown, script);
	if (r == 0 && (messages = tmpfile()) == NULL)
		r = err_sys(e, PTCP_EIO, "--plot %s: a temporary file", shown);
	else if (r == 0) {
		r = run_gnuplot(script, shown, messages, e);
		fclose(messages);
	}
	unlink(script);
	free(script);
	return process_result(r, e); /* a terminal's SIGINT also ends gnuplot */
}

unsigned plot_color(size_t i, size_t n)
{
	static const double value[] = { 0.85, 0.5, 0.8 }, saturation[] = { 0.8, 0.9, 0.4 };
	double hue = fmod((double)i / (double)n + 0.58, 1) * 6, v = value[i % 3], s = saturation[i % 3];
	double rgb[3];
	int k;

	for (k = 0; k < 3; k++) {
		double x = fmod(hue + (double[]){ 5, 3, 1 }[k], 6);

		rgb[k] = v - v * s * fmax(0, fmin(fmin(x, 4 - x), 1));
	}
	return (unsigned)(255 * rgb[0]) << 16 | (unsigned)(255 * rgb[1]) << 8 | (unsigned)(255 * rgb[2]);
}
