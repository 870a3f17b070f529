// SPDX-License-Identifier: Apache-2.0
// Counts words, and keeps more memory than it should.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

static std::vector<std::string *> history;

__attribute__((noinline)) void remember(const std::string &line)
{
	history.push_back(new std::string(line + line + line));
}

__attribute__((noinline)) size_t count(const std::string &line)
{
	std::map<char, int> letters;
	for (char letter : line)
		letters[letter]++;
	return letters.size();
}

int main()
{
	size_t all = 0;
	for (int i = 0; i < 2000; i++) {
		std::string line = "the quick brown fox jumps over the lazy dog, time " + std::to_string(i);
		all += count(line);
		remember(line);
	}
	printf("%zu letters\n", all);
}
