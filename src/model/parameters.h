/* Parameters as constants: PARAMETER() is a double, PARAMETER_COUNT() an integer. The program of `make
 * advice-sensitivity` compiles them as variables. */
#ifndef MODEL_PARAMETERS_H
#define MODEL_PARAMETERS_H

#ifdef PARAMETERS_VARY
#define PARAMETER(name, value, unit, text) extern double name;
#define PARAMETER_COUNT(name, value, unit, text) extern int name;
#else
#define PARAMETER(name, value, unit, text) static const double name = value;
#define PARAMETER_COUNT(name, value, unit, text) enum { name = value };
#endif
#include "model/parameters.def"
#undef PARAMETER
#undef PARAMETER_COUNT

#endif
