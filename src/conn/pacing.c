#include "conn/pacing.h"

#include <time.h>

#include "core/text.h"

#define LOOK_NS NS_PER_S

static void apply(struct pacing *p)
{
	struct mono now = mono_now();

	p->bps = timetable_bps(&p->table, timetable_second(time(NULL)));
	pacer_set(&p->out, p->bps, now);
	pacer_set(&p->in, p->loose ? pacing_loose_bps(p->bps) : p->bps, now);
}

/* Not when the next range begins: the clock may be set, and be put forward or back. */
static void on_timer(void *arg)
{
	struct pacing *p = arg;

	apply(p);
	timer_set(p->timer, mono_add_ns(mono_now(), LOOK_NS));
}

int pacing_start(struct pacing *p, const struct timetable *t, struct loop *control, struct ptcp_err *e)
{
	int r;

	p->table = *t;
	p->loose = false;
	if (timetable_varies(t)) {
		if ((r = timer_new(&p->timer, control, on_timer, p, e)) < 0)
			return r;
		timer_set(p->timer, mono_add_ns(mono_now(), LOOK_NS));
	}
	apply(p);
	return 0;
}

void pacing_loosen(struct pacing *p)
{
	p->loose = true;
	apply(p);
}

void pacing_stop(struct pacing *p)
{
	timer_free(p->timer);
	p->timer = NULL;
}

int pacing_parse(struct timetable *t, const char *text, struct ptcp_err *e)
{
	char shown[TEXT_NAME_BYTES];
	struct ptcp_err why;

	*t = (struct timetable){ .n = 0 };
	if (text == NULL || timetable_parse(t, text, &why) == 0)
		return 0;
	return err_set(e, why.code, "--rate %s: %s", text_escape(shown, sizeof shown, text), why.msg);
}
