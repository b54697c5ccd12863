#include "server/record.h"

#include <stdio.h>

#include "core/text.h"

void record_end(const struct log *log, const struct ptcp_server_opts *o, struct ptcp_server_record *r,
    const struct ptcp_err *why)
{
	char name[TEXT_NAME_BYTES], from[TEXT_NAME_BYTES], third[TEXT_NAME_BYTES], path[TEXT_NAME_BYTES];
	char ended[600], text[2048];

	r->code = why != NULL ? why->code : 0;
	r->sys = why != NULL ? why->sys : 0;
	if (why != NULL)
		r->why = why->msg;
	snprintf(text, sizeof text, "event=end work=%s client=%s name=\"%s\" from=%s third=\"%s\" path=\"%s\" "
	    "files=%llu bytes=%llu failed=%llu seconds=%.3f why=\"%s\"", r->work, r->client,
	    text_escape_quoted(name, sizeof name, r->name), text_escape_quoted(from, sizeof from, r->address),
	    text_escape_quoted(third, sizeof third, r->third), text_escape_quoted(path, sizeof path, r->path),
	    (unsigned long long)r->files, (unsigned long long)r->bytes, (unsigned long long)r->failed, r->seconds,
	    text_escape_quoted(ended, sizeof ended, r->why));
	r->text = text;
	r->level = why != NULL ? PTCP_LOG_WARN : PTCP_LOG_INFO;
	if (o->record != NULL)
		o->record(o->arg, r);
	log_at(log, (enum log_level)r->level, "server", "%s", text);
}
