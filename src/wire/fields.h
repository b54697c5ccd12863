/* The fields of each frame, as a table: the encoder, the decoder, the limits and the tests read the table, and
 * PROTOCOL.md prints it. No I/O, no allocation; any thread. */
#ifndef WIRE_FIELDS_H
#define WIRE_FIELDS_H

#include "wire/frame.h"

enum wire_field_kind {
	WIRE_FIELD_UINT,   /* integer as wide as the member, from min to max */
	WIRE_FIELD_FIXED,  /* constant `min`, `size` bytes wide, without a member */
	WIRE_FIELD_ID,     /* entry id, wire_id_ok() */
	WIRE_FIELD_LENGTH, /* length of a span member, `size` bytes wide, from min to max */
	WIRE_FIELD_DATA,   /* the bytes of that span */
	WIRE_FIELD_REST,   /* span of all remaining bytes */
	WIRE_FIELD_BYTES,  /* array of `size` bytes */
	WIRE_FIELD_ARRAY   /* integers, `size` bytes each; the u8 at count_at counts them */
};

/* Permitted bytes of a WIRE_FIELD_DATA. */
enum wire_field_text { WIRE_FIELD_ANY, WIRE_FIELD_NO_NUL, WIRE_FIELD_WORD /* 0x21 to 0x7e */ };

struct wire_field {
	const char *name; /* name in PROTOCOL.md */
	uint8_t kind, size, text;
	uint16_t at, count_at; /* offsets in the frame's struct */
	uint64_t min, max;
};

struct wire_layout {
	const struct wire_field *field;
	uint8_t n;
	uint16_t bytes;               /* size of the struct */
	bool (*valid)(const void *f); /* rules that span fields; NULL: none */
	bool optional;                /* sent without the critical flag */
};

/* Indexed by type; a type without payload has no field, BLOCK and unknown types have n == 0 too. */
extern const struct wire_layout wire_layouts[256];

#endif
