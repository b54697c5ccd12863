/* Whether this process lacks processor time: its RTTs and rates then say little about the network. */
#ifndef CORE_PROCESSOR_H
#define CORE_PROCESSOR_H

#include <stdbool.h>

/* Zero-initialize. */
struct processor {
	double at_s, ran_s, waited_s; /* sums of all threads at the latest call */
};

/* Whether the threads, since the latest call, waited for a processor much longer than they ran, because of other
 * processes: competing with itself, a process waits less. false: unknown (no /proc, or the first call). */
bool processor_is_starved(struct processor *p, double now_s);

#endif
