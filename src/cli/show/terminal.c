#include "cli/show/terminal.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t drawn; /* columns of the visible status line */

static void put(const char *p, size_t n)
{
	ssize_t r;

	while (n > 0) {
		if ((r = write(STDERR_FILENO, p, n)) < 0 && errno != EINTR)
			return;
		if (r > 0) {
			p += r;
			n -= (size_t)r;
		}
	}
}

static void erase(void)
{
	char blank[256];
	size_t n = drawn < sizeof blank - 2 ? drawn : sizeof blank - 2;

	if (drawn == 0)
		return;
	blank[0] = '\r';
	memset(blank + 1, ' ', n);
	blank[n + 1] = '\r';
	put(blank, n + 2);
	drawn = 0;
}

static void print(const char *end, const char *fmt, va_list ap)
{
	char *text = NULL;
	int n, saved = errno;
	size_t len = strlen(end);

	n = vasprintf(&text, fmt, ap);
	pthread_mutex_lock(&lock);
	erase();
	if (n >= 0) {
		char *whole = realloc(text, (size_t)n + len + 1);

		if (whole != NULL) {
			memcpy(whole + n, end, len + 1);
			text = whole;
			n += (int)len;
		}
		put(text, (size_t)n);
		free(text);
	}
	pthread_mutex_unlock(&lock);
	errno = saved;
}

void terminal_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print("\n", fmt, ap);
	va_end(ap);
}

void terminal_failed(const char *host, const char *path, const char *why)
{
	size_t cap = strlen(path) * 4 + 8; /* up to \ooo per byte */
	char *shown = malloc(cap);

	terminal_line("ptcp: %s%s%s: %s", host != NULL ? host : "", host != NULL ? ": " : "",
	    shown != NULL ? text_escape(shown, cap, path) : "?", why);
	free(shown);
}

void terminal_failed_below(uint64_t n)
{
	if (n > 0)
		terminal_line("ptcp: %llu %s below failed directories, not transferred (see above)",
		    (unsigned long long)n, n == 1 ? "entry" : "entries");
}

void terminal_ask(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print("", fmt, ap);
	va_end(ap);
}

void terminal_status(const char *text)
{
	char line[512];
	size_t n = strlen(text), pad;

	pthread_mutex_lock(&lock);
	if (n == 0) {
		erase();
	} else if (n < 250) {
		pad = drawn > n ? drawn - n : 0;
		n = (size_t)snprintf(line, sizeof line, "\r%s%*s", text, (int)pad, "");
		put(line, n);
		drawn = strlen(text);
	}
	pthread_mutex_unlock(&lock);
}

unsigned terminal_width(void)
{
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
		return 80;
	return w.ws_col;
}

bool terminal_is(int fd)
{
	return isatty(fd) == 1;
}

bool terminal_is_journal(void)
{
	const char *text = getenv("JOURNAL_STREAM"); /* DEVICE:INODE */
	unsigned long long dev, ino;
	struct stat st;

	return text != NULL && sscanf(text, "%llu:%llu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	    st.st_dev == dev && st.st_ino == ino;
}
