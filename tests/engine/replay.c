/* Runs sessions again from their records in a log: see tests/engine/replay. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "player.h"

static void print_line(void *arg, enum log_level level, const char *component, const char *msg)
{
	(void)arg, (void)level;
	printf("  %s: %s\n", component, msg);
}

/* The number of the next engine whose record begins there; 0: none. */
static unsigned next_engine(FILE *log)
{
	static char *text;
	static size_t cap;
	unsigned n;
	char *at, word[5];

	while (getline(&text, &cap, log) > 0)
		if ((at = strstr(text, "tape: ")) != NULL && sscanf(at, "tape: %u %4s", &n, word) == 2 &&
		    strcmp(word, "new") == 0)
			return n;
	return 0;
}

/* As the exit status has it. */
static int play_one(FILE *log, unsigned engine)
{
	const struct log lines = { print_line, NULL, LOG_DEBUG };
	struct play play;

	printf("session %u\n", engine);
	play_record(&play, log, engine, &lines);
	printf("  %lu calls, %lu decisions; %s%s\n", play.calls, play.decisions,
	    play.over ? "it ended: " : "the record ends before it",
	    !play.over ? "" : play.code == 0 ? "well" : ptcp_err_text(play.code));
	if (play.text[0] != '\0')
		printf("  %s\n", play.text);
	return play.outcome == PLAYED_SAME ? 0 : play.outcome == PLAYED_NOTHING ? 2 : 1;
}

int main(int argc, char **argv)
{
	FILE *log = argc == 2 || argc == 3 ? fopen(argv[1], "r") : NULL;
	int worst = 0, status;
	unsigned engine, n = 0;
	long at;

	if (log == NULL) {
		fprintf(stderr, argc == 2 || argc == 3 ? "%s: %s\n" : "usage: replay LOG [SESSION]\n", argv[1],
		    strerror(errno));
		return 2;
	}
	for (; (engine = next_engine(log)) != 0 && (at = ftell(log)) >= 0; fseek(log, at, SEEK_SET)) {
		if (argc == 3 && engine != (unsigned)atoi(argv[2]))
			continue;
		n++;
		rewind(log);
		status = play_one(log, engine);
		worst = status > worst ? status : worst;
	}
	if (n == 0)
		printf("%s: no record (was the log written with --log-level trace?)\n", argv[1]);
	fclose(log);
	return n == 0 ? 2 : worst;
}
