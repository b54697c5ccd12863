/* What the fuzz targets share. A target is tests/fuzz/fuzz_NAME.c with libFuzzer's one function;
 * make fuzz runs it, and make check feeds it its seeds (feed.c), so that it is whole where there is
 * no clang. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A promise of the code under test, kept whatever the input is. */
#define MUST(cond) ((cond) ? (void)0 : fuzz_broken(#cond, __FILE__, __LINE__))

static inline void fuzz_broken(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, what);
	abort();
}

/* What is left of an input that is read as a script. */
struct input {
	const uint8_t *p;
	size_t n;
};

/* The next byte, 0 behind the end. */
static inline uint8_t take_byte(struct input *in)
{
	if (in->n == 0)
		return 0;
	in->n--;
	return *in->p++;
}

/* The next bytes, up to `most` or to the end. */
static inline struct input take_bytes(struct input *in, size_t most)
{
	struct input part = { in->p, most < in->n ? most : in->n };

	in->p += part.n;
	in->n -= part.n;
	return part;
}

/* Up to the next newline, which is dropped, or to the end: as a string, for free(). What stands behind a
 * NUL is not seen. */
static inline char *take_line(struct input *in)
{
	const uint8_t *end = in->n > 0 ? memchr(in->p, '\n', in->n) : NULL;
	struct input part = take_bytes(in, end != NULL ? (size_t)(end - in->p) : in->n);
	char *text = malloc(part.n + 1);

	if (end != NULL)
		take_bytes(in, 1);
	MUST(text != NULL);
	if (part.n > 0)
		memcpy(text, part.p, part.n);
	text[part.n] = '\0';
	return text;
}

#endif
