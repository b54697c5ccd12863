/* Prints the factor by which this machine, as loaded now, is slower than a quiet one without sanitizers: 1 to
 * MOST, for the limits of tests (PTCP_PATIENCE; see tests/run). Two threads work in turns, so that both slow code and
 * waits for a processor count. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TURNS 40
#define WORK 12000
#define PLAIN_S 0.008 /* of all turns: -O1 at 3 GHz, no other load */
#define MOST 30

static int pipes[2][2];
static uint8_t state[2][256];

/* Arithmetic, and loads and stores, which sanitizers check one by one. */
static void shuffle(uint8_t *s)
{
	uint32_t h = 1, n;
	uint8_t t;

	for (n = 0; n < WORK; n++) {
		h = (h ^ s[n & 255]) * 16777619u;
		h = (h ^ h >> 15) * 2246822519u;
		h = (h ^ h >> 13) * 3266489917u;
		t = s[h & 255];
		s[h & 255] = s[n & 255];
		s[n & 255] = t;
	}
}

static void *take_turns(void *arg)
{
	int me = arg != NULL, i;
	char c = 0;

	for (i = 0; i < TURNS; i++) {
		if (read(pipes[me][0], &c, 1) != 1)
			exit(1);
		shuffle(state[me]);
		if (write(pipes[!me][1], &c, 1) != 1)
			exit(1);
	}
	return NULL;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
	double began_s = now_s(), factor;
	unsigned i;
	pthread_t other;

	for (i = 0; i < 512; i++)
		state[i / 256][i % 256] = (uint8_t)i;
	if (pipe(pipes[0]) < 0 || pipe(pipes[1]) < 0 || write(pipes[0][1], "", 1) != 1 ||
	    pthread_create(&other, NULL, take_turns, pipes) != 0)
		return 1;
	take_turns(NULL);
	pthread_join(other, NULL);
	factor = (now_s() - began_s) / PLAIN_S;
	printf("%d\n", factor < 1.5 ? 1 : factor > MOST ? MOST : (int)(factor + 1));
	return 0;
}
