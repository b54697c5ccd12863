/* Answers Prometheus, over HTTP, with a text: for hosts without a node exporter, such as containers. One thread;
 * nothing here waits. Strangers may connect: they learn the text, and take neither memory nor descriptors beyond fixed
 * limits. */
#ifndef CLI_SCRAPE_H
#define CLI_SCRAPE_H

#include <poll.h>
#include <stdio.h>

struct ptcp_err;

enum { SCRAPERS_MAX = 8, SCRAPE_FDS = SCRAPERS_MAX + 1 }; /* connections at once: a further one replaces the oldest */

struct scrape;
/* Listens on "ADDR:PORT", a numeric address; ":PORT" is every address. PTCP_ECONFIG, PTCP_EUSAGE. */
int scrape_new(struct scrape **out, const char *address, struct ptcp_err *e);
/* "ADDR:PORT" with the port in use. */
const char *scrape_address(const struct scrape *s);
/* What to poll: at most SCRAPE_FDS; returns the number, 0 for NULL. */
unsigned scrape_polled(const struct scrape *s, struct pollfd *out);
/* After poll() of these: takes connections and answers requests by what print(f, arg) writes. NULL is fine. */
void scrape_step(struct scrape *s, const struct pollfd *polled, void (*print)(FILE *f, void *arg), void *arg);
void scrape_free(struct scrape *s);

#endif
