/* Part of the static executable only. Modules of nsswitch.conf are shared libraries that need the C library of their
 * system: a static executable that loads a module on a host with another version of glibc may crash. */
#include <features.h>

#ifdef __GLIBC__
#include <nss.h>

__attribute__((constructor)) static void use_built_in_services(void)
{
	__nss_configure_lookup("hosts", "files dns");
	__nss_configure_lookup("services", "files");
	__nss_configure_lookup("passwd", "files");
	__nss_configure_lookup("group", "files");
}
#endif
