/* This host's identity and who may connect. */
#include <ctype.h>
#include <ptcp/ptcp.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"
#include "core/userdir.h"
#include "net/identity.h"
#include "net/trust.h"

int ptcp_config_dir(char *out, size_t cap, struct ptcp_err *e)
{
	char dir[USERDIR_BYTES];
	int r;

	if ((r = userdir_config(dir, NULL, e)) < 0)
		return r;
	if (strlen(dir) >= cap)
		return err_set(e, PTCP_ECONFIG, "the path of the configuration directory is longer than %zu bytes (set "
		    "XDG_CONFIG_HOME to a shorter one)", cap - 1);
	strcpy(out, dir);
	return 0;
}

static int show(const char *dir, bool only_new, char *fingerprint, struct ptcp_err *e)
{
	struct identity id;
	int r;

	if ((r = identity_load(&id, dir, only_new, e)) < 0)
		return r;
	strcpy(fingerprint, id.fingerprint);
	identity_fini(&id);
	return 0;
}

int ptcp_key_show(const char *config_dir, char fingerprint[PTCP_FINGERPRINT_BYTES], struct ptcp_err *e)
{
	return show(config_dir, false, fingerprint, e);
}

int ptcp_key_generate(const char *config_dir, char fingerprint[PTCP_FINGERPRINT_BYTES],
    struct ptcp_err *e)
{
	return show(config_dir, true, fingerprint, e);
}

static int check_fingerprint(const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	if (text != NULL && identity_fingerprint_ok(text))
		return 0;
	return err_set(e, PTCP_EUSAGE, "%s: not a fingerprint (they look like SHA256: and 43 "
	    "characters; ptcp key show prints a host's own)",
	    text_escape(shown, sizeof shown, text != NULL ? text : ""));
}

static bool name_ok(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n >= TRUST_NAME_BYTES / 3)
		return false;
	for (; *s != '\0'; s++)
		if (!isgraph((unsigned char)*s))
			return false;
	return true;
}

static int check_permission(const struct ptcp_permission *p, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int r;

	if ((r = check_fingerprint(p->fingerprint, e)) < 0)
		return r;
	if (p->root != NULL && (p->root[0] != '/' || strlen(p->root) >= TRUST_ROOT_BYTES))
		return err_set(e, PTCP_EUSAGE, "--root %s: not an absolute path",
		    text_escape(shown, sizeof shown, p->root));
	if (p->name != NULL && !name_ok(p->name))
		return err_set(e, PTCP_EUSAGE, "--name %s: not one word of up to %d printable characters",
		    text_escape(shown, sizeof shown, p->name), TRUST_NAME_BYTES / 3 - 1);
	return 0;
}

int ptcp_authorize(const char *config_dir, const struct ptcp_permission *o, struct ptcp_err *e)
{
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	struct ptcp_permission p;
	int r;

	/* That of a caller built against an older header is a prefix of ours. */
	ptcp_permission_init(&p);
	if (o->size == 0 || o->size > sizeof p)
		return err_set(e, PTCP_EUSAGE, "a permission that ptcp_permission_init() has not filled in");
	memcpy(&p, o, o->size);
	/* The identity first: it makes the directory. */
	if ((r = check_permission(&p, e)) < 0 || (r = show(config_dir, false, fingerprint, e)) < 0)
		return r;
	r = authorized_set(config_dir, p.fingerprint, &p, e);
	return r < 0 ? r : 0;
}

int ptcp_revoke(const char *config_dir, const char *fingerprint, struct ptcp_err *e)
{
	char own[PTCP_FINGERPRINT_BYTES];
	int r;

	if ((r = check_fingerprint(fingerprint, e)) < 0 || (r = show(config_dir, false, own, e)) < 0)
		return r;
	if ((r = authorized_set(config_dir, fingerprint, NULL, e)) == 0)
		return err_set(e, PTCP_EUSAGE, "%s: is not authorized here (see the list in authorized_clients)", fingerprint);
	return r < 0 ? r : 0;
}
