/* libFuzzer target: the texts of the sockets of running commands: requests, and answers with what ptcp status makes of
 * them. */
#include "cli/running.h"
#include "core/timetable.h"
#include "fuzz.h"

/* Nothing that a terminal would obey. */
static bool harmless(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			return false;
	return true;
}

static void request(const char *text)
{
	const char *rate = NULL;
	struct timetable tt;

	switch (running_request_parse(text, &rate)) {
	case RUNNING_RATE:
		MUST(rate == text + 5 && strncmp(text, "rate ", 5) == 0);
		timetable_parse(&tt, rate, NULL);
		break;
	case RUNNING_CANCEL:
		MUST(strcmp(text, "cancel") == 0);
		break;
	case RUNNING_STATUS:
		MUST(strcmp(text, "status") == 0);
		break;
	default:
		MUST(rate == NULL);
	}
}

static void answer(const char *text)
{
	struct ptcp_err e = { 0 };
	json_t *status = NULL;
	char *line = NULL;
	size_t n = 0;
	FILE *f;
	int r = running_answer_parse(&status, "name", text, &e);

	MUST(r == 0 || (r < 0 && r == e.code && e.msg[0] != '\0' && harmless(e.msg, strlen(e.msg))));
	MUST((r == 0) == (status != NULL));
	if (r < 0)
		return;
	MUST((f = open_memstream(&line, &n)) != NULL);
	running_write(f, status);
	fclose(f);
	MUST(n > 0 && line[n - 1] == '\n' && harmless(line, n - 1));
	free(line);
	json_decref(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct input in = { data, n };
	bool asks = take_byte(&in) % 4 == 0;
	char *text;

	if (!asks) {
		MUST((text = strndup((const char *)in.p, in.n)) != NULL);
		answer(text);
		free(text);
		return 0;
	}
	while (in.n > 0) {
		text = take_line(&in);
		request(text);
		free(text);
	}
	return 0;
}
