/* What the tool sets up for its process, which the library leaves alone. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <stdbool.h>

/* Opens /dev/null on whichever of 0, 1 and 2 is closed, ignores SIGPIPE, forbids core files,
 * and raises the limit of open descriptors to what is allowed. */
void process_prepare(void);

/* From now on the first SIGINT or SIGTERM calls stop(handle) of process_set_stop(), at
 * once or as soon as that is given; a second one ends the process with
 * `second_status`, after `second_line` on stderr if that is not NULL. */
void process_catch(int second_status, const char *second_line);

/* `stop` must be async-signal-safe. NULL before the handle is freed. */
void process_set_stop(void (*stop)(void *handle), void *handle);

/* A signal has come. */
bool process_stopping(void);

#endif
