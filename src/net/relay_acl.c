#include "net/relay_acl.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/text.h"
#include "net/sock.h"

#define NAME_ADDRESSES 16

/* IPv6, or IPv4-mapped IPv6; prefix lengths accordingly. */
struct range {
	uint8_t at[16];
	unsigned bits;
};

struct relay_acl_entry {
	struct relay_acl_entry *next;
	char name[SOCK_HOST_BYTES];          /* "": a range */
	struct range range;
	struct range known[NAME_ADDRESSES];  /* addresses of the name when it was listed */
	unsigned n_known;
	unsigned port;                       /* 0: any */
};

struct relay_acl {
	struct relay_acl_entry *first;
};

static const char *const special[] = {
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10",
	"ff00::/8",
};

static bool contains(const struct range *r, const uint8_t at[16])
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
static bool parse_range(struct range *out, const char *text)
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

	return err_set(e, PTCP_EUSAGE, "--relay-to %s: not a next hop (write a name, an address or a range such as 10.0.0.0/8, "
	    "IPv6 in brackets, then nothing, :PORT or :*)", text_escape(shown, sizeof shown, text));
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

static void look_up(struct relay_acl_entry *h)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all, *i;

	if (getaddrinfo(h->name, NULL, &hints, &all) != 0)
		return; /* later addresses are permitted unless special */
	for (i = all; i != NULL && h->n_known < NAME_ADDRESSES; i = i->ai_next)
		if (address_of(h->known[h->n_known].at, i->ai_addr))
			h->known[h->n_known++].bits = 128;
	freeaddrinfo(all);
}

int relay_acl_add(struct relay_acl **list, const char *text, unsigned default_port, struct ptcp_err *e)
{
	struct relay_acl_entry *h;
	char host[SOCK_HOST_BYTES];
	unsigned port;
	struct range range = { .bits = 0 };
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
	if (!is_range) {
		strcpy(h->name, host);
		look_up(h);
	}
	h->next = (*list)->first;
	(*list)->first = h;
	return 0;
}

void relay_acl_free(struct relay_acl *n)
{
	struct relay_acl_entry *h;

	while (n != NULL && (h = n->first) != NULL) {
		n->first = h->next;
		free(h);
	}
	free(n);
}

/* Prefix length of the longest special range that contains the address; 0: none. */
static unsigned special_bits(const uint8_t at[16])
{
	struct range r;
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

bool relay_acl_permit(const struct relay_acl *n, const char *host, unsigned port, const struct sockaddr *sa)
{
	const struct relay_acl_entry *h;
	uint8_t at[16];
	unsigned bits;

	if (n == NULL || !address_of(at, sa))
		return false;
	bits = special_bits(at);
	for (h = n->first; h != NULL; h = h->next) {
		if (h->port != 0 && h->port != port)
			continue;
		if (h->name[0] != '\0' ? same_name(h->name, host) && (bits == 0 || had_address(h, at)) :
		    contains(&h->range, at) && h->range.bits >= bits)
			return true;
	}
	return false;
}
