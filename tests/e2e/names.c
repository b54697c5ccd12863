/* To be preloaded: names *.dead never have an answer, names *.live are 127.0.0.1, NAME.example.org is what the
 * environment variable HOST_NAME says, and every other name is looked up. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ends(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

static const char *example(const char *host)
{
	char name[80];

	snprintf(name, sizeof name, "HOST_%.*s", (int)strcspn(host, "."), host);
	return ends(host, ".example.org") ? getenv(name) : NULL;
}

int getaddrinfo(const char *restrict host, const char *restrict service, const struct addrinfo *restrict hints,
    struct addrinfo **restrict out)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (host == NULL || (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0))
		return real(host, service, hints, out);
	while (ends(host, ".dead"))
		sleep(60);
	if (example(host) != NULL)
		host = example(host);
	return real(ends(host, ".live") ? "127.0.0.1" : host, service, hints, out);
}
