/* Stands in for libFuzzer: feeds a target its seeds, those of tests/fuzz/seeds/NAME for the program
 * test_NAME. TAP. */
#include <dirent.h>

#include "fuzz.h"

static bool feed(const char *dir, const char *name)
{
	char path[5000];
	uint8_t *data;
	FILE *f;
	long n;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if ((f = fopen(path, "rb")) == NULL || fseek(f, 0, SEEK_END) != 0 || (n = ftell(f)) < 0) {
		perror(path);
		return false;
	}
	rewind(f);
	data = malloc((size_t)n + 1); /* a seed may be empty */
	MUST(data != NULL && fread(data, 1, (size_t)n, f) == (size_t)n);
	fclose(f);
	printf("# %s\n", name);
	fflush(stdout); /* so that the log names the one that kills us */
	LLVMFuzzerTestOneInput(data, (size_t)n);
	free(data);
	return true;
}

int main(int argc, char **argv)
{
	const char *name = strstr(argv[0], "test_");
	char dir[4096];
	struct dirent *de;
	unsigned seeds = 0;
	DIR *d;

	if (argc != 1 || name == NULL) {
		fprintf(stderr, "usage: test_NAME, in the top directory\n");
		return 2;
	}
	snprintf(dir, sizeof dir, "tests/fuzz/seeds/%s", name + strlen("test_"));
	if ((d = opendir(dir)) == NULL) {
		perror(dir);
		return 1;
	}
	while ((de = readdir(d)) != NULL)
		if (de->d_name[0] != '.' && feed(dir, de->d_name))
			seeds++;
	closedir(d);
	printf("%s - %s takes its %u seeds\n", seeds > 0 ? "ok" : "not ok", name, seeds);
	return seeds == 0;
}
