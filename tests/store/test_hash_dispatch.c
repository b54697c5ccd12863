/* The cases of test_hash.c, with the dispatcher of the static executable in place of the library's. */
#include "test_hash.c"
