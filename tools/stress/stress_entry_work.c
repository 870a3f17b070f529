/* SPDX-License-Identifier: Apache-2.0 */
/* stress_entry_work.c - the functions of stress_work.c once more, without sleds: their entries are planted. */
#define TW_STRESS_WITHOUT_SLEDS
#define stress_leaf	   stress_entry_leaf
#define stress_short	   stress_entry_short
#define stress_tail	   stress_entry_tail
#define stress_deep	   stress_entry_deep
#define stress_many	   stress_entry_many
#define stress_pair	   stress_entry_pair
#define stress_struct	   stress_entry_struct
#define stress_sum	   stress_entry_sum
#define stress_float	   stress_entry_float
#define stress_long_double stress_entry_long_double
#define stress_vector	   stress_entry_vector
#define stress_nothing	   stress_entry_nothing
#define stress_jump	   stress_entry_jump
#define stress_set	   stress_entry_set
#define stress_leave	   stress_entry_leave
#define stress_numbered_a  stress_entry_numbered_a
#define stress_numbered_b  stress_entry_numbered_b
#define stress_counted_a0  stress_entry_counted_a0
#define stress_counted_b0  stress_entry_counted_b0
#define stress_counted_a1  stress_entry_counted_a1
#define stress_counted_b1  stress_entry_counted_b1
#define stress_counted_a2  stress_entry_counted_a2
#define stress_counted_b2  stress_entry_counted_b2
#define stress_counted_a3  stress_entry_counted_a3
#define stress_counted_b3  stress_entry_counted_b3

#include "tools/stress/stress_work.c"
