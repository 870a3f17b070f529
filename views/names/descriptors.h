/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.h - what a descriptor is, in words: "file /etc/passwd", "tcp 127.0.0.1:80 <- 127.0.0.1:4242".
 *
 *	<-	accepted from		->	connected to		listening and unconnected sockets have no arrow
 */
#ifndef TW_VIEWS_DESCRIPTORS_H
#define TW_VIEWS_DESCRIPTORS_H

#include "tracewheel/layout.h"

#include <stdbool.h>
#include <stddef.h>

/* Room for the longest text; not cleaned: a path may hold any byte but 0. */
#define TW_DESCRIPTOR_TEXT_BYTES 640

enum tw_descriptor_form {
	TW_DESCRIPTOR_WHOLE, /* both ports of a connection, the inode of a pipe */
	TW_DESCRIPTOR_SORT   /* without what differs from one connection, pipe or timer to the next */
};

/*
 * tw_descriptor_text - describe a descriptor.
 *
 * @is_accepted	it came from accept(), so its peer connected to it.
 * @text	holds TW_DESCRIPTOR_TEXT_BYTES.
 *
 * Returns the bytes.
 */
size_t tw_descriptor_text(const struct tw_layout_description *what, enum tw_descriptor_form form, bool is_accepted,
			  char *text);
/* An address and its port as text, of at most 160 bytes. False: it names nothing. */
bool tw_descriptor_address(const void *address, size_t bytes, char *text, size_t capacity);
/* "file", "tcp", "pipe", ...; a constant. */
const char *tw_descriptor_kind(const struct tw_layout_description *what);

#endif
