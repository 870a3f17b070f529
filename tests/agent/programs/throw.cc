// SPDX-License-Identifier: Apache-2.0
// throw.cc - C++ exceptions thrown through frames that were entered by hooked calls.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
#include <algorithm>
#include <execinfo.h>

extern "C" int edge_call_back(int (*function)(int), int x);

static int depth;

static int throwing(int x)
{
	std::string text(100, 'x');

	if (x == 0)
		throw std::runtime_error("thrown " + text.substr(0, 3));
	depth++;
	int result = edge_call_back(throwing, x - 1);
	depth--;
	return result;
}

static int sorts_and_throws(int x)
{
	std::vector<int> numbers = {3, 1, 2};

	std::sort(numbers.begin(), numbers.end(), [](int a, int b) {
		if (a + b == 5)
			throw 42;
		return a < b;
	});
	return numbers[0];
}

int main()
{
	int caught = 0;
	void *frames[64];

	for (int i = 0; i < 1000; i++) {
		try {
			throwing(i % 20);
		} catch (const std::exception &e) {
			caught += e.what() == std::string("thrown xxx");
		}
		try {
			edge_call_back(sorts_and_throws, 1);
		} catch (int number) {
			caught += number == 42;
		}
	}
	std::printf("caught %d, %s\n", caught, backtrace(frames, 64) >= 2 ? "frames" : "no frames");
	return caught == 2000 ? 0 : 1;
}
