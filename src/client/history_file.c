#include "client/history_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/fd.h"
#include "core/userdir.h"

#define PATH_BYTES (USERDIR_BYTES + 16)

/* The next entry of the file; false at its end. */
static bool next_entry(FILE *f, struct history_entry *out)
{
	char line[HISTORY_LINE_BYTES];
	bool whole = true, is_entry;

	while (fgets(line, sizeof line, f) != NULL) {
		is_entry = whole && history_parse(out, line);
		whole = strchr(line, '\n') != NULL; /* else the next piece continues the line */
		if (is_entry && whole)
			return true;
	}
	return false;
}

int history_find(const char *dir, const struct history_key *key, struct history_entry *out, struct ptcp_err *e)
{
	char where[USERDIR_BYTES], path[PATH_BYTES];
	struct history_entry h;
	int found = 0, r;
	FILE *f;

	if ((r = userdir_state(where, dir, e)) < 0)
		return r;
	snprintf(path, sizeof path, "%s/paths", where);
	if ((f = userdir_read(path)) == NULL)
		return errno == ENOENT ? 0 : err_sys(e, PTCP_ECONFIG, "reading %s", path);
	while (found == 0 && next_entry(f, &h))
		if (history_same(&h.key, key) && history_is_valid(&h, (int64_t)time(NULL))) {
			*out = h;
			found = 1;
		}
	fclose(f);
	return found;
}

/* Newest first: the limit drops the oldest. */
static int copy_others(FILE *to, const char *path, const struct history_entry *h, struct ptcp_err *e)
{
	char line[HISTORY_LINE_BYTES];
	struct history_entry other;
	FILE *from = userdir_read(path);
	unsigned n;

	if (from == NULL)
		return errno == ENOENT ? 0 : err_sys(e, PTCP_ECONFIG, "reading %s", path);
	for (n = 1; n < HISTORY_ENTRIES_MAX && next_entry(from, &other);) {
		if (history_same(&other.key, &h->key) || !history_is_valid(&other, (int64_t)time(NULL)) ||
		    history_format(line, &other) == 0)
			continue;
		fputs(line, to);
		n++;
	}
	fclose(from);
	return 0;
}

static int replace(const char *path, const struct history_entry *h, struct ptcp_err *e)
{
	char line[HISTORY_LINE_BYTES];
	struct atomic_file n;
	int r;

	if (!atomic_file_begin(&n, path))
		return err_sys(e, PTCP_ECONFIG, "writing %s", path);
	if (h->n_probes > 0 && history_format(line, h) > 0)
		fputs(line, n.f);
	r = copy_others(n.f, path, h, e);
	return atomic_file_end(&n, r >= 0, false) ? r : err_sys(e, PTCP_ECONFIG, "writing %s", path);
}

int history_put(const char *dir, const struct history_entry *h, struct ptcp_err *e)
{
	char where[USERDIR_BYTES], path[PATH_BYTES];
	int lock, r;

	if ((r = userdir_state(where, dir, e)) < 0 || (r = userdir_make(where, e)) < 0)
		return r;
	snprintf(path, sizeof path, "%s/paths", where);
	if ((lock = userdir_lock(path, e)) < 0)
		return lock;
	r = replace(path, h, e);
	fd_close(&lock);
	return r;
}
