#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int temporary(void)
{
	FILE *f = tmpfile();
	int fd;

	if (f == NULL)
		abort();
	fd = dup(fileno(f));
	fclose(f);
	return fd;
}

void capture_begin(struct capture *c)
{
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		c->saved[i] = dup(i + 1);
		c->file[i] = temporary();
		dup2(c->file[i], i + 1);
	}
}

void capture_end(struct capture *c)
{
	char *to[2] = { c->out, c->err };
	ssize_t n;

	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		dup2(c->saved[i], i + 1);
		close(c->saved[i]);
		n = pread(c->file[i], to[i], sizeof c->out - 1, 0);
		to[i][n > 0 ? n : 0] = '\0';
		close(c->file[i]);
	}
}

int lines_of(const char *text)
{
	int n = 0;
	const char *p;

	for (p = text; *p != '\0'; p++)
		n += *p == '\n';
	return p > text && p[-1] != '\n' ? -1 : n;
}
