# SPDX-License-Identifier: Apache-2.0
"""Writes a report, line by line."""
import os


def line(number):
    return b"%6d items\n" % number


def report(to, lines):
    for number in range(lines):
        os.write(to, line(number))


if __name__ == "__main__":
    target = os.open("report.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    report(target, 500)
