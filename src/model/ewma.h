/* An estimate that follows what is measured again and again: each value counts `weight` times as much as all before
 * it together count less, so that old ones fade. Its error is that of a weighted mean of values that are independent. */
#ifndef MODEL_EWMA_H
#define MODEL_EWMA_H

/* Begin with all zero. */
struct ewma {
	unsigned n;       /* values so far */
	double mean;
	double variance;  /* weighted, about the mean */
	double squares;   /* sum of the squares of the weights, which sum to 1 */
};

/* `weight` in (0, 1]; until there are 1 / weight values all count alike. */
void ewma_add(struct ewma *s, double value, double weight);
/* One standard error of the mean; NAN below two values. */
double ewma_error(const struct ewma *s);

#endif
