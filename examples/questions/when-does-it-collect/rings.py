# SPDX-License-Identifier: Apache-2.0
"""Makes rings of objects, which only the garbage collector can free."""


def ring(size):
    first = last = []
    for _ in range(size):
        last.append([])
        last = last[0]
    last.append(first)


for number in range(3000):
    ring(3)
