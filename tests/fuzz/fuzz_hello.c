/* libFuzzer target: the first bytes of a connection to a shared port, whole and at each place where a packet may
 * end. */
#include "conn/client_hello.h"
#include "fuzz.h"

/* The verdict on the first n bytes, in a buffer of that size. */
static enum client_hello judge(const uint8_t *data, size_t n, char label[CLIENT_HELLO_LABEL_BYTES])
{
	uint8_t *exact = malloc(n + 1);
	enum client_hello r;
	size_t need = 0;

	MUST(exact != NULL);
	memcpy(exact, data, n);
	r = client_hello_read(label, &need, exact, n);
	free(exact);
	MUST(r != CLIENT_HELLO_MORE || (need > n && need <= CLIENT_HELLO_MAX_BYTES));
	MUST(r != CLIENT_HELLO_LABEL || (strlen(label) == 32 && strspn(label, "0123456789abcdef") == 32));
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char whole[CLIENT_HELLO_LABEL_BYTES], part[CLIENT_HELLO_LABEL_BYTES];
	enum client_hello r, last;
	size_t i;

	if (n > CLIENT_HELLO_MAX_BYTES)
		n = CLIENT_HELLO_MAX_BYTES;
	r = judge(data, n, whole);
	MUST(n < CLIENT_HELLO_MAX_BYTES || r != CLIENT_HELLO_MORE);
	/* Packets do not change the verdict: after the first that is final, all are the same. */
	for (i = 0, last = CLIENT_HELLO_MORE; i <= n && last == CLIENT_HELLO_MORE; i++)
		last = judge(data, i, part);
	MUST(last == r && (r != CLIENT_HELLO_LABEL || strcmp(part, whole) == 0));
	return 0;
}
