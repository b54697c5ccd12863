/* Options by table: "--name VALUE", "--name=VALUE", "-x", "-xy", "-n VALUE", "-nVALUE". Options may follow
 * operands; "--" ends them. Abbreviations are refused, to keep scripts working when options are added. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <ptcp/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"

struct opt {
	const char *name;  /* without dashes; "": only a letter, or nothing to type; NULL ends a table */
	char letter;       /* short form, or 0 */
	const char *value; /* as in <ptcp/options.h>; NULL: the option takes no value */
	const char *help;  /* NULL: a further spelling, not listed in the help */
	/* Stores `text` (NULL without a value) in `args`, the command's own struct, or returns a negative PTCP_E*. */
	int (*set)(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
	size_t at;         /* offset in `args` of the member that the setters below fill */
	double min, max;   /* range, for setters of numbers */
};

enum { OPTIONS_HELP = 1 };

/* Options of one subject. */
struct opt_group {
	/* Heading in the help; "": none, or, of a brief group, that of the group before. NULL: options of another
	 * program, which the command does not take; their help is a hint for users who type them. */
	const char *title;
	const struct opt *options; /* NULL ends the groups of a command */
	bool brief;                /* the help prints the names only, and refers to the manual */
};

#define GROUP_OWN(options)       { "", options, false }
#define GROUP_OF(title, options) { title, options, false }
#define GROUP_BRIEF(title, options) { title, options, true }
#define GROUP_HINTS(options) { NULL, options, true }
#define GROUP_END                { NULL, NULL, false }

/* The options found on a command line, in their order. */
struct options_given {
	struct option_given {
		const struct opt *of;
		const char *text; /* borrowed from argv; NULL: the option takes no value */
	} *at;
	size_t n;
};

/* Applies the options in argv to `args` and moves the operands to the front of argv; `operands`, their number,
 * and `given`, the options found, may be NULL. With `given` and without `args`, the options and operands are found, for
 * another command that runs with them, and neither values nor the number of operands are checked. Returns 0,
 * OPTIONS_HELP for --help or -h, or a negative PTCP_E* with a sentence that names option and text. */
int options_parse(const struct command *c, int argc, char **argv, void *args, int *operands,
    struct options_given *given, struct ptcp_err *e);
bool options_is_given(const struct options_given *given, const struct opt *o);
void options_given_free(struct options_given *given); /* zeroed is fine */

/* The option of this name, or NULL. */
const struct opt *options_find(const struct command *c, const char *name);

/* Prints one line per option, with its value behind the name, or, if that is too long a list of words, in the help; and
 * one line per heading of brief groups. */
void options_help(FILE *f, const struct command *c);
bool options_is_help(const char *arg);

/* Whether argv has this flag before "--", for use where parsing may fail. */
bool options_has_flag(int argc, char **argv, const char *flag);

/* PTCP_EUSAGE with "--NAME 'TEXT': " and the formatted reason. */
int opt_reject(const struct opt *o, const char *text, struct ptcp_err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Calls `one` for each part of a comma-separated text until a call fails; rejects empty parts. */
int opt_each(void *args, const struct opt *o, const char *text, struct ptcp_err *e,
    int (*one)(void *args, const struct opt *o, const char *part, struct ptcp_err *e));

/* Parse all of `text` as a number without sign or exponent. Return 0, or -1 for a malformed number or outside
 * the range; *out is then unchanged. */
int opt_number(const char *text, unsigned min, unsigned max, unsigned *out);
int opt_decimal(const char *text, double max, double *out);

/* Appends a borrowed text to a list on the heap. */
int opt_append(const char *const **list, size_t *n, const char *text, struct ptcp_err *e);
void opt_list_free(const char *const **list, size_t *n);
/* The same with a copy of the text, which the list owns. */
int opt_append_copy(const char *const **list, size_t *n, const char *text, struct ptcp_err *e);
void opt_copies_free(const char *const **list, size_t *n);

/* Accepts an option that requests the default. */
int opt_ignore(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
/* Setters of a bool (true, false), a counting unsigned, a borrowed string, and a borrowed rate or timetable. */
int opt_true(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_false(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_count(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_text(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_rate(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
/* Setters within the option's range: unsigned, int, double in percent, double in seconds, uint64_t in bytes. */
int opt_unsigned(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_int(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_percent(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_seconds(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_bytes(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
/* Setter of an int64_t: a past time, in seconds since 1970, as units_parse_when() has it. */
int opt_since(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
/* Setters of the number of a word of the option's value, and of a borrowed word. */
int opt_word(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_name(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
/* Append a copy of the text, or of each of its parts, to a list that its number follows: struct opt_texts. */
int opt_texts_each(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
int opt_texts_commas(void *args, const struct opt *o, const char *text, struct ptcp_err *e);
struct opt_texts {
	const char *const *of;
	size_t n;
};

/* Rows of <ptcp/options.h> as options; OPT_AT(member) is the offset in the struct of arguments. A row without a name is
 * neither found nor listed. */
#define OPT_SWITCH(member, name, letter, help) { name, letter, NULL, help, opt_true, OPT_AT(member), 0, 0 },
#define OPT_SENT(member, bit, FLAG, when, name, letter, help) OPT_SWITCH(member, name, letter, help)
#define OPT_VALUE(TYPE, member, initial, min, max, name, value, help) \
	{ name, 0, value, help, OPT_SET_##TYPE, OPT_AT(member), (double)(min), (double)(max) },
#define OPT_TEXTS(TYPE, member, count, name, value, help) \
	{ name, 0, value, help, OPT_ADD_##TYPE, OPT_AT(member), 0, 0 },
#define OPT_ROWS(LIST)          LIST(OPT_SWITCH, OPT_VALUE)
#define OPT_TRANSFER_ROWS(LIST) LIST(OPT_SWITCH, OPT_SENT, OPT_VALUE, OPT_TEXTS)
#define OPT_SET_UNSIGNED opt_unsigned
#define OPT_SET_UINT32   opt_unsigned
#define OPT_SET_WORD     opt_word
#define OPT_SET_NAME     opt_name
#define OPT_SET_PERCENT  opt_percent
#define OPT_SET_SECONDS  opt_seconds
#define OPT_SET_BYTES    opt_bytes
#define OPT_SET_RATE     opt_rate
#define OPT_SET_TEXT     opt_text
#define OPT_SET_INT      opt_int
#define OPT_SET_DOUBLES  NULL
#define OPT_SET_SIZES    NULL
#define OPT_SET_RULES    NULL
#define OPT_SET_CALLBACK NULL
#define OPT_ADD_EACH     opt_texts_each
#define OPT_ADD_COMMAS   opt_texts_commas
#define OPT_ADD_ONCE     NULL

/* Range of opt_seconds for time-outs and pauses. */
#define OPT_PATIENCE 0.5, 86400

/* ---- Remedies for options and commands that do not exist: the spelling of ptcp for a habit from scp, rsync, rclone or
 * bbcp, else the nearest known word ---- */

struct suggest {
	const char *text; /* the unknown word, n bytes */
	size_t n;
	const char *best; /* the nearest word offered so far, or NULL */
	unsigned distance;
};

/* `text` must outlive *s. */
void suggest_init(struct suggest *s, const char *text, size_t n);
/* A known word, which must outlive *s. Words too different from the text are not taken: an edit is an inserted, deleted
 * or replaced character or a swap of two; a third of the text, at least one character, may differ. A text of three or
 * more characters also stands for the words that it begins. */
void suggest_offer(struct suggest *s, const char *word);

/* Whether the option removes files, as its help says: such an option is suggested to nobody, since a user who
 * mistypes an option of another program does not request that. */
bool suggest_is_dangerous(const struct opt *o);
/* The remedy for a long option, n bytes, of programs whose options no command takes; NULL for an unknown one. */
const char *suggest_option(const char *name, size_t n);
/* The remedy for a command of other programs, or NULL. */
const char *suggest_command(const char *name);

#endif
