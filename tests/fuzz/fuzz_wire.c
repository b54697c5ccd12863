/* libFuzzer target: a peer's bytes on a connection, frame after frame, as the engine
 * reads them: header, then the decoder of its type. What a decoder accepts must keep the
 * promises of frame.h and encode to the bytes it came from. make fuzz FUZZ_S=60. */
#include "../wire/recode.h"
#include "core/text.h"
#include "fuzz.h"
#include "wire/attrs.h"
#include "wire/block.h"

static void check_attrs(const struct wire_entry *f)
{
	struct wire_attrs a;
	struct span name, value;

	MUST(wire_attrs_decode(&a, f, NULL) == 0);
	MUST(wire_attrs_bytes(&a) <= f->attrs.n);
	MUST((f->type == WIRE_HARDLINK) == (a.link_id != 0) && a.link_id < f->id);
	MUST((!a.sparse || f->type == WIRE_FILE) && (!a.linked || wire_may_be_linked(f->type)));
	MUST(a.user.n <= WIRE_OWNER_NAME_MAX && (a.user.n == 0 || memchr(a.user.p, 0, a.user.n) == NULL));
	while (wire_xattr_next(&a.xattrs, &name, &value))
		MUST(name.n > 0 && memchr(name.p, 0, name.n) == NULL);
	MUST(a.xattrs.n == 0);
}

static void check_entry(struct span in)
{
	struct wire_entry f;

	MUST(wire_entry_decode(&f, in, NULL) == 0);
	MUST(wire_id_ok(f.id) && (f.parent == 0 || wire_id_ok(f.parent)));
	MUST(f.type == WIRE_DIR_END || text_name_ok((const char *)f.name.p, f.name.n));
	MUST(f.target.n <= WIRE_PATH_MAX && f.mode <= 07777 && f.mtime_ns < 1000000000);
	MUST(f.size_bytes <= WIRE_FILE_MAX && wire_grid_blocks(wire_grid_of(f.size_bytes)) <= 1u << 27);
	check_attrs(&f);
}

static void check_open(struct span in)
{
	struct wire_open f;
	struct span path;
	uint8_t flags;
	unsigned n = 0;

	MUST(wire_open_decode(&f, in, NULL) == 0);
	MUST(f.streams > 0);
	while (wire_path_next(&f.paths, &flags, &path)) {
		MUST(path.n <= WIRE_PATH_MAX && (path.n == 0 || memchr(path.p, 0, path.n) == NULL));
		n++;
	}
	MUST(n == f.n_paths && (n == 0) == (f.role == WIRE_ACCEPTOR_DISCARDS || f.role == WIRE_ACCEPTOR_GENERATES) &&
	    n <= WIRE_PATHS_MAX && f.paths.n == 0);
}

/* One frame, in memory of its very size. */
static void one(const uint8_t *data, size_t n)
{
	static uint8_t out[RECODE_MAX_BYTES];
	uint8_t *frame = malloc(n);
	struct span in;
	struct ptcp_err e = { 0 };
	size_t out_n = 0;
	int r;

	if (frame == NULL)
		return;
	memcpy(frame, data, n);
	in = (struct span){ frame + WIRE_HEADER_BYTES, n - WIRE_HEADER_BYTES };
	r = recode(frame, n, out, &out_n, &e);
	MUST(r == 0 || r == PTCP_EPROTO);
	if (r == 0) {
		MUST(recoded_same(frame, n, out, out_n));
		if (frame[0] == WIRE_ENTRY)
			check_entry(in);
		else if (frame[0] == WIRE_OPEN)
			check_open(in);
	}
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct wire_header h;
	uint8_t fixed[WIRE_HEADER_BYTES];
	size_t len;

	while (n >= WIRE_HEADER_BYTES) {
		/* What the header promises and the input does not have is cut, with a header
		 * that says so: a decoder must do with any length. */
		memcpy(fixed, data, sizeof fixed);
		if (wire_header_decode(&h, fixed, NULL) < 0)
			return 0;
		len = h.length < n - WIRE_HEADER_BYTES ? h.length : n - WIRE_HEADER_BYTES;
		if (len == h.length) {
			one(data, WIRE_HEADER_BYTES + len);
		} else {
			uint8_t *cut = malloc(WIRE_HEADER_BYTES + len);

			if (cut == NULL)
				return 0;
			memcpy(cut, data, WIRE_HEADER_BYTES + len);
			put_u32(cut + 4, (uint32_t)len);
			one(cut, WIRE_HEADER_BYTES + len);
			free(cut);
		}
		data += WIRE_HEADER_BYTES + len;
		n -= WIRE_HEADER_BYTES + len;
	}
	return 0;
}
