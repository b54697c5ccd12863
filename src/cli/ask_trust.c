#include "cli/ask_trust.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/process.h"
#include "cli/terminal.h"
#include "core/text.h"

enum trust_answer trust_answer(const char *line, const char *fingerprint)
{
	size_t n;

	line += strspn(line, " \t");
	n = strcspn(line, " \t\r\n");
	if (line[n + strspn(line + n, " \t\r\n")] != '\0')
		return TRUST_UNCLEAR;
	if ((n == 3 && strncasecmp(line, "yes", n) == 0) ||
	    (n == strlen(fingerprint) && memcmp(line, fingerprint, n) == 0))
		return TRUST_YES;
	return n == 2 && strncasecmp(line, "no", n) == 0 ? TRUST_NO : TRUST_UNCLEAR;
}

/* One line of stdin; false at its end or when a signal has told us to stop. The signal may
 * have gone to another thread, so the wait is cut into pieces. */
static bool read_line(char *line, size_t cap)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	size_t n = 0;
	ssize_t r;

	for (;;) {
		if (process_stopping())
			return false;
		if (poll(&in, 1, 100) <= 0)
			continue;
		r = read(STDIN_FILENO, line + n, 1);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		if (line[n] == '\n')
			break;
		if (n < cap - 1) /* what is too long is no answer, however it ends */
			n++;
	}
	line[n] = '\0';
	return true;
}

bool trust_ask(void *arg, const char *host, const char *fingerprint)
{
	char line[256], shown[TEXT_NAME_BYTES];
	enum trust_answer a = TRUST_UNCLEAR;

	(void)arg;
	terminal_line("The host %s is not known here. Its fingerprint is\n    %s\n"
	    "Compare it with what 'ptcp key show' prints there.",
	    text_escape(shown, sizeof shown, host), fingerprint);
	while (a == TRUST_UNCLEAR) {
		terminal_ask("Trust it from now on? (yes, no, or type the fingerprint) ");
		if (!read_line(line, sizeof line)) {
			terminal_line("%s", "");
			return false;
		}
		a = trust_answer(line, fingerprint);
	}
	return a == TRUST_YES;
}
