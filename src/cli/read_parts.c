#include "cli/read_parts.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/client_opts.h"
#include "cli/process.h"
#include "cli/show/json.h"
#include "core/atomic_file.h"
#include "core/err.h"
#include "core/text.h"

/* ---- Ranges ---- */

/* A number of bytes; false if *at begins with none. */
static bool take_number(const char **at, int64_t *out)
{
	char *end;
	long long n;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	n = strtoll(*at, &end, 10);
	if (errno != 0 || n >= INT64_MAX)
		return false;
	*at = end;
	*out = n;
	return true;
}

/* OFFSET-END, OFFSET- or -TAIL. */
static bool take_range(const char **at, struct ptcp_range *out)
{
	int64_t last;

	out->end = PTCP_RANGE_REST;
	if (**at == '-') {
		(*at)++;
		if (!take_number(at, &out->start))
			return false;
		out->start = -out->start;
		if (out->start == 0)
			out->end = 0; /* the last 0 bytes */
		return true;
	}
	if (!take_number(at, &out->start) || *(*at)++ != '-')
		return false;
	if (!isdigit((unsigned char)**at))
		return true;
	if (!take_number(at, &last) || last < out->start)
		return false;
	out->end = last + 1;
	return true;
}

int parts_parse(struct byte_ranges *out, const char *text, struct ptcp_err *e)
{
	const char *p = text;
	size_t n = 1;

	for (p = text; *p != '\0'; p++)
		n += *p == ',';
	parts_fini(out);
	if ((out->range = calloc(n, sizeof *out->range)) == NULL)
		return err_nomem(e);
	for (p = text; out->n < n; p++)
		if (!take_range(&p, &out->range[out->n++]) || *p != (out->n < n ? ',' : '\0'))
			return err_set(e, PTCP_EUSAGE, "not a range of bytes (write FIRST-LAST, FIRST- or -NUMBER, "
			    "several with commas)");
	return 0;
}

void parts_fini(struct byte_ranges *p)
{
	free(p->range);
	*p = (struct byte_ranges){ 0 };
}

/* ---- Reading ---- */

struct part_writer {
	FILE *to;        /* NULL: JSON */
	const char *url;
	struct ptcp_task *task;
	uint64_t bytes;
	int failed; /* errno of the stream; 0: none */
};

static bool write_piece(const struct part_writer *r, const struct ptcp_piece *p)
{
	if (r->to != NULL)
		return fwrite(p->data, 1, p->bytes, r->to) == p->bytes;
	return json_line(json_pack("{s:s, s:o, s:o, s:o}", "event", "data", "path", json_text(r->url), "offset",
	    json_count(p->offset), "base64", json_base64(p->data, p->bytes))) == 0;
}

static void on_piece(void *arg, const struct ptcp_piece *p)
{
	struct part_writer *r = arg;

	if (r->failed != 0)
		return;
	errno = EIO;
	if (write_piece(r, p)) {
		r->bytes += p->bytes;
		return;
	}
	r->failed = errno;
	ptcp_task_cancel(r->task);
}

int parts_read(const struct ptcp_transfer_opts *o, const char *url, const struct byte_ranges *p, FILE *to,
    uint64_t *bytes, struct ptcp_err *e)
{
	struct part_writer d = { .to = to, .url = url };
	struct ptcp_read_opts opts;
	int r;

	ptcp_read_opts_init(&opts);
	opts.ranges = p->range;
	opts.n_ranges = p->n;
	opts.piece = on_piece;
	opts.arg = &d;
	if ((r = ptcp_read_new(&d.task, o, url, &opts, e)) < 0)
		return r;
	r = connect_run(d.task, e);
	ptcp_task_free(d.task);
	if (d.failed == 0 && r == 0 && to != NULL && fflush(to) != 0)
		d.failed = errno;
	*bytes += d.bytes;
	if (d.failed == 0)
		return r;
	errno = d.failed;
	return process_result(err_sys(e, PTCP_EIO, "cannot write"), e); /* a signal ends a write that waits */
}

/* ---- Files ---- */

static int file_failed(const char *path, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	return err_sys(e, PTCP_EIO, "%s", text_escape(shown, sizeof shown, path));
}

/* The name that the file has here; to be freed. */
static int name_of(char **out, const char *url, const char *path, struct ptcp_err *e)
{
	const char *last = url + strlen(url);
	char shown[TEXT_NAME_BYTES], name[NAME_MAX + 1];
	size_t n = strlen(path);
	struct stat st;

	if ((n == 0 || path[n - 1] != '/') && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
		return (*out = strdup(path)) != NULL ? 0 : err_nomem(e);
	while (last > url && last[-1] != '/' && last[-1] != ':')
		last--;
	if (strstr(url, "://") == NULL ? snprintf(name, sizeof name, "%s", last) >= (int)sizeof name :
	    !text_percent_decode(name, sizeof name, last))
		name[0] = '\0';
	if (!text_name_ok(name, strlen(name)))
		return err_set(e, PTCP_EUSAGE, "%s: ends in no name of a file (name the file at the destination, too)",
		    text_escape(shown, sizeof shown, url));
	return asprintf(out, "%s%s%s", path, n > 0 && path[n - 1] == '/' ? "" : "/", name) >= 0 ? 0 : err_nomem(e);
}

/* Like a transfer, this replaces no device, FIFO or socket, and no link to one or to a descriptor, as /dev/stdout. */
static int check_place(const char *path, struct ptcp_err *e)
{
	static const char descriptors[] = "/proc/";
	char to[sizeof descriptors - 1] = { 0 }, shown[TEXT_NAME_BYTES];
	struct stat st;

	if (!(readlink(path, to, sizeof to) > 0 && strncmp(to, descriptors, sizeof to) == 0) &&
	    (stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return 0;
	return err_because(e, PTCP_EUSAGE, EEXIST, "%s: a device, FIFO or socket, or a link to one, which is not "
	    "replaced (write - for standard output)", text_escape(shown, sizeof shown, path));
}

/* How the destination is written does not concern the server. */
static int read_alone(const struct ptcp_transfer_opts *o, const char *url, const struct byte_ranges *p, FILE *f,
    uint64_t *bytes, struct ptcp_err *e)
{
	struct ptcp_transfer_opts of_reading = *o;

	of_reading.fsync = PTCP_FSYNC_GROUP;
	of_reading.pipe.fd = -1;
	of_reading.file_events = false;
	return parts_read(&of_reading, url, p, f, bytes, e);
}

static int read_into(const struct ptcp_transfer_opts *o, const char *url, const struct byte_ranges *p, const char *path,
    uint64_t *bytes, struct ptcp_err *e)
{
	struct atomic_file file;
	struct stat st;
	mode_t mask;
	int r;

	if ((r = check_place(path, e)) < 0)
		return r;
	if (!atomic_file_begin(&file, path))
		return file_failed(path, e);
	mask = umask(0);
	umask(mask);
	fchmod(fileno(file.f), lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? st.st_mode & 0777 : 0666 & ~mask);
	r = read_alone(o, url, p, file.f, bytes, e);
	if (!atomic_file_end(&file, r == 0, o->fsync != PTCP_FSYNC_NONE) && r == 0)
		r = file_failed(path, e);
	return r;
}

int parts_read_to(const struct ptcp_transfer_opts *o, const char *url, const struct byte_ranges *p, const char *path,
    uint64_t *bytes, struct ptcp_err *e)
{
	char *name;
	int r;

	if (text_is_stdio(path))
		return read_alone(o, url, p, stdout, bytes, e);
	if ((r = name_of(&name, url, path, e)) < 0)
		return r;
	r = read_into(o, url, p, name, bytes, e);
	free(name);
	return r;
}
