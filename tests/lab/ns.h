/* Namespaces of a lab: making them, entering them, ending what runs in them. */
#ifndef LAB_NS_H
#define LAB_NS_H

#include <ptcp/err.h>
#include <sys/types.h>

#include "topo.h"

/* Names one network namespace for good: inode numbers are used again after its
 * end, cookies are not. Cookie 0 where the kernel has none (before 5.14). */
struct ns_id {
	ino_t inode;
	unsigned long long cookie;
};

/* Before anything else: as root nothing (*user_fd is -1); else enter a user namespace
 * of our own, kept by *user_fd, or explain why that may not be. */
int ns_begin(int *user_fd, struct ptcp_err *e);

/* A fresh network namespace for the calling process; *fd keeps it alive. */
int ns_new(int *fd, struct ns_id *id, struct ptcp_err *e);

/* In the host's new namespace: sysctls, device, address. `peer` is the name of
 * the other end in emu_ns. */
int ns_setup_host(const struct topo_node *h, const char *peer, int emu_ns, struct ptcp_err *e);

/* Join the namespaces that file descriptors user_fd (-1: none) and net_fd of
 * process `pid` refer to; checks that the network namespace is `id`. */
int ns_join(pid_t pid, int user_fd, int net_fd, const struct ns_id *id, struct ptcp_err *e);

/* Lay `path` over /etc/hosts, for this process and its children only. */
int ns_cover_etc_hosts(const char *path, struct ptcp_err *e);

/* End every process in one of the n namespaces except the caller: SIGTERM, and
 * SIGKILL after a second. Returns how many there were, or -1 if some stayed. */
int ns_end_processes(const struct ns_id *id, int n);

#endif
