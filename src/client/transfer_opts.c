/* The table of options (<ptcp/options.h>) for the library: defaults, ranges, copies of the caller's texts, and the
 * flags of OPEN. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/task_impl.h"
#include "core/err.h"
#include "core/opts.h"
#include "core/text.h"
#include "net/sock.h"

#define AT(member) offsetof(struct ptcp_transfer_opts, member)

#define INIT_SWITCH(member, ...)
#define INIT_VALUE(TYPE, member, initial, ...) .member = initial,
#define INIT_PRESERVED(member, bit, FLAG, initial) .preserve.member = initial,

void ptcp_transfer_opts_init(struct ptcp_transfer_opts *o)
{
	*o = (struct ptcp_transfer_opts){
		.size = sizeof *o, .log_level = PTCP_LOG_WARN,
		PTCP_OPTIONS_PRESERVE(INIT_PRESERVED)
		PTCP_TRANSFER_OPTIONS(INIT_SWITCH, INIT_SWITCH, INIT_VALUE, PTCP_NO_ROW)
	};
}

/* ---- The table as data ---- */

#define KIND_UNSIGNED PTCP_OPTION_UNSIGNED
#define KIND_UINT32   PTCP_OPTION_UINT32
#define KIND_INT      PTCP_OPTION_INT
#define KIND_WORD     PTCP_OPTION_WORD
#define KIND_PERCENT  PTCP_OPTION_DOUBLE
#define KIND_BUDGET   PTCP_OPTION_DOUBLE
#define KIND_SECONDS  PTCP_OPTION_DOUBLE
#define KIND_BYTES    PTCP_OPTION_UINT64
#define KIND_NAME     PTCP_OPTION_TEXT
#define KIND_RATE     PTCP_OPTION_TEXT
#define KIND_TEXT     PTCP_OPTION_TEXT
#define KIND_DOUBLES  PTCP_OPTION_DOUBLES
#define KIND_SIZES    PTCP_OPTION_UINT64S
#define KIND_RULES    PTCP_OPTION_RULES
#define KIND_CALLBACK PTCP_OPTION_CALLBACK
/* Texts have no initial number. */
#define NUMBER_UNSIGNED(n) n
#define NUMBER_UINT32(n)   n
#define NUMBER_INT(n)      n
#define NUMBER_WORD(n)     n
#define NUMBER_PERCENT(n)  n
#define NUMBER_BUDGET(n)   n
#define NUMBER_SECONDS(n)  n
#define NUMBER_BYTES(n)    n
#define NUMBER_NAME(n)     0
#define NUMBER_RATE(n)     0
#define NUMBER_TEXT(n)     0
#define NUMBER_DOUBLES(n)  0
#define NUMBER_SIZES(n)    0
#define NUMBER_RULES(n)    0
#define NUMBER_CALLBACK(n) 0

#define ROW_SWITCH(member, name, letter, help) \
	{ #member, PTCP_OPTION_SWITCH, AT(member), false, 0, 0, name, NULL, help },
#define ROW_SENT(member, bit, FLAG, when, name, letter, help) ROW_SWITCH(member, name, letter, help)
#define ROW_PRESERVED(member, bit, FLAG, initial) \
	{ "preserve." #member, PTCP_OPTION_SWITCH, AT(preserve.member), initial, 0, 0, "", NULL, "preserve " #member },
#define ROW_VALUE(TYPE, member, initial, min, max, name, value, help) \
	{ #member, KIND_##TYPE, AT(member), NUMBER_##TYPE(initial), min, max, name, value, help },
#define ROW_TEXTS(TYPE, member, count, name, value, help) \
	{ #member, PTCP_OPTION_TEXTS, AT(member), 0, 0, 0, name, value, help },

static const struct ptcp_option rows[] = {
	PTCP_TRANSFER_OPTIONS(ROW_SWITCH, ROW_SENT, ROW_VALUE, ROW_TEXTS)
	PTCP_OPTIONS_PRESERVE(ROW_PRESERVED)
};

const struct ptcp_option *ptcp_transfer_option(size_t i) { return i < sizeof rows / sizeof *rows ? &rows[i] : NULL; }

/* ---- Ranges ---- */

static const void *member_of(const struct ptcp_transfer_opts *o, const struct ptcp_option *row)
{
	return (const char *)o + row->at;
}

/* False: not a number. */
static bool number_of(const struct ptcp_transfer_opts *o, const struct ptcp_option *row, double *out)
{
	const void *at = member_of(o, row);

	switch (row->type) {
	case PTCP_OPTION_WORD:
	case PTCP_OPTION_INT: *out = *(const int *)at; return true;
	case PTCP_OPTION_UNSIGNED: *out = *(const unsigned *)at; return true;
	case PTCP_OPTION_UINT32: *out = *(const uint32_t *)at; return true;
	case PTCP_OPTION_UINT64: *out = (double)*(const uint64_t *)at; return true;
	case PTCP_OPTION_DOUBLE: *out = *(const double *)at; return true;
	default: return false;
	}
}

static int check_number(const struct ptcp_transfer_opts *o, const struct ptcp_option *row, struct ptcp_err *e)
{
	double n;

	return number_of(o, row, &n) ? opts_check_number(row->member, n, row->initial, row->min, row->max, e) : 0;
}

/* Whether `word` is one of `words`, which are separated by |. */
static bool is_word(const char *words, const char *word)
{
	size_t n = strlen(word), k;

	for (;; words += k + 1) {
		k = strcspn(words, "|");
		if (k == n && memcmp(words, word, n) == 0)
			return true;
		if (words[k] == '\0')
			return false;
	}
}

static int check_name(const char *member, const char *text, const char *words, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];

	return text == NULL || is_word(words, text) ? 0 :
	    err_set(e, PTCP_EUSAGE, "%s: '%s' is unknown (give %s)", member, text_escape(shown, sizeof shown, text),
	    words);
}

#define NAME_IN_UNSIGNED(member, value)
#define NAME_IN_UINT32(member, value)
#define NAME_IN_INT(member, value)
#define NAME_IN_WORD(member, value)
#define NAME_IN_PERCENT(member, value)
#define NAME_IN_BUDGET(member, value)
#define NAME_IN_SECONDS(member, value)
#define NAME_IN_BYTES(member, value)
#define NAME_IN_RATE(member, value)
#define NAME_IN_TEXT(member, value)
#define NAME_IN_DOUBLES(member, value)
#define NAME_IN_SIZES(member, value)
#define NAME_IN_RULES(member, value)
#define NAME_IN_CALLBACK(member, value)
#define NAME_IN_NAME(member, value) \
	if ((r = check_name(#member, o->member, value, e)) < 0) \
		return r;
#define CHECK_NAME(TYPE, member, initial, min, max, name, value, help) NAME_IN_##TYPE(member, value)

static int check_connections(const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	int family;

	if (o->wire.dscp != NULL && sock_dscp(o->wire.dscp) < 0)
		return err_set(e, PTCP_EUSAGE, "dscp: '%s' is no class of service (give le, df, cs0 to cs7, af11 to "
		    "af43, va, ef, or 0 to %d)", text_escape(shown, sizeof shown, o->wire.dscp), SOCK_DSCP_MAX);
	if (o->wire.bind == NULL)
		return 0;
	if ((family = sock_local_family(o->wire.bind, e)) < 0)
		return family;
	return family == 0 || o->family == 0 || o->family == family ? 0 :
	    err_set(e, PTCP_EUSAGE, "bind: %s is not of the family IPv%d (leave out one of the two)", o->wire.bind,
	    o->family);
}

int options_check(const struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	const struct ptcp_option *row;
	int r;

	for (row = rows; row < rows + sizeof rows / sizeof *rows; row++)
		if ((r = check_number(o, row, e)) < 0)
			return r;
	PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, PTCP_NO_ROW, CHECK_NAME, PTCP_NO_ROW)
	if ((r = check_connections(o, e)) < 0)
		return r;
	return o->family != 5 ? 0 : err_set(e, PTCP_EUSAGE, "family: 5 is no address family (give 0, 4 or 6)");
}

/* ---- Work on files of another host ---- */

#define AT_SWITCH(member, ...)      AT(member),
#define AT_VALUE(TYPE, member, ...) AT(member),
#define AT_TEXTS(TYPE, member, ...) AT(member),

static const size_t of_files[] = {
	PTCP_OPTIONS_CONNECTION(AT_SWITCH, AT_SWITCH, AT_VALUE, AT_TEXTS)
	PTCP_OPTIONS_RETRIES(AT_SWITCH, AT_SWITCH, AT_VALUE, AT_TEXTS)
	AT(ssh), AT(remote.ptcp), AT(remote.port), AT(remote.port_or_any), AT(config_dir), AT(state_dir), AT(family),
	AT(event), AT(trust)
};
static const size_t of_writing[] = { AT(fsync), AT(no_mkpath), AT(older.exclusive), AT(older.if_match) };

static bool is_among(const size_t *at, size_t n, size_t wanted)
{
	while (n > 0 && at[n - 1] != wanted)
		n--;
	return n > 0;
}

bool ptcp_option_of_files(const struct ptcp_option *row, bool writes)
{
	return is_among(of_files, sizeof of_files / sizeof *of_files, row->at) ||
	    (writes && is_among(of_writing, sizeof of_writing / sizeof *of_writing, row->at));
}

static bool is_initial(const struct ptcp_transfer_opts *o, const struct ptcp_option *row)
{
	const void *at = member_of(o, row);
	double n;

	if (number_of(o, row, &n))
		return !(n < row->initial || n > row->initial);
	if (row->type == PTCP_OPTION_SWITCH)
		return *(const bool *)at == (row->initial > 0);
	if (row->type == PTCP_OPTION_TEXTS || row->type == PTCP_OPTION_RULES)
		return *(const size_t *)(const void *)((const char *)at + sizeof(const void *)) == 0;
	return *(const void *const *)at == NULL;
}

int options_check_files(const struct ptcp_transfer_opts *o, bool writes, struct ptcp_err *e)
{
	const struct ptcp_option *row;

	for (row = rows; row < rows + sizeof rows / sizeof *rows; row++)
		if (row->type != PTCP_OPTION_CALLBACK && !ptcp_option_of_files(row, writes) && !is_initial(o, row))
			return err_set(e, PTCP_EUSAGE, "%s: an option of transfers only (leave it out)", row->member);
	return 0;
}

/* ---- Copies ---- */

static void free_list(const char *const *list, size_t n)
{
	while (list != NULL && n > 0)
		free((char *)(uintptr_t)list[--n]);
	free((void *)(uintptr_t)list);
}

const char *const *task_copy_list(const char *const *in, size_t n)
{
	const char **out = calloc(n + 1, sizeof *out);
	size_t i;

	for (i = 0; out != NULL && i < n; i++)
		if ((out[i] = strdup(in[i])) == NULL) {
			free_list(out, i);
			out = NULL;
		}
	return out;
}

void task_free_list(const char *const *list, size_t n) { free_list(list, n); }

#define LIST_EACH_COPY(member, count) \
	copied &= (o->member = task_copy_list(o->member, o->count)) != NULL; \
	_Static_assert(AT(count) == AT(member) + sizeof(const char *const *), "the number follows the list");
#define LIST_COMMAS_COPY(member, count) LIST_EACH_COPY(member, count)
#define LIST_ONCE_COPY(member, count)
#define COPY_TEXTS(TYPE, member, count, ...) LIST_##TYPE##_COPY(member, count)

int options_copy(struct ptcp_transfer_opts *o, struct ptcp_err *e)
{
	const struct ptcp_option *row;
	bool copied = true;
	const char **text;

	PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, PTCP_NO_ROW, PTCP_NO_ROW, COPY_TEXTS)
	for (row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
		text = (const char **)(uintptr_t)member_of(o, row);
		if (row->type == PTCP_OPTION_TEXT && *text != NULL)
			copied &= (*text = strdup(*text)) != NULL;
	}
	return copied ? 0 : err_nomem(e);
}

#define LIST_EACH_FREE(member, count)   free_list(o->member, o->count);
#define LIST_COMMAS_FREE(member, count) LIST_EACH_FREE(member, count)
#define LIST_ONCE_FREE(member, count)
#define FREE_TEXTS(TYPE, member, count, ...) LIST_##TYPE##_FREE(member, count)

void options_free(struct ptcp_transfer_opts *o)
{
	const struct ptcp_option *row;

	PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, PTCP_NO_ROW, PTCP_NO_ROW, FREE_TEXTS)
	for (row = rows; row < rows + sizeof rows / sizeof *rows; row++)
		if (row->type == PTCP_OPTION_TEXT)
			free(*(char *const *)member_of(o, row));
}

/* ---- OPEN ---- */

#define FLAG_SENT(member, bit, FLAG, when, ...) | (o->member == when ? WIRE_OPEN_##FLAG : 0)
#define FLAG_PRESERVED(member, bit, FLAG, initial) | (o->preserve.member ? WIRE_PRESERVE_##FLAG : 0)

uint32_t options_open_flags(const struct ptcp_transfer_opts *o)
{
	return (uint32_t)(0 PTCP_TRANSFER_OPTIONS(PTCP_NO_ROW, FLAG_SENT, PTCP_NO_ROW, PTCP_NO_ROW)
	    | (o->delete_extra ? WIRE_OPEN_RENAMES : 0) | /* for what will be deleted has often got another name */
	    (o->wire.delta == PTCP_DELTA_OFF ? WIRE_OPEN_WHOLE : 0) |
	    (o->wire.delta == PTCP_DELTA_ON ? WIRE_OPEN_DELTA : 0));
}

uint16_t options_preserve(const struct ptcp_transfer_opts *o) { return 0 PTCP_OPTIONS_PRESERVE(FLAG_PRESERVED); }
