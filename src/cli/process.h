/* What the tool sets up for its process, which the library leaves alone. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <stdbool.h>

/* Opens /dev/null on whichever of 0, 1 and 2 is closed, ignores SIGPIPE, forbids core files,
 * and raises the limit of open descriptors to what is allowed. */
void process_prepare(void);

/* From now on the first SIGINT, SIGTERM or (unless it was ignored, as nohup has it) SIGHUP calls stop(handle)
 * of process_set_stop(), at once or as soon as that is given; a second one ends the process with
 * `second_status`, after `second_line` on stderr if that is not NULL. SIGUSR1 does not end the process:
 * process_state_asked() says once that it has come, to who has a state to tell. */
void process_catch(int second_status, const char *second_line);
bool process_state_asked(void);

/* `stop` must be async-signal-safe. NULL before the handle is freed. */
void process_set_stop(void (*stop)(void *handle), void *handle);

/* A signal has come. */
bool process_stopping(void);

/* A descriptor on which SIGHUP and SIGUSR1 can be read from now on, instead of what they do else; before
 * there are threads. -1: none can be had. And which of them has come, or 0. */
int process_signal_fd(void);
int process_signal(int fd);

#endif
