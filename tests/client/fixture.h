/* What the tests of client share: tasks without a network, their refusals, and a record of the events of a task. */
#ifndef TESTS_CLIENT_FIXTURE_H
#define TESTS_CLIENT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/task_impl.h"
#include "core/err.h"

#define CF_SOURCES 8
#define CF_NO_HOST "ptcp://127.0.0.1:1/" /* the URL of a server that no test starts */

/* Sources, which end with NULL; a destination. */
struct cf_files {
	bool sends;
	const char *source[CF_SOURCES];
	const char *dest;
};

/* The default options of a transfer, without a history. */
struct ptcp_transfer_opts cf_opts(void);
/* The transfer's task, or the result of the refusal. */
int cf_new(struct ptcp_task **t, const struct ptcp_transfer_opts *o, const struct cf_files *f, struct ptcp_err *e);
/* The transfer's task; the test fails if the options refuse it. */
struct ptcp_task *cf_accepted(const struct ptcp_transfer_opts *o, const struct cf_files *f);
/* The options refuse the transfer with this code and a sentence that contains `text`, and make no task. */
void cf_refused(const struct ptcp_transfer_opts *o, const struct cf_files *f, int code, const char *text);

/* The last event of each type, and how many there were. */
struct cf_events {
	unsigned n[PTCP_EVENT_MOVERS + 8];
	char text[512], path[512], peer[512];
	int code;
	enum ptcp_file_status status;
	struct ptcp_event last;         /* pointers are gone */
	void (*then)(void *arg, const struct ptcp_event *ev); /* called after the record; may be NULL */
	void *arg;
};
/* The events of the options go to `ev`. */
void cf_record(struct ptcp_transfer_opts *o, struct cf_events *ev);

/* The sentence contains the text, else the test fails and prints both. */
void cf_says(const struct ptcp_err *e, const char *text);

#endif
