/* The tool's process: descriptors, limits, signals, and the service manager. The library leaves these alone. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

struct ptcp_err;

/* Opens /dev/null for closed standard descriptors, ignores SIGPIPE, forbids core files, and raises the limit
 * of open descriptors to its maximum. */
void process_prepare(void);

/* From now on the first SIGINT, SIGTERM or (unless ignored, as by nohup) SIGHUP calls stop(handle) of
 * process_set_stop(), at once or as soon as a handle is set. A second signal writes `second_line`, unless
 * NULL, to stderr and ends the process with `second_status`. SIGUSR1 requests the state:
 * process_state_requested() then returns true once. SIGUSR2: see process_wake_fd(). */
void process_catch(int second_status, const char *second_line);
#define INTERRUPTED_TWICE "\nptcp: interrupted twice: ended at once (run the same command again)\n"
bool process_state_requested(void);
/* The number of signals that call stop(), before the one that ends the process (default: 1). */
void process_set_stops(int n);

/* The eventfd of process_catch() that SIGUSR2 writes to; -1: none. Never close it: the signal handler may run on any
 * thread, at any time. */
int process_wake_fd(void);
/* Returns true once after SIGUSR2. */
bool process_toggle_requested(void);

/* For process_set_stop(), with a line to be written to stderr: ends the process, interrupted, at once. */
void process_end(void *line);

/* `stop` must be async-signal-safe. Set NULL before freeing the handle. */
void process_set_stop(void (*stop)(void *handle), void *handle);

/* Whether a signal has requested to stop. */
bool process_stopping(void);

/* The result of work that ended with `r`, 0 or a negative PTCP_E* described by *e: after a signal, any failure
 * becomes PTCP_ECANCELED. A terminal's SIGINT also ends ssh and launched servers, and a service manager signals
 * one process after another: after the loss of a peer, waits a moment for our signal. */
int process_result(int r, struct ptcp_err *e);

/* Redirects SIGHUP and SIGUSR1 to a descriptor, before threads are started; -1 on failure. */
int process_signal_fd(void);
/* The next signal from this descriptor, or 0. */
int process_signal(int fd);

/* The service manager, by the protocols of sd_listen_fds(3) and sd_notify(3). Gives the passed listening sockets, at
 * most `max`, and their number: 0 without a service manager. To be called before the process opens descriptors, which
 * would have the numbers of sockets that LISTEN_FDS counts and nobody has passed. PTCP_ECONFIG: more sockets than
 * `max`, or fewer than LISTEN_FDS says. Child processes do not inherit the sockets. */
int systemd_sockets(int passed[], size_t max, size_t *n, struct ptcp_err *e);

/* Connects to the service manager; before the process loses the permission to connect. */
void systemd_open(void);
/* Sends "READY=1", "STOPPING=1" or several lines; does nothing if not connected. */
void systemd_notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The path of this program; NULL: unknown. */
const char *process_own_path(char *out, size_t cap);

#endif
