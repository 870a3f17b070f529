/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracewheel.h - includes all headers that a traced program needs; libtracewheel.
 *
 * capture.h reads captures and consumer.h records them from outside: libtracewheel-capture.
 */
#ifndef TRACEWHEEL_TRACEWHEEL_H
#define TRACEWHEEL_TRACEWHEEL_H

#include "tracewheel/error.h"
#include "tracewheel/function.h"
#include "tracewheel/info.h"
#include "tracewheel/message.h"
#include "tracewheel/port.h"
#include "tracewheel/process.h"
#include "tracewheel/progress.h"
#include "tracewheel/queue.h"
#include "tracewheel/runtime.h"
#include "tracewheel/seq.h"
#include "tracewheel/session.h"
#include "tracewheel/tracer.h"

#endif
