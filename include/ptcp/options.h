/* The options of a transfer: each stands here once. From these rows come the switches and defaults of struct
 * ptcp_transfer_opts, ptcp_transfer_option(), the ranges that the library checks, the options of ptcp(1) with their help
 * and their completions, the bits of OPEN (PROTOCOL.md, section 4), and the keywords of the Python package.
 *
 * A list takes macros, one for each kind of row, and has the order of `ptcp send --help`:
 *
 *   SWITCH(member, name, letter, help)                      a bool, false by default
 *   SENT(member, bit, FLAG, when, name, letter, help)       the same, and the receiver of OPEN learns of the switch: `bit`
 *                                                           is set if the member is `when`
 *   VALUE(TYPE, member, initial, min, max, name, value, help)
 *   TEXTS(TYPE, member, count, name, value, help)           a list of texts, and the member with their number, which
 *                                                           follows the list
 *   PRESERVED(member, bit, FLAG, initial)                   a switch of struct ptcp_preserve, named by --preserve, and a
 *                                                           bit of `preserve` of OPEN
 *
 * `name` is the long option of the command, or "" if the command has none; `letter` its short form, or 0. `value` stands
 * behind the option in the help: lower-case words, separated by |, are the words that may be typed; names in capitals
 * (N, FILE, DIR, HOST, TIME ..) are kinds of values; ",.." permits several, separated by commas. `help` is one line.
 *
 * TYPE of VALUE: UNSIGNED, UINT32, INT; WORD: an enum whose values are the numbers of the words of `value`; NAME: a text,
 * one of the words; PERCENT, BUDGET and SECONDS: double; BYTES: uint64_t; RATE, TEXT: a text; DOUBLES, SIZES: a number for each
 * text of the list `value`; RULES: structs ptcp_rule, followed by their number; CALLBACK: a function. `initial` is
 * permitted beside min to max; the first word of a number means 0, the second -1. TYPE of TEXTS: EACH: the option is
 * repeated; COMMAS: one option has all texts, separated by commas; ONCE: each text is used by the function that takes the
 * options only. */
#ifndef PTCP_OPTIONS_H
#define PTCP_OPTIONS_H

#define PTCP_NO_ROW(...) /* stands for the rows that a program leaves out */

/* Entries that are left out. */
#define PTCP_OPTIONS_SELECTION(SWITCH, SENT, VALUE, TEXTS) \
	VALUE(BYTES, limits.min_size, 0, 0, PTCP_FILE_SIZE_MAX, "min-size", "SIZE", "leave out smaller files") \
	VALUE(BYTES, limits.max_size, 0, 1, PTCP_FILE_SIZE_MAX, "max-size", "SIZE", "leave out larger files") \
	VALUE(TEXT, limits.newer_than, NULL, 0, 0, "newer-than", "TIME", \
	    "leave out files older than an age such as 7d, or last changed before a date such as 2026-11-30") \
	VALUE(TEXT, limits.older_than, NULL, 0, 0, "older-than", "TIME", \
	    "leave out files as new as an age such as 7d, or last changed since a date such as 2026-11-30") \
	VALUE(UINT32, limits.max_depth, 0, 1, UINT32_MAX, "max-depth", "N", \
	    "leave out what lies more than N levels below a source") \
	VALUE(SECONDS, limits.stop_after_s, 0, 0.5, 31536000, "stop-after", "TIME", \
	    "stop after this time; the same command transfers the rest later") \
	VALUE(TEXT, limits.stop_at, NULL, 0, 0, "stop-at", "TIME", \
	    "stop at a time such as 06:00 or 2026-11-30T06:00; the same command transfers the rest later") \
	SENT(one_file_system, 26, ONE_FILE_SYSTEM, true, "one-file-system", 'x', \
	    "leave out what lies on other file systems than the source")

#define PTCP_OPTIONS_SYMLINKS(SWITCH, SENT, VALUE, TEXTS) \
	SENT(copy_links, 27, COPY_LINKS, true, "copy-links", 'L', "send the files and directories that links lead to") \
	SENT(copy_unsafe_links, 28, COPY_UNSAFE_LINKS, true, "copy-unsafe-links", 0, \
	    "likewise for links that are absolute, or lead out of the source")

#define PTCP_OPTIONS_EXISTING(SWITCH, SENT, VALUE, TEXTS) \
	SENT(update, 14, UPDATE, true, "update", 'u', "skip existing files that are newer than the source") \
	SENT(size_only, 13, SIZE_ONLY, true, "size-only", 0, "skip existing files of the same size, without comparing") \
	SENT(ignore_existing, 15, IGNORE_EXISTING, true, "ignore-existing", 0, "skip existing files and links") \
	SENT(existing, 24, EXISTING, true, "existing", 0, "skip files, links and directories that the destination does not have") \
	SENT(checksum, 19, CHECKSUM, true, "checksum", 'c', \
	    "compare existing files of the same size by hash, whatever their times") \
	SENT(ignore_times, 16, IGNORE_TIMES, true, "ignore-times", 0, "transfer files again that seem to be up to date") \
	SENT(delete_extra, 18, DELETE, true, "delete", 0, \
	    "at the end, delete files of the destination that a source directory does not have") \
	VALUE(UINT32, older.max_delete, PTCP_MAX_DELETE_CAREFUL, 0, UINT32_MAX - 1, "max-delete", "N", \
	    "with --delete: if there are more than N files to delete, delete none (default: 1000)")

/* What happens to what exists: members of struct ptcp_older. */
#define PTCP_OPTIONS_OLDER(SWITCH, SENT, VALUE, TEXTS) \
	SWITCH(older.backup, "backup", 'b', "keep what is replaced or deleted, under its name with a suffix") \
	VALUE(TEXT, older.backup_dir, NULL, 0, 0, "backup-dir", "DIR", \
	    "keep it in DIR instead, which is relative to the destination") \
	VALUE(TEXT, older.suffix, NULL, 0, 0, "suffix", "SUFFIX", \
	    "suffix of backups (default: ~, or none with --backup-dir)") \
	TEXTS(EACH, older.link_dest, older.n_link_dest, "link-dest", "DIR", \
	    "make hard links of files that are equal in DIR, an older copy") \
	TEXTS(EACH, older.compare_dest, older.n_compare_dest, "compare-dest", "DIR", \
	    "leave out files that are equal in DIR") \
	TEXTS(EACH, older.copy_dest, older.n_copy_dest, "copy-dest", "DIR", \
	    "copy files that are missing from DIR at the destination") \
	SWITCH(older.delete_excluded, "delete-excluded", 0, "with --delete: delete also what --exclude leaves out") \
	SENT(older.exclusive, 4, EXCLUSIVE, true, "exclusive", 0, "fail files and links whose names exist, replace none") \
	VALUE(TEXT, older.if_match, NULL, 0, 0, "if-match", "VERSION", \
	    "replace the destination only if it has this version, as ptcp stat prints it")

#define PTCP_OPTIONS_COPYING(SWITCH, SENT, VALUE, TEXTS) \
	SENT(dry_run, 7, DRY_RUN, true, "dry-run", 'n', "print the files to transfer, change nothing") \
	SENT(remove_sources, 20, REMOVE_SOURCES, true, "remove-source-files", 0, \
	    "remove each source file once it is verified and on disk at the destination") \
	SENT(no_resume, 6, NO_RESUME, true, "no-resume", 0, "transfer every file from scratch")

#define PTCP_OPTIONS_WRITING(SWITCH, SENT, VALUE, TEXTS) \
	SENT(no_growing, 25, NO_GROWING, true, "no-growing", 0, \
	    "fail files that grow while they are sent (default: send the size first seen)") \
	SENT(no_verify, 0, VERIFY, false, "no-verify", 0, "do not hash blocks and files") \
	VALUE(WORD, fsync, PTCP_FSYNC_GROUP, 0, 2, "fsync", "group|none|file", \
	    "syncing of received files to disk (default: group)") \
	SWITCH(direct_io, "direct", 0, "read and write files larger than 256KiB past the page cache") \
	SENT(no_mkpath, 12, MKPATH, false, "no-mkpath", 0, \
	    "fail if a parent of the destination is missing (default: create it)") \
	SENT(partial, 22, PARTIAL, true, "", 0, "of standard input: retain the beginning of a file that fails") \
	SENT(dest_is_file, 21, FILE, true, "", 0, "the destination is the name of a file, never a directory for it") \
	SWITCH(file_events, "", 0, "report files that are done, beside those that failed") \
	VALUE(INT, pipe.fd, -1, 0, INT_MAX, "", "FD", "descriptor for the source or destination -") \
	TEXTS(ONCE, files, n_files, "", "PATH", "paths below the only source to transfer")

/* What is not sent of the data: members of struct ptcp_wire_opts. */
#define PTCP_OPTIONS_WIRE(SWITCH, SENT, VALUE, TEXTS) \
	VALUE(WORD, wire.delta, PTCP_DELTA_AUTO, 0, 2, "delta", "auto|on|off", \
	    "transfer only blocks of existing files that differ (default: auto, while that saves time)") \
	VALUE(INT, wire.compress, PTCP_COMPRESS_AUTO, 0, PTCP_COMPRESS_MAX, "compress", "off|auto|LEVEL", \
	    "compress by level 1 to 19 of zstd (default: auto, where that is faster)") \
	SENT(wire.detect_renames, 3, RENAMES, true, "detect-renames", 0, \
	    "make renamed files from those of the destination (part of --delete)") \
	SENT(wire.no_preflight, 10, NO_PREFLIGHT, true, "no-preflight", 0, \
	    "try, although the destination lacks room or permission") \
	SENT(wire.inplace, 5, INPLACE, true, "inplace", 0, "write into existing files, which are not whole meanwhile")

#define PTCP_OPTIONS_SEND_DIGESTS(SWITCH, SENT, VALUE, TEXTS) \
	VALUE(TEXT, wire.digest, NULL, 0, 0, "digest", "sha256|sha512|sha1|md5|blake2b|adler32|crc32c|xxh3,..", \
	    "print digests of the sent files, computed while they are sent") \
	VALUE(TEXT, wire.expect, NULL, 0, 0, "expect", "ALGORITHM:DIGITS", \
	    "publish the sent file only if it has this digest, such as sha256:2c26..")

/* Changes of attributes, and comparison of times. */
#define PTCP_OPTIONS_ATTRIBUTES(SWITCH, SENT, VALUE, TEXTS) \
	VALUE(UINT32, older.modify_window_s, 0, 0, UINT32_MAX, "modify-window", "SECONDS", \
	    "times of files that differ by at most SECONDS are equal (default: 0, equal to the nanosecond)") \
	VALUE(TEXT, preserve.chmod, NULL, 0, 0, "chmod", "CHANGES", \
	    "change modes on their way, such as D755,F644 or go-w; D: of directories, F: of files") \
	VALUE(TEXT, preserve.chown, NULL, 0, 0, "chown", "USER:GROUP", "give all entries to this user, group or both") \
	VALUE(TEXT, preserve.user_map, NULL, 0, 0, "usermap", "FROM:TO,..", \
	    "give the entries of user FROM, a name, pattern, number or range, to user TO") \
	VALUE(TEXT, preserve.group_map, NULL, 0, 0, "groupmap", "FROM:TO,..", "the same of groups") \
	SWITCH(preserve.numeric_ids, "numeric-ids", 0, "preserve owners by number, not by name")

#define PTCP_OPTIONS_BETWEEN_SERVERS(SWITCH, SENT, VALUE, TEXTS) \
	SWITCH(detach, "detach", 0, \
	    "between two servers: exit once the transfer runs, and print its name for ptcp status")

#define PTCP_OPTIONS_SPEED(SWITCH, SENT, VALUE, TEXTS) \
	VALUE(RATE, rate, NULL, 0, 0, "rate", "RATE", \
	    "maximum rate, or a timetable such as 08:00-18:00=200Mbit/s,else=0") \
	VALUE(UNSIGNED, streams, 0, 1, PTCP_STREAMS_MAX, "streams", "N|auto", \
	    "number of TCP streams, 1 to 128, or auto to suit the path (default: auto)") \
	VALUE(BUDGET, impact_percent, 10, 0, 100, "impact", "PCT", \
	    "with auto: maximum slowdown of each competing flow, 0 to 100 (default: 10)") \
	VALUE(UNSIGNED, max_streams, 32, 1, PTCP_STREAMS_MAX, "max-streams", "N", \
	    "with auto: maximum number of streams, 1 to 128 (default: 32)") \
	VALUE(TEXT, limits.deadline, NULL, 0, 0, "deadline", "TIME", \
	    "end by a time such as 08:00, or within 2h, and take no more from competing flows than that needs") \
	SWITCH(no_history, "no-history", 0, "with auto: neither read nor update the path history") \
	VALUE(WORD, cipher, PTCP_CIPHER_AES128GCM, 0, PTCP_CIPHERS - 1, "cipher", "aes128gcm|aes256gcm|chacha20|none", \
	    "cipher for data (default: aes128gcm)")

/* Of the commands that connect to a server. */
#define PTCP_OPTIONS_CONNECTION(SWITCH, SENT, VALUE, TEXTS) \
	TEXTS(EACH, fingerprints, n_fingerprints, "fingerprint", "[HOST[:PORT]=]FP", \
	    "trust this server identity in this run; repeatable") \
	VALUE(SECONDS, timeout_s, 30, 0.5, 86400, "timeout", "TIME", \
	    "give up after this time without progress of the peer (default: 30s)") \
	VALUE(SECONDS, wait_s, 60, 0, 86400, "wait", "TIME", \
	    "how long to wait for a busy server or relay; 0: fail at once (default: 1m)") \
	VALUE(NAME, congestion, NULL, 0, 0, "congestion", "auto|system|cubic|bbr|reno", \
	    "congestion control of the sender (default: auto)") \
	VALUE(TEXT, wire.bind, NULL, 0, 0, "bind", "ADDR|IFACE", \
	    "connect from this address or network interface of this host") \
	VALUE(TEXT, wire.dscp, NULL, 0, 0, "dscp", "NAME|N", \
	    "mark packets by a class of service, such as le, cs1, af11 or 46 (default: le with an impact of 0)")

#define PTCP_OPTIONS_RETRIES(SWITCH, SENT, VALUE, TEXTS) \
	VALUE(SECONDS, retry_for_s, 600, 0, 2592000, "retry-for", "TIME", \
	    "try again for this time after a connection is lost (default: 10m; 0: not at all)")

/* Where the remote host may be reached through SSH. */
#define PTCP_OPTIONS_SSH(SWITCH, SENT, VALUE, TEXTS) \
	VALUE(TEXT, ssh, NULL, 0, 0, "ssh", "CMD", "ssh command, with its options (default: ssh)") \
	VALUE(TEXT, remote.ptcp, NULL, 0, 0, "remote-ptcp", "CMD", \
	    "command that starts ptcp on the remote host (default: ptcp)") \
	VALUE(UNSIGNED, remote.port, 0, 1, 65535, "remote-port", "PORT", \
	    "port for the ephemeral server on the remote host (default: any free port)") \
	SWITCH(remote.port_or_any, "", 0, "take a free port on the remote host if that port is taken") \
	VALUE(TEXT, remote.launch, NULL, 0, 0, "", "CMD", "command that starts an ephemeral server instead of ssh")

#define PTCP_OPTIONS_PATHS(SWITCH, SENT, VALUE, TEXTS) \
	TEXTS(EACH, paths, n_paths, "via", "RELAY[,RELAY..]", \
	    "path through relays, or direct; repeat to use several paths at once") \
	TEXTS(COMMAS, candidates, n_candidates, "relays", "RELAY,..", \
	    "relays to try, and to use the fastest of; direct is the path without a relay") \
	VALUE(UNSIGNED, path.n_selected, 0, 1, PTCP_PATHS_MAX, "paths", "K", \
	    "with --overlay or --relays: maximum number of paths, 1 to 16 (default: 2)") \
	VALUE(DOUBLES, path.shares, NULL, 0, 0, "", "paths", "share of each path in the streams") \
	VALUE(SIZES, path.spool_bytes, NULL, 0, 0, "", "paths", "bytes that the relays of each path may spool") \
	VALUE(DOUBLES, path.candidate_bps, NULL, 0, 0, "", "candidates", "bandwidth of each candidate, as known in advance")

#define PTCP_OPTIONS_MOVERS(SWITCH, SENT, VALUE, TEXTS) \
	VALUE(TEXT, mover.command, NULL, 0, 0, "movers", "COMMAND", \
	    "start movers, which carry the data on other hosts: srun -N4, or with {host} ssh {host}") \
	TEXTS(COMMAS, mover.hosts, mover.n_hosts, "mover-hosts", "HOST,..", \
	    "with --movers: run the command once per host, {host} replaced") \
	VALUE(TEXT, mover.file, NULL, 0, 0, "mover-file", "FILE", \
	    "invitation for movers, on a shared file system; -: their standard input (default: in the configuration directory)") \
	VALUE(TEXT, mover.ptcp, NULL, 0, 0, "mover-ptcp", "PATH", \
	    "ptcp on the hosts of the movers (default: the path of this program)") \
	VALUE(TEXT, mover.listen, NULL, 0, 0, "movers-listen", "[ADDR:]PORT", \
	    "where movers connect to on this host (default: every address, a free port)") \
	VALUE(SECONDS, mover.wait_s, 10, 0.5, 86400, "movers-wait", "TIME", \
	    "how long to wait for the first mover, or while none is left (default: 10s)") \
	VALUE(BYTES, mover.stripe_bytes, 0, 4096, 1 << 30, "stripe-size", "SIZE", \
	    "stripe of the shared file system, if it does not divide 64 MiB")

/* Of the library; the command has other spellings of these. */
#define PTCP_OPTIONS_OTHER(SWITCH, SENT, VALUE, TEXTS) \
	VALUE(TEXT, config_dir, NULL, 0, 0, "", "DIR", "directory of the identity and of known hosts") \
	VALUE(TEXT, state_dir, NULL, 0, 0, "", "DIR", "directory of the path history") \
	VALUE(INT, family, 0, 4, 6, "", "N", "address family: 0 (any), 4 or 6") \
	VALUE(RULES, rules, NULL, 0, 0, "", "GLOB", "rules that leave files out, the first match decides") \
	VALUE(CALLBACK, event, NULL, 0, 0, "", "", "is called for each event") \
	VALUE(CALLBACK, trust, NULL, 0, 0, "", "", "decides about an unknown server")

#define PTCP_OPTIONS_PRESERVE(PRESERVED) \
	PRESERVED(times, 0, TIMES, true) \
	PRESERVED(mode, 1, MODE, true) \
	PRESERVED(links, 2, LINKS, true) \
	PRESERVED(owner, 3, OWNER, false) \
	PRESERVED(xattr, 4, XATTR, false) \
	PRESERVED(acl, 5, ACL, false) \
	PRESERVED(setid, 6, SETID, false)

/* All but PTCP_OPTIONS_PRESERVE. */
#define PTCP_TRANSFER_OPTIONS(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_EXISTING(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_OLDER(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_SELECTION(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_SYMLINKS(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_COPYING(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_WRITING(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_WIRE(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_SEND_DIGESTS(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_ATTRIBUTES(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_BETWEEN_SERVERS(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_SPEED(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_CONNECTION(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_RETRIES(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_SSH(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_PATHS(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_MOVERS(SWITCH, SENT, VALUE, TEXTS) \
	PTCP_OPTIONS_OTHER(SWITCH, SENT, VALUE, TEXTS)

/* ---- Options of a server: members of struct ptcp_server_opts. From these rows come the defaults, the ranges that the
 * library checks, the options of ptcp serve, and the keys of ptcp.yaml(5). `when` is LIVE for options that
 * ptcp_server_change() applies, and RESTART for options that only a new server has. Further TYPEs: STORAGE: BYTES, whose
 * text may name a directory as well. ---- */

#define PTCP_SERVER_FILES(SWITCH, VALUE, TEXTS) \
	VALUE(TEXT, RESTART, root, NULL, 0, 0, "root", "DIR", "directory to serve (default: none)") \
	SWITCH(RESTART, direct_io, "direct", "read and write files larger than 256KiB past the page cache") \
	SWITCH(RESTART, ephemeral, "ephemeral", "serve a single session over SSH (used by send and recv)")

#define PTCP_SERVER_LIMITS(SWITCH, VALUE, TEXTS) \
	VALUE(RATE, LIVE, rate, NULL, 0, 0, "rate", "RATE", \
	    "maximum total rate per direction, or a timetable such as 08:00-18:00=200Mbit/s,else=0") \
	VALUE(UNSIGNED, LIVE, max_sessions, 64, 1, PTCP_SESSIONS_MAX, "max-sessions", "N", \
	    "maximum number of concurrent transfers (default: 64)") \
	VALUE(UNSIGNED, LIVE, max_client_sessions, 16, 1, PTCP_SESSIONS_MAX, "max-client-sessions", "N", \
	    "maximum number of concurrent transfers per client (default: 16)") \
	VALUE(UNSIGNED, LIVE, max_streams, PTCP_STREAMS_MAX, 1, PTCP_STREAMS_MAX, "max-streams", "N", \
	    "maximum number of streams per transfer (default: 128)") \
	VALUE(UNSIGNED, LIVE, max_waiting, 256, 1, PTCP_SESSIONS_MAX, "max-waiting", "N", \
	    "maximum number of transfers that wait for room; three quarters per client (default: 256)") \
	VALUE(UNSIGNED, RESTART, max_startups, 512, 1, PTCP_STARTUPS_MAX, "max-startups", "N", \
	    "maximum number of unauthenticated connections (default: 512)") \
	VALUE(BYTES, LIVE, max_memory_bytes, UINT64_C(256) << 20, PTCP_MEMORY_MIN, PTCP_BYTES_UNLIMITED, "max-memory", "SIZE", \
	    "maximum memory for all clients together (default: 256MiB)") \
	VALUE(SECONDS, LIVE, timeout_s, 30, 0.5, 86400, "timeout", "TIME", \
	    "end a session after this time without progress (default: 30s)") \
	VALUE(SECONDS, LIVE, max_linger_s, 3600, 0, 30 * 86400, "max-linger", "TIME", \
	    "keep a session without connections for this time at most (default: 1h)") \
	VALUE(SECONDS, LIVE, drain_s, 0, 0, 86400, "drain", "TIME", \
	    "when stopped, let running transfers end for this time at most (default: 0s)")

#define PTCP_SERVER_RELAYS(SWITCH, VALUE, TEXTS) \
	TEXTS(EACH, LIVE, relay_to, n_relay_to, "relay-to", "NEXT[:PORT]", \
	    "relay clients to this name, address or range; repeatable") \
	VALUE(UNSIGNED, LIVE, max_relayed, 512, 2, 65535, "max-relayed", "N", \
	    "maximum number of relayed connections; half as many per client (default: 512)") \
	VALUE(STORAGE, RESTART, relay_storage_bytes, 0, 2 << 20, PTCP_BYTES_UNLIMITED, "relay-storage", "SIZE[:DIR]", \
	    "maximum disk space for relayed data that next hops cannot take yet (default: 0)")

#define PTCP_SERVER_SHARE(SWITCH, VALUE, TEXTS) \
	VALUE(UNSIGNED, LIVE, share_sessions, 32, 1, PTCP_SESSIONS_MAX, "share-sessions", "N", \
	    "maximum number of sessions per user that share the port (default: 32)")

#define PTCP_SERVER_MOVERS(SWITCH, VALUE, TEXTS) \
	VALUE(TEXT, RESTART, movers, NULL, 0, 0, "movers", "COMMAND", \
	    "start movers, to which clients connect, on other hosts: srun -N4, or with {host} ssh {host}") \
	TEXTS(COMMAS, RESTART, mover_hosts, n_mover_hosts, "mover-hosts", "HOST,..", \
	    "with --movers: run the command once per host, {host} replaced") \
	VALUE(UNSIGNED, RESTART, mover_port, PTCP_PORT, 0, 65535, "mover-port", "PORT", \
	    "where movers listen on their hosts; 0: a free port (default: 7811)") \
	VALUE(TEXT, RESTART, mover_file, NULL, 0, 0, "mover-file", "FILE", \
	    "invitation for movers, on a shared file system; -: their standard input (default: in the configuration directory)") \
	VALUE(TEXT, RESTART, mover_ptcp, NULL, 0, 0, "mover-ptcp", "PATH", \
	    "ptcp on the hosts of the movers (default: the path of this program)") \
	VALUE(BYTES, RESTART, stripe_bytes, 0, 4096, 1 << 30, "stripe-size", "SIZE", \
	    "stripe of the shared file system of the movers, if it does not divide 64 MiB") \
	VALUE(TEXT, RESTART, movers_listen, NULL, 0, 0, "movers-listen", "[ADDR:]PORT", \
	    "where movers connect to on this host (default: every address, a free port)")

#define PTCP_SERVER_OPTIONS(SWITCH, VALUE, TEXTS) \
	PTCP_SERVER_FILES(SWITCH, VALUE, TEXTS) \
	PTCP_SERVER_LIMITS(SWITCH, VALUE, TEXTS) \
	PTCP_SERVER_RELAYS(SWITCH, VALUE, TEXTS) \
	PTCP_SERVER_SHARE(SWITCH, VALUE, TEXTS) \
	PTCP_SERVER_MOVERS(SWITCH, VALUE, TEXTS)

/* ---- Options of the other commands: members of struct ptcp_advice_opts, ptcp_measure_opts, ptcp_clean_opts,
 * ptcp_manage_opts, ptcp_links_opts, ptcp_plan_opts and ptcp_collect_opts. From these rows come the defaults, most of the
 * ranges that the library checks, and the options of the commands. ---- */

#define PTCP_OPTIONS_ADVISE(SWITCH, VALUE) \
	VALUE(PERCENT, impact_percent, 10, 0, 100, "impact", "PCT", \
	    "maximum slowdown of each competing flow, 0 to 100 (default: 10)") \
	VALUE(PERCENT, min_gain_percent, 1, 0, 1e9, "min-gain", "PCT", \
	    "minimum throughput gain of the last stream (default: 1)") \
	VALUE(UNSIGNED, max_streams, 32, 1, PTCP_ADVICE_STREAMS_MAX, "max-streams", "N", "maximum number of streams (default: 32)") \
	VALUE(WORD, model, PTCP_MODEL_AUTO, 0, PTCP_MODELS - 1, "model", "auto|partial-quadratic|fair-share|quadratic|linear", \
	    "model of the throughput (default: auto)") \
	VALUE(SECONDS, probe_s, 0, 2.5, 50, "probe-time", "TIME", \
	    "maximum duration of a probe (default: 30s with one stream to 10s with nine and more)") \
	VALUE(SECONDS, time_s, 0, 0, 3600, "time", "TIME", "answer after this time of probing at the latest (default: no limit)") \
	SWITCH(history, "history", 0, "answer from earlier probes, if a probe of 3 seconds agrees")

#define PTCP_OPTIONS_MEASURE(SWITCH, VALUE) \
	VALUE(UNSIGNED, rounds, 5, 1, 1000000, "rounds", "R", "rounds per stream count (default: 5)") \
	VALUE(SECONDS, interval_s, 0, 0, 1000000, "interval", "T", "minimum time between the starts of two rounds (default: 0)") \
	VALUE(BYTES, bytes_per_stream, 2000000, 1, UINT64_C(1) << 40, "bytes-per-stream", "SIZE", \
	    "bytes per stream and round (default: 2MB)")

#define PTCP_OPTIONS_CLEAN(SWITCH, VALUE) \
	VALUE(SECONDS, older_s, 86400, 0, 1e12, "older", "TIME", "minimum age, since the last change (default: 24h)") \
	SWITCH(dry_run, "dry-run", 'n', "list leftovers, remove nothing")

#define PTCP_OPTIONS_LS(SWITCH, VALUE) \
	SWITCH(recursive, "recursive", 'R', "list whole trees") \
	SWITCH(hidden, "all", 'a', "list names that begin with a dot as well, and unfinished files of transfers") \
	SWITCH(itself, "directory", 'd', "list directories themselves, not their content")
#define PTCP_OPTIONS_SUM(SWITCH, VALUE) \
	SWITCH(recursive, "recursive", 'r', "the files of directories as well, with all below them")
#define PTCP_OPTIONS_MKDIR(SWITCH, VALUE) \
	SWITCH(parents, "parents", 'p', "make missing parents as well; accept an existing directory")
#define PTCP_OPTIONS_RM(SWITCH, VALUE) \
	SWITCH(recursive, "recursive", 'r', "remove directories with all content")
#define PTCP_OPTIONS_MV(SWITCH, VALUE) \
	SWITCH(replace, "force", 'f', "replace an existing file")

#define PTCP_OPTIONS_LINKS(SWITCH, VALUE) \
	VALUE(TEXT, local_host, NULL, 0, 0, "local-host", "HOST", "name of the local host in the overlay (default: by address)") \
	SWITCH(local_only, "local-only", 0, "skip links that begin at remote hosts") \
	VALUE(UNSIGNED, budget, 0, 1, PTCP_LINKS_BUDGET_MAX, "budget", "N", "total number of messages (default: 16 per link)") \
	VALUE(UNSIGNED, streams, 4, 1, PTCP_STREAMS_MAX, "streams", "N", \
	    "number of streams to measure with, 1 to 128 (default: 4)") \
	SWITCH(no_shared, "no-shared", 0, "do not search for shared bottlenecks")

/* The deadline of the overlay is not limited to this range. */
#define PTCP_OPTIONS_PLAN(SWITCH, VALUE) \
	VALUE(WORD, method, PTCP_PLAN_PIPELINED, 0, PTCP_PLAN_PIPELINED, "method", "direct|best-path|coordinated|pipelined", \
	    "kind of plan (default: pipelined)") \
	VALUE(SECONDS, deadline_s, 0, 0.001, 1e8, "deadline", "T", "maximum duration of the (first) plan; fail if exceeded")

#define PTCP_OPTIONS_COLLECT(SWITCH, VALUE) \
	PTCP_OPTIONS_PLAN(SWITCH, VALUE) \
	VALUE(UNSIGNED, streams, 4, 1, PTCP_STREAMS_MAX, "streams", "N", "streams per planned path (default: 4)") \
	VALUE(PERCENT, impact_percent, 10, 0, 100, "impact", "PCT", \
	    "maximum slowdown of other traffic, beyond --method direct (default: 10)") \
	SWITCH(no_replan, "no-replan", 0, "keep the first plan, even if links change")

#define PTCP_BYTES_UNLIMITED UINT64_MAX
#define PTCP_FILE_SIZE_MAX (UINT64_C(1) << 48)
#define PTCP_COMPRESS_AUTO (-1)
#define PTCP_COMPRESS_MAX 19
#define PTCP_MAX_DELETE 1000
#define PTCP_MAX_DELETE_CAREFUL UINT32_MAX /* the default: PTCP_MAX_DELETE, with safeguards against a wrong source */

/* Digests of files: NAME, name, number of the bit in enum ptcp_digest and in the protocol, and bytes. xxh3 is the one
 * with 64 bits and seed 0; blake2b has 512 bits, as b2sum(1) prints it. */
#define PTCP_DIGESTS(X) \
	X(SHA256, "sha256", 0, 32) X(SHA512, "sha512", 1, 64) X(SHA1, "sha1", 2, 20) X(MD5, "md5", 3, 16) \
	X(BLAKE2B, "blake2b", 4, 64) X(ADLER32, "adler32", 5, 4) X(CRC32C, "crc32c", 6, 4) X(XXH3, "xxh3", 7, 8)

#endif
