/* Golden frames, in hex as they are on the wire: header, fields, contents. At least one
 * of every type in WIRE_FRAMES (test_frame.c sees to it). PROTOCOL.md says what the
 * bytes mean; changing one of these lines means that old and new no longer understand
 * each other. They are the seeds of the fuzz target too. */
#ifndef TESTS_WIRE_SAMPLES_H
#define TESTS_WIRE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/frame.h"

static const struct sample { const char *name; uint8_t type; const char *hex; } samples[] = {
	{ "hello", WIRE_HELLO,
	    "0101 0000 00000022 50544350 0001 0001 00007530 00004000 0080 02 0001 0002 0a"
	    " 7074637020302e312e30" },
	{ "hello-bare", WIRE_HELLO,
	    "0101 0000 00000014 50544350 0001 0001 00000001 00000001 0001 00 00" },
	{ "hello-later", WIRE_HELLO,
	    "0101 0000 00000017 50544350 0001 0002 00007530 00004000 0080 00 00 c0ffee" },
	{ "open-put", WIRE_OPEN,
	    "0201 0000 00000016 01 00 0000 00000039 0004 0001 00 0007 696e2f72756e37" },
	{ "open-get", WIRE_OPEN,
	    "0201 0000 00000019 02 03 0000 0000003b 0080 0003 01 0001 61 00 0000 00 0003"
	    " 62ff63" },
	{ "opened", WIRE_OPENED,
	    "0301 0000 00000014 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 00 0004 00" },
	{ "opened-endpoints", WIRE_OPENED,
	    "0301 0000 00000026 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 03 0080 02 1e83 09"
	    " 3139322e302e322e31 0001 03 3a3a31" },
	{ "error", WIRE_ERROR,
	    "0401 0000 0000000e 0005 000a 6e6f7420796f752c2078" },
	{ "error-bare", WIRE_ERROR,
	    "0401 0000 00000004 0000 0000" },
	{ "ping", WIRE_PING,
	    "0501 0000 00000009 03 0102030405060708" },
	{ "join", WIRE_JOIN,
	    "0801 0000 00000032 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 0007"
	    " c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf" },
	{ "joined", WIRE_JOINED,
	    "0901 0000 00000000" },
	{ "entry-dir", WIRE_ENTRY,
	    "1001 0000 00000035 01 0000000000010000 0000000000000000 0000000000000000"
	    " 000000006553f100 3b9ac9ff 000001ed 0004 0000 00000000 72756e37" },
	{ "entry-file", WIRE_ENTRY,
	    "1001 0000 0000003a 02 0000000000020001 0000000000010000 000000012a05f200"
	    " ffffffffffffffff 00000000 00000fff 0003 0000 00000006 6e0afe 0001 0002 6869" },
	{ "entry-empty", WIRE_ENTRY,
	    "1001 0000 00000032 02 0000000000103fff 0000000000000000 0000000000000000"
	    " 0000000000000000 00000001 00000000 0001 0000 00000000 30" },
	{ "entry-symlink", WIRE_ENTRY,
	    "1001 0000 0000003a 03 0000000000020002 0000000000010000 0000000000000000"
	    " 0000000000000001 00000002 000001ff 0004 0005 00000000 6c696e6b 2e2e2f2e2e" },
	{ "entry-hardlink", WIRE_ENTRY,
	    "1001 0000 0000003c 05 0000000000030001 0000000000010000 0000000000000000"
	    " 0000000000000001 00000002 000001a4 0005 0006 00000000 6f74686572 72756e372f6e" },
	{ "entry-dir-end", WIRE_ENTRY,
	    "1001 0000 00000031 04 0000000000010000 0000000000000000 0000000000000000"
	    " 000000006553f100 3b9ac9ff 000001ed 0000 0000 00000000" },
	{ "answer-all", WIRE_ANSWER,
	    "1101 0000 00000009 0000000000010002 01" },
	{ "answer-none", WIRE_ANSWER,
	    "1101 0000 00000009 0000000000010002 02" },
	{ "answer-parts", WIRE_ANSWER,
	    "1101 0000 00000009 0000000000010002 03" },
	{ "need", WIRE_NEED,
	    "1201 0000 00000010 0000000000010002 00000005 00000007" },
	{ "have", WIRE_HAVE,
	    "1301 0000 00000020 0000000000010002 00000000 00000005 1122334455667788"
	    " 99aabbccddeeff00" },
	{ "ack", WIRE_ACK,
	    "1401 0000 0000000c 0000000000010002 00004a81" },
	{ "file-end", WIRE_FILE_END,
	    "1501 0000 00000018 0000000000010002 1122334455667788 99aabbccddeeff00" },
	{ "done", WIRE_DONE,
	    "1601 0000 00000008 0000000000010002" },
	{ "fail", WIRE_FAIL,
	    "1701 0000 00000013 0000000000010002 000f 0007 6368616e676564" },
	{ "totals", WIRE_TOTALS,
	    "1801 0000 00000011 00000000000003e8 000000012a05f200 01" },
	{ "end", WIRE_END,
	    "1901 0000 00000010 00000000000003e7 0000000000000001" },
	{ "note-failed", WIRE_NOTE,
	    "1a01 0000 0000000e 01 000d 0003 0004 612f62 676f6e65" },
	{ "note-warning", WIRE_NOTE,
	    "1a01 0000 0000000b 02 000d 0004 0000 6601ff0a" },
	{ "block", WIRE_BLOCK,
	    "2001 0000 0000002d 0000000000010002 0000000000040000 00000005 00000000"
	    " 68656c6c6f 00000000 00000000 0123456789abcdef" },
	{ "block-void", WIRE_BLOCK,
	    "2001 0000 00000029 0000000000010002 0000000000000000 00000001 00000000 00"
	    " 00000001 00000000 0000000000000000" },
};

#define N_SAMPLES (sizeof samples / sizeof *samples)
#define SAMPLE_MAX_BYTES 256 /* of the frames above */

/* The bytes of `hex` (spaces are skipped) at `out`; how many. */
static inline size_t hex_bytes(uint8_t *out, const char *hex)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (; *hex != '\0'; hex++)
		if (*hex != ' ') {
			out[n / 2] = (uint8_t)(out[n / 2] << 4 | (strchr(digits, *hex) - digits));
			n++;
		}
	return n / 2;
}

#endif
