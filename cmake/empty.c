/* SPDX-License-Identifier: Apache-2.0 */
/* empty.c - CMake needs a source file; the rooms bring the code. */
extern int tw_library_of_rooms;
