/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namesakes.h - functions of one module that have the same readable name.
 *
 * Compilers make several functions of one destructor or constructor (_ZN4baseD0Ev, _ZN4baseD2Ev: base::~base()), and rustc of one
 * generic function; only their linkage names differ. Views show the linkage name behind these names.
 */
#ifndef TW_VIEWS_NAMESAKES_H
#define TW_VIEWS_NAMESAKES_H

#include "views/names/names.h"

/* Functions, of which tw_namesakes_keep() leaves those that have a namesake. {0} is empty. */
struct tw_namesakes {
	struct tw_namesake *list; /* then sorted by linkage name and module */
	size_t count, capacity;
};

/* Borrows both names until tw_namesakes_free(). A function may be added several times. False: no memory. */
bool tw_namesakes_add(struct tw_namesakes *namesakes, const char *module, const char *linkage);
void tw_namesakes_keep(struct tw_namesakes *namesakes);
bool tw_namesakes_have(const struct tw_namesakes *namesakes, const char *module, const char *linkage);
void tw_namesakes_free(struct tw_namesakes *namesakes);

/* Names are those of this capture from now on, which stays open. NULL: none has a namesake. */
void tw_namesakes_of(const struct tw_capture *capture);
/* Does the capture have another function of that module and readable name? Finds them all when first asked. */
bool tw_namesakes_has(const struct tw_capture_function *function);

#endif
