/* The lines of a record (src/engine/tape.h), read from a log. */
#ifndef TESTS_ENGINE_PLAYER_LINES_H
#define TESTS_ENGINE_PLAYER_LINES_H

#include <stdio.h>

#include "core/buf.h"
#include "engine/tape.h"

enum player_line_kind { LINE_NEW, LINE_CALL, LINE_OP, LINE_RET, LINE_SET };

struct player_line {
	enum player_line_kind kind;
	unsigned long number;     /* in the file, from 1 */
	unsigned depth;
	char name[TAPE_NAME_BYTES];
	struct mono at;
	uint64_t u[TAPE_NUMBERS];
	bool has_why, has_digest;
	struct ptcp_err why;      /* of a text only the length is known */
	struct digest digest;
	struct buf data;
};

/* Zero-initialize. */
struct player_lines {
	struct player_line *at;
	size_t n, cap;
	struct buf data;          /* of the next line */
	struct buf in;            /* all frames of the peer, and an incomplete one */
};

/* Of the engine with that number; 0: of the first one. Ends at a line that is damaged, such as the last one of a log
 * that was cut: returns its number in the file; 0: none is. */
unsigned long player_lines_read(struct player_lines *l, FILE *log, unsigned engine);
void player_lines_free(struct player_lines *l);

#endif
