/* Hosts of a skeleton, and its text. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/skeleton/skeleton.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define SCHEME "ptcp://"
#define RELAY "=relay"

/* ---- Operands ---- */

static bool is_address(const char *s)
{
	return s[0] != '\0' && s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:[]")] ==
	    '\0';
}

/* YAML folds or rejects control characters. */
static bool has_control(const char *s)
{
	while ((unsigned char)*s >= 0x20 && *s != 0x7f)
		s++;
	return *s != '\0';
}

/* An address in parts; the host without brackets. */
struct parts {
	const char *host;
	size_t n;
	unsigned long port; /* 0: not a number from 1 to 65535 */
};

/* False: not a host. An IPv6 address with a port has brackets. */
static bool split(struct parts *out, const char *address)
{
	const char *colon = strchr(address, ':'), *end;
	char *rest;

	*out = (struct parts){ address, strlen(address), PTCP_PORT };
	if (address[0] == '[') {
		if ((end = strchr(address, ']')) == NULL || (end[1] != '\0' && end[1] != ':'))
			return false;
		*out = (struct parts){ address + 1, (size_t)(end - address) - 1, PTCP_PORT };
		colon = end[1] == ':' ? end + 1 : NULL;
	} else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
		out->n = (size_t)(colon - address);
	} else {
		colon = NULL;
	}
	if (colon != NULL) {
		out->port = isdigit((unsigned char)colon[1]) ? strtoul(colon + 1, &rest, 10) : 0;
		out->port = out->port > 0 && out->port <= 65535 && *rest == '\0' ? out->port : 0;
	}
	return out->n > 0;
}

static bool is_same(const char *a, const char *b)
{
	struct parts x, y;

	return split(&x, a) && split(&y, b) && x.port == y.port && x.n == y.n && strncasecmp(x.host, y.host, x.n) == 0;
}

int skeleton_add(struct skeleton *s, const char *operand, struct ptcp_err *e)
{
	struct skeleton_host *more = realloc(s->host, (s->n + 1) * sizeof *more), *h;
	const char *at = strncasecmp(operand, SCHEME, strlen(SCHEME)) == 0 ? operand + strlen(SCHEME) : operand;
	size_t n = strlen(at), authority;
	char shown[TEXT_NAME_BYTES];
	struct parts parts;

	if (more == NULL)
		return err_nomem(e);
	s->host = more;
	h = &more[s->n++];
	*h = (struct skeleton_host){ .relay = n >= strlen(RELAY) && strcmp(at + n - strlen(RELAY), RELAY) == 0 };
	n -= h->relay ? strlen(RELAY) : 0;
	authority = strcspn(at, "/") < n ? strcspn(at, "/") : n;
	h->address = strndup(at, authority);
	h->path = authority < n ? strndup(at + authority, n - authority) : NULL;
	if (h->address == NULL || (authority < n && h->path == NULL))
		return err_nomem(e);
	if (!is_address(h->address) || !split(&parts, h->address) || has_control(operand))
		return err_set(e, PTCP_EUSAGE,
		    "%s: not a host of an overlay (write HOST[:PORT][/PATH], or with =relay at the end)",
		    text_escape(shown, sizeof shown, operand));
	if (parts.port == 0)
		return err_set(e, PTCP_EUSAGE,
		    "%s: the port is not a number from 1 to 65535 (write HOST[:PORT][/PATH])",
		    text_escape(shown, sizeof shown, operand));
	if (s->n == 1 && (h->path != NULL || h->relay))
		return err_set(e, PTCP_EUSAGE, "%s: is the destination, which has no path and is no relay (name the "
		    "destination first, without a path)", text_escape(shown, sizeof shown, operand));
	return 0;
}

void skeleton_fini(struct skeleton *s)
{
	while (s->n > 0) {
		free(s->host[--s->n].address);
		free(s->host[s->n].path);
	}
	free(s->host);
	s->host = NULL;
}

/* ---- Names ---- */

enum { LABEL, HOST, ADDRESS, N_LENGTHS };

/* The first label, the host, or host and port; without brackets. Numeric addresses have no labels. */
static void name_of(char out[SKELETON_NAME_BYTES], const char *address, int length)
{
	size_t n = strlen(address), i, filled = 0, label;
	const char *host = address;
	struct parts parts;

	if (length < ADDRESS && split(&parts, address)) {
		host = parts.host;
		n = parts.n;
	}
	label = strcspn(host, ".");
	if (length == LABEL && memchr(host, ':', n) == NULL && strspn(host, "0123456789.") < n &&
	    label > 0 && label < n)
		n = label;
	for (i = 0; i < n && filled < SKELETON_NAME_BYTES - 1; i++)
		if (host[i] != '[' && host[i] != ']')
			out[filled++] = host[i];
	out[filled] = '\0';
}

/* Whether another host has the name of host `i`. */
static bool is_taken(const struct skeleton *s, size_t i)
{
	size_t k;

	for (k = 0; k < s->n; k++)
		if (k != i && strcmp(s->host[i].name, s->host[k].name) == 0)
			return true;
	return false;
}

int skeleton_name(struct skeleton *s, struct ptcp_err *e)
{
	bool *taken = calloc(s->n + 1, sizeof *taken), again = true;
	const char *twice = NULL;
	size_t i, k;
	int length;

	if (taken == NULL)
		return err_nomem(e);
	for (i = 0; i < s->n; i++) {
		name_of(s->host[i].name, s->host[i].address, LABEL);
		for (k = 0; k < i && twice == NULL; k++)
			twice = is_same(s->host[k].address, s->host[i].address) ? s->host[k].address : NULL;
	}
	for (length = HOST; again && length < N_LENGTHS; length++) {
		for (i = 0, again = false; i < s->n; i++)
			again |= taken[i] = is_taken(s, i);
		for (i = 0; i < s->n; i++)
			if (taken[i])
				name_of(s->host[i].name, s->host[i].address, length);
	}
	free(taken);
	for (i = 0; i < s->n && twice == NULL; i++)
		twice = is_taken(s, i) ? s->host[i].address : NULL; /* longer than a name can be */
	return twice == NULL ? 0 : err_set(e, PTCP_EUSAGE, "%s: named twice (name each host once)", twice);
}

/* ---- Text ---- */

bool skeleton_is_source(const struct skeleton *s, size_t i)
{
	return i > 0 && (s->host[i].path != NULL || !s->host[i].relay);
}

const char *skeleton_path(const struct skeleton_host *h)
{
	return h->path != NULL ? h->path : "/";
}

/* Writes a scalar for a flow mapping, quoted if needed. */
static void put_text(FILE *f, const char *s)
{
	bool plain = s[0] != '-' &&
	    s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+")] == '\0';

	if (!plain)
		putc('"', f);
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', f);
		putc(*s, f);
	}
	if (!plain)
		putc('"', f);
}

static void put_comment(FILE *f, const struct skeleton_host *h)
{
	char size[UNITS_TEXT_BYTES];

	if (h->failed.code != 0)
		fprintf(f, " # %s", h->failed.msg);
	else if (h->counted)
		fprintf(f, " # %s", units_size_text(size, h->bytes));
	if (h->closed.code != 0)
		fprintf(f, " # not to %s: %s", h->closed_to, h->closed.msg);
	putc('\n', f);
}

static void put_host(FILE *f, const struct skeleton *s, size_t i)
{
	const struct skeleton_host *h = &s->host[i];

	fputs("  ", f);
	put_text(f, h->name);
	fputs(": {address: ", f);
	put_text(f, h->address);
	if (skeleton_is_source(s, i)) {
		fputs(", path: ", f);
		put_text(f, skeleton_path(h));
		if (h->counted)
			fprintf(f, ", data: %llu", (unsigned long long)h->bytes);
	}
	fputs(h->relay ? ", relay: true}" : "}", f);
	put_comment(f, h);
}

int skeleton_text(char **out, const struct skeleton *s, struct ptcp_err *e)
{
	struct ptcp_overlay *o;
	char *text = NULL;
	size_t i, bytes;
	FILE *f = open_memstream(&text, &bytes);
	int r;

	if (f == NULL)
		return err_nomem(e);
	fputs("destination: ", f);
	put_text(f, s->host[0].name);
	fputs("\nhosts:\n", f);
	for (i = 0; i < s->n; i++)
		put_host(f, s, i);
	fputs("all: {} # links of all sources and relays; ptcp links --write lists them with their rates\n", f);
	if (fclose(f) != 0)
		return err_nomem(e);
	if ((r = ptcp_overlay_parse(&o, text, bytes, "overlay", e)) < 0) {
		free(text);
		return r;
	}
	ptcp_overlay_free(o);
	*out = text;
	return 0;
}
