#include "conn/client_hello.h"

#include <string.h>

#define HOPS_FLAG 0x80
#define RECORD_HEADER_BYTES 5
#define RECORD_HANDSHAKE 22
#define MESSAGE_CLIENT_HELLO 1
#define EXTENSION_SERVER_NAME 0
#define NAME_HOST 0

struct bytes {
	const uint8_t *p;
	size_t n;
};

/* False: fewer than n bytes are left. */
static bool client_hello_take(struct bytes *in, size_t n, struct bytes *out)
{
	if (n > in->n)
		return false;
	*out = (struct bytes){ in->p, n };
	in->p += n;
	in->n -= n;
	return true;
}

/* A big-endian number of `width` bytes. */
static bool take_number(struct bytes *in, unsigned width, size_t *out)
{
	struct bytes number;
	unsigned i;

	if (!client_hello_take(in, width, &number))
		return false;
	for (*out = 0, i = 0; i < width; i++)
		*out = *out << 8 | number.p[i];
	return true;
}

/* Bytes after their number, which has `width` bytes. */
static bool take_vector(struct bytes *in, unsigned width, struct bytes *out)
{
	size_t n;

	return take_number(in, width, &n) && client_hello_take(in, n, out);
}

static bool is_label(struct bytes name)
{
	size_t i;

	for (i = 0; i < name.n; i++)
		if (memchr("0123456789abcdef", name.p[i], 16) == NULL)
			return false;
	return name.n == CLIENT_HELLO_LABEL_BYTES - 1;
}

bool client_hello_label_ok(const char *text)
{
	return is_label((struct bytes){ (const uint8_t *)text, strlen(text) });
}

/* RFC 6066, section 3: a list, of which only the first name counts. */
static bool read_server_name(char label[CLIENT_HELLO_LABEL_BYTES], struct bytes in)
{
	struct bytes list, name;
	size_t type;

	if (!take_vector(&in, 2, &list) || !take_number(&list, 1, &type) || type != NAME_HOST ||
	    !take_vector(&list, 2, &name) || !is_label(name))
		return false;
	memcpy(label, name.p, name.n);
	label[name.n] = '\0';
	return true;
}

/* RFC 8446, section 4.1.2. */
static bool read_message(char label[CLIENT_HELLO_LABEL_BYTES], struct bytes record)
{
	struct bytes hello, skipped, extensions, extension;
	size_t type;

	if (!take_number(&record, 1, &type) || type != MESSAGE_CLIENT_HELLO || !take_vector(&record, 3, &hello) ||
	    !client_hello_take(&hello, 2 + 32, &skipped) /* version and random */ ||
	    !take_vector(&hello, 1, &skipped) /* session */ || !take_vector(&hello, 2, &skipped) /* ciphers */ ||
	    !take_vector(&hello, 1, &skipped) /* compression */ || !take_vector(&hello, 2, &extensions))
		return false;
	while (take_number(&extensions, 2, &type) && take_vector(&extensions, 2, &extension))
		if (type == EXTENSION_SERVER_NAME)
			return read_server_name(label, extension);
	return false;
}

enum client_hello client_hello_read(char label[CLIENT_HELLO_LABEL_BYTES], size_t *need, const uint8_t *p, size_t n)
{
	size_t hops = n > 0 && (p[0] & HOPS_FLAG) != 0, length;
	struct bytes in = { p + hops, n - hops }, record;

	if (in.n > 0 && in.p[0] != RECORD_HANDSHAKE)
		return CLIENT_HELLO_PLAIN;
	if (in.n < RECORD_HEADER_BYTES) {
		*need = hops + RECORD_HEADER_BYTES;
		return CLIENT_HELLO_MORE;
	}
	length = (size_t)in.p[3] << 8 | in.p[4];
	if (hops + RECORD_HEADER_BYTES + length > CLIENT_HELLO_MAX_BYTES)
		return CLIENT_HELLO_PLAIN;
	if (in.n < RECORD_HEADER_BYTES + length) {
		*need = hops + RECORD_HEADER_BYTES + length;
		return CLIENT_HELLO_MORE;
	}
	record = (struct bytes){ in.p + RECORD_HEADER_BYTES, length };
	return read_message(label, record) ? CLIENT_HELLO_LABEL : CLIENT_HELLO_PLAIN;
}
