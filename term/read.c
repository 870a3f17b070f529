/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - C values from terms. */
#include "term/term.h"
#include "base/export.h"

static const struct tw_term none = {0};

TW_API enum tw_term_type tw_term_type(struct tw_term term)
{
	switch (tw_tag(term)) {
	case TW_TAG_CONS: return TW_TYPE_CONS;
	case TW_TAG_NIL: return TW_TYPE_NIL;
	case TW_TAG_ATOM: return TW_TYPE_ATOM;
	case TW_TAG_SMALL: return TW_TYPE_INTEGER;
	case TW_TAG_BLOCK: break;
	default: return TW_TYPE_NONE;
	}
	switch (tw_header_kind(*tw_block(term))) {
	case TW_BLOCK_BIG: return TW_TYPE_INTEGER;
	case TW_BLOCK_FLOAT: return TW_TYPE_FLOAT;
	case TW_BLOCK_TUPLE: return TW_TYPE_TUPLE;
	case TW_BLOCK_MAP: return TW_TYPE_MAP;
	case TW_BLOCK_BITS: return TW_TYPE_BITSTRING;
	case TW_BLOCK_PID: return TW_TYPE_PID;
	case TW_BLOCK_PORT: return TW_TYPE_PORT;
	case TW_BLOCK_REF: return TW_TYPE_REFERENCE;
	case TW_BLOCK_EXPORT:
	case TW_BLOCK_FUN: return TW_TYPE_FUN;
	}
	return TW_TYPE_NONE;
}

TW_API const char *tw_term_atom_name(struct tw_term atom, size_t *bytes)
{
	const struct tw_atom_entry *entry;

	if (!tw_is_atom(atom))
		return NULL;
	entry = tw_atom_entry(tw_atom_index(atom));
	if (bytes)
		*bytes = entry->name_bytes;
	return entry->name;
}

TW_API size_t tw_term_tuple_count(struct tw_term tuple)
{
	return tw_is_tuple(tuple) ? tw_block_size(tuple) : 0;
}

TW_API struct tw_term tw_term_element(struct tw_term tuple, size_t index)
{
	return index < tw_term_tuple_count(tuple) ? tw_elements(tuple)[index] : none;
}

TW_API struct tw_term tw_term_head(struct tw_term list)
{
	return tw_is_cons(list) ? tw_cell(list)->head : none;
}

TW_API struct tw_term tw_term_tail(struct tw_term list)
{
	return tw_is_cons(list) ? tw_cell(list)->tail : none;
}

TW_API int tw_term_list_count(struct tw_term list, size_t *count)
{
	size_t n = 0;

	for (; tw_is_cons(list); list = tw_cell(list)->tail)
		n++;
	if (!tw_is_nil(list))
		return TW_EBADARG;
	*count = n;
	return 0;
}

TW_API int tw_term_get_bits(struct tw_term term, const unsigned char **data, size_t *bits)
{
	if (!tw_is_bits(term))
		return TW_EBADARG;
	*data = tw_bits_data(term);
	*bits = tw_bits_count(term);
	return 0;
}

TW_API int tw_term_get_identifier(struct tw_term term, struct tw_identifier *out)
{
	const struct tw_block_identifier *block;

	if (!tw_is_identifier(term))
		return TW_EBADARG;
	block = (const struct tw_block_identifier *)tw_block(term);
	*out = (struct tw_identifier){
		.node = block->node,
		.creation = block->creation,
		.channel = block->channel,
		.word_count = (uint32_t)tw_header_size(block->header),
	};
	memcpy(out->words, block->words, out->word_count * sizeof(uint32_t));
	return 0;
}
