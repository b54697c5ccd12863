#include "cli/json.h"

#include <stdio.h>

int json_line(json_t *object)
{
	int r = -1;

	if (object != NULL &&
	    json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15)) == 0) {
		putchar('\n');
		r = 0;
	}
	json_decref(object);
	return fflush(stdout) == 0 ? r : -1;
}

json_t *json_count(uint64_t v)
{
	return json_integer(v < INT64_MAX ? (json_int_t)v : INT64_MAX);
}

json_t *json_whole(json_t *list, size_t members)
{
	if (json_array_size(list) == members)
		return list;
	json_decref(list);
	return NULL;
}
