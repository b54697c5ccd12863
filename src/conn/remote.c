#include "conn/remote.h"

#include <ptcp/ptcp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/err.h"
#include "core/text.h"

#define WRITE_SSH "write [USER@]HOST:PATH, an IPv6 address in brackets, or ./NAME for a local file"

/* The n bytes before the path: [USER@]HOST[:PORT]. */
static bool split_where(struct remote *t, const char *text, size_t n, unsigned default_port)
{
	char where[REMOTE_USER_BYTES + SOCK_HOST_BYTES + 16], *at, *host = where;

	if (n >= sizeof where)
		return false;
	memcpy(where, text, n);
	where[n] = '\0';
	if ((at = strrchr(where, '@')) != NULL) {
		*at = '\0';
		if (at == where || (size_t)(at - where) >= sizeof t->user)
			return false;
		strcpy(t->user, where);
		host = at + 1;
	}
	return sock_split(host, t->host, &t->port, default_port, NULL) == 0;
}

/* The checks of OpenSSH for names in commands. */
static bool is_harmless(const char *name, const char *bad)
{
	const char *p;

	for (p = name; *p != '\0'; p++)
		if (*p <= ' ' || *p > '~' || strchr(bad, *p) != NULL) /* ASCII only */
			return false;
	return name[0] != '-';
}

static int check_ssh(const struct remote *t, const char *shown, struct ptcp_err *e)
{
	if (t->host[0] != '\0' && is_harmless(t->user, "'`\"$;&<>|(){}") &&
	    is_harmless(t->host, "'`\"$\\;&<>|(){},*?[]!#/@"))
		return 1;
	return err_set(e, PTCP_EUSAGE, "%s: a user or host name with characters that ssh could misread (" WRITE_SSH ")",
	    shown);
}

/* [USER@]HOST:PATH; `colon` points to the separator. */
static int parse_scp(struct remote *t, const char *text, const char *colon, const char *shown,
    struct ptcp_err *e)
{
	t->ssh = true;
	if (strlen(colon + 1) >= sizeof t->path)
		return err_set(e, PTCP_EUSAGE, "%s: the path is too long (give a shorter one)", shown);
	if (!split_where(t, text, (size_t)(colon - text), 0))
		return err_set(e, PTCP_EUSAGE, "%s: malformed or too long user or host (" WRITE_SSH ")", shown);
	strcpy(t->path, colon + 1);
	return check_ssh(t, shown, e);
}

/* The right spelling is the scheme, the first n bytes of the host, and the path. */
static int misspelled(const char *shown, const char *why, const char *scheme, const char *host, size_t n,
    const char *path, struct ptcp_err *e)
{
	char right[TEXT_NAME_BYTES], spelling[TEXT_NAME_BYTES];

	snprintf(right, sizeof right, "%s%.*s%s", scheme, (int)n, host, path);
	return err_set(e, PTCP_EUSAGE, "%s: %s (write %s)", shown, why, text_escape(spelling, sizeof spelling, right));
}

static int parse_url(struct remote *t, const char *rest, const char *shown, struct ptcp_err *e)
{
	const char *slash = rest + strcspn(rest, "/"), *scheme = t->ssh ? "ssh" : "ptcp";
	char *zone;

	if (slash > rest && slash[-1] == ':' && slash[0] == '/')
		return misspelled(shown, "a colon before the path", t->ssh ? "ssh://" : "ptcp://", rest,
		    (size_t)(slash - rest - 1), slash, e);
	if (!split_where(t, rest, (size_t)(slash - rest), t->ssh ? 0 : PTCP_PORT))
		return err_set(e, PTCP_EUSAGE, "%s: malformed or too long host or port (write %s://HOST[:PORT]/PATH, "
		    "an IPv6 address in brackets)", shown, scheme);
	if ((zone = strstr(t->host, "%25")) != NULL) /* RFC 6874 */
		memmove(zone + 1, zone + 3, strlen(zone + 3) + 1);
	if (!t->ssh && t->user[0] != '\0')
		return err_set(e, PTCP_EUSAGE, "%s: ptcp:// has no user (leave it out: a server identifies clients by "
		    "their keys)", shown);
	if (t->host[0] == '\0' || (!t->ssh && t->port == 0))
		return err_set(e, PTCP_EUSAGE, "%s: names no host or port (write "
		    "%s://HOST[:PORT]/PATH)", shown, scheme);
	if (!text_percent_decode(t->path, sizeof t->path, slash))
		return err_set(e, PTCP_EUSAGE, "%s: malformed %%-escape, NUL or path too long "
		    "(write %%25 for a percent sign)", shown);
	if (!t->ssh)
		return 1;
	if (strncmp(t->path, "/~", 2) == 0)
		memmove(t->path, t->path + 1, strlen(t->path));
	return check_ssh(t, shown, e);
}

int remote_parse(struct remote *out, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/'), *bracket = strchr(text, '[');
	struct remote t = { .ssh = strncasecmp(text, "ssh://", 6) == 0 };
	int r;

	text_escape(shown, sizeof shown, text);
	if (bracket != NULL && (bracket == text || bracket[-1] == '@') && (colon == NULL || bracket < colon))
		colon = strstr(bracket, "]:") != NULL ? strstr(bracket, "]:") + 1 : NULL;
	if (t.ssh || strncasecmp(text, "ptcp://", 7) == 0)
		r = parse_url(&t, text + (t.ssh ? 6 : 7), shown, e);
	else if (strncasecmp(text, "ptcp:/", 6) == 0)
		r = misspelled(shown, "a slash is missing", "ptcp://", text + 6, strlen(text + 6), "", e);
	else if (colon == NULL || colon == text || (slash != NULL && slash < colon))
		return 0;
	else if (strncmp(colon, "://", 3) == 0)
		r = err_set(e, PTCP_EUSAGE, "%s: an unknown scheme (write ptcp://HOST/PATH, ssh://HOST/PATH, or "
		    "[USER@]HOST:PATH)", shown);
	else
		r = parse_scp(&t, text, colon, shown, e);
	if (r > 0)
		*out = t;
	return r;
}

void remote_name(const struct remote *t, char *out, size_t cap)
{
	if (t->ssh)
		snprintf(out, cap, "%s%s%s", t->user, t->user[0] != '\0' ? "@" : "", t->host);
	else
		sock_join(out, cap, t->host, t->port);
}

/* Neither URLs nor shells treat these specially. */
static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@";

/* All other bytes are written as %XX. */
static bool append_encoded(char *out, size_t cap, const char *path)
{
	size_t n = strlen(out);

	for (; *path != '\0'; path++) {
		if (n + 4 > cap)
			return false;
		n += (size_t)snprintf(out + n, cap - n, strchr(plain, *path) != NULL ? "%c" : "%%%02X",
		    (unsigned)(unsigned char)*path);
	}
	return true;
}

bool remote_url(const struct remote *t, char *out, size_t cap)
{
	char host[SOCK_HOST_BYTES + 10];
	bool v6 = strchr(t->host, ':') != NULL;

	if (t->user[strspn(t->user, plain)] != '\0' || t->host[strspn(t->host, plain)] != '\0')
		return false;
	if (!t->ssh || t->port != 0)
		sock_join(host, sizeof host, t->host, t->port);
	else
		snprintf(host, sizeof host, v6 ? "[%s]" : "%s", t->host);
	if ((size_t)snprintf(out, cap, "%s://%s%s%s%s", t->ssh ? "ssh" : "ptcp", t->user, t->user[0] != '\0' ? "@" : "",
	    host, t->path[0] == '/' ? "" : t->ssh && t->path[0] != '~' ? "/~/" : "/") >= cap)
		return false;
	if (t->ssh && t->path[0] == '~') { /* a `~` at the start is a home directory */
		strcat(out, "~");
		return append_encoded(out, cap, t->path + 1);
	}
	return append_encoded(out, cap, t->path);
}

bool remote_same_host(const struct remote *a, const struct remote *b)
{
	return a->ssh == b->ssh && a->port == b->port && strcasecmp(a->host, b->host) == 0 &&
	    strcmp(a->user, b->user) == 0;
}

bool remote_is_contents(const struct remote *t)
{
	return text_is_contents(t->path) || (t->ssh && t->path[0] == '~' && strchr(t->path, '/') == NULL);
}

/* USER@HOST, an IPv6 address in brackets. */
static int parse_ssh_host(struct remote *t, const char *text, const char *shown, struct ptcp_err *e)
{
	t->ssh = true;
	if (!split_where(t, text, strlen(text), 0) || t->port != 0)
		return err_set(e, PTCP_EUSAGE, "%s: malformed or too long user or host (write USER@HOST or "
		    "ssh://[USER@]HOST[:PORT])", shown);
	return check_ssh(t, shown, e);
}

int remote_parse_host(struct remote *out, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int r;

	text_escape(shown, sizeof shown, text);
	*out = (struct remote){ 0 };
	if (strstr(text, "://") != NULL) {
		if ((r = remote_parse(out, text, e)) < 0)
			return r;
		return strcmp(out->path, "") == 0 || strcmp(out->path, "/") == 0 ? 0 :
		    err_set(e, PTCP_EUSAGE, "%s: a host is needed, no path (leave it out)", shown);
	}
	if (strchr(text, '@') != NULL)
		return (r = parse_ssh_host(out, text, shown, e)) < 0 ? r : 0;
	if ((r = sock_split(text, out->host, &out->port, PTCP_PORT, e)) < 0)
		return r;
	return out->host[0] != '\0' && out->port != 0 && strchr(out->host, '/') == NULL ? 0 :
	    err_set(e, PTCP_EUSAGE, "%s: names no host or port (write HOST[:PORT])", shown);
}

/* ---- At the remote end ---- */

/* `user` NULL: this process's. False: no home directory. */
static bool home_of(char out[HOME_PATH_BYTES], const char *user)
{
	const char *env = user == NULL ? getenv("HOME") : NULL;
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (env != NULL && env[0] == '/')
		return (size_t)snprintf(out, HOME_PATH_BYTES, "%s", env) < HOME_PATH_BYTES;
	if (user != NULL)
		getpwnam_r(user, &pw, buf, sizeof buf, &found);
	else
		getpwuid_r(getuid(), &pw, buf, sizeof buf, &found);
	return found != NULL && pw.pw_dir[0] == '/' &&
	    (size_t)snprintf(out, HOME_PATH_BYTES, "%s", pw.pw_dir) < HOME_PATH_BYTES;
}

int home_path(char out[HOME_PATH_BYTES], const char *path, struct ptcp_err *e)
{
	char home[HOME_PATH_BYTES], user[256];
	const char *rest = path;
	size_t n = strcspn(path, "/");
	bool known = false;

	if (path[0] == '/') {
		home[0] = '\0';
		known = true;
	} else if (path[0] == '~' && n < sizeof user) {
		memcpy(user, path + 1, n);
		user[n - 1] = '\0';
		if ((known = home_of(home, n > 1 ? user : NULL)))
			rest = path[n] == '/' ? path + n : "";
	}
	if (!known && !home_of(home, NULL)) /* "~x" without a user x is a name, as in a shell */
		return err_set(e, PTCP_EUSAGE, "this user has no home directory there (give an absolute path)");
	n = (size_t)snprintf(out, HOME_PATH_BYTES, "%s%s%s", home, rest == path && path[0] != '/' &&
	    path[0] != '\0' ? "/" : "", rest);
	return n < HOME_PATH_BYTES ? 0 : err_set(e, PTCP_EUSAGE, "the path is longer than %d bytes there (give a "
	    "shorter one)", HOME_PATH_BYTES - 1);
}
