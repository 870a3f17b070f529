/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Every error of the closed list has its own sentence, which says what to do.
 * Method	Ask for each; compare with the sentence for unknown numbers; convert errno values.
 */
#include "base/assert.h"
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const int errors[] = {TW_EBADARG, TW_ELIMIT,    TW_EDEAD,   TW_EDEADLK, TW_ENOMEM,   TW_ENOSPC,
			     TW_ENOENT,	 TW_EEXIST,    TW_EPERM,   TW_EFORMAT, TW_EVERSION, TW_EIO,
			     TW_EPIPE,	 TW_ETIMEDOUT, TW_ENOTSUP, TW_EINTR};

static void each_error_has_its_sentence(void **state)
{
	for (size_t i = 0; i < TW_COUNT_OF(errors); i++) {
		assert_string_not_equal(tw_strerror(errors[i]), tw_strerror(-9999));
		assert_non_null(strchr(tw_strerror(errors[i]), ';'));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(tw_strerror(errors[i]), tw_strerror(errors[j]));
	}
}

static void errno_maps_into_the_list(void **state)
{
	for (int number = 1; number < 140; number++)
		assert_string_not_equal(tw_strerror(tw_error_from_errno(number)), tw_strerror(-9999));
	assert_int_equal(tw_error_from_errno(EDQUOT), TW_ENOSPC);
	assert_int_equal(tw_error_from_errno(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_error_has_its_sentence),
		cmocka_unit_test(errno_maps_into_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
