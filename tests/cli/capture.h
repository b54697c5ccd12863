/* Captures stdout and stderr as text. */
#ifndef TESTS_CLI_CAPTURE_H
#define TESTS_CLI_CAPTURE_H

struct capture {
	int saved[2];
	int file[2];
	char out[65536], err[65536]; /* after capture_end() */
};

void capture_begin(struct capture *c);
void capture_end(struct capture *c);

/* Number of lines; -1 if the last line is incomplete. */
int lines_of(const char *text);

#endif
