#include "model/sender_limit.h"

#include <stddef.h>

static const struct {
	const char *name, *advice;
} all[] = {
#define X(id, name, advice) { name, advice },
	LIMIT_LIST(X)
#undef X
};

const char *limit_name(enum limit l)
{
	return all[l].name;
}

const char *limit_advice(enum limit l)
{
	return all[l].advice;
}

enum limit limit_of(const struct limit_times *t)
{
	if (!(t->elapsed_s > 0))
		return LIMIT_UNKNOWN;
	if (t->busy_s < t->elapsed_s / 2)
		return LIMIT_APPLICATION;
	if (t->window_s > t->busy_s / 2)
		return LIMIT_RECEIVE_WINDOW;
	if (t->buffer_s > t->busy_s / 2)
		return LIMIT_SEND_BUFFER;
	return LIMIT_NETWORK;
}

bool limit_by_parts(const struct limit_times *t)
{
	return t->window_s + t->buffer_s > t->busy_s / 20;
}
