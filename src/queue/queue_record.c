#include "queue/queue_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sums/checksums.h"

#define SUM_BYTES 8 /* hexadecimal digits before the blank */

static uint32_t sum_of(const char *p, size_t n) { return crc32c_add(0, p, n); }

static void record_put(struct queue_record *r, const char *p, size_t n)
{
	char *more;
	size_t room = r->room;

	while (room < r->n + n + 1)
		room = room * 2 + 256;
	if (!r->failed && room > r->room) {
		if ((more = realloc(r->text, room)) != NULL)
			r->text = more, r->room = room;
		else
			r->failed = true;
	}
	if (r->failed)
		return;
	memcpy(r->text + r->n, p, n);
	r->text[r->n += n] = '\0';
}

void queue_record_clear(struct queue_record *r) { r->n = 0, r->failed = false; }

void queue_record_begin(struct queue_record *r, const char *word)
{
	record_put(r, "00000000 ", SUM_BYTES + 1);
	record_put(r, word, strlen(word));
}

void queue_record_add(struct queue_record *r, const char *key, const char *value)
{
	char code[4];

	if (value == NULL)
		return;
	record_put(r, " ", 1);
	record_put(r, key, strlen(key));
	record_put(r, "=", 1);
	for (; *value != '\0'; value++)
		if ((uint8_t)*value > ' ' && *value != '%' && (uint8_t)*value != 0x7f) {
			record_put(r, value, 1);
		} else {
			snprintf(code, sizeof code, "%%%02X", (unsigned)(uint8_t)*value);
			record_put(r, code, 3);
		}
}

void queue_record_number(struct queue_record *r, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, value);
	queue_record_add(r, key, text);
}

void queue_record_seal(struct queue_record *r)
{
	char sum[SUM_BYTES + 1];
	size_t at = r->n;

	if (r->failed || r->text == NULL)
		return;
	while (at > 0 && r->text[at - 1] != '\n')
		at--;
	snprintf(sum, sizeof sum, "%08" PRIx32, sum_of(r->text + at + SUM_BYTES, r->n - at - SUM_BYTES));
	memcpy(r->text + at, sum, SUM_BYTES);
	record_put(r, "\n", 1);
}

void queue_record_free(struct queue_record *r)
{
	free(r->text);
	*r = (struct queue_record){ .text = NULL };
}

bool queue_record_read(char *line, size_t n, const char **word, char **fields)
{
	char sum[SUM_BYTES + 1];

	if (n < SUM_BYTES + 2 || line[SUM_BYTES] != ' ' || memchr(line, '\0', n) != NULL)
		return false;
	snprintf(sum, sizeof sum, "%08" PRIx32, sum_of(line + SUM_BYTES, n - SUM_BYTES));
	if (memcmp(line, sum, SUM_BYTES) != 0)
		return false;
	line[n] = '\0';
	*word = line + SUM_BYTES + 1;
	*fields = line + SUM_BYTES + 1 + strcspn(*word, " ");
	if (**fields == ' ')
		*(*fields)++ = '\0';
	return true;
}

static unsigned digit(char c) { return (unsigned)(c >= 'A' ? c - 'A' + 10 : c - '0') & 15; }

bool queue_record_next(char **fields, const char **key, const char **value)
{
	char *p = *fields, *out;

	if (*p == '\0')
		return false;
	*key = p;
	p += strcspn(p, "= ");
	if (*p == '=')
		*p++ = '\0';
	*value = out = p;
	for (; *p != '\0' && *p != ' '; p++)
		if (*p == '%' && p[1] != '\0' && p[2] != '\0') {
			*out++ = (char)(digit(p[1]) << 4 | digit(p[2]));
			p += 2;
		} else {
			*out++ = *p;
		}
	*fields = *p == ' ' ? p + 1 : p;
	*out = '\0';
	return true;
}
