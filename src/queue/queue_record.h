/* A record of the journal: a line of a checksum, a word and fields, "0123abcd begin name=nightly at=1700000000". Values
 * are percent-encoded, and thus without blanks and line ends. */
#ifndef QUEUE_QUEUE_RECORD_H
#define QUEUE_QUEUE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_record {
	char *text; /* ends with a newline after queue_record_seal() */
	size_t n, room;
	bool failed; /* no memory */
};

/* Empties the record, and keeps the memory. */
void queue_record_clear(struct queue_record *r);
/* Begins a line. A record may have several lines. */
void queue_record_begin(struct queue_record *r, const char *word);
void queue_record_add(struct queue_record *r, const char *key, const char *value); /* NULL: adds nothing */
void queue_record_number(struct queue_record *r, const char *key, int64_t value);
/* Ends the line that began last. */
void queue_record_seal(struct queue_record *r);
void queue_record_free(struct queue_record *r); /* zeroed is fine */

/* Reads a line of n bytes, without newline; false: the checksum differs. Decodes within the line. *fields is for
 * queue_record_next(). */
bool queue_record_read(char *line, size_t n, const char **word, char **fields);
/* The next field; false at the end. */
bool queue_record_next(char **fields, const char **key, const char **value);

#endif
