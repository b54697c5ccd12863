/* The messages of the sharing socket; pure functions. */
#include "server/port_share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "core/text.h"

#define LINE PORT_SHARE_WORD " 1 " /* the version */
_Static_assert(PORT_SHARE_VERSION == 1, "LINE names the version");

void port_share_register_text(char out[LOCAL_SOCK_TEXT_BYTES], const char *key)
{
	snprintf(out, LOCAL_SOCK_TEXT_BYTES, LINE "%s", key);
}

const char *port_share_register_parse(const char *text)
{
	const char *key = text + strlen(LINE);

	if (strncmp(text, LINE, strlen(LINE)) != 0 || strspn(key, "0123456789abcdef") != TLS_SHARE_KEY_BYTES - 1 ||
	    key[TLS_SHARE_KEY_BYTES - 1] != '\0')
		return NULL;
	return key;
}

void port_share_answer_text(char out[LOCAL_SOCK_TEXT_BYTES], unsigned port)
{
	snprintf(out, LOCAL_SOCK_TEXT_BYTES, LINE "%u", port);
}

void port_share_error_text(char out[LOCAL_SOCK_TEXT_BYTES], const char *why)
{
	snprintf(out, LOCAL_SOCK_TEXT_BYTES, PORT_SHARE_ERROR " %s", why);
}

int port_share_answer_parse(unsigned *port, const char *text, struct ptcp_err *e)
{
	const char *why = text + strlen(PORT_SHARE_ERROR " "), *number = text + strlen(LINE);
	char shown[TEXT_NAME_BYTES];
	unsigned long n;

	if (strncmp(text, PORT_SHARE_ERROR " ", strlen(PORT_SHARE_ERROR " ")) == 0 && why[0] != '\0')
		return err_set(e, PTCP_EREFUSED, "%s", text_escape(shown, sizeof shown, why));
	if (strncmp(text, LINE, strlen(LINE)) != 0 || strspn(number, "0123456789") != strlen(number) ||
	    number[0] == '\0' || strlen(number) > 5 || (n = strtoul(number, NULL, 10)) == 0 || n > 65535)
		return err_set(e, PTCP_EPROTO, "a malformed answer");
	*port = (unsigned)n;
	return 0;
}
