/* SPDX-License-Identifier: Apache-2.0 */
/* quiet.c - the sections that a thread is in. */
#include "base/quiet.h"

__thread struct tw_quiet tw_quiet;
