/* Appended to src/core/err.c. A file beside the executable, EXECUTABLE.places, is shared by the processes that run it,
 * and by tests/mutants/run: the number of the place that is left out (4 bytes), then a byte for each place, nonzero
 * once the place has refused. Without the file, all places refuse. It is mapped before main(), thus before any
 * sandbox. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mutants/refuses.h"

#define PLACES_BYTES (4u + (1u << 16))

static unsigned char *places;

__attribute__((constructor)) static void open_places(void)
{
	char path[4096 + 8];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 8);
	void *map;
	int fd;

	if (n <= 0)
		return;
	strcpy(path + n, ".places");
	if ((fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return;
	map = mmap(NULL, PLACES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	places = map != MAP_FAILED ? map : NULL;
}

_Bool mutant_refuses(unsigned place)
{
	uint32_t left_out;

	if (places == NULL)
		return 1;
	places[sizeof left_out + place] = 1;
	memcpy(&left_out, places, sizeof left_out);
	return left_out != place;
}
