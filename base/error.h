/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - the closed list of errors, and the way from errno into it. */
#ifndef TW_BASE_ERROR_H
#define TW_BASE_ERROR_H

#include "tracewheel/error.h"

/* The error of the closed list for an errno value; 0 for 0. */
int tw_error_from_errno(int number);

#endif
