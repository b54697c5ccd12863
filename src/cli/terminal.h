/* Lines on stderr, and the one status line that is redrawn below them while stderr is
 * a terminal. Any thread. No escape sequences are used, so there is no colour to turn
 * off and a dumb terminal is as good as any. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>

/* One whole line, in one write; the status line is erased before it. */
void terminal_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "ptcp: PATH: WHY" of a file that failed, at a host where there are several (else NULL); the path in full, shown safely. */
void terminal_failed(const char *host, const char *path, const char *why);

/* Like terminal_line(), without the newline: a question. */
void terminal_ask(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Draws the status line over the last; "" erases it. Only where stderr is a terminal. */
void terminal_status(const char *text);

/* Columns of stderr; 80 when it does not say. */
unsigned terminal_width(void);

bool terminal_is(int fd);

/* Standard error is the systemd journal, which takes a priority from the front of a line and has the time
 * itself. */
bool terminal_is_journal(void);

#endif
