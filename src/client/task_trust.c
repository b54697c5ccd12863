/* The identities of the target and of relays: --fingerprint, known_hosts, or the user's answer. */
#include <string.h>
#include <strings.h>
#include <time.h>

#include "client/task_impl.h"
#include "core/err.h"
#include "net/trust/known_hosts.h"

#define NAME_BYTES (SOCK_HOST_BYTES + 10)

/* Whether a --fingerprint applies to this host (or to all). */
static bool pin_is_for(const char *pin, const char *host, unsigned port, const char **fingerprint)
{
	const char *eq = strrchr(pin, '=');
	char pinned[SOCK_HOST_BYTES], where[SOCK_HOST_BYTES];
	unsigned pinned_port;

	*fingerprint = eq != NULL ? eq + 1 : pin;
	if (eq == NULL)
		return true;
	if ((size_t)(eq - pin) >= sizeof where)
		return false;
	memcpy(where, pin, (size_t)(eq - pin));
	where[eq - pin] = '\0';
	return sock_split(where, pinned, &pinned_port, port, NULL) == 0 && strcasecmp(pinned, host) == 0 &&
	    pinned_port == port;
}

/* The user can be asked only before a session runs. */
static int unknown(struct ptcp_task *t, const char *name, const char *fingerprint, const char *reason,
    struct ptcp_err *e)
{
	if (t->session == NULL) {
		t->trust.unknown = true;
		strcpy(t->trust.name, name);
		strcpy(t->trust.fingerprint, fingerprint);
	}
	return err_set(e, PTCP_EREFUSED, "%s: an unknown host with fingerprint %s%s%s (compare with ptcp key "
	    "show there, then give --fingerprint %s, or run ptcp from a terminal)", name, fingerprint,
	    reason[0] != '\0' ? ": " : "", reason, fingerprint);
}

static int check_pins(struct ptcp_task *t, const struct connect_hop *hop, const char *name,
    const struct connect_peer *peer, struct ptcp_err *e)
{
	const char *pin, *fingerprint = peer->fingerprint;
	struct ptcp_err reason;
	bool pinned = false;
	size_t i;
	int r;

	for (i = 0; i < t->o.n_fingerprints; i++) {
		if (!pin_is_for(t->o.fingerprints[i], hop->host, hop->port, &pin))
			continue;
		if (strcmp(pin, fingerprint) == 0)
			return known_hosts_check_revoked(t->context.config_dir, name, fingerprint, e);
		pinned = true;
	}
	if (pinned)
		return err_set(e, PTCP_EREFUSED, "%s: the host's fingerprint is %s, not the one given with "
		    "--fingerprint (another host answers in its place, or its key was replaced: then give the new one)",
		    name, fingerprint);
	r = known_hosts_check(t->context.config_dir, name, fingerprint, &peer->certificates,
	    (uint64_t)time(NULL), &reason);
	if (r < 0) {
		*e = reason;
		return r;
	}
	if (r == HOST_MATCHES)
		return 0;
	if (r == HOST_DIFFERS)
		return err_set(e, PTCP_EREFUSED, "%s: the host's fingerprint is %s, but known_hosts has another "
		    "(another host answers in its place, or its key was replaced: then remove the line from "
		    "%s/known_hosts)", name, fingerprint, t->context.config_dir);
	return unknown(t, name, fingerprint, reason.msg, e);
}

/* A relay's identity has no other role in this run: a relay must not pass for the host at the end of the path. */
static int check_role(struct ptcp_task *t, const char *name, bool relay, const char *fingerprint, struct ptcp_err *e)
{
	const struct trusted *m;

	for (m = t->trust.accepted; m < t->trust.accepted + t->trust.n_accepted; m++)
		if (strcmp(m->fingerprint, fingerprint) == 0 && (m->relay || relay) &&
		    (m->relay != relay || strcasecmp(m->name, name) != 0))
			return err_set(e, PTCP_EREFUSED, "%s: has the identity of %s%s (the relay answers for the "
			    "other host, or both are one host: leave one out)", name,
			    m->relay ? "the relay " : "", m->name);
	return 0;
}

static void remember(struct ptcp_task *t, const char *name, bool relay, const char *fingerprint)
{
	struct trusted *m;

	for (m = t->trust.accepted; m < t->trust.accepted + t->trust.n_accepted; m++)
		if (m->relay == relay && strcmp(m->fingerprint, fingerprint) == 0)
			return;
	if (t->trust.n_accepted == TRUSTED_MAX)
		return;
	t->trust.n_accepted++;
	m->relay = relay;
	snprintf(m->name, sizeof m->name, "%s", name);
	strcpy(m->fingerprint, fingerprint);
}

int task_trust(void *arg, const struct connect_hop *hop, bool relay, const struct connect_peer *peer,
    struct ptcp_err *e)
{
	const char *fingerprint = peer->fingerprint;
	struct ptcp_task *t = arg;
	char name[NAME_BYTES];
	int r;

	sock_join(name, sizeof name, hop->host, hop->port);
	if ((r = check_role(t, name, relay, fingerprint, e)) < 0)
		return r;
	if (t->trust.launched[0] == '\0' || relay)
		r = check_pins(t, hop, name, peer, e);
	else if (strcmp(fingerprint, t->trust.launched) != 0)
		r = err_set(e, PTCP_EREFUSED, "%s: the fingerprint is not that of the server that ssh has started (run "
		    "the same command again)", name);
	if (r < 0)
		return r;
	remember(t, name, relay, fingerprint);
	return 0;
}

bool task_knows_host(const struct ptcp_task *t, char fingerprint[PTCP_FINGERPRINT_BYTES])
{
	const char *pin, *found = NULL;
	size_t i;

	for (i = 0; i < t->o.n_fingerprints; i++) {
		if (!pin_is_for(t->o.fingerprints[i], t->target.host, t->target.port, &pin))
			continue;
		if (pin == t->o.fingerprints[i] || (found != NULL && strcmp(found, pin) != 0))
			return false;
		found = pin;
	}
	if (found == NULL)
		return known_hosts_single(t->context.config_dir, t->known_as, fingerprint);
	strcpy(fingerprint, found);
	return true;
}
