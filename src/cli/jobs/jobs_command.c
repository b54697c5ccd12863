#include <ptcp/ptcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/jobs/jobs_impl.h"
#include "core/err.h"
#include "core/text.h"

/* Options that no job can have: they change the output, which jobs run reads, or leave the transfer out. */
static bool is_own(const char *name)
{
	static const char *const own[] = { "json", "quiet", "detach", "name", "help", "dry-run", "files-from=-",
		"exclude-from=-" };
	size_t i;

	for (i = 0; i < sizeof own / sizeof *own; i++)
		if (strcmp(own[i], name) == 0)
			return true;
	return false;
}

static int check_option(const struct command *c, const char *text, struct ptcp_err *e)
{
	size_t n = strcspn(text, "=");
	char name[128], shown[TEXT_NAME_BYTES];
	const struct opt *o;

	text_escape(shown, sizeof shown, text);
	snprintf(name, sizeof name, "%.*s", (int)n, text);
	if (is_own(name) || is_own(text))
		return err_set(e, PTCP_ECONFIG, "option '%s': not for jobs, which run without a terminal (leave it "
		    "out)", shown);
	if (n == 0 || n >= sizeof name || (o = options_find(c, name)) == NULL)
		return err_set(e, PTCP_ECONFIG, "option '%s': not an option of ptcp %s (write its long name without "
		    "dashes)", shown, c->name);
	if (o->value != NULL && text[n] != '=')
		return err_set(e, PTCP_ECONFIG, "option '%s': without a value (write %s=VALUE)", shown, name);
	if (o->value == NULL && text[n] == '=')
		return err_set(e, PTCP_ECONFIG, "option '%s': takes no value (write true in files, and only the name "
		    "behind -o)", shown);
	return 0;
}

static const struct command *command_of(const struct queue_texts *sources, const char *dest, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	size_t i;

	if (ptcp_is_remote(dest))
		return &command_send;
	for (i = 0; i < sources->n; i++)
		if (!ptcp_is_remote(sources->of[i])) {
			err_set(e, PTCP_EUSAGE, "%s: source and destination are local (name a host on one side: "
			    "HOST:PATH)", text_escape(shown, sizeof shown, sources->of[i]));
			return NULL;
		}
	return &command_recv;
}

int jobs_check(void *arg, const char *name, struct queue_task *t, struct ptcp_err *e)
{
	const struct command *c = &command_send;
	size_t i;
	int r = 0;

	(void)name;
	if (t->pairs == NULL && (c = command_of(&t->sources, t->destination, e)) == NULL)
		return e->code;
	for (i = 0; i < t->sources.n; i++)
		if (text_is_stdio(t->sources.of[i]))
			return err_set(e, PTCP_ECONFIG, "'-': a job has no standard input (name a file)");
	if (t->destination != NULL && text_is_stdio(t->destination))
		return err_set(e, PTCP_ECONFIG, "'-': a job has no standard output (name a file)");
	for (i = 0; i < t->options.n && r == 0; i++)
		r = check_option(c, t->options.of[i], e);
	if (r == 0 && t->directory == NULL && (t->directory = strdup(arg)) == NULL)
		r = err_nomem(e);
	return r;
}

static void command_put(struct jobs_command *c, const char *text) { c->argv[c->n++] = text; }

/* Whether an option of the job leaves a transfer no choice for its deadline. */
static bool is_fixed(const struct queue_task *t)
{
	static const char *const fixing[] = { "movers", "congestion", "deadline" };
	size_t i, k, n;

	for (i = 0; i < t->options.n; i++)
		for (k = 0; k < sizeof fixing / sizeof *fixing; k++) {
			n = strlen(fixing[k]);
			if (strncmp(t->options.of[i], fixing[k], n) == 0 && t->options.of[i][n] == '=' &&
			    strcmp(t->options.of[i], "congestion=auto") != 0)
				return true;
		}
	return false;
}

/* For the process of the only transfer of a job; between two servers, and for lists, the queue only judges. */
static int put_deadline(struct jobs_command *c, const struct queue_task *t, const struct queue_texts *sources,
    const char *dest, int64_t open_s, struct ptcp_err *e)
{
	char text[40];
	int r;

	if (t->pairs != NULL || t->deadline_s == 0 || open_s <= 0 || is_fixed(t) ||
	    (ptcp_is_remote(sources->of[0]) && ptcp_is_remote(dest)))
		return 0;
	snprintf(text, sizeof text, "--deadline=@%lld", (long long)time(NULL) + open_s);
	if ((r = queue_texts_add(&c->owned, text, e)) == 0)
		command_put(c, c->owned.of[c->owned.n - 1]);
	return r;
}

int jobs_command_make(struct jobs_command *c, const char *program, const struct queue_job *j,
    const struct queue_texts *sources, const char *dest, int64_t open_s, struct ptcp_err *e)
{
	const struct queue_task *t = &j->task;
	const struct command *command = command_of(sources, dest, e);
	char *text;
	size_t i;
	int r = 0;

	*c = (struct jobs_command){ .n = 0 };
	if (command == NULL)
		return e->code;
	if ((c->argv = calloc(t->options.n + sources->n + 16, sizeof *c->argv)) == NULL)
		return err_nomem(e);
	snprintf(c->parent, sizeof c->parent, "%ld", (long)getpid());
	command_put(c, program);
	command_put(c, "jobs");
	command_put(c, JOBS_CARRY);
	command_put(c, c->parent);
	command_put(c, j->name);
	command_put(c, t->directory);
	command_put(c, command->name);
	command_put(c, "--json");
	for (i = 0; i < t->options.n; i++) {
		if (asprintf(&text, "--%s", t->options.of[i]) < 0)
			return err_nomem(e);
		r = queue_texts_add(&c->owned, text, e);
		free(text);
		if (r < 0)
			return r;
		command_put(c, c->owned.of[c->owned.n - 1]);
	}
	if ((r = put_deadline(c, t, sources, dest, open_s, e)) < 0)
		return r;
	command_put(c, "--");
	for (i = 0; i < sources->n; i++)
		command_put(c, sources->of[i]);
	command_put(c, dest);
	return 0;
}

void jobs_command_fini(struct jobs_command *c)
{
	free(c->argv);
	queue_texts_fini(&c->owned);
	*c = (struct jobs_command){ .n = 0 };
}
