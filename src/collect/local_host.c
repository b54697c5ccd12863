#include "collect/local_host.h"

#include <netdb.h>
#include <netinet/in.h>
#include <ptcp/ptcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"
#include "core/fd.h"
#include "core/text.h"

/* Host part of "HOST", "HOST:PORT", "[V6]:PORT" or a bare IPv6 address. */
static const char *split(char out[LOCAL_HOST_ADDRESS_BYTES], const char *address, long *port)
{
	const char *colon = strchr(address, ':');
	size_t n = strlen(address);

	if (address[0] == '[') {
		address++;
		n = strcspn(address, "]");
		colon = address[n] == ']' && address[n + 1] == ':' ? address + n + 1 : NULL;
	} else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
		n = (size_t)(colon - address);
	} else {
		colon = NULL;
	}
	*port = colon != NULL ? strtol(colon + 1, NULL, 10) : 0;
	snprintf(out, LOCAL_HOST_ADDRESS_BYTES, "%.*s", (int)n, address);
	return out;
}

const char *local_host_authority(char out[LOCAL_HOST_ADDRESS_BYTES], const char *address)
{
	char host[LOCAL_HOST_ADDRESS_BYTES];
	long port;

	split(host, address, &port);
	snprintf(out, LOCAL_HOST_ADDRESS_BYTES, strchr(host, ':') != NULL ? "[%.200s]:%ld" : "%.200s:%ld", host,
	    port != 0 ? port : PTCP_PORT);
	return out;
}

unsigned local_host_port(const char *address)
{
	char host[LOCAL_HOST_ADDRESS_BYTES];
	long port;

	split(host, address, &port);
	return port > 0 && port <= 65535 ? (unsigned)port : 0;
}

static bool is_here(const char *address)
{
	struct addrinfo want = { .ai_socktype = SOCK_DGRAM }, *list, *a;
	char host[LOCAL_HOST_ADDRESS_BYTES];
	bool ours = false;
	long port;
	int fd;

	if (address == NULL || getaddrinfo(split(host, address, &port), NULL, &want, &list) != 0)
		return false;
	for (a = list; a != NULL && !ours; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		ours = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0; /* local addresses only */
		fd_close(&fd);
	}
	freeaddrinfo(list);
	return ours;
}

const char *local_host_name(const struct ptcp_overlay *o, int host)
{
	struct ptcp_overlay_host h;

	ptcp_overlay_host(o, (size_t)host, &h);
	return h.name;
}

int local_host_find(const struct ptcp_overlay *o, const char *name, int *host, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct ptcp_overlay_host h;
	int i, found = -1;

	if (name != NULL) {
		if ((*host = ptcp_overlay_find_host(o, name)) >= 0)
			return 0;
		return err_set(e, PTCP_EUSAGE, "--local-host '%s': no such host in the overlay (name one of its hosts)",
		    text_escape(shown, sizeof shown, name));
	}
	for (i = 0; i < (int)ptcp_overlay_hosts(o); i++) {
		ptcp_overlay_host(o, (size_t)i, &h);
		if (!is_here(h.address))
			continue;
		if (found >= 0)
			return err_set(e, PTCP_EUSAGE, "overlay: both %s and %s have an address of this host (select "
			    "one with --local-host)", local_host_name(o, found), h.name);
		found = i;
	}
	*host = found;
	return 0;
}

int local_host_collecting(const struct ptcp_overlay *o, const char *name, int *host, struct ptcp_err *e)
{
	int r = local_host_find(o, name, host, e), destination = ptcp_overlay_destination(o);
	struct ptcp_overlay_host h;

	if (name != NULL || (r == 0 && *host >= 0))
		return r;
	ptcp_overlay_host(o, (size_t)destination, &h);
	if (h.address != NULL && !is_here(h.address))
		return r;
	*host = destination;
	return 0;
}

int ptcp_overlay_local_host(const struct ptcp_overlay *o, const char *name, int *host, struct ptcp_err *e)
{
	int found, r = local_host_find(o, name, &found, e);

	if (r == 0 && found < 0)
		r = err_set(e, PTCP_EUSAGE,
		    "overlay: no host has an address of this host (select one with --local-host)");
	if (r == 0)
		*host = found;
	return r;
}

/* ---- Host of an address ---- */

static bool resolve_alike(const char *a, const char *b)
{
	struct addrinfo want = { .ai_socktype = SOCK_DGRAM }, *of_a, *of_b, *i, *k;
	bool alike = false;

	if (getaddrinfo(a, NULL, &want, &of_a) != 0)
		return false;
	if (getaddrinfo(b, NULL, &want, &of_b) == 0) {
		for (i = of_a; i != NULL && !alike; i = i->ai_next)
			for (k = of_b; k != NULL && !alike; k = k->ai_next)
				alike = i->ai_addrlen == k->ai_addrlen && memcmp(i->ai_addr, k->ai_addr,
				    i->ai_addrlen) == 0;
		freeaddrinfo(of_b);
	}
	freeaddrinfo(of_a);
	return alike;
}

/* The first host with this address; with `resolve` by any name of the address. */
static int find_address(const struct ptcp_overlay *o, const char *name, long port, bool resolve)
{
	char host[LOCAL_HOST_ADDRESS_BYTES];
	struct ptcp_overlay_host h;
	long its_port;
	int i;

	for (i = 0; i < (int)ptcp_overlay_hosts(o); i++) {
		ptcp_overlay_host(o, (size_t)i, &h);
		if (h.address == NULL)
			continue;
		split(host, h.address, &its_port);
		if (its_port == port && (resolve ? resolve_alike(host, name) : strcasecmp(host, name) == 0))
			return i;
	}
	return -1;
}

int ptcp_overlay_remote_host(const struct ptcp_overlay *o, const char *address, int *host, struct ptcp_err *e)
{
	char name[LOCAL_HOST_ADDRESS_BYTES], shown[TEXT_NAME_BYTES];
	long port;
	int found;

	split(name, address, &port);
	if ((found = find_address(o, name, port, false)) < 0 && (found = ptcp_overlay_find_host(o, name)) < 0)
		found = find_address(o, name, port, true);
	if (found < 0)
		return err_set(e, PTCP_EUSAGE,
		    "%s: no host of the overlay has this address and port (write it as in the overlay)",
		    text_escape(shown, sizeof shown, address));
	*host = found;
	return 0;
}
