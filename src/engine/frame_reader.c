#include "engine/frame_reader.h"

#include <string.h>

#include "core/err.h"

void frame_reader_fini(struct frame_reader *r) { buf_fini(&r->in); }

int frame_reader_add(struct frame_reader *r, const uint8_t *p, size_t n, struct ptcp_err *e)
{
	uint8_t *room = buf_reserve(&r->in, n);

	if (room == NULL)
		return err_nomem(e);
	memcpy(room, p, n);
	buf_added(&r->in, n);
	return 0;
}

int frame_reader_next(struct frame_reader *r, struct frame *f, struct ptcp_err *e)
{
	struct wire_header h;
	int err;

	do {
		buf_consume(&r->in, r->taken);
		r->taken = 0;
		f->bytes = (struct span){ buf_head(&r->in), buf_len(&r->in) };
		if ((err = wire_frame_next(&h, &f->payload, f->bytes, e)) <= 0)
			return err;
		r->taken = f->bytes.n = WIRE_HEADER_BYTES + h.length;
		f->type = h.type;
	} while (!wire_type_known(h.type));
	return 1;
}

size_t frame_reader_rest(const struct frame_reader *r) { return buf_len(&r->in) - r->taken; }
