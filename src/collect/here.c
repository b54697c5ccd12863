#include "collect/here.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/err.h"
#include "core/text.h"

#define ADDRESS_BYTES 256

/* The host of "HOST", "HOST:PORT", "[V6]:PORT" or a bare IPv6 address. */
static const char *without_port(char out[ADDRESS_BYTES], const char *address)
{
	const char *colon = strchr(address, ':');
	size_t n = strlen(address);

	if (address[0] == '[') {
		address++;
		n = strcspn(address, "]");
	} else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
		n = (size_t)(colon - address);
	}
	snprintf(out, ADDRESS_BYTES, "%.*s", (int)n, address);
	return out;
}

/* One can only bind to what is one's own. */
static bool is_ours(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ours = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0;

	if (fd >= 0)
		close(fd);
	return ours;
}

static bool is_here(const char *address)
{
	struct addrinfo want = { .ai_socktype = SOCK_DGRAM }, *list, *a;
	char host[ADDRESS_BYTES];
	bool ours = false;

	if (address == NULL || getaddrinfo(without_port(host, address), NULL, &want, &list) != 0)
		return false;
	for (a = list; a != NULL && !ours; a = a->ai_next)
		ours = is_ours(a);
	freeaddrinfo(list);
	return ours;
}

const char *here_name(const struct ptcp_overlay *o, int host)
{
	struct ptcp_overlay_host h;

	ptcp_overlay_host(o, (size_t)host, &h);
	return h.name;
}

int here_find(int *host, const struct ptcp_overlay *o, const char *name, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct ptcp_overlay_host h;
	int i, found = -1;

	if (name != NULL) {
		if ((*host = ptcp_overlay_find_host(o, name)) >= 0)
			return 0;
		return err_set(e, PTCP_EUSAGE, "--here '%s': no such host in the overlay (name one of its hosts)",
		    text_escape(shown, sizeof shown, name));
	}
	for (i = 0; i < (int)ptcp_overlay_hosts(o); i++) {
		ptcp_overlay_host(o, (size_t)i, &h);
		if (!is_here(h.address))
			continue;
		if (found >= 0)
			return err_set(e, PTCP_EUSAGE, "links: both %s and %s have an address of this host (say "
			    "which it is with --here)", here_name(o, found), h.name);
		found = i;
	}
	if (found < 0)
		return err_set(e, PTCP_EUSAGE, "links: no host of the overlay has an address of this one (say which it "
		    "is with --here)");
	*host = found;
	return 0;
}
