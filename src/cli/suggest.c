/* Remedies for options and commands that do not exist. */
#include <stddef.h>
#include <string.h>

#include "cli/options.h"

#define WORD_BYTES 32 /* longer words are not compared */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Optimal string alignment, by three rows of the table of distances between prefixes. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned row[3][WORD_BYTES + 1], *before = row[0], *above = row[1], *now = row[2], *spare, change;
	size_t i, j;

	for (j = 0; j <= m; j++)
		now[j] = (unsigned)j;
	for (i = 1; i <= n; i++) {
		spare = before;
		before = above;
		above = now;
		now = spare;
		now[0] = (unsigned)i;
		for (j = 1; j <= m; j++) {
			change = a[i - 1] != b[j - 1];
			now[j] = min3(above[j] + 1, now[j - 1] + 1, above[j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
	}
	return now[m];
}

void suggest_init(struct suggest *s, const char *text, size_t n)
{
	*s = (struct suggest){ .text = text, .n = n, .distance = n < 6 ? 2 : (unsigned)n / 3 + 1 };
}

void suggest_offer(struct suggest *s, const char *word)
{
	size_t m = strlen(word);
	unsigned d;

	if (s->n < 2 || s->n > WORD_BYTES || m > WORD_BYTES || m == 0)
		return;
	d = s->n >= 3 && strncmp(word, s->text, s->n) == 0 ? 1 : distance(s->text, s->n, word, m);
	if (d < s->distance) {
		s->distance = d;
		s->best = word;
	}
}

/* Options that remove files. A user who mistypes an option of another program does not request that. */
static const char *const dangerous[] = { "delete", "max-delete", "remove-source-files" };

bool suggest_is_dangerous(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof dangerous / sizeof *dangerous; i++)
		if (strcmp(name, dangerous[i]) == 0)
			return true;
	return false;
}

static const struct {
	const char *name;
	char letter;
	const char *remedy;
} options[] = {
	{ "parallel", 'p', "--streams N sets the number of TCP streams; times and modes are preserved by default" },
	{ "transfers", 0, "--streams N sets the number of TCP streams, auto by default" },
	{ "bwlimit", 'l', "--rate limits the rate, such as --rate 100MB/s or 800Mbit/s" },
	{ "limit-rate", 0, "--rate limits the rate, such as --rate 100MB/s or 800Mbit/s" },
	{ NULL, 'C', "data is compressed where that is faster, --compress sets the level: leave the option out" },
	{ "rsh", 'e', "--ssh names the ssh command, such as --ssh 'ssh -p 2222'" },
	{ NULL, 'i', "--ssh names the ssh command, such as --ssh 'ssh -i FILE'" },
	{ NULL, 'o', "--ssh names the ssh command, such as --ssh 'ssh -o OPTION'" },
	{ "port", 0, "the port belongs to the URL: ptcp://HOST:PORT/PATH, or ssh://HOST:PORT/PATH for ssh" },
	{ "rsync-path", 0, "--remote-ptcp names the command on the remote host" },
	{ "max-age", 0, "--newer-than leaves out older files, such as --newer-than 7d" },
	{ "min-age", 0, "--older-than leaves out newer files, such as --older-than 7d" },
	{ "list-only", 0, "ptcp ls lists a remote directory" },
	{ "link-dest", 0, "ptcp makes no hard links to an older copy: leave the option out" },
	{ "inplace", 0, "ptcp replaces a file once it is complete: leave the option out" },
	{ "append", 0, "ptcp resumes files by itself: leave the option out" },
	{ "stats", 0, "the summary at the end has the numbers, --json has all" },
	{ "log-file", 0, "--log-level writes a log to standard error: add 2>FILE" },
	{ NULL, 't', "times are preserved by default: leave the option out" },
};

const char *suggest_option(const char *name, size_t n, char letter)
{
	size_t i;

	for (i = 0; i < sizeof options / sizeof *options; i++)
		if (letter != 0 ? options[i].letter == letter :
		    options[i].name != NULL && strlen(options[i].name) == n && memcmp(options[i].name, name, n) == 0)
			return options[i].remedy;
	return NULL;
}

#define SEND_OR_RECV "ptcp send SRC... HOST:DEST, or ptcp recv HOST:SRC... DEST"

static const struct {
	const char *name, *remedy;
} commands[] = {
	{ "cp", SEND_OR_RECV }, { "copy", SEND_OR_RECV }, { "sync", SEND_OR_RECV },
	{ "get", "ptcp recv HOST:SRC... DEST" }, { "pull", "ptcp recv HOST:SRC... DEST" },
	{ "put", "ptcp send SRC... HOST:DEST" }, { "push", "ptcp send SRC... HOST:DEST" },
};

const char *suggest_command(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].remedy;
	return NULL;
}
