/* Included by the sources in which tests/mutants/places.py has rewritten the places that refuse. */
#ifndef MUTANTS_REFUSES_H
#define MUTANTS_REFUSES_H

/* Records that the place refuses, and returns whether the place may: false for the place that is left out. */
_Bool mutant_refuses(unsigned place);

#endif
