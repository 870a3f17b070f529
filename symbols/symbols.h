/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.h - objects, slots and sleds of this process that a pattern can name, and reasons for refusals.
 *
 *	tw_sym_load()                 a snapshot of all objects that ld.so has loaded
 *	   struct tw_sym_object       a program or a library
 *	      tw_sym_slots()          its GOT slots that calls go through, each with the function
 *	                              it leads to, or the reason why it must be left alone
 *
 * A *slot* is an aligned word that holds a function's address: JUMP_SLOT (a PLT's, often bound
 * lazily) or GLOB_DAT (of code without PLT; also read by code that takes a function's address).
 *
 * Threads  a snapshot belongs to one thread.  All functions call the loader (dl_iterate_phdr, dlsym), which
 *	    takes its locks: never call them while the permit is held, for a thread in a constructor
 *	    holds those locks and may be waiting for the permit.
 * errno    may be changed, and dlerror() as well: callers inside a program save and restore both.
 */
#ifndef TW_SYMBOLS_SYMBOLS_H
#define TW_SYMBOLS_SYMBOLS_H

#include "symbols/elf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a slot or a function is refused. */
enum tw_sym_refusal {
	TW_SYM_OK = 0,
	TW_SYM_NEVER,	      /* on the list of functions that no hook may see */
	TW_SYM_OWN_CALLER,    /* the call is made by Tracewheel or ld.so */
	TW_SYM_OWN,	      /* the function is Tracewheel's */
	TW_SYM_LOADER,	      /* the function is part of ld.so */
	TW_SYM_VDSO,	      /* the function is part of the vdso */
	TW_SYM_NULL,	      /* the slot is empty: a weak function without a definition */
	TW_SYM_UNRESOLVED,    /* not bound yet, and no definition is loaded */
	TW_SYM_ADDRESS_TAKEN, /* code reads the slot as a value: pointers would no longer be equal */
	TW_SYM_NOT_FUNCTION,  /* data */
	TW_SYM_NO_OBJECT,     /* leads to code outside all loaded objects */
	TW_SYM_IFUNC,	      /* chosen at run time, and the choice is not known */
	TW_SYM_SLED_SHORT,    /* an entry sled with too few NOPs for a call */
	TW_SYM_SLED_OTHER,    /* an entry sled that contains other instructions than NOPs */
	TW_SYM_REFUSALS
};

/* A sentence without full stop; a constant. */
const char *tw_sym_refusal_text(enum tw_sym_refusal refusal);

/* The role of an object for the library. */
enum tw_sym_role { TW_SYM_ORDINARY, TW_SYM_PROGRAM, TW_SYM_ROLE_OWN, TW_SYM_ROLE_LOADER, TW_SYM_ROLE_VDSO };

struct tw_sym_object {
	struct tw_elf elf;
	enum tw_sym_role role;
	char *name; /* as patterns and events show it */
	char *path; /* of the file, absolute where it is known */
	char *copy; /* copies of elf's soname and build_id, because the image may be unloaded */
};

struct tw_sym_set {
	struct tw_sym_object *objects; /* the program first, then in the loader's order */
	size_t count;
	uint64_t loaded_count, unloaded_count; /* of objects, ever: dlpi_adds and dlpi_subs */
};

/*
 * tw_sym_load - take a snapshot of the loaded objects.
 *
 * @out		gives; tw_sym_unload() takes.
 *
 * An object that another thread unloads meanwhile makes its entry stale: see tw_sym_pin().
 * Errors: TW_ENOMEM.
 */
int tw_sym_load(struct tw_sym_set **out);
void tw_sym_unload(struct tw_sym_set *set);

/* dlpi_adds and dlpi_subs, without reading the objects. */
void tw_sym_counts(uint64_t *loaded_count, uint64_t *unloaded_count);

/*
 * tw_sym_pin - keep an object from being unloaded until tw_sym_unpin().
 *
 * @handle	gives.
 *
 * Returns false when it is gone already.  The program and the libraries that it was linked with need no pin.
 * Runs no constructor; tw_sym_unpin() may run destructors, when the program closed it meanwhile.
 */
bool tw_sym_pin(const struct tw_sym_object *object, void **handle);
void tw_sym_unpin(void *handle);

/* The object that holds an address in one of its segments; NULL: none. */
struct tw_sym_object *tw_sym_object_at(const struct tw_sym_set *set, uintptr_t address);

/* The name of a file in patterns and events: "libsqlite3" of "/lib/libsqlite3.so.0.8.6".  Cuts to size. */
void tw_sym_module_name(const char *path, char *out, size_t bytes);

/* One slot of an object. */
struct tw_sym_slot {
	void **where;
	void *target; /* the target of calls now, or after binding; NULL with some refusals */
	const char *function;
	const char *version;		     /* or NULL */
	const struct tw_sym_object *definer; /* NULL with some refusals */
	enum tw_sym_refusal refusal;
	bool is_data_slot; /* GLOB_DAT */
	bool was_unbound;  /* the slot still leads to the binder */
};

/* A selection of slots. */
struct tw_sym_wish {
	/* Selects by the function's name, before any work is done for the slot.  NULL: all. */
	bool (*wants)(const char *function, void *arg);
	/*
	 * Selects by definer or refusal, before the caller's code is searched for uses of the slot as a value, which takes
	 * most of the time.  NULL: all.
	 */
	bool (*suits)(const struct tw_sym_slot *slot, void *arg);
	void *arg;
};

/*
 * tw_sym_slots - the slots of an object that call the selected functions.
 *
 * @wish	NULL: all.
 * @out		gives: free().  Names in it are borrowed by the object.
 *
 * Unbound slots are resolved as ld.so would: by name and recorded version, in the global scope and
 * then in the object's own.  Nothing is changed.  Errors: TW_ENOMEM.
 */
int tw_sym_slots(const struct tw_sym_set *set, const struct tw_sym_object *caller, const struct tw_sym_wish *wish,
		 struct tw_sym_slot **out, size_t *count);

/*
 * tw_sym_pointers - the pointers in an object's data that ld.so has set to functions of other objects.
 *
 * @found	called with the name of each function.  Calls through pointers pass no slot.
 */
void tw_sym_pointers(const struct tw_sym_object *object, void (*found)(const char *function, void *arg), void *arg);

/* ---- entry sleds ---- */

/* Length of the jump that a sled must hold. */
#define TW_SYM_JUMP_BYTES 5

/* The entry sled of a function, under one of its names. */
struct tw_sym_sled {
	uintptr_t entry;	 /* the function */
	uintptr_t where;	 /* the first NOP behind its entry */
	uint32_t bytes;		 /* length of the sled's NOPs */
	uint32_t function_bytes; /* from entry; 0: not known */
	const char *function;	 /* borrowed by the list */
	enum tw_sym_refusal refusal;
};

struct tw_sym_sleds {
	struct tw_sym_sled *entries; /* names of one function are adjacent, the global ones first */
	size_t count;
	char *strings;
};

/*
 * tw_sym_sleds - the entry sleds of a loaded object, with names from its file.
 *
 * @out		gives: tw_sym_sleds_fini() takes.
 *
 * An object without any costs three reads of its file.  A file that cannot be read, or is not the loaded one, has
 * none.  Errors: TW_ENOMEM.
 */
int tw_sym_sleds(const struct tw_sym_object *object, struct tw_sym_sleds *out);
void tw_sym_sleds_fini(struct tw_sym_sleds *sleds);

/* The length of the NOP there, as compilers and assemblers write them, in at most `capacity` bytes; 0: not a NOP. */
unsigned tw_sym_nop_bytes(const uint8_t *at, size_t capacity);

/* ---- names that are special ---- */

/* No hook may see these. */
bool tw_sym_is_never(const char *function);
/*
 * Calls may be traced, returns may not: the function returns twice or never, or reads its return address.  Words that
 * programs use themselves (err, clone, exit) are meant only in the C library.
 *
 * @soname	of the object that defines the function; "": it has none; NULL: not known, as the C library's
 */
bool tw_sym_is_never_returning(const char *soname, const char *function);
/*
 * Those of them that return twice, in other objects than the C library: a program's own vfork() may be a plain function.  Its
 * returns may be watched if its code shows that nothing but its own return sees its return address (plan/plan.c).
 */
bool tw_sym_may_return_once(const char *soname, const char *function);
/* Those of them whose calls contain no later events: they return, or end a child of vfork() in its parent's thread. */
bool tw_sym_has_no_end(const char *function);
/* Does the agent wrap this function of libc?  Its slots are shown as calls of libc's function, and lead to the wrapper. */
bool tw_sym_is_wrapped(const char *function);
/* Does the library copy pieces of stacks away and back (greenlets)?  Known by its file's name. */
bool tw_sym_copies_stacks(const char *path);
/* Is it a library of its own for that?  A switch into a new stack returns twice there, in the same frames. */
bool tw_sym_is_stack_copier(const char *path);
/* And can it return to one copy several times (call/cc)? */
bool tw_sym_repeats_stacks(const char *path);
/* Why no jump may be written into a library's code: it is not ordinary code.  NULL: it may. */
const char *tw_sym_left_alone(const char *soname);
/* The role of an object by its file name. */
enum tw_sym_role tw_sym_role_of(const char *path, const char *soname);

/*
 * tw_sym_demangle - demangle a C++ or Rust linkage name, if the program has a demangler.
 *
 * Returns malloc'ed text, or NULL.  (libstdc++ and libc++abi have one; a program without either has
 * hardly any such names.)
 */
char *tw_sym_demangle(const char *linkage_name);

/*
 * tw_sym_type_name - the demangled name of a C++ class: "std::runtime_error" of "St13runtime_error".
 *
 * @mangled	as in a type_info.
 * @out		terminated; the mangled name, cut to size, if it is not understood or does not fit.
 *
 * No memory, no locks.  Threads: any.
 */
void tw_sym_type_name(const char *mangled, char *out, size_t bytes);

/*
 * tw_sym_address_taken - find data slots used other than by `call *slot` and `jmp *slot`.
 *
 * @wheres	slots of the object, ascending.
 * @taken	gives: one flag a slot.
 *
 * One pass over the object's code.  Errs towards "taken".  TW_ENOMEM.
 */
int tw_sym_address_taken(const struct tw_elf *elf, const uintptr_t *wheres, size_t count, bool *taken);

#endif
