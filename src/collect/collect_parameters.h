/* Parameters as constants: PARAMETER() is a double, PARAMETER_COUNT() an integer. */
#ifndef COLLECT_COLLECT_PARAMETERS_H
#define COLLECT_COLLECT_PARAMETERS_H

#define PARAMETER(name, value, unit, text) static const double name = value;
#define PARAMETER_COUNT(name, value, unit, text) enum { name = value };
#include "collect/collect_parameters.def"
#undef PARAMETER
#undef PARAMETER_COUNT

#endif
