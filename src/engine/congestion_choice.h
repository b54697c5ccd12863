/* Congestion control that a sender begins with, as OPEN requests, with the reason for the user. */
#ifndef ENGINE_CONGESTION_CHOICE_H
#define ENGINE_CONGESTION_CHOICE_H

#include <stdbool.h>

#include "wire/frame.h"

#define CONGESTION_LOSS "random loss limits each stream, and no competing flows are seen"
#define CONGESTION_NO_BBR CONGESTION_LOSS "; bbr would be faster, but the kernel does not permit it"
#define CONGESTION_OTHERS "competing flows are seen"

struct congestion_choice {
	const char *name;   /* congestion control of the streams; NULL: the setting of the system */
	const char *why;
	bool judges;        /* may change to BBR, and back */
};

/* Of a sender whose kernel permits what `permits` says; a name that the user requests may not be permitted. */
void congestion_choose(struct congestion_choice *c, const struct wire_open *o, bool (*permits)(const char *name));
/* Why a sending peer uses `name`; `from`: the name before, or "". */
const char *congestion_peer_why(const struct wire_open *o, const char *from, const char *name);

/* Whether `why` says that no number of streams keeps an impact budget, and a text for the user. */
bool congestion_is_denied(const struct wire_open *o, const char *why);
extern const char congestion_denied_warning[];
/* Then one stream of a transfer yields; of movers, whose streams are not paced, none. */
bool congestion_yields(const struct wire_open *o, const char *why, bool striped);

#endif
