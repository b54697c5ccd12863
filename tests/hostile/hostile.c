/* A bad peer, for tests/hostile/test_hostile:
 *
 *   hostile client CASE CONFIG_DIR PORT [ARGUMENT...]   connects to a ptcp serve
 *   hostile server CASE CONFIG_DIR [ARGUMENT...]        prints "PORT FINGERPRINT", waits for one ptcp
 *   hostile local CASE ARGUMENT...                      is on the same host
 *
 * Ends with 0 when the other side did what it must. */
#include "hostile.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int hostile_listener = -1;

void hold(void)
{
	char byte;

	puts("open");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
}

/* The program exits in the middle of an attack; its own memory leaks are not tested. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void run(const struct hostile *const *tables, const char *name, unsigned port, char **arguments)
{
	const struct hostile *h;

	for (; *tables != NULL; tables++)
		for (h = *tables; h->name != NULL; h++)
			if (strcmp(h->name, name) == 0) {
				h->run(port, arguments);
				return;
			}
	die("no case %s", name);
}

static unsigned listen_here(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { patience_s(10), 0 };
	socklen_t n = sizeof sa;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (s < 0 || bind(s, (struct sockaddr *)&sa, n) < 0 || listen(s, 64) < 0 ||
	    getsockname(s, (struct sockaddr *)&sa, &n) < 0)
		die("cannot listen");
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	printf("%u %s\n", ntohs(sa.sin_port), self.fingerprint);
	fflush(stdout);
	hostile_listener = s;
	return ntohs(sa.sin_port);
}

int main(int argc, char **argv)
{
	static const struct hostile *const clients[] = { hostile_client, hostile_greedy,
		hostile_strangers, hostile_grants,
		hostile_between, hostile_movers, hostile_steerers, hostile_askers, hostile_cleaners, hostile_managers,
		hostile_holders, hostile_comparers, NULL };
	static const struct hostile *const servers[] = { hostile_server, hostile_engines,
		hostile_relay, hostile_steered,
		hostile_sources, hostile_doers, hostile_lying, hostile_cleaning, hostile_managed,
		hostile_keeper, NULL };
	static const struct hostile *const local[] = { hostile_local, hostile_local_user, NULL };
	const char *side = argc > 1 ? argv[1] : "";

	signal(SIGPIPE, SIG_IGN);
	if (strcmp(side, "local") == 0 && argc >= 4) {
		run(local, argv[2], 0, argv + 3);
	} else if (strcmp(side, "client") == 0 && argc >= 5) {
		peer_init(argv[3]);
		run(clients, argv[2], (unsigned)atoi(argv[4]), argv + 5);
	} else if (strcmp(side, "server") == 0 && argc >= 4) {
		peer_init(argv[3]);
		run(servers, argv[2], listen_here(), argv + 4);
	} else {
		die("usage: hostile client CASE CONFIG PORT .. | hostile server CASE CONFIG .. | "
		    "hostile local CASE ..");
	}
	return 0;
}
