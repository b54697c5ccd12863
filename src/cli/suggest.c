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

/* Options of rclone, bbcp, curl and globus-url-copy; those of rsync and scp are in their tables. */
static const struct {
	const char *name, *remedy;
} options[] = {
	{ "parallel", "--streams N sets the number of TCP streams" },
	{ "transfers", "--streams N sets the number of TCP streams, auto by default" },
	{ "multi-thread-streams", "--streams N sets the number of TCP streams, auto by default" },
	{ "limit-rate", "--rate limits the rate, such as --rate 100MB/s or 800Mbit/s" },
	{ "max-age", "--newer-than leaves out older files, such as --newer-than 7d" },
	{ "min-age", "--older-than leaves out newer files, such as --older-than 7d" },
	{ "checkers", "the tree is compared while it is sent: leave the option out" },
};

const char *suggest_option(const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < sizeof options / sizeof *options; i++)
		if (strlen(options[i].name) == n && memcmp(options[i].name, name, n) == 0)
			return options[i].remedy;
	return NULL;
}

#define SEND_OR_RECV "ptcp send SRC... HOST:DEST, or ptcp recv HOST:SRC... DEST"

static const struct {
	const char *name, *remedy;
} commands[] = {
	{ "cp", SEND_OR_RECV }, { "copy", SEND_OR_RECV }, { "sync", SEND_OR_RECV },
	{ "get", "ptcp recv HOST:SRC... DEST" }, { "pull", "ptcp recv HOST:SRC... DEST" },
	{ "download", "ptcp recv HOST:SRC... DEST" }, { "fetch", "ptcp recv HOST:SRC... DEST" },
	{ "put", "ptcp send SRC... HOST:DEST" }, { "push", "ptcp send SRC... HOST:DEST" },
	{ "upload", "ptcp send SRC... HOST:DEST" },
	{ "mirror", "ptcp send, or recv, with the option for files that the source does not have: ptcp help send" },
	{ "sftp", "ptcp send, recv, ls, mkdir, mv and rm are its commands" },
	{ "diff", "ptcp send -n SRC... HOST:DEST lists what differs" },
	{ "check", "ptcp send -n -c SRC... HOST:DEST lists what differs" },
	{ "cancel", "ptcp status --cancel NAME" }, { "jobs", "ptcp status" }, { "ps", "ptcp status" },
	{ "ping", "ptcp measure HOST" }, { "speedtest", "ptcp measure HOST" }, { "server", "ptcp serve" },
};

const char *suggest_command(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].remedy;
	return NULL;
}
