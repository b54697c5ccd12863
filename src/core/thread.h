/* Threads with all signals blocked: the program's own threads handle its signals. */
#ifndef CORE_THREAD_H
#define CORE_THREAD_H

#include <ptcp/err.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* PTCP_ENOMEM, with errno's value in e->sys. */
int thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg, struct ptcp_err *e);
/* A thread that nobody joins: the thread may outlive all objects except its own. */
int thread_start_detached(size_t stack_bytes, void *(*fn)(void *arg), void *arg, struct ptcp_err *e);

/* How often the calling thread has waited: for a disk, a lock, a time; not because others had the processor. */
uint64_t thread_waits(void);

#endif
