#include "net/reach.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

static enum reach reach_of_4(const uint8_t a[4])
{
	if (a[0] == 0 || a[0] >= 224)
		return REACH_NOBODY; /* 0.0.0.0 leads to this host */
	if (a[0] == 127)
		return REACH_HOST;
	if (a[0] == 169 && a[1] == 254)
		return REACH_LINK;
	return a[0] == 10 || (a[0] == 172 && (a[1] & 0xf0) == 16) || (a[0] == 192 && a[1] == 168) ||
	    (a[0] == 100 && (a[1] & 0xc0) == 64) ? REACH_SITE : REACH_WORLD;
}

static enum reach reach_of_6(const uint8_t a[16])
{
	static const uint8_t zeros[15], mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(a, mapped, sizeof mapped) == 0)
		return reach_of_4(a + 12);
	if (memcmp(a, zeros, sizeof zeros) == 0)
		return a[15] == 1 ? REACH_HOST : REACH_NOBODY;
	if (a[0] == 0xff)
		return REACH_NOBODY;
	if (a[0] == 0xfe && (a[1] & 0xc0) == 0x80)
		return REACH_LINK;
	return (a[0] & 0xfe) == 0xfc ? REACH_SITE : REACH_WORLD;
}

/* The bytes of the address; NULL: another family. */
static const uint8_t *bytes_of(const struct sockaddr *sa, unsigned *n)
{
	*n = sa->sa_family == AF_INET ? 4 : 16;
	if (sa->sa_family == AF_INET)
		return (const uint8_t *)&((const struct sockaddr_in *)(const void *)sa)->sin_addr;
	return sa->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr.s6_addr : NULL;
}

enum reach reach_of(const struct sockaddr *sa)
{
	unsigned n;
	const uint8_t *a = bytes_of(sa, &n);

	return a == NULL ? REACH_NOBODY : n == 4 ? reach_of_4(a) : reach_of_6(a);
}

bool reach_numeric(struct sockaddr_storage *out, const char *host)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *all;

	if (getaddrinfo(host, NULL, &hints, &all) != 0)
		return false;
	memcpy(out, all->ai_addr, all->ai_addrlen);
	freeaddrinfo(all);
	return true;
}

/* Leading bits that both have in common; another family: -1. */
static int shared_bits(const char *a, const char *b)
{
	struct sockaddr_storage sa, sb;
	const uint8_t *pa, *pb;
	unsigned na, nb, i;

	if (!reach_numeric(&sa, a) || !reach_numeric(&sb, b) || (pa = bytes_of((struct sockaddr *)&sa, &na)) == NULL ||
	    (pb = bytes_of((struct sockaddr *)&sb, &nb)) == NULL || na != nb)
		return -1;
	for (i = 0; i < 8 * na; i++)
		if (((pa[i / 8] ^ pb[i / 8]) >> (7 - i % 8) & 1) != 0)
			break;
	return (int)i;
}

const char *reach_nearest(char (*host)[SOCK_HOST_BYTES], unsigned n, const char *near)
{
	const char *best = host[0];
	int bits, best_bits = shared_bits(host[0], near);
	unsigned i;

	for (i = 1; i < n; i++)
		if ((bits = shared_bits(host[i], near)) > best_bits) {
			best_bits = bits;
			best = host[i];
		}
	return best;
}
