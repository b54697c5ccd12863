#include "lib/target.h"

#include <ptcp/ptcp.h>
#include <string.h>
#include <strings.h>

#include "core/err.h"
#include "core/text.h"

int target_parse(struct target *out, const char *text, struct ptcp_err *e)
{
	static const char scheme[] = "ptcp://";
	char shown[TEXT_NAME_BYTES], where[SOCK_HOST_BYTES + 16];
	const char *p, *slash, *colon = strchr(text, ':'), *first = strchr(text, '/');
	struct target t;

	text_escape(shown, sizeof shown, text);
	if (strncasecmp(text, "ssh://", 6) == 0)
		return err_set(e, PTCP_ENOTYET, "%s: through ssh: not available yet (use a daemon: "
		    "ptcp://HOST/PATH)", shown);
	if (strncasecmp(text, scheme, strlen(scheme)) != 0) {
		if (colon == NULL || (first != NULL && first < colon) || colon == text)
			return 0;
		return err_set(e, PTCP_ENOTYET, "%s: through ssh: not available yet (use a daemon: "
		    "ptcp://HOST/PATH, or write ./%s for a local file)", shown, shown);
	}
	p = text + strlen(scheme);
	if ((slash = strchr(p, '/')) == NULL)
		slash = p + strlen(p);
	if ((size_t)(slash - p) >= sizeof where)
		return err_set(e, PTCP_EUSAGE, "%s: the name of the host is too long", shown);
	memcpy(where, p, (size_t)(slash - p));
	where[slash - p] = '\0';
	if (strchr(where, '@') != NULL)
		return err_set(e, PTCP_EUSAGE, "%s: ptcp:// has no user (a daemon knows its clients by "
		    "their keys)", shown);
	if (sock_split(where, t.host, &t.port, PTCP_PORT, e) < 0)
		return err_set(e, PTCP_EUSAGE, "%s: malformed host or port (write ptcp://HOST[:PORT]/PATH, "
		    "an IPv6 address in brackets)", shown);
	if (t.host[0] == '\0' || t.port == 0)
		return err_set(e, PTCP_EUSAGE, "%s: names no host or port (write "
		    "ptcp://HOST[:PORT]/PATH)", shown);
	if (!text_unpercent(t.path, sizeof t.path, slash))
		return err_set(e, PTCP_EUSAGE, "%s: malformed %%-escape, NUL or path too long "
		    "(write %%25 for a percent sign)", shown);
	*out = t;
	return 1;
}

int target_parse_host(struct target *out, const char *text, struct ptcp_err *e)
{
	static const char scheme[] = "ptcp://";
	char shown[TEXT_NAME_BYTES];
	int r;

	text_escape(shown, sizeof shown, text);
	if (strncasecmp(text, scheme, strlen(scheme)) == 0) {
		if ((r = target_parse(out, text, e)) < 0)
			return r;
		return strcmp(out->path, "") == 0 || strcmp(out->path, "/") == 0 ? 0 :
		    err_set(e, PTCP_EUSAGE, "%s: a host is needed, no path (write ptcp://HOST[:PORT])", shown);
	}
	if (strncasecmp(text, "ssh://", 6) == 0 || strchr(text, '@') != NULL)
		return err_set(e, PTCP_ENOTYET, "%s: through ssh: not available yet (use a daemon: HOST[:PORT])",
		    shown);
	if ((r = sock_split(text, out->host, &out->port, PTCP_PORT, e)) < 0)
		return r;
	out->path[0] = '\0';
	return out->host[0] != '\0' && out->port != 0 && strchr(out->host, '/') == NULL ? 0 :
	    err_set(e, PTCP_EUSAGE, "%s: names no host or port (write HOST[:PORT])", shown);
}
