/* JSON output, in ASCII: escapes for all other characters keep names from affecting terminals, logs and
 * readers in other encodings. */
#ifndef CLI_SHOW_JSON_H
#define CLI_SHOW_JSON_H

#include <jansson.h>
#include <ptcp/ptcp.h>
#include <stdint.h>

struct ptcp_err;
struct ptcp_event;

/* Prints the object as a line on stdout, flushed, and frees the object. Returns -1, without a line, for NULL
 * (jansson is out of memory) or if writing fails. */
int json_line(json_t *object);
/* PTCP_EVENT_WAITING. */
json_t *json_waiting(const struct ptcp_event *ev);

/* As json_line(), but returns 0, or PTCP_ENOMEM for NULL; exit_checked() detects failed writes. */
int json_result(json_t *object, struct ptcp_err *e);

/* An integer, limited to INT64_MAX. */
json_t *json_count(uint64_t v);

/* `list` if complete with `members`; otherwise memory has run out: frees the list and returns NULL. */
json_t *json_whole(json_t *list, size_t members);

/* A rate in whole bit/s; seconds to the microsecond, null if negative (unknown). */
json_t *json_rate(double bps);
json_t *json_seconds(double s);
/* A text, escaped if not UTF-8; null for NULL. */
json_t *json_text(const char *s);
/* The name of a cause, such as "ENOENT", or null. */
json_t *json_cause(int sys);
/* The event "end" of a command with this result: "ok", "exit", "error", "cause", and the members of `more`, which it
 * takes; NULL without memory. */
json_t *json_end(int code, const struct ptcp_err *e, json_t *more);
/* Bytes in base64. */
json_t *json_base64(const void *data, size_t n);

json_t *json_mover(const struct ptcp_mover_stats *m);
/* The movers of a striped transfer, as an array of objects. */
json_t *json_movers(const struct ptcp_mover_stats *movers, size_t n);

#endif
