/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracewheel.h - everything that a traced program needs; libtracewheel.
 *
 * Captures are read by capture.h and written from outside by consumer.h: libtracewheel-capture.
 */
#ifndef TRACEWHEEL_TRACEWHEEL_H
#define TRACEWHEEL_TRACEWHEEL_H

#include "tracewheel/error.h"
#include "tracewheel/function.h"
#include "tracewheel/info.h"
#include "tracewheel/message.h"
#include "tracewheel/process.h"
#include "tracewheel/progress.h"
#include "tracewheel/queue.h"
#include "tracewheel/runtime.h"
#include "tracewheel/session.h"

#endif
