/* Files whose size becomes known at the end of their input: PROTOCOL.md, section 5, SIZE. */
#include "engine/sender_impl.h"

void snd_release_block(struct snd *s, struct snd_entry *f, uint32_t block)
{
	if (f->unsized)
		s->o.ops->release(s->o.arg, f->cookie, block);
}

void snd_start_unsized(struct snd *s, struct snd_entry *f)
{
	if (f->state == SENDING && f->next < f->n_offered && list_empty(&f->in_ready))
		list_append(&s->ready, &f->in_ready);
}

static bool has_ended(const struct snd_entry *f)
{
	return f == NULL || !f->unended || f->state == FAILING;
}

void snd_grown(struct snd *s, uint64_t id, uint32_t n)
{
	struct snd_entry *f = snd_find(s, id);

	if (has_ended(f) || f->state != SENDING || n <= f->n_blocks)
		return;
	f->n_blocks = f->n_offered = n;
	snd_start_unsized(s, f);
}

/* The receiver does not know the length of a shorter last block before SIZE: it requests the block. */
bool snd_sized(struct snd *s, uint64_t id, uint64_t size_bytes)
{
	struct wire_size frame = { id, size_bytes };
	struct snd_entry *f = snd_find(s, id);

	if (has_ended(f))
		return true;
	if (f->state != SENDING)
		return false;
	snd_grown(s, id, (uint32_t)(size_bytes / f->grid.block_bytes));
	f->unended = false;
	s->n_unended--;
	f->size_bytes = size_bytes;
	f->grid = wire_grid_unsized(size_bytes);
	f->n_blocks = wire_grid_blocks(f->grid);
	OUTBOX_PUT(s->out, size, SIZE, &frame);
	snd_try_complete(s, f);
	return true;
}

bool snd_input_failed(struct snd *s, uint64_t id, const struct ptcp_err *why)
{
	struct snd_entry *f = snd_find(s, id);

	if (has_ended(f))
		return true;
	if (f->state != SENDING)
		return false;
	snd_fail(s, f, why);
	return true;
}
