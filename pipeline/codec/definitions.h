/* SPDX-License-Identifier: Apache-2.0 */
/*
 * definitions.h - definition records <-> columns.
 *
 * The ids and addresses of functions and places follow one another closely, and so do names; in columns they take a
 * fraction of what whole records take after packing.
 *
 * Encoders trust their input, decoders nothing, as in codec.h. TW_COLUMN_SLACK_BYTES after each buffer may be
 * accessed.
 */
#ifndef TW_PIPELINE_CODEC_DEFINITIONS_H
#define TW_PIPELINE_CODEC_DEFINITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * tw_codec_definitions_encode - columns of whole records, as a definitions block has them.
 *
 * @bytes	at most TW_BLOCK_RAW_BYTES_MAX; padding is 0.
 * @out		holds TW_CODEC_ENCODED_BYTES_MAX.
 *
 * Returns the bytes written; 0: @in is not a sequence of whole records.
 */
size_t tw_codec_definitions_encode(const uint8_t *in, size_t bytes, uint8_t *out);

/*
 * tw_codec_definitions_decode - the records again.
 *
 * @out		holds TW_BLOCK_RAW_BYTES_MAX.
 *
 * Returns the bytes of the records, at least one record; 0: the input is damaged.
 */
size_t tw_codec_definitions_decode(const uint8_t *in, size_t bytes, uint8_t *out);

#endif
