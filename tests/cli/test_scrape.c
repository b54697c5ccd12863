/* Answers to Prometheus: requests in pieces, long answers, strangers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/metrics/scrape.h"
#include "core/err.h"

static size_t printed; /* KiB of the text; 0: "ptcp_x 1\n" */

static void print(FILE *f, void *arg)
{
	char kib[1024];
	size_t i;

	assert_string_equal(arg, "arg");
	memset(kib, 'x', sizeof kib);
	if (printed == 0)
		fputs("ptcp_x 1\n", f);
	for (i = 0; i < printed; i++)
		fwrite(kib, 1, sizeof kib, f);
}

static char arg[] = "arg";

static void turn(struct scrape *s, int ms)
{
	struct pollfd p[SCRAPE_FDS];
	unsigned n = scrape_polled(s, p);

	assert_true(n >= 1 && n <= SCRAPE_FDS);
	poll(p, n, ms);
	scrape_step(s, p, print, arg);
}

static struct scrape *listening(void)
{
	struct scrape *s;

	assert_int_equal(scrape_new(&s, "127.0.0.1:0", NULL), 0);
	return s;
}

static int connected(const struct scrape *s)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)atoi(strrchr(scrape_address(s), ':') + 1)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

/* What the peer says until the end, while the loop turns. -1: reset. */
static ssize_t heard(struct scrape *s, int fd, char *out, size_t cap)
{
	size_t n = 0;
	ssize_t r;

	for (;;) {
		turn(s, 1);
		r = recv(fd, out + n, cap - 1 - n, MSG_DONTWAIT);
		if (r < 0 && errno == EAGAIN)
			continue;
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	close(fd);
	out[n] = '\0';
	return r < 0 ? -1 : (ssize_t)n;
}

static void say(int fd, const char *text) { assert_int_equal(send(fd, text, strlen(text), 0), strlen(text)); }

static void answers(void **state)
{
	static const struct {
		const char *request, *status, *body;
	} cases[] = {
		{ "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "ptcp_x 1\n" },
		{ "GET /metrics HTTP/1.0\n\n", "200 OK", "ptcp_x 1\n" },
		{ "GET /metrics?x=y HTTP/1.1\r\n\r\n", "200 OK", "ptcp_x 1\n" },
		{ "HEAD /metrics HTTP/1.1\r\n\r\n", "200 OK", "" },
		{ "GET / HTTP/1.1\r\n\r\n", "404 Not Found", NULL },
		{ "GET /metricsx HTTP/1.1\r\n\r\n", "404 Not Found", NULL },
		{ "GET /metric HTTP/1.1\r\n\r\n", "404 Not Found", NULL },
		{ "GET /../metrics HTTP/1.1\r\n\r\n", "404 Not Found", NULL },
		{ "POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", NULL },
		{ "get /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", NULL },
		{ "GETX /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", NULL },
		{ "GET /metrics\r\n\r\n", "400 Bad Request", NULL },
		{ "GET /metrics HTTP/2\r\n\r\n", "400 Bad Request", NULL },
		{ "\r\n\r\n", "400 Bad Request", NULL },
		{ "GET\r\n\r\n", "400 Bad Request", NULL },
	};
	char said[1000], want[100];
	struct scrape *s = listening();
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		int fd = connected(s);
		const char *body;

		say(fd, cases[i].request);
		assert_true(heard(s, fd, said, sizeof said) > 0);
		snprintf(want, sizeof want, "HTTP/1.1 %s\r\n", cases[i].status);
		if (strncmp(said, want, strlen(want)) != 0)
			fail_msg("%s: %s", cases[i].request, said);
		assert_non_null(body = strstr(said, "\r\n\r\n"));
		if (cases[i].body != NULL)
			assert_string_equal(body + 4, cases[i].body);
		if (cases[i].body == NULL || cases[i].body[0] != '\0') {
			snprintf(want, sizeof want, "Content-Length: %zu\r\n", strlen(body + 4));
			assert_non_null(strstr(said, want));
		}
	}
	scrape_free(s);
}

static void in_pieces(void **state)
{
	const char *request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
	struct scrape *s = listening();
	int fd = connected(s);
	char said[1000];
	size_t i;

	(void)state;
	for (i = 0; request[i] != '\0'; i++) {
		assert_int_equal(send(fd, request + i, 1, 0), 1);
		turn(s, 100);
	}
	assert_true(heard(s, fd, said, sizeof said) > 0);
	assert_non_null(strstr(said, "ptcp_x 1\n"));
	scrape_free(s);
}

/* More than the buffers of a socket take at once. */
static void long_answers(void **state)
{
	static char said[8 << 20];
	struct scrape *s = listening();
	int fd = connected(s);

	(void)state;
	printed = sizeof said / 1024 - 1;
	say(fd, "GET /metrics HTTP/1.1\r\n\r\n");
	assert_true(heard(s, fd, said, sizeof said) > (ssize_t)printed * 1024);
	assert_true(strlen(strstr(said, "\r\n\r\n") + 4) == printed * 1024);
	printed = 0;
	scrape_free(s);
}

static void strangers(void **state)
{
	struct scrape *s = listening();
	char said[6000], junk[5000];
	int fd[SCRAPERS_MAX + 1], i;

	(void)state;
	memset(junk, 'x', sizeof junk);
	fd[0] = connected(s);
	assert_int_equal(send(fd[0], junk, 4095, 0), 4095);
	assert_true(heard(s, fd[0], said, sizeof said) > 0);
	assert_non_null(strstr(said, "HTTP/1.1 431 "));
	fd[0] = connected(s);
	assert_int_equal(send(fd[0], "GET\0 /metrics HTTP/1.1\r\n\r\n", 26, 0), 26);
	assert_true(heard(s, fd[0], said, sizeof said) > 0);
	assert_non_null(strstr(said, "HTTP/1.1 400 "));
	/* Silent ones: the next replaces the oldest, and is answered. */
	for (i = 0; i < SCRAPERS_MAX; i++) {
		fd[i] = connected(s);
		turn(s, 100);
	}
	fd[i] = connected(s);
	say(fd[i], "GET /metrics HTTP/1.1\r\n\r\n");
	assert_true(heard(s, fd[i], said, sizeof said) > 0);
	assert_non_null(strstr(said, "ptcp_x 1\n"));
	assert_int_equal(recv(fd[0], said, sizeof said, 0), 0); /* the end */
	assert_int_equal(recv(fd[1], said, sizeof said, MSG_DONTWAIT), -1);
	for (i = 0; i < SCRAPERS_MAX; i++)
		close(fd[i]);
	/* One that leaves before its answer. */
	fd[0] = connected(s);
	say(fd[0], "GET /metrics HTTP/1.1\r\n\r\n");
	close(fd[0]);
	for (i = 0; i < 5; i++)
		turn(s, 10);
	scrape_free(s);
}

static void addresses(void **state)
{
	static const char *const bad[] = { "", "9711", "127.0.0.1", "127.0.0.1:", "::1", "::1:9711", "[::1]",
		"localhost:0", "127.0.0.1:x", "1.2.3.4.5:1" };
	struct scrape *s, *again;
	struct ptcp_err e;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_true(scrape_new(&s, bad[i], &e) < 0);
		assert_non_null(strstr(e.msg, "--metrics-listen"));
	}
	assert_int_equal(scrape_new(&s, ":0", &e), 0);
	scrape_free(s);
	s = listening();
	assert_int_equal(scrape_new(&again, scrape_address(s), &e), PTCP_ECONFIG);
	assert_non_null(strstr(e.msg, "in use"));
	scrape_free(s);
	assert_int_equal(scrape_polled(NULL, NULL), 0);
	scrape_step(NULL, NULL, print, arg);
	scrape_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(answers), cmocka_unit_test(in_pieces),
		cmocka_unit_test(long_answers), cmocka_unit_test(strangers), cmocka_unit_test(addresses) };
	return cmocka_run_group_tests_name("cli/scrape", tests, NULL, NULL);
}
