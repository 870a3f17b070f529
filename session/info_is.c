/* SPDX-License-Identifier: Apache-2.0 */
/* info_is.c - atoms that callers give, compared with names. */
#include "session/info.h"
#include "term/term.h"

#include <string.h>

bool tw_info_is(struct tw_term term, const char *name)
{
	size_t bytes;
	const char *text = tw_term_atom_name(term, &bytes);

	return text && strlen(name) == bytes && memcmp(text, name, bytes) == 0;
}
