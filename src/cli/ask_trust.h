/* The question about a host that is not known. */
#ifndef CLI_ASK_TRUST_H
#define CLI_ASK_TRUST_H

#include <stdbool.h>

/* A ptcp_trust_fn: shows host and fingerprint on stderr, reads the answer from stdin until
 * it is one. End of input and SIGINT mean no. */
bool trust_ask(void *arg, const char *host, const char *fingerprint);

enum trust_answer { TRUST_YES, TRUST_NO, TRUST_UNCLEAR };

/* What a line typed means: "yes" or the fingerprint itself, "no", in any case of letters
 * (the fingerprint's aside), blanks around it ignored. */
enum trust_answer trust_answer(const char *line, const char *fingerprint);

#endif
