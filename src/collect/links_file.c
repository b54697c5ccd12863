/* Estimates of links kept between runs: a file with a line per link,
 *
 *   HOST:PORT STREAMS WHEN RATE RATE_ERROR DELAY DELAY_ERROR MESSAGES FLAGS
 *
 * in seconds since 1970, bit/s, nanoseconds; "-" for an unknown error; flag 1: the delay is half of an
 * RTT. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "collect/links_impl.h"
#include "collect/local_host.h"
#include "core/atomic_file.h"
#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"
#include "core/userdir.h"

#define LINE_BYTES (LOCAL_HOST_ADDRESS_BYTES + 200)
#define RATE_MAX_BPS UINT64_C(1000000000000000)
#define DELAY_MAX_NS UINT64_C(3600000000000)
#define CLOCKS_DIFFER_S 60   /* tolerated step back of the clock */

static int failed(struct ptcp_err *e, const char *what, const char *file)
{
	char shown[TEXT_NAME_BYTES];

	return err_sys(e, PTCP_ECONFIG, "%s %s", what, text_escape(shown, sizeof shown, file));
}

/* ---- Lines ---- */

/* Parses the next field. UINT64_MAX: "-". */
static bool number(char **at, uint64_t most, uint64_t *out)
{
	char *word = strsep(at, " "), *end;

	if (word == NULL)
		return false;
	*out = UINT64_MAX;
	if (strcmp(word, "-") == 0)
		return true;
	errno = 0;
	if (word[0] < '0' || word[0] > '9')
		return false;
	*out = strtoull(word, &end, 10);
	return errno == 0 && *end == '\0' && *out <= most;
}

static double error_of(uint64_t v, double units)
{
	return v == UINT64_MAX ? NAN : (double)v / units;
}

/* Parses a line; returns its address, or NULL for a malformed or outdated line. */
static const char *parse(struct ptcp_link_estimate *m, char *line)
{
	uint64_t streams, when, rate, rate_error, delay, delay_error, messages, flags;
	char *at = line, *address;
	double age_s;

	line[strcspn(line, "\n")] = '\0';
	if ((address = strsep(&at, " ")) == NULL || !number(&at, PTCP_STREAMS_MAX, &streams) ||
	    !number(&at, INT64_MAX, &when) || !number(&at, RATE_MAX_BPS, &rate) ||
	    !number(&at, RATE_MAX_BPS, &rate_error) ||
	    !number(&at, DELAY_MAX_NS, &delay) || !number(&at, DELAY_MAX_NS, &delay_error) ||
	    !number(&at, UINT32_MAX, &messages) || !number(&at, 1, &flags) || at != NULL)
		return NULL;
	if (streams == UINT64_MAX || when == UINT64_MAX || rate == UINT64_MAX || rate == 0 || delay == UINT64_MAX ||
	    messages == UINT64_MAX || messages == 0 || flags == UINT64_MAX)
		return NULL;
	age_s = (double)((int64_t)time(NULL) - (int64_t)when);
	*m = (struct ptcp_link_estimate){ .state = PTCP_LINK_MEASURED, .rate_bps = (double)rate,
		.rate_error_bps = error_of(rate_error, 1), .delay_s = (double)delay / 1e9,
		.delay_error_s = error_of(delay_error, 1e9), .delay_from_round_trip = flags == 1, .r2_ratio = NAN,
		.messages = (unsigned)messages, .streams = (unsigned)streams, .messages_bound = NAN,
		.age_s = age_s > 0 ? age_s : 0 };
	return age_s >= -CLOCKS_DIFFER_S && age_s <= LINKS_OLD_S ? address : NULL;
}

static void put_error(FILE *f, double v, double units)
{
	if (v >= 0 && isfinite(v))
		fprintf(f, " %.0f", v * units);
	else
		fputs(" -", f);
}

static void put(FILE *f, const struct ptcp_links *s, const struct link_state *l)
{
	const struct ptcp_link_estimate *m = &l->estimate;
	char authority[LOCAL_HOST_ADDRESS_BYTES];
	struct ptcp_overlay_host to;

	ptcp_overlay_host(s->overlay, (size_t)l->of.to, &to);
	fprintf(f, "%s %u %" PRId64 " %.0f", local_host_authority(authority, to.address), m->streams,
	    (int64_t)time(NULL) - (int64_t)links_age_s(l), m->rate_bps);
	put_error(f, m->rate_error_bps, 1);
	fprintf(f, " %.0f", m->delay_s * 1e9);
	put_error(f, m->delay_error_s, 1e9);
	fprintf(f, " %u %d\n", m->messages, m->delay_from_round_trip ? 1 : 0);
}

/* ---- The file ---- */

/* The link from this host to an address, or NULL. */
static struct link_state *links_file_find(const struct ptcp_links *s, const char *address)
{
	char authority[LOCAL_HOST_ADDRESS_BYTES];
	struct ptcp_overlay_host to;
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (s->link[i].out || s->link[i].of.from != s->local_host)
			continue;
		ptcp_overlay_host(s->overlay, (size_t)s->link[i].of.to, &to);
		if (strcasecmp(address, local_host_authority(authority, to.address)) == 0)
			return &s->link[i];
	}
	return NULL;
}

/* Copies the lines of other links, written by other processes or for other overlays. */
static void copy_others(FILE *out, const struct ptcp_links *s, const char *file)
{
	char line[LINE_BYTES], copy[LINE_BYTES];
	struct ptcp_link_estimate m;
	const char *address;
	FILE *f = userdir_read(file);
	size_t n = 0;

	while (f != NULL && n < PTCP_PUBLISHED_LINKS_MAX && fgets(line, sizeof line, f) != NULL) {
		strcpy(copy, line);
		if ((address = parse(&m, copy)) == NULL || links_file_find(s, address) != NULL)
			continue;
		fputs(line, out);
		n++;
	}
	if (f != NULL)
		fclose(f);
}

static int replace(const struct ptcp_links *s, const char *file, struct ptcp_err *e)
{
	struct atomic_file n;
	size_t i;

	if (!atomic_file_begin(&n, file))
		return failed(e, "writing", file);
	for (i = 0; i < s->n; i++)
		if (s->link[i].of.from == s->local_host && s->link[i].estimate.state == PTCP_LINK_MEASURED)
			put(n.f, s, &s->link[i]);
	copy_others(n.f, s, file);
	return atomic_file_end(&n, true, false) ? 0 : failed(e, "writing", file);
}

int ptcp_links_keep(const struct ptcp_links *s, const char *file, struct ptcp_err *e)
{
	int lock = userdir_lock(file, e), r;

	if (lock < 0)
		return lock;
	r = replace(s, file, e);
	fd_close(&lock);
	return r;
}

int ptcp_links_recall(struct ptcp_links *s, const char *file, struct ptcp_err *e)
{
	struct ptcp_link_estimate m;
	char line[LINE_BYTES];
	const char *address;
	struct link_state *l;
	FILE *f;

	if ((f = userdir_read(file)) == NULL)
		return errno == ENOENT ? 0 : failed(e, "reading", file);
	while (fgets(line, sizeof line, f) != NULL) {
		if ((address = parse(&m, line)) == NULL || (l = links_file_find(s, address)) == NULL ||
		    m.streams != s->o.streams || l->estimate.state == PTCP_LINK_MEASURED)
			continue;
		l->estimate = m;
		l->measured_at = mono_now();
	}
	fclose(f);
	return 0;
}
