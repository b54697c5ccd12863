/* How far a transfer is. */
#ifndef PTCP_PROGRESS_H
#define PTCP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Work of either end beside the transfer: hashing files that were already transferred, syncing files to disk. */
enum ptcp_activity { PTCP_TRANSFERRING, PTCP_VERIFYING, PTCP_SYNCING };

/* Embedded in other public structs, so it does not grow. */
struct ptcp_progress {
	uint64_t bytes, total_bytes;   /* verified and written at the destination; listed so far */
	uint64_t files, total_files;   /* complete regular files; listed so far */
	uint64_t failed;               /* files, links and directories that failed */
	uint64_t wire_bytes;           /* file data as sent in this run: compressed, retransmitted blocks included */
	uint64_t saved_bytes;          /* bytes that compression kept from being sent, besides wire_bytes */
	uint64_t resumed_bytes;        /* part of `bytes`: already transferred before this run, and verified */
	uint64_t file_bytes;           /* total size of the complete files */
	uint64_t others;               /* complete directories and links */
	uint16_t streams, max_streams; /* number in use now; maximum number at one time */
	uint8_t activity;              /* an enum ptcp_activity */
	bool total_known;              /* the listing is complete */
};

#endif
