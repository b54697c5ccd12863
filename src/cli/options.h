/* Options by table: "--name VALUE", "--name=VALUE", "-x", "-xy", "-n VALUE", "-nVALUE"; options may stand after
 * operands; "--" ends them; no abbreviations, so that a new option breaks no script. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <ptcp/err.h>

#include "cli/command.h"

struct opt {
	const char *name;  /* without dashes; NULL ends a table */
	char letter;       /* of a short form, or 0 */
	const char *value; /* what the help calls its value; NULL: takes none */
	const char *help;
	/* Puts `text` (NULL where there is no value) into `args`, the command's own struct,
	 * or returns a negative PTCP_E*. NULL: refused as not available yet. */
	int (*set)(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
	size_t at; /* offset in `args` of what the setters below fill */
};

enum { OPTIONS_HELP = 1 };

/* Sets what the options in argv say and moves the operands to its front. Returns 0,
 * OPTIONS_HELP when --help or -h was met, or a negative PTCP_E* whose sentence names
 * the option and the text. */
int options_parse(const struct command *c, int argc, char **argv, void *args, int *operands,
    struct ptcp_err *e);

/* The options that were met. */
struct options_given {
	const struct opt *of[64]; /* each once; no command has so many */
	size_t n;
};
/* As options_parse(), and notes them. */
int options_parse_noting(const struct command *c, int argc, char **argv, void *args, int *operands,
    struct options_given *given, struct ptcp_err *e);
bool options_is_given(const struct options_given *given, const struct opt *o);

/* The option of that name, or NULL. */
const struct opt *options_find(const struct command *c, const char *name);

/* A line for each option that is available. */
void options_help(FILE *f, const struct opt *const *tables);

bool options_ask_help(const char *arg);

/* An argument before "--" is this flag. For what must be known even when parsing fails. */
bool options_has_flag(int argc, char **argv, const char *flag);

/* PTCP_EUSAGE with "--NAME TEXT: WHY". */
int opt_reject(const struct opt *o, const char *text, struct ptcp_err *e, const char *why);

/* Calls `one` for each part of a comma-separated text; empty parts are rejected. Stops
 * at the first that does not return 0. */
int opt_each(void *args, const struct opt *o, const char *text, struct ptcp_err *e,
    int (*one)(void *args, const struct opt *o, const char *part, struct ptcp_err *e));

/* The whole of `text` as a number without sign or exponent. Return 0, or -1 for anything
 * else or out of range; *out is then untouched. */
int opt_number(const char *text, unsigned min, unsigned max, unsigned *out);
int opt_decimal(const char *text, double max, double *out);

/* Appends a borrowed text to a list that grows; it is freed with free(). */
int opt_list_add(const char ***list, size_t *n, const char *text, struct ptcp_err *e);

/* Setters of a bool, an unsigned that counts, a borrowed string, and one that is a rate or timetable. */
int opt_true(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_count(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_text(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_rate(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
/* Of a time from 0.5 s to 24 h, into a double, seconds. */
int opt_patience(void *args, const struct opt *o, const char *text, struct ptcp_err *e);

#endif
