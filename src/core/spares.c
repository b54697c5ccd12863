#include "core/spares.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"

void spares_init(struct spares *s, struct memory_account *memory, size_t bytes, size_t charge_bytes)
{
	assert(bytes >= sizeof s->first && charge_bytes >= bytes);
	*s = (struct spares){ .memory = memory, .bytes = bytes, .charge_bytes = charge_bytes };
}

static void *pop(struct spares *s)
{
	void *object = s->first;

	memcpy(&s->first, object, sizeof s->first);
	s->n--;
	return object;
}

void *spares_take(struct spares *s, struct ptcp_err *e)
{
	void *object;

	if (s->first != NULL)
		return memset(pop(s), 0, s->bytes);
	if (memory_charge(s->memory, s->charge_bytes, e) < 0)
		return NULL;
	if ((object = calloc(1, s->bytes)) == NULL) {
		memory_release(s->memory, s->charge_bytes);
		err_nomem(e);
	}
	return object;
}

void spares_give(struct spares *s, void *object)
{
	if (object == NULL)
		return;
	if (s->n == SPARES_MAX) {
		free(object);
		memory_release(s->memory, s->charge_bytes);
		return;
	}
	memcpy(object, &s->first, sizeof s->first);
	s->first = object;
	s->n++;
}

void spares_fini(struct spares *s)
{
	while (s->first != NULL) {
		free(pop(s));
		memory_release(s->memory, s->charge_bytes);
	}
}
