/* ptcp key: identity of this host, and authorized clients. */
#include <limits.h>
#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/show/json.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

#define EXPIRES_NS (90 * 86400 * NS_PER_S)
#define EXPIRES_MAX_NS (200000 * NS_PER_S * 86400)
#define LINE_BYTES (PTCP_CERTIFICATE_BYTES + 2)
#define SKEW_S 300 /* certificates are valid from then on: clocks differ */

struct key_opts {
	struct ptcp_permission permission;
	const char *ca, *hosts, *certificate;
	uint64_t expires_ns;
	bool certificates, json;
};

static int set_expires(void *args, const struct opt *o, const char *text, struct ptcp_err *e)
{
	struct key_opts *k = args;
	uint64_t ns;

	if (units_parse_time(text, &ns) < 0 || ns < 60 * NS_PER_S || ns > EXPIRES_MAX_NS)
		return opt_reject(o, text, e, "not a time from 1m to 200000d (such as 8h or 90d)");
	k->expires_ns = ns;
	return 0;
}

#define AT(member) (offsetof(struct key_opts, permission) + offsetof(struct ptcp_permission, member))

static const struct opt key_options[] = {
	{ "read-only", 0, NULL, "authorize, sign: permit receiving only", opt_true, AT(read_only), 0, 0 },
	{ "write-once", 0, NULL,
	    "authorize, sign: permit adding files only, not reading, listing, replacing or removing", opt_true,
		AT(write_once), 0, 0 },
	{ "no-relay", 0, NULL, "authorize, sign: forbid the client to use this host as a relay", opt_true,
	    AT(no_relay), 0, 0 },
	{ "root", 0, "DIR", "authorize, sign: root directory of the client, instead of or beneath the server's",
	    opt_text,
		AT(root), 0, 0 },
	{ "quota", 0, "SIZE", "authorize, sign: limit of the space used beneath the client's directory", opt_bytes,
		AT(quota_bytes), 4096, 1e18 },
	{ "name", 0, "NAME", "authorize, sign: name of the client in the log, one word", opt_text, AT(name), 0, 0 },
	{ "ca", 0, "FILE", "generate, sign, show: key of a certificate authority; authorize, trust: its fingerprint",
	    opt_text, offsetof(struct key_opts, ca), 0, 0 },
	{ "certificate", 0, "FILE", "show: print the certificate of a file", opt_text,
		offsetof(struct key_opts, certificate), 0, 0 },
	{ "hosts", 0, "HOST,..", "sign: for a server, its names, addresses or patterns, by commas", opt_text,
		offsetof(struct key_opts, hosts), 0, 0 },
	{ "expires", 0, "TIME", "sign: validity (default: 90d)", set_expires, 0, 0, 0 },
	{ "certificates", 0, NULL, "show: print the certificates of this host", opt_true,
		offsetof(struct key_opts, certificates), 0, 0 },
	{ "json", 0, NULL, "list, show --certificates or --certificate: print one JSON object per line", opt_true,
		offsetof(struct key_opts, json), 0, 0 },
	{ .name = NULL },
};

/* Makes `dir` absolute; not by realpath(), since the directory may not exist yet. */
static int absolute(const char *dir, char **out, struct ptcp_err *e)
{
	char *cwd;
	int n;

	if (dir[0] == '\0')
		return err_set(e, PTCP_EUSAGE, "--root '': not a directory (name a directory)");
	if (dir[0] == '/')
		return (*out = strdup(dir)) != NULL ? 0 : err_nomem(e);
	if ((cwd = getcwd(NULL, 0)) == NULL)
		return err_sys(e, PTCP_EUSAGE, "--root: no current directory (give an absolute path)");
	n = asprintf(out, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd,
	    strncmp(dir, "./", 2) == 0 ? dir + 2 : strcmp(dir, ".") == 0 ? "" : dir);
	free(cwd);
	return n >= 0 ? 0 : err_nomem(e);
}

static int authorize_client(struct ptcp_permission *p, struct ptcp_err *e)
{
	char *root = NULL;
	int r;

	if (p->root != NULL && (r = absolute(p->root, &root, e)) < 0)
		return r;
	p->root = root;
	r = ptcp_authorize(NULL, p, e);
	free(root);
	return r;
}

static const char *access_text(bool read_only, bool write_once)
{
	return read_only ? "read-only" : write_once ? "write-once" : "read-write";
}

#define QUOTA_TEXT_BYTES (sizeof "  quota " + UNITS_TEXT_BYTES)

static const char *quota_text(char out[QUOTA_TEXT_BYTES], uint64_t bytes)
{
	char size[UNITS_TEXT_BYTES];

	snprintf(out, QUOTA_TEXT_BYTES, bytes > 0 ? "  quota %s" : "%s", bytes > 0 ? units_size_text(size, bytes) : "");
	return out;
}

static json_t *quota_json(uint64_t bytes) { return bytes > 0 ? json_count(bytes) : json_null(); }

static void print_client(void *arg, const struct ptcp_permission *p)
{
	const struct key_opts *o = arg;
	char root[TEXT_NAME_BYTES], name[TEXT_NAME_BYTES], quota[QUOTA_TEXT_BYTES];

	if (o->json)
		json_line(json_pack("{s:s, s:o, s:b, s:b, s:b, s:o, s:o, s:b}", "fingerprint", p->fingerprint, "name",
		    p->name != NULL ? json_text(p->name) : json_null(), "read_only", p->read_only,
		    "write_once", p->write_once,
		    "relay", !p->no_relay, "root", p->root != NULL ? json_text(p->root) : json_null(), "quota_bytes",
		    quota_json(p->quota_bytes), "authority", p->authority));
	else
		printf("%s  %-10s  %-8s  %-12s  %s%s%s\n", p->fingerprint, access_text(p->read_only, p->write_once),
		    p->no_relay ? "no-relay" : "relay", text_escape(name, sizeof name, p->name != NULL ? p->name : "-"),
		    text_escape(root, sizeof root, p->root != NULL ? p->root : "-"), quota_text(quota, p->quota_bytes),
		    p->authority ? "  authority" : "");
}

/* ---- Certificates ---- */

#define TIME_TEXT_BYTES 64

static void time_text(char out[TIME_TEXT_BYTES], int64_t s)
{
	time_t t = (time_t)s;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL || strftime(out, TIME_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		strcpy(out, "-");
}

static void print_certificate(void *arg, const struct ptcp_certificate *c)
{
	const struct key_opts *o = arg;
	const char *name = c->name != NULL ? c->name : c->hosts;
	char root[TEXT_NAME_BYTES], from[TIME_TEXT_BYTES], until[TIME_TEXT_BYTES], quota[QUOTA_TEXT_BYTES];
	int64_t now = (int64_t)time(NULL);

	time_text(from, c->from_s);
	time_text(until, c->until_s);
	if (o->json)
		json_line(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:o, s:o}", "serial",
		    c->serial, "authority",
		    c->authority, "for", c->name != NULL ? "client" : "server", "name", name, "from", from,
		    "until", until, "valid",
		    now >= c->from_s && now < c->until_s, "read_only", c->read_only, "write_once", c->write_once,
		    "relay", !c->no_relay,
		    "root", c->root != NULL ? json_text(c->root) : json_null(), "quota_bytes",
		    quota_json(c->quota_bytes)));
	else
		printf("%s  %s  %s %s  %s  %s  %s%s  %s to %s%s\n", c->serial, c->authority,
		    c->name != NULL ? "client" : "server",
		    name, access_text(c->read_only, c->write_once), c->no_relay ? "no-relay" : "relay",
		    text_escape(root, sizeof root, c->root != NULL ? c->root : "-"), quota_text(quota, c->quota_bytes),
		    from, until, now < c->from_s ? "  not yet valid" : now >= c->until_s ? "  expired" : "");
}

static int sign(const struct key_opts *o, const char *fingerprint, struct ptcp_err *e)
{
	const struct ptcp_permission *p = &o->permission;
	char line[PTCP_CERTIFICATE_BYTES];
	int64_t now = (int64_t)time(NULL);
	struct ptcp_certificate c;
	int r;

	if (o->ca == NULL)
		return err_set(e, PTCP_EUSAGE, "key sign: needs --ca FILE, the key of the authority (ptcp key generate "
		    "--ca FILE makes one)");
	ptcp_certificate_init(&c);
	c.fingerprint = fingerprint;
	c.name = p->name;
	c.hosts = o->hosts;
	c.root = p->root;
	c.read_only = p->read_only;
	c.no_relay = p->no_relay;
	c.write_once = p->write_once;
	c.quota_bytes = p->quota_bytes;
	c.from_s = now - SKEW_S;
	c.until_s = now + (int64_t)(o->expires_ns / NS_PER_S);
	if ((r = ptcp_certificate_sign(o->ca, &c, line, e)) == 0)
		puts(line);
	return r;
}

/* The line of a certificate. `file`: "-" for the standard input. */
static int read_line(const char *file, char line[LINE_BYTES], struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	FILE *f = text_is_stdio(file) ? stdin : fopen(file, "re");
	bool got;

	if (f == NULL)
		return err_sys(e, PTCP_EUSAGE, "%s", text_escape(shown, sizeof shown, file));
	got = fgets(line, LINE_BYTES, f) != NULL;
	if (f != stdin)
		fclose(f);
	if (!got)
		return err_set(e, PTCP_EUSAGE, "%s: empty (give the line that ptcp key sign has printed)",
		    text_escape(shown, sizeof shown, file));
	return 0;
}

static int install(const char *file, struct ptcp_err *e)
{
	char line[LINE_BYTES];
	int r = read_line(file, line, e);

	return r < 0 ? r : ptcp_certificate_install(NULL, line, e);
}

/* The certificate, and for whom it is: its key is no secret of this host. */
static void print_read(void *arg, const struct ptcp_certificate *c)
{
	const struct key_opts *o = arg;

	if (!o->json)
		printf("%s  ", c->fingerprint);
	print_certificate(arg, c);
}

static int show_file(struct key_opts *o, struct ptcp_err *e)
{
	char line[LINE_BYTES];
	int r = read_line(o->certificate, line, e);

	return r < 0 ? r : ptcp_certificate_read(line, print_read, o, e);
}

/* ---- Actions ---- */

enum action { SHOW, GENERATE, LIST, INSTALL, AUTHORIZE, REVOKE, SIGN, TRUST, FORGET, N_ACTIONS };

#define PERMISSIONS " read-only write-once no-relay root quota name ca "

#define ALL_ACTIONS "show, generate, list, install, authorize, revoke, sign, trust or forget"

static const struct {
	const char *name;
	const char *options; /* names in key_options, each between blanks */
	const char *operand; /* NULL: takes none */
} uses[N_ACTIONS] = {
	[SHOW] = { "show", " ca certificate certificates json ", NULL },
	[GENERATE] = { "generate", " ca ", NULL },
	[LIST] = { "list", " json ", NULL },
	[INSTALL] = { "install", "", "file with a certificate (- for the standard input)" },
	[AUTHORIZE] = { "authorize", PERMISSIONS,
	"fingerprint (SHA256:.., as 'ptcp key show' prints it on the client)" },
	[REVOKE] = { "revoke", "", "fingerprint (SHA256:..) or serial number of a certificate" },
	[SIGN] = { "sign", PERMISSIONS "hosts expires ",
	"fingerprint (SHA256:.., as 'ptcp key show' prints it on the client)" },
	[TRUST] = { "trust", " ca ",
	"a host and its fingerprint (HOST[:PORT] SHA256:.., as 'ptcp key show' prints it there)" },
	[FORGET] = { "forget", "", "host, or patterns of an authority, as they stand in known_hosts" },
};

/* `operands` end in NULL; the first is the action. */
static int run_action(enum action action, struct key_opts *o, char *const *operands, struct ptcp_err *e)
{
	const char *operand = operands[1];
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	int r;

	switch (action) {
	case LIST: return ptcp_authorized_each(NULL, print_client, o, e);
	case INSTALL: return install(operand, e);
	case SIGN: return sign(o, operand, e);
	case AUTHORIZE:
		o->permission.authority = o->ca != NULL;
		o->permission.fingerprint = o->ca != NULL ? o->ca : operand;
		return authorize_client(&o->permission, e);
	case TRUST:
		return ptcp_host_trust(NULL, operand, o->ca != NULL ? o->ca : operands[2], o->ca != NULL, e);
	case FORGET: return ptcp_host_forget(NULL, operand, e);
	case REVOKE:
		return strncmp(operand, "SHA256:", 7) == 0 ? ptcp_revoke(NULL, operand, e) :
		    ptcp_certificate_revoke(NULL, operand, e);
	case GENERATE:
		r = o->ca != NULL ? ptcp_authority_generate(o->ca, fingerprint, e) :
		    ptcp_key_generate(NULL, fingerprint, e);
		break;
	default:
		if (o->certificates)
			return ptcp_certificates_each(NULL, print_certificate, o, e);
		if (o->certificate != NULL)
			return show_file(o, e);
		r = o->ca != NULL ? ptcp_authority_show(o->ca, fingerprint, e) : ptcp_key_show(NULL, fingerprint, e);
	}
	if (r == 0)
		puts(fingerprint);
	return r;
}

static bool takes(enum action action, const struct opt *o)
{
	char name[32];

	snprintf(name, sizeof name, " %s ", o->name);
	return strstr(uses[action].options, name) != NULL;
}

static int check_options(enum action action, const struct key_opts *o, const struct options_given *given,
    struct ptcp_err *e)
{
	unsigned i;

	for (i = 0; key_options[i].name != NULL; i++)
		if (options_is_given(given, &key_options[i]) && !takes(action, &key_options[i]))
			return err_set(e, PTCP_EUSAGE, "key %s: takes no --%s (see ptcp key --help)", uses[action].name,
			    key_options[i].name);
	if (action == SHOW && o->json && !o->certificates && o->certificate == NULL)
		return err_set(e, PTCP_EUSAGE, "key show: takes no --json without --certificates (add --certificates)");
	if (action == SHOW && (o->ca != NULL) + (o->certificate != NULL) + o->certificates > 1)
		return err_set(e, PTCP_EUSAGE, "key show: takes one of --ca, --certificate and --certificates (leave "
		    "the others out)");
	return 0;
}

static int find_action(const char *name, enum action *out, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct suggest near;
	enum action a = SHOW;

	while (a < N_ACTIONS && strcmp(uses[a].name, name) != 0)
		a++;
	*out = a;
	if (a < N_ACTIONS)
		return 0;
	suggest_init(&near, name, strlen(name));
	for (a = SHOW; a < N_ACTIONS; a++)
		suggest_offer(&near, uses[a].name);
	return err_set(e, PTCP_EUSAGE, "key %s: no such action (%s%s%s)", text_escape(shown, sizeof shown, name),
	    near.best != NULL ? "did you mean " : ALL_ACTIONS,
	    near.best != NULL ? near.best : "", near.best != NULL ? "?" : "");
}

static int check_and_run(struct key_opts *o, const struct options_given *given, int n, char **operands,
    struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	enum action action;
	int wanted, r;

	if ((r = find_action(operands[0], &action, e)) < 0 || (r = check_options(action, o, given, e)) < 0)
		return r;
	wanted = 1 + (uses[action].operand != NULL) + (action == TRUST) -
	    ((action == AUTHORIZE || action == TRUST) && o->ca != NULL);
	if (n < wanted || (wanted == 2 && n > 2))
		return err_set(e, PTCP_EUSAGE, wanted == 3 ? "key %s: needs two operands: %s" :
		    "key %s: needs one operand: %s", uses[action].name, uses[action].operand);
	if (n > wanted)
		return err_set(e, PTCP_EUSAGE, "key %s: takes no further operand (leave '%s' out)", uses[action].name,
		    text_escape(shown, sizeof shown, operands[wanted]));
	return run_action(action, o, operands, e);
}

static int run_key(const struct command *c, int argc, char **argv)
{
	struct ptcp_err e = { .code = 0 };
	struct key_opts o = { .expires_ns = EXPIRES_NS };
	struct options_given given = { .n = 0 };
	int n, r;

	ptcp_permission_init(&o.permission);
	if ((r = options_parse(c, argc, argv, &o, &n, &given, &e)) == 0)
		r = check_and_run(&o, &given, n, argv, &e);
	options_given_free(&given);
	return command_end(c, r, &e);
}

static const struct opt_group tables[] = { GROUP_OWN(key_options), GROUP_END };

const struct command command_key = { "key", "show | generate | list | authorize FINGERPRINT [options] | revoke "
	"FINGERPRINT|SERIAL | sign --ca FILE FINGERPRINT [options] | install FILE | trust HOST FINGERPRINT | "
	"trust HOSTS --ca FINGERPRINT | forget HOST",
	"manage the identity of this host, certificates, authorized clients, and known hosts", run_key, tables, 1,
	INT_MAX, "needs an action: " ALL_ACTIONS };
