#include "conn/ssh_hello.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "net/identity.h"
#include "net/line_reader.h"

#define WORDS_MAX 16

/* The words of a line, in a copy of it; words that are missing are empty. */
struct words {
	char text[LINE_READER_BYTES];
	const char *at[WORDS_MAX];
	unsigned n;
};

static void split(struct words *w, const char *line)
{
	char *rest, *word;
	unsigned i;

	snprintf(w->text, sizeof w->text, "%s", line);
	w->n = 0;
	for (i = 0; i < WORDS_MAX; i++)
		w->at[i] = "";
	for (word = strtok_r(w->text, " ", &rest); word != NULL && w->n < WORDS_MAX;
	    word = strtok_r(NULL, " ", &rest))
		w->at[w->n++] = word;
}

/* A decimal number up to 65535. */
static bool number(unsigned *out, const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n > 5 || strspn(text, "0123456789") != n)
		return false;
	*out = (unsigned)strtoul(text, NULL, 10);
	return *out <= 65535;
}

bool ssh_hello_address_ok(const char *text)
{
	char host[SOCK_HOST_BYTES], *scope;
	unsigned char bytes[16];

	if (strlen(text) >= sizeof host)
		return false;
	strcpy(host, text);
	if ((scope = strchr(host, '%')) != NULL)
		*scope = '\0';
	return inet_pton(AF_INET6, host, bytes) == 1 || (scope == NULL && inet_pton(AF_INET, host, bytes) == 1);
}

bool ssh_hello_is_greeting(const char *line)
{
	size_t n = strlen(SSH_HELLO_WORD);

	return strncmp(line, SSH_HELLO_WORD, n) == 0 && (line[n] == ' ' || line[n] == '\0');
}

static int malformed(struct ptcp_err *e)
{
	return err_set(e, PTCP_EPROTO, "a malformed greeting (is it ptcp?)");
}

/* A greeting of at least `n` words. */
static int open_line(struct words *w, const char *line, unsigned n, struct ptcp_err *e)
{
	unsigned version;

	split(w, line);
	if (!ssh_hello_is_greeting(line) || !number(&version, w->at[1]))
		return malformed(e);
	if (version != SSH_HELLO_VERSION)
		return err_set(e, PTCP_EPROTO, "the remote ptcp uses version %u of the SSH start protocol, the local "
		    "ptcp version %d (update the older of the two)", version, SSH_HELLO_VERSION);
	return w->n >= n ? 0 : malformed(e);
}

/* Among the words from number `from` on; unknown ones are skipped. */
static bool has_word(const struct words *w, unsigned from, const char *word)
{
	while (from < w->n && strcmp(w->at[from], word) != 0)
		from++;
	return from < w->n;
}

int ssh_hello_hello_parse(struct ssh_hello_hello *out, const char *line, struct ptcp_err *e)
{
	struct words w;
	int r;

	if ((r = open_line(&w, line, 4, e)) < 0)
		return r;
	if (!identity_fingerprint_ok(w.at[2]) || !number(&out->port, w.at[3]))
		return malformed(e);
	strcpy(out->fingerprint, w.at[2]);
	out->or_any = has_word(&w, 4, SSH_HELLO_OR_ANY);
	out->direct_io = has_word(&w, 4, SSH_HELLO_DIRECT);
	return 0;
}

/* "share PORT LABEL" after the fixed words, and after "final". */
static int parse_share(struct ssh_hello_answer *out, const struct words *w, unsigned at, struct ptcp_err *e)
{
	out->share_port = 0;
	out->label[0] = '\0';
	if (strcmp(w->at[at], SSH_HELLO_SHARE) != 0)
		return 0;
	if (!number(&out->share_port, w->at[at + 1]) || out->share_port == 0 || !client_hello_label_ok(w->at[at + 2]))
		return malformed(e);
	strcpy(out->label, w->at[at + 2]);
	return 0;
}

int ssh_hello_answer_parse(struct ssh_hello_answer *out, const char *line, struct ptcp_err *e)
{
	struct words w;
	int r;

	if ((r = open_line(&w, line, 6, e)) < 0)
		return r;
	if (!identity_fingerprint_ok(w.at[3]) || !number(&out->port, w.at[4]) || out->port == 0 ||
	    (strcmp(w.at[5], "-") != 0 && !ssh_hello_address_ok(w.at[5])))
		return malformed(e);
	snprintf(out->software, sizeof out->software, "%s", w.at[2]);
	strcpy(out->fingerprint, w.at[3]);
	out->final = strcmp(w.at[6], SSH_HELLO_FINAL) == 0;
	snprintf(out->address, sizeof out->address, "%s", strcmp(w.at[5], "-") != 0 ? w.at[5] : "");
	return parse_share(out, &w, 6u + out->final, e);
}

int ssh_hello_back_parse(struct ssh_hello_back *out, const char *line, struct ptcp_err *e)
{
	struct words w;
	unsigned i;

	split(&w, line);
	out->n = 0;
	if (strcmp(w.at[0], "back") != 0 || !number(&out->port, w.at[1]) || out->port == 0)
		return err_set(e, PTCP_EPROTO, "a malformed line");
	for (i = 2; i < w.n && out->n < SSH_HELLO_ADDRESSES; i++)
		if (ssh_hello_address_ok(w.at[i]))
			strcpy(out->address[out->n++], w.at[i]);
	return 0;
}
