/* Lines on stderr, and a status line below them while stderr is a terminal. Any thread. Without escape
 * sequences: there is no color to disable, and a dumb terminal suffices. */
#ifndef CLI_SHOW_TERMINAL_H
#define CLI_SHOW_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Prints a line with a single write(), after erasing the status line. */
void terminal_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints "ptcp: [HOST: ]PATH: WHY" for a failed file, with the full path, escaped; `host` may be NULL. */
void terminal_failed(const char *host, const char *path, const char *why);
/* In place of a line for each entry below a failed directory (PTCP_EPARENT): their number, if it is not 0. */
void terminal_failed_below(uint64_t n);

/* As terminal_line(), without a newline: for questions. */
void terminal_ask(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Redraws the status line if stderr is a terminal; "" erases the line. */
void terminal_status(const char *text);

/* Columns of stderr; 80 if unknown. */
unsigned terminal_width(void);

bool terminal_is(int fd);

/* Whether stderr is the systemd journal, which reads a priority from the start of a line and adds the time. */
bool terminal_is_journal(void);

#endif
