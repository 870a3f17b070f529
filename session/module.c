/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - the module that a loaded object is. */
#include "session/session.h"
#include "symbols/symbols.h"

int tw_native_module(struct tw_permit *permit, const struct tw_sym_object *object, struct tw_module **out)
{
	const struct tw_module_options options = {
		.name = object->name,
		.path = object->path,
		.soname = object->elf.soname,
		.base_address = object->elf.base,
		.end_address = object->elf.image.high,
		.build_id = object->elf.build_id,
		.build_id_bytes = object->elf.build_id_bytes,
	};

	return tw_bp_module_add(permit, &options, out);
}
