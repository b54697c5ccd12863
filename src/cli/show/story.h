/* The end of a transfer, told in one place: which files, which bytes, and where the time went. */
#ifndef CLI_SHOW_STORY_H
#define CLI_SHOW_STORY_H

#include <jansson.h>
#include <ptcp/ptcp.h>
#include <stddef.h>

struct story {
	const char *command;   /* "send" or "recv" */
	const char *peer;      /* the other host; NULL or "": unknown */
	bool keeps;            /* a rule keeps files at the destination that differ */
	uint64_t arrived_bytes; /* file data that was sent in this run, without holes and repetitions */
};

/* "sent 1 of 46 files, 2.00 kB in 1.20 s, 45 up to date (44.5 MB), 4 streams". A rate follows the time, if it is a
 * second and more, and the data was not mostly holes; that of small files comes first. */
const char *story_files(char *out, size_t cap, const struct story *s, const struct ptcp_result *r);
/* Rate of files of less than 100 kB on average, whose bytes say little; 0: not the measure, or unknown. */
double story_files_per_s(const struct ptcp_progress *g, double rate_bps);
/* "bytes: 20.0 MB delivered, 98.0 kB sent on the wire, compressed from 1.00 MB, 19.0 MB equal already (of 20.0 MB
 * compared)"; "": nothing was equal or compressed. */
const char *story_bytes(char *out, size_t cap, const struct ptcp_result *r);
/* "time: 41 % archive's disk, 37 % path, 12 % this host's processor"; "": too short to say. */
const char *story_time(char *out, size_t cap, const struct story *s, const struct ptcp_result *r);
/* Seconds by cause; null: unknown. */
json_t *story_time_json(const struct ptcp_result *r);

#endif
