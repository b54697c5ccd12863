#include "net/relay_acl.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/text.h"
#include "core/units.h"

#define NAME_ADDRESSES 16
#define RETRY_MIN_NS NS_PER_S
#define RETRY_MAX_NS (60 * NS_PER_S)

/* IPv6, or IPv4-mapped IPv6; prefix lengths accordingly. */
struct port_range {
	uint8_t at[16];
	unsigned bits;
};

struct relay_acl_entry {
	struct relay_acl_entry *next;
	char name[SOCK_HOST_BYTES];          /* "": a range */
	struct port_range range;
	struct port_range known[NAME_ADDRESSES];  /* addresses of the name in its first answer */
	unsigned n_known;
	unsigned port;                       /* 0: any */
	bool answered, warned;
	struct resolve resolve;
	struct relay_acl *list;
};

struct relay_acl {
	struct relay_acl_entry *first;
	struct resolver *names;
	const struct log *log;
	struct timer *retry;
	uint64_t retry_ns;
};

static const char *const special[] = {
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10",
	"ff00::/8",
};

static bool contains(const struct port_range *r, const uint8_t at[16])
{
	unsigned whole = r->bits / 8, rest = r->bits % 8;

	return memcmp(r->at, at, whole) == 0 &&
	    (rest == 0 || ((r->at[whole] ^ at[whole]) & (0xff00 >> rest & 0xff)) == 0);
}

static void map_v4(uint8_t out[16], const void *v4)
{
	memset(out, 0, 10);
	out[10] = out[11] = 0xff;
	memcpy(out + 12, v4, 4);
}

static bool address_of(uint8_t out[16], const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		map_v4(out, &((const struct sockaddr_in *)(const void *)sa)->sin_addr);
	else if (sa->sa_family == AF_INET6)
		memcpy(out, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	return sa->sa_family == AF_INET || sa->sa_family == AF_INET6;
}

/* Parses "ADDRESS" or "ADDRESS/BITS"; bits after the prefix must be 0. */
static bool parse_range(struct port_range *out, const char *text)
{
	char address[SOCK_HOST_BYTES];
	const char *slash = strchr(text, '/');
	size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
	unsigned long max_bits = 128, bits, i;
	uint8_t v4[4];

	if (n >= sizeof address || (slash != NULL && (strlen(slash) < 2 || strlen(slash) > 4 ||
	    slash[1 + strspn(slash + 1, "0123456789")] != '\0')))
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(AF_INET, address, v4) == 1) {
		map_v4(out->at, v4);
		max_bits = 32;
	} else if (inet_pton(AF_INET6, address, out->at) != 1) {
		return false;
	}
	bits = slash != NULL ? strtoul(slash + 1, NULL, 10) : max_bits;
	if (bits > max_bits)
		return false;
	out->bits = (unsigned)(128 - max_bits + bits);
	for (i = out->bits; i < 128; i++)
		if ((out->at[i / 8] & 0x80 >> i % 8) != 0)
			return false;
	return true;
}

/* ---- The list ---- */

static int malformed(const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	return err_set(e, PTCP_EUSAGE, "--relay-to %s: not a next hop (write a name, an address or a range such as "
	    "10.0.0.0/8, IPv6 in brackets, then nothing, :PORT or :*)", text_escape(shown, sizeof shown, text));
}

/* Splits "HOST", "HOST:PORT" or "HOST:*" (any port: 0), IPv6 in brackets with a port; false if malformed. */
static bool split(const char *text, char host[SOCK_HOST_BYTES], unsigned *port, unsigned default_port)
{
	const unsigned none = 65536;
	char name[SOCK_HOST_BYTES + 10];
	size_t n = strlen(text);
	bool any = n > 2 && strcmp(text + n - 2, ":*") == 0;

	if (n >= sizeof name)
		return false;
	memcpy(name, text, n + 1);
	if (any)
		name[n - 2] = '\0';
	if (sock_split(name, host, port, none, NULL) < 0 || host[0] == '\0' || *port == 0 ||
	    (any && (*port != none || (name[0] != '[' && strchr(name, ':') != NULL))))
		return false;
	*port = any ? 0 : *port == none ? default_port : *port;
	return true;
}

/* "host." is "host". */
static bool same_name(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	n -= n > 0 && a[n - 1] == '.';
	m -= m > 0 && b[m - 1] == '.';
	return n == m && strncasecmp(a, b, n) == 0;
}

int relay_acl_add(struct relay_acl **list, const char *text, unsigned default_port, struct ptcp_err *e)
{
	struct relay_acl_entry *h;
	char host[SOCK_HOST_BYTES];
	unsigned port;
	struct port_range range = { .bits = 0 };
	bool is_range;

	if (!split(text, host, &port, default_port))
		return malformed(text, e);
	is_range = parse_range(&range, host);
	if (!is_range && (strpbrk(host, "/:%*") != NULL || strspn(host, "0123456789.") == strlen(host)))
		return malformed(text, e);
	if ((*list == NULL && (*list = calloc(1, sizeof **list)) == NULL) || (h = calloc(1, sizeof *h)) == NULL)
		return err_nomem(e);
	h->range = range;
	h->port = port;
	h->list = *list;
	if (!is_range)
		strcpy(h->name, host);
	h->next = (*list)->first;
	(*list)->first = h;
	return 0;
}

void relay_acl_free(struct relay_acl *n)
{
	struct relay_acl_entry *h;

	while (n != NULL && (h = n->first) != NULL) {
		n->first = h->next;
		resolve_cancel(&h->resolve);
		free(h);
	}
	if (n != NULL)
		timer_free(n->retry);
	free(n);
}

/* ---- Names ---- */

static void learn(struct relay_acl_entry *h, const struct addrinfo *all)
{
	h->answered = true;
	for (; all != NULL && h->n_known < NAME_ADDRESSES; all = all->ai_next)
		if (address_of(h->known[h->n_known].at, all->ai_addr))
			h->known[h->n_known++].bits = 128;
}

/* That there is no such name is an answer, too: whoever registers the name later gets no special addresses. */
static bool is_answer(int error)
{
	return error == 0 || error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY;
}

static void retry_later(struct relay_acl_entry *h, const char *why)
{
	struct relay_acl *n = h->list;
	char shown[TEXT_NAME_BYTES];

	if (!h->warned)
		log_at(n->log, LOG_WARN, "relay", "event=unresolved name=\"%s\" why=\"%s\" hint=\"trying again; check "
		    "the name servers\"", text_escape_quoted(shown, sizeof shown, h->name), why);
	h->warned = true;
	timer_set(n->retry, mono_add_ns(mono_now(), n->retry_ns));
}

static void on_resolved(struct resolve *q, const struct resolve_answer *a)
{
	struct relay_acl_entry *h = CONTAINER_OF(q, struct relay_acl_entry, resolve);

	if (h->answered)
		return; /* an answer to a client came first */
	if (is_answer(a->error))
		learn(h, a->all);
	else
		retry_later(h, resolve_error_text(a));
}

static void resolve_all(struct relay_acl *n)
{
	struct relay_acl_entry *h;
	struct ptcp_err why;

	for (h = n->first; h != NULL; h = h->next)
		if (h->name[0] != '\0' && !h->answered && h->resolve.lookup == NULL &&
		    resolve_start(&h->resolve, n->names, NULL, h->name, 0, on_resolved, &why) < 0)
			retry_later(h, why.msg);
}

static void on_retry(void *arg)
{
	struct relay_acl *n = arg;

	n->retry_ns = 2 * n->retry_ns < RETRY_MAX_NS ? 2 * n->retry_ns : RETRY_MAX_NS;
	resolve_all(n);
}

int relay_acl_resolve(struct relay_acl *n, struct loop *l, struct resolver *names, const struct log *log,
    struct ptcp_err *e)
{
	int r;

	if (n == NULL)
		return 0;
	n->names = names;
	n->log = log;
	n->retry_ns = RETRY_MIN_NS;
	if ((r = timer_new(&n->retry, l, on_retry, n, e)) == 0)
		resolve_all(n);
	return r;
}

/* ---- Requests ---- */

/* Prefix length of the longest special range that contains the address; 0: none. */
static unsigned special_bits(const uint8_t at[16])
{
	struct port_range r;
	unsigned max_bits = 0;
	size_t i;

	for (i = 0; i < sizeof special / sizeof *special; i++)
		if (parse_range(&r, special[i]) && contains(&r, at) && r.bits > max_bits)
			max_bits = r.bits;
	return max_bits;
}

static bool had_address(const struct relay_acl_entry *h, const uint8_t at[16])
{
	unsigned i;

	for (i = 0; i < h->n_known; i++)
		if (contains(&h->known[i], at))
			return true;
	return false;
}

static bool lists_port(const struct relay_acl_entry *h, unsigned port) { return h->port == 0 || h->port == port; }

bool relay_acl_may_permit(const struct relay_acl *n, const char *host, unsigned port)
{
	const struct relay_acl_entry *h;

	for (h = n != NULL ? n->first : NULL; h != NULL; h = h->next)
		if (lists_port(h, port) && (h->name[0] == '\0' || same_name(h->name, host)))
			return true;
	return false;
}

static bool permits(struct relay_acl_entry *h, const char *host, const struct addrinfo *all, const uint8_t at[16],
    unsigned special_range)
{
	if (h->name[0] == '\0')
		return contains(&h->range, at) && h->range.bits >= special_range;
	if (!same_name(h->name, host))
		return false;
	if (!h->answered && all != NULL)
		learn(h, all);
	return special_range == 0 || had_address(h, at);
}

bool relay_acl_permit(struct relay_acl *n, const char *host, unsigned port, const struct addrinfo *all,
    const struct sockaddr *sa)
{
	struct relay_acl_entry *h;
	uint8_t at[16];
	unsigned bits;

	if (n == NULL || !address_of(at, sa))
		return false;
	bits = special_bits(at);
	for (h = n->first; h != NULL; h = h->next)
		if (lists_port(h, port) && permits(h, host, all, at, bits))
			return true;
	return false;
}
