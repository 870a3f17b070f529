/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_flows.h - which message was received where: pairs of sends and receives for the arrows of a timeline.
 *
 * A receive tells the message and not its sender.  It is that of the oldest send of an equal message to this process, or to a
 * name, that was not received yet: of several equal messages sent at once the arrows may be exchanged.
 */
#ifndef TW_TOOLS_PRINT_FLOWS_H
#define TW_TOOLS_PRINT_FLOWS_H

#include "tools/common/payload.h"

struct tw_flows;

/* NULL without memory. */
struct tw_flows *tw_flows_create(const struct tw_capture *capture);
void tw_flows_destroy(struct tw_flows *flows);

/*
 * Both: the number of the message, from 1 on.  0: of a send that nothing is known of, or that there is no room for; of a receive
 * whose send was not seen.
 */
uint64_t tw_flows_send(struct tw_flows *flows, const struct tw_capture_event *event);
uint64_t tw_flows_receive(struct tw_flows *flows, const struct tw_capture_event *event);

/* Sends that there was no room for. */
uint64_t tw_flows_left_out(const struct tw_flows *flows);

#endif
