/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - the module of a loaded object. */
#include "session/native.h"
#include "session/session.h"
#include "base/filter.h"
#include "symbols/symbols.h"

#include <limits.h>
#include <stdlib.h>

int tw_native_module(struct tw_permit *permit, const struct tw_sym_object *object, struct tw_module **out)
{
	char whole[PATH_MAX];
	/* A path like "./libplug.so" is resolved, because the reader of the capture has another working directory. */
	bool is_relative = *object->path != '/' && tw_thread_may_call_system() && realpath(object->path, whole);
	const struct tw_module_options options = {
		.name = object->name,
		.path = object->path,
		.whole_path = is_relative ? whole : NULL,
		.soname = object->elf.soname,
		.base_address = object->elf.base,
		.end_address = object->elf.image.high,
		.build_id = object->elf.build_id,
		.build_id_bytes = object->elf.build_id_bytes,
	};

	return tw_bp_module_add(permit, &options, out);
}
