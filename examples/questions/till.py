# SPDX-License-Identifier: Apache-2.0
"""A till that adds up receipts, and is slow: which of its functions is it?"""
import os


class Article:
    def __init__(self, number, price):
        self.number, self.price = number, price

    def has(self, number):
        return self.number == number


def price(articles, number):
    for article in articles:
        if article.has(number):
            return article.price
    raise KeyError(number)


def receipt(articles, numbers):
    total = 0
    for number in numbers:
        try:
            total += price(articles, number)
        except KeyError:
            pass
    os.write(1, b"%d\n" % total)


def main():
    articles = [Article(number, number % 100) for number in range(300)]
    for customer in range(100):
        receipt(articles, range(customer, customer + 301, 50))


main()
