/* libFuzzer target: known_hosts and authorized_clients, as somebody edited them. Whatever stands in them,
 * what is said of a host or client afterwards holds: one that was added is known, one that was authorised
 * has these rights and no others, one that was revoked is not let in. */
#include "fuzz.h"
#include "net/identity.h"
#include "net/trust.h"
#include "scratch.h"

#define US "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define OTHER "SHA256:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA"

static void hosts(void)
{
	enum known_host k = (enum known_host)known_hosts_check(scratch(), "host:7811", US, NULL);

	MUST(k == HOST_UNKNOWN || k == HOST_MATCHES || k == HOST_DIFFERS);
	if (k == HOST_MATCHES)
		return;
	MUST(known_hosts_add(scratch(), "host:7811", US, NULL) == 0);
	MUST(known_hosts_check(scratch(), "host:7811", US, NULL) == HOST_MATCHES);
	MUST(known_hosts_check(scratch(), "HOST:7811", US, NULL) == HOST_MATCHES);
}

static void check(const struct authorization *a)
{
	MUST(a->root[0] == '\0' || a->root[0] == '/');
	MUST(memchr(a->root, 0, sizeof a->root) != NULL && memchr(a->name, 0, sizeof a->name) != NULL);
}

static void clients(bool read_only)
{
	struct ptcp_permission p;
	struct authorization a, before;
	struct log log = { NULL, NULL, LOG_ERROR };
	int other = authorized_find(scratch(), OTHER, &before, &log);

	if (other > 0)
		check(&before);
	if (authorized_find(scratch(), US, &a, &log) > 0)
		check(&a);
	ptcp_permission_init(&p);
	p.fingerprint = US;
	p.root = read_only ? "/with a # and %" : NULL;
	p.name = "me";
	p.read_only = read_only;
	MUST(authorized_set(scratch(), US, &p, NULL) >= 0);
	MUST(authorized_find(scratch(), US, &a, &log) == 1 && a.read_only == read_only && !a.no_relay);
	MUST(strcmp(a.root, read_only ? p.root : "") == 0 && strcmp(a.name, "me") == 0);
	MUST(authorized_set(scratch(), US, NULL, NULL) == 1);
	MUST(authorized_find(scratch(), US, &a, &log) == 0);
	/* The rights of other clients are unchanged. */
	MUST(authorized_find(scratch(), OTHER, &a, &log) == other);
	MUST(other <= 0 || (a.read_only == before.read_only && strcmp(a.root, before.root) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	uint8_t what = take_byte(&in);

	scratch_write(what & 1 ? "known_hosts" : "authorized_clients", in);
	if (what & 1)
		hosts();
	else
		clients((what & 2) != 0);
	return 0;
}
