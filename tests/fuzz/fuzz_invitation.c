/* libFuzzer target: an invitation of movers, as a text and as a file. What is taken is written as a text that reads the
 * same; what is not has a sentence. */
#include <errno.h>
#include <unistd.h>

#include "fuzz.h"
#include "mover/invitation.h"
#include "net/identity.h"
#include "scratch.h"

static bool same(const struct invitation *a, const struct invitation *b)
{
	unsigned i;
	bool ok = memcmp(a->run, b->run, sizeof a->run) == 0 && memcmp(a->key, b->key, sizeof a->key) == 0 &&
	    strcmp(a->engine, b->engine) == 0 && a->n_addresses == b->n_addresses && a->n_roots == b->n_roots &&
	    a->writes == b->writes && a->serves == b->serves && a->direct_io == b->direct_io && a->port == b->port;

	for (i = 0; ok && i < a->n_addresses; i++)
		ok = strcmp(a->address[i], b->address[i]) == 0;
	for (i = 0; ok && i < a->n_roots; i++)
		ok = strcmp(a->root[i], b->root[i]) == 0;
	return ok;
}

static void promises(const struct invitation *v)
{
	unsigned i;

	MUST(identity_fingerprint_ok(v->engine) && v->port <= 65535 && (v->serves || v->port == 0) &&
	    (!v->serves || v->writes));
	MUST(v->n_addresses >= 1 && v->n_addresses <= INVITATION_ADDRESSES_MAX);
	MUST(v->n_roots >= 1 && v->n_roots <= INVITATION_ROOTS_MAX);
	for (i = 0; i < v->n_roots; i++)
		MUST(v->root[i][0] == '/' && strlen(v->root[i]) <= WIRE_PATH_MAX && strchr(v->root[i], '\n') == NULL);
}

static void as_text(struct input in, bool *taken)
{
	struct invitation v, again;
	struct ptcp_err e = { 0 };
	char *text;
	int r = invitation_parse(&v, (const char *)in.p, in.n, &e);

	MUST(r == 0 || (r == e.code && e.msg[0] != '\0'));
	if (!(*taken = r == 0))
		return;
	promises(&v);
	MUST(invitation_text(&text, &v, NULL) == 0);
	MUST(invitation_parse(&again, text, strlen(text), NULL) == 0 && same(&v, &again));
	free(text);
	invitation_fini(&again);
	invitation_fini(&v);
}

static void as_file(struct input in, bool taken)
{
	struct invitation v;
	char path[512];

	scratch_write("invitation", in);
	snprintf(path, sizeof path, "%s", scratch_path("invitation"));
	if (invitation_read(&v, path, 0, NULL) == 0) {
		MUST(taken);
		promises(&v);
		invitation_fini(&v);
	} else {
		MUST(!taken);
	}
	/* No other file goes. */
	MUST(invitation_remove_own(path, NULL) == 0);
	MUST((access(path, F_OK) != 0) == taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	bool taken;

	as_text((struct input){ data, n }, &taken);
	as_file((struct input){ data, n }, taken);
	return 0;
}
