#include "input/remote_dir.h"

#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/err.h"
#include "core/text.h"

/* The path of "[USER@]HOST:PATH". */
static const char *behind_colon(const char *address)
{
	const char *bracket = strstr(address, "]:");

	return (address[0] == '[' || strstr(address, "@[") != NULL) && bracket != NULL ? bracket + 2 :
	    strchr(address, ':') + 1;
}

static int take_url(struct remote_dir *d, const char *address, struct ptcp_err *e)
{
	const char *host = strstr(address, "://") + 3, *path = host + strcspn(host, "/");
	bool ssh = strncasecmp(address, "ssh:", 4) == 0;
	size_t n = strlen(path) + 1;
	int r;

	d->is_url = true;
	d->has_root = !ssh;
	if ((d->path = malloc(n)) == NULL)
		return err_nomem(e);
	if (!text_percent_decode(d->path, n, path))
		return err_set(e, PTCP_EUSAGE, "a path with %%00 or half an escape (write %%25 for a percent sign)");
	if (ssh && (strcmp(d->path, "/~") == 0 || strncmp(d->path, "/~/", 3) == 0))
		memmove(d->path, "./", 2); /* relative to the home directory */
	else if (ssh && strncmp(d->path, "/~", 2) == 0)
		memmove(d->path, d->path + 1, n - 1);
	r = asprintf(&d->host, "%.*s%s", (int)(path - address), address, ssh ? "" : "/");
	return r >= 0 ? 0 : err_nomem(e);
}

int remote_dir_init(struct remote_dir *d, const char *address, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES], *path;
	const char *colon;
	int r;

	*d = (struct remote_dir){ 0 };
	if (!ptcp_is_remote(address))
		return err_set(e, PTCP_EUSAGE, "%s: not on another host (write ptcp://HOST/PATH, HOST: or HOST:PATH)",
		    text_escape(shown, sizeof shown, address));
	if (strstr(address, "://") != NULL) {
		if ((r = take_url(d, address, e)) < 0)
			return r;
	} else {
		colon = behind_colon(address);
		d->path = strdup(colon);
		if (d->path == NULL || asprintf(&d->host, "%.*s", (int)(colon - address), address) < 0)
			return err_nomem(e);
	}
	if ((path = remote_dir_path(d, ".")) == NULL)
		return err_nomem(e);
	free(d->path);
	d->path = path;
	return 0;
}

void remote_dir_fini(struct remote_dir *d)
{
	free(d->host);
	free(d->path);
	*d = (struct remote_dir){ 0 };
}

/* ---- Paths ---- */

static bool is_name(const char *at, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(at, name, n) == 0;
}

/* Takes the last name of out[top..n), with the slash in front of it. False: there is none but "..". */
static bool take_last(const char *out, size_t top, size_t *n)
{
	size_t at = *n;

	while (at > top && out[at - 1] != '/')
		at--;
	if (at == *n || is_name(out + at, *n - at, ".."))
		return false;
	*n = at > top ? at - 1 : at;
	return true;
}

char *remote_dir_path(const struct remote_dir *d, const char *path)
{
	bool absolute = path[0] == '/', slash;
	size_t bytes = strlen(d->path) + strlen(path) + 3, n = 0, top, len;
	char *all = malloc(bytes), *out = malloc(bytes);
	const char *p = all;

	if (all == NULL || out == NULL) {
		free(all);
		free(out);
		return NULL;
	}
	sprintf(all, "%s/%s", absolute ? "" : d->path, path);
	slash = *path != '\0' && path[strlen(path) - 1] == '/';
	if ((absolute || d->path[0] == '/') && !d->has_root)
		out[n++] = '/';
	if (n == 0 && !d->has_root && all[0] == '~') { /* the home directory of a user */
		len = strcspn(all, "/");
		memcpy(out, all, len);
		n = len;
		p += len;
	}
	for (top = n; *p != '\0'; p += len) {
		p += strspn(p, "/");
		len = strcspn(p, "/");
		if (len == 0 || is_name(p, len, ".") || (is_name(p, len, "..") && (take_last(out, top, &n) ||
		    top > 0 || d->has_root)))
			continue;
		if (n > top || (top > 0 && out[0] == '~'))
			out[n++] = '/';
		memcpy(out + n, p, len);
		n += len;
	}
	if (slash && n > 0 && out[n - 1] != '/')
		out[n++] = '/';
	out[n] = '\0';
	free(all);
	return out;
}

char *remote_dir_address(const struct remote_dir *d, const char *path)
{
	char *whole = remote_dir_path(d, path), *out, *to;

	if (whole == NULL || (out = malloc(strlen(d->host) + 3 * strlen(whole) + 4)) == NULL) {
		free(whole);
		return NULL;
	}
	to = out + sprintf(out, "%s%s", d->host, !d->is_url || d->has_root || whole[0] == '/' ? "" :
	    whole[0] == '~' ? "/" : "/~/");
	if (d->is_url)
		text_percent_encode(to, whole);
	else
		strcpy(to, whole);
	free(whole);
	return out;
}
