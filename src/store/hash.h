/* Hashes of blocks and files (XXH3, chosen at run time for this processor).
 *
 *   content hash of a block    XXH3_64(bytes)
 *   check of a block on the wire   XXH3_64(24 bytes of its header as sent | be64(content hash))
 *   term of a block in its file    XXH3_128(be64(index) | be64(length) | be64(content hash))
 *   digest of a file           sum of its blocks' terms, modulo 2^128
 *
 * The digest is independent of the order of blocks and needs no list of hashes in memory. Any thread, no allocation. */
#ifndef STORE_HASH_H
#define STORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "core/digest.h"

uint64_t hash_content(const void *p, size_t n);
uint64_t hash_check(const uint8_t header[24], uint64_t content_hash);
struct digest hash_term(uint64_t index, uint64_t length, uint64_t content_hash);

/* hash_content() by the portable code path, for tests and the benchmark. */
uint64_t hash_content_plain(const void *p, size_t n);

#endif
