/* Checksums that detect accidents, not intent. Any thread. */
#ifndef SUMS_CHECKSUMS_H
#define SUMS_CHECKSUMS_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli; RFC 3720, B.4), by the instruction of the processor if available; continues from `crc`, the
 * value of all bytes before, 0 at first. */
uint32_t crc32c_add(uint32_t crc, const void *p, size_t n);
/* The same without the instruction. */
uint32_t crc32c_add_plain(uint32_t crc, const void *p, size_t n);

/* Adler-32 (RFC 1950); 1 at first. */
uint32_t adler32_add(uint32_t adler, const void *p, size_t n);

#endif
