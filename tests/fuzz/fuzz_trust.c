/* libFuzzer target: known_hosts, authorized_clients and revoked with any content. Afterwards a host that is added is
 * known, a client that is authorized has these rights and no others, and a revoked client is refused. */
#include "fuzz.h"
#include "net/trust/certificate.h"
#include "net/trust/known_hosts.h"
#include "net/trust/revoked.h"
#include "net/trust/trust.h"
#include "scratch.h"

#define US "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define OTHER "SHA256:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA"

static int check_host(const char *name) { return known_hosts_check(scratch(), name, US, NULL, 0, NULL); }

/* A malformed line of an authority admits no host, whatever else the file says. */
static void hosts(void)
{
	int k = check_host("host:7811");

	MUST(k == HOST_UNKNOWN || k == HOST_MATCHES || k == HOST_DIFFERS || k == PTCP_ECONFIG);
	MUST(known_hosts_add(scratch(), "host:7811", US, NULL) == (k == PTCP_ECONFIG ? PTCP_ECONFIG : 0));
	MUST(check_host("host:7811") == (k == PTCP_ECONFIG ? PTCP_ECONFIG : HOST_MATCHES));
	MUST(check_host("HOST:7811") == check_host("host:7811"));
}

static void check(const struct authorization *a)
{
	MUST(a->root[0] == '\0' || a->root[0] == '/');
	MUST(memchr(a->root, 0, sizeof a->root) != NULL && memchr(a->name, 0, sizeof a->name) != NULL);
}

static int find(const char *fingerprint, struct authorization *a)
{
	struct trust_peer peer = { .fingerprint = fingerprint };
	struct log log = { NULL, NULL, LOG_ERROR };
	struct ptcp_err why;

	return authorized_find(scratch(), &peer, a, &why, &log);
}

static void clients(bool read_only)
{
	struct ptcp_permission p;
	struct authorization a, before;
	int other = find(OTHER, &before);

	if (other > 0)
		check(&before);
	if (find(US, &a) > 0)
		check(&a);
	ptcp_permission_init(&p);
	p.fingerprint = US;
	p.root = read_only ? "/with a # and %" : NULL;
	p.name = "me";
	p.read_only = read_only;
	MUST(authorized_set(scratch(), US, &p, NULL) >= 0);
	MUST(find(US, &a) == 1 && a.read_only == read_only && !a.no_relay);
	MUST(strcmp(a.root, read_only ? p.root : "") == 0 && strcmp(a.name, "me") == 0);
	MUST(authorized_set(scratch(), US, NULL, NULL) == 1);
	MUST(find(US, &a) == 0);
	/* The rights of other clients are unchanged. */
	MUST(find(OTHER, &a) == other);
	MUST(other <= 0 || (a.read_only == before.read_only && strcmp(a.root, before.root) == 0));
}

/* Certificates that a stranger presents: without the signature of an authority they admit nobody, and none that is
 * decoded has texts that could break a line. */
static void certificates(struct input in)
{
	static const char line[] = "@cert-authority " US "\n@cert-authority " OTHER "\n";
	uint8_t again[CERTIFICATE_MAX_BYTES];
	char text[CERTIFICATE_LINE_BYTES];
	struct authorization a;
	struct certificate c;
	struct ptcp_err why;
	struct trust_peer peer = { .fingerprint = US, .at_s = take_byte(&in) };
	size_t n, got;

	peer.certificates = in.p;
	peer.n = in.n;
	scratch_write("authorized_clients", (struct input){ (const uint8_t *)line, sizeof line - 1 });
	MUST(authorized_find(scratch(), &peer, &a, &why, NULL) <= 0);
	for (; in.n > 0 && (n = certificate_decode(&c, in.p, in.n)) > 0; in.p += n, in.n -= n) {
		MUST(n <= in.n && n <= CERTIFICATE_MAX_BYTES && c.name[0] != '\0' && strpbrk(c.name, " \n") == NULL);
		certificate_line(text, in.p, n);
		MUST(certificate_parse(again, &got, text, NULL) == 0 && got == n && memcmp(again, in.p, n) == 0);
		certificate_check_time(&c, peer.at_s, "this", NULL);
		if (certificate_is_signed(in.p, n))
			MUST(c.kind == CERTIFICATE_CLIENT || c.kind == CERTIFICATE_SERVER);
	}
}

static void revocations(void)
{
	int r = revoked_find(scratch(), US, 1, NULL);

	MUST(r == 0 || r == 1 || r == PTCP_ECONFIG);
	MUST(revoked_set(scratch(), US, 0, false, NULL) >= 0);
	MUST(r < 0 || revoked_find(scratch(), US, 0, NULL) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	uint8_t what = take_byte(&in);
	const char *file = what & 1 ? "known_hosts" : what & 4 ? "certificates" : what & 8 ? "revoked" :
	    "authorized_clients";
	struct certificates c;

	scratch_empty();
	if (what & 16) {
		certificates(in);
		return 0;
	}
	scratch_write(file, in);
	if (what & 1) {
		hosts();
	} else if (what & 4) {
		MUST(certificates_load(&c, scratch(), NULL) < 0 || c.n <= sizeof c.bytes);
	} else if (what & 8) {
		revocations();
	} else {
		clients((what & 2) != 0);
	}
	return 0;
}
