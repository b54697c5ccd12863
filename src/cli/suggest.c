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

bool suggest_is_dangerous(const struct opt *o)
{
	const char *help = o->help != NULL ? o->help : "";

	return strstr(o->name, "delete") != NULL || strstr(o->name, "remove") != NULL ||
	    strstr(help, "delete") != NULL ||
	    (strstr(help, "remove ") != NULL && strstr(help, "remove nothing") == NULL);
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
	{ "tcp-bs", "the kernel determines the buffers: leave the option out" },
	{ "retry", "--retry-for TIME retries so long" },
	{ "retries", "--retry-for TIME retries so long" },
	{ "output", "the last operand is the destination: ptcp recv HOST:SRC DEST" },
	{ "user", "USER@HOST:PATH names the user of ssh; servers know clients by keys: ptcp key show" },
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
	{ "cp", SEND_OR_RECV }, { "copy", SEND_OR_RECV }, { "sync", SEND_OR_RECV }, { "copyto", SEND_OR_RECV },
	{ "bisync", "one direction after the other: " SEND_OR_RECV ", with -u" },
	{ "get", "ptcp recv HOST:SRC... DEST" }, { "pull", "ptcp recv HOST:SRC... DEST" },
	{ "download", "ptcp recv HOST:SRC... DEST" }, { "fetch", "ptcp recv HOST:SRC... DEST" },
	{ "receive", "ptcp recv HOST:SRC... DEST" },
	{ "put", "ptcp send SRC... HOST:DEST" }, { "push", "ptcp send SRC... HOST:DEST" },
	{ "upload", "ptcp send SRC... HOST:DEST" },
	{ "mirror", "ptcp send, or recv, with the option for files that the source does not have: ptcp help send" },
	{ "diff", "ptcp send -n SRC... HOST:DEST lists what differs" },
	{ "check", "ptcp send -n -c SRC... HOST:DEST lists what differs" },
	{ "move", "ptcp mv renames on the other host" }, { "rename", "ptcp mv" },
	{ "moveto", "ptcp mv renames on the other host" },
	{ "delete", "ptcp rm" }, { "del", "ptcp rm" }, { "purge", "ptcp rm -r" }, { "unlink", "ptcp rm" },
	{ "dir", "ptcp ls" }, { "lsf", "ptcp ls" }, { "lsl", "ptcp ls -l" }, { "lsjson", "ptcp ls --json" },
	{ "tree", "ptcp ls -R" }, { "find", "ptcp ls -R" }, { "size", "ptcp du" },
	{ "md5sum", "ptcp sum -a md5" }, { "sha256sum", "ptcp sum" }, { "hashsum", "ptcp sum" },
	{ "checksum", "ptcp sum" },
	{ "cancel", "ptcp status --cancel NAME" }, { "kill", "ptcp status --cancel NAME" },
	{ "stop", "ptcp status --cancel NAME" },
	{ "resume", "repeat the command of the transfer: it resumes" }, { "queue", "ptcp jobs status" },
	{ "ps", "ptcp status" }, { "top", "ptcp status" }, { "history", "ptcp log" },
	{ "limit", "ptcp rate NAME RATE" },
	{ "ping", "ptcp doctor HOST" }, { "speedtest", "ptcp measure HOST" },
	{ "server", "ptcp serve" }, { "daemon", "ptcp serve" }, { "listen", "ptcp serve" }, { "rsyncd", "ptcp serve" },
	{ "keygen", "ptcp key show, which makes the key of this host" },
	{ "login", "ptcp key show, and ptcp key authorize there" },
	{ "config", "the commands take options, ptcp serve also --config FILE" },
	{ "mount", "fsspec opens ptcp:// URLs: contrib/python" },
};

const char *suggest_command(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].remedy;
	return NULL;
}
