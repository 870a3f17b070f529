/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_flows.h - pairs of sends and receives, for the arrows of a timeline.
 *
 * A receive contains the message and not its sender. It is paired with the oldest unreceived send of an equal message
 * to this process, or to a name: arrows of several equal messages sent at once may be exchanged.
 */
#ifndef TW_TOOLS_PRINT_FLOWS_H
#define TW_TOOLS_PRINT_FLOWS_H

#include "views/names/payload.h"

struct tw_flows;

/* NULL: no memory. */
struct tw_flows *tw_flows_create(const struct tw_capture *capture);
void tw_flows_destroy(struct tw_flows *flows);

/*
 * Both return the number of the message, from 1 on. 0: the send has no readable message, or does not fit; the send of
 * the receive was not seen.
 */
uint64_t tw_flows_send(struct tw_flows *flows, const struct tw_capture_event *event);
uint64_t tw_flows_receive(struct tw_flows *flows, const struct tw_capture_event *event);

/* The number of sends that did not fit. */
uint64_t tw_flows_left_out(const struct tw_flows *flows);

#endif
