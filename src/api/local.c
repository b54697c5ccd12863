/* Functions about this host: version, identity, authorized clients, processor speed. */
#include <ptcp/ptcp.h>
#include <stdlib.h>
#include <string.h>

#include "conn/remote.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "core/userdir.h"
#include "fs/file_system.h"
#include "net/identity.h"
#include "net/tls.h"
#include "net/trust/known_hosts.h"
#include "net/trust/revoked.h"
#include "net/trust/trust.h"
#include "store/hash.h"

#define HASH_BYTES (1u << 20)
#define KNOWN_NAME_BYTES (SOCK_HOST_BYTES + 10)

const char *ptcp_version(void) { return PTCP_VERSION; }

int ptcp_config_dir(char *out, size_t cap, struct ptcp_err *e)
{
	char dir[USERDIR_BYTES];
	int r;

	if ((r = userdir_config(dir, NULL, e)) < 0)
		return r;
	if (strlen(dir) >= cap)
		return err_set(e, PTCP_ECONFIG, "configuration directory: path longer than %zu bytes (set "
		    "XDG_CONFIG_HOME to a shorter path)", cap - 1);
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
	return err_set(e, PTCP_EUSAGE, "%s: not a fingerprint (SHA256: and 43 characters; ptcp key show prints the "
	    "fingerprint of a host)",
	    text_escape(shown, sizeof shown, text != NULL ? text : ""));
}

static bool name_ok(const char *s)
{
	return text_is_word(s) && strlen(s) < TRUST_NAME_BYTES / 3;
}

static int check_permission(const struct ptcp_permission *p, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int r;

	if ((r = check_fingerprint(p->fingerprint, e)) < 0)
		return r;
	if (p->read_only && p->write_once)
		return err_set(e, PTCP_EUSAGE, "--read-only and --write-once: nothing would be permitted (choose one)");
	if (p->root != NULL && (p->root[0] != '/' || strlen(p->root) >= TRUST_ROOT_BYTES))
		return err_set(e, PTCP_EUSAGE, "--root %s: not an absolute path",
		    text_escape(shown, sizeof shown, p->root));
	if (p->name != NULL && !name_ok(p->name))
		return err_set(e, PTCP_EUSAGE, "--name %s: must be a single word of at most %d printable characters",
		    text_escape(shown, sizeof shown, p->name), TRUST_NAME_BYTES / 3 - 1);
	return 0;
}

int ptcp_authorize(const char *config_dir, const struct ptcp_permission *o, struct ptcp_err *e)
{
	char fingerprint[PTCP_FINGERPRINT_BYTES];
	struct ptcp_permission p;
	int r;

	ptcp_permission_init(&p);
	if ((r = opts_copy(&p, sizeof p, o, "ptcp_permission_init", e)) < 0)
		return r;
	/* Loading the identity creates the directory. */
	if ((r = check_permission(&p, e)) < 0 || (r = show(config_dir, false, fingerprint, e)) < 0)
		return r;
	r = authorized_set(config_dir, p.fingerprint, &p, e);
	return r < 0 ? r : 0;
}

struct local_listing {
	ptcp_permission_fn *each;
	void *arg;
};

static void list_client(void *arg, const char *fingerprint, bool authority, const struct authorization *a)
{
	const struct local_listing *l = arg;
	struct ptcp_permission p;

	ptcp_permission_init(&p);
	p.fingerprint = fingerprint;
	p.authority = authority;
	p.read_only = a->read_only;
	p.write_once = a->write_once;
	p.quota_bytes = a->quota_bytes;
	p.no_relay = a->no_relay;
	p.root = a->root[0] != '\0' ? a->root : NULL;
	p.name = a->name[0] != '\0' ? a->name : NULL;
	l->each(l->arg, &p);
}

int ptcp_authorized_each(const char *config_dir, ptcp_permission_fn *each, void *arg, struct ptcp_err *e)
{
	struct local_listing l = { each, arg };

	return authorized_each(config_dir, list_client, &l, e);
}

/* Whether this host admits clients, or trusts servers, by certificates. */
static int trusts_authority(const char *config_dir, struct ptcp_err *e)
{
	int r = authorized_has_authority(config_dir, e);

	return r != 0 ? r : known_hosts_has_authority(config_dir, e);
}

int ptcp_revoke(const char *config_dir, const char *fingerprint, struct ptcp_err *e)
{
	char own[PTCP_FINGERPRINT_BYTES];
	int known, r;

	if ((r = check_fingerprint(fingerprint, e)) < 0 || (r = show(config_dir, false, own, e)) < 0)
		return r;
	/* A certificate may still admit the key. */
	if ((known = trusts_authority(config_dir, e)) < 0 ||
	    (known > 0 && (r = revoked_set(config_dir, fingerprint, 0, false, e)) < 0))
		return known < 0 ? known : r;
	if ((r = authorized_set(config_dir, fingerprint, NULL, e)) == 0 && known == 0)
		return err_set(e, PTCP_EUSAGE, "%s: not authorized on this host (see authorized_clients)", fingerprint);
	return r < 0 ? r : 0;
}

/* ---- Known hosts ---- */

/* "HOST:PORT", as transfers look a server up; a host that is reached through SSH has no line. */
static int known_name(char out[KNOWN_NAME_BYTES], const char *host, struct ptcp_err *e)
{
	struct remote at;
	int r;

	if ((r = remote_parse_host(&at, host, e)) < 0)
		return r;
	if (at.ssh)
		return err_set(e, PTCP_EUSAGE, "%.200s: reached through SSH, which has known_hosts of its own (for a "
		    "server, write HOST or HOST:PORT)", host);
	remote_name(&at, out, KNOWN_NAME_BYTES);
	return 0;
}

int ptcp_host_trust(const char *config_dir, const char *host, const char *fingerprint, bool authority,
    struct ptcp_err *e)
{
	char name[KNOWN_NAME_BYTES], own[PTCP_FINGERPRINT_BYTES];
	int r;

	if ((r = check_fingerprint(fingerprint, e)) < 0 || (!authority && (r = known_name(name, host, e)) < 0) ||
	    (r = show(config_dir, false, own, e)) < 0) /* creates the directory */
		return r;
	r = known_hosts_set(config_dir, authority ? host : name, authority, fingerprint, e);
	return r < 0 ? r : 0;
}

int ptcp_host_forget(const char *config_dir, const char *host, struct ptcp_err *e)
{
	char name[KNOWN_NAME_BYTES], shown[TEXT_NAME_BYTES];
	int hosts = 0, authorities = 0;

	if (known_name(name, host, NULL) == 0 && (hosts = known_hosts_set(config_dir, name, false, NULL, e)) < 0)
		return hosts;
	if (text_is_word(host) && known_hosts_patterns_ok(host) &&
	    (authorities = known_hosts_set(config_dir, host, true, NULL, e)) < 0)
		return authorities;
	return hosts + authorities > 0 ? 0 : err_set(e, PTCP_EUSAGE, "%s: not in known_hosts (name it as a line there "
	    "does)", text_escape(shown, sizeof shown, host));
}

/* ---- File systems ---- */

int ptcp_file_system_try(const char *dir, struct ptcp_file_system *out, struct ptcp_err *e)
{
	char text[FILE_SYSTEM_TEXT_BYTES];
	struct file_system is;
	struct tree *tree;
	struct dir *root;
	int r;

	if ((r = tree_open(&tree, dir, &sys_real, e)) < 0)
		return r;
	root = tree_root(tree);
	if ((r = file_system_try(root, &is, e)) == 0) {
		*out = (struct ptcp_file_system){ .time_s = (double)is.time_ns / 1e9, .name_max = is.name_max };
		strcpy(out->type, is.type);
		strcpy(out->refused, is.refused);
		is.type[0] = '\0';
		if (file_system_text(&is, UINT32_MAX, text))
			strcpy(out->lacks, strchr(text, ':') + 2);
	}
	dir_unref(root);
	tree_unref(tree);
	return r;
}

/* ---- Processor speed ---- */

static int check_seconds(double seconds, struct ptcp_err *e)
{
	return seconds > 0 && seconds <= 60 ? 0 :
	    err_set(e, PTCP_EUSAGE, "duration: out of range (more than 0 and at most 60 s)");
}

int ptcp_cipher_speed(enum ptcp_cipher c, double seconds, double *bps, struct ptcp_err *e)
{
	int r = check_seconds(seconds, e);

	return r < 0 ? r : tls_cipher_speed(c, seconds, bps, e);
}

int ptcp_hash_speed(double seconds, double *bps, struct ptcp_err *e)
{
	volatile uint64_t sink;
	uint8_t *block;
	struct mono start;
	double took = 0, bytes = 0;
	int r;

	if ((r = check_seconds(seconds, e)) < 0)
		return r;
	if ((block = malloc(HASH_BYTES)) == NULL)
		return err_nomem(e);
	memset(block, 0x5a, HASH_BYTES);
	for (start = mono_now(); took < seconds; took = (double)mono_diff_ns(mono_now(), start) / 1e9) {
		sink = hash_content(block, HASH_BYTES);
		bytes += HASH_BYTES;
	}
	(void)sink;
	free(block);
	*bps = bytes * 8 / took;
	return 0;
}
