/* Runs the record of a session again (src/engine/tape.h): an engine of its own, which is told what that of the user was
 * told, at the same times, and must decide the same. */
#ifndef TESTS_ENGINE_PLAYER_H
#define TESTS_ENGINE_PLAYER_H

#include <stdbool.h>
#include <stdio.h>

#include "core/log.h"

enum played {
	PLAYED_SAME,      /* all decisions are those of the record */
	PLAYED_OTHERWISE, /* `text`: the first difference */
	PLAYED_DIED,      /* the engine ended the process: a fault of the engine, or calls that no session makes */
	PLAYED_NOTHING    /* `text`: why the lines are no record */
};

struct play {
	enum played outcome;
	unsigned long line;       /* of the file: the last one that was run */
	unsigned long calls, decisions;
	bool over;                /* the session has ended, */
	int code;                 /* by this PTCP_E*; 0: well */
	char text[300];
};

/* Of the engine with that number, 0: the first one. The engine runs in a process of its own, so that a record of
 * unknown origin harms nobody. `log`: of the engine; NULL: none. */
void play_record(struct play *out, FILE *record, unsigned number, const struct log *log);

#endif
