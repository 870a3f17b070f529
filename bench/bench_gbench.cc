// SPDX-License-Identifier: Apache-2.0
// bench_gbench.cc - the C binding of Google Benchmark, and the only file that includes it.
//
// Google Benchmark chooses the iterations, starts the threads together, repeats and keeps the counters. We run the benchmarks
// one by one, measure the clock, the core and, for those that need it, cache-line transfers between cores before and after, and print
// medians with their spread.
#include "bench/bench.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace
{

constexpr int tries = 5; // of a row, until the machine is not disturbed
constexpr int repetitions_default = 9;

tw_bench_entry *first_entry;
std::string row_under_way;

// Where times are not wanted, so many show as much as more.
constexpr uint64_t iterations_untimed = 100000;
// The same with --seconds 0: within so many nanoseconds, at most so many.
constexpr double ns_shortest = 1e6;
constexpr double iterations_shortest = 1000;

struct arguments {
	std::vector<std::string> filters; // none: every row
	bool list = false;
	bool json = false;
	bool happened = false; // say what each row has made happen, not how long it took
	bool reverse = false;
	double clock_ns = 0; // of this machine without other work; 0: the least that is seen
	double sibling_ns = 0;
	double seconds = 0.25; // with --happened, 0 is the shortest way
	int repetitions = 0;
};

// The state of the machine beside a row: before and after it.
struct Probe {
	double before = 0, after = 0;
	double limit = 0; // above it, the row was disturbed

	double most() const
	{
		return std::max(before, after);
	}
	bool is_fair() const
	{
		return limit == 0 || most() <= limit;
	}
};

struct Machine {
	Probe clock, sibling, transfer;
	bool has_transfer = false;

	bool is_fair() const
	{
		return clock.is_fair() && sibling.is_fair() && transfer.is_fair();
	}
	// What to print behind a row that was measured all the same.
	std::string disturbed() const
	{
		std::string text;
		if (!clock.is_fair())
			text += " clock";
		if (!sibling.is_fair())
			text += " sibling";
		if (!transfer.is_fair())
			text += " transfer";
		return text.empty() ? text : " SLOW:" + text;
	}
};

// The least that the probes have shown in this process, or what the user says.
double least_clock_ns, least_sibling_ns;

double see(double now, double *least, double known)
{
	if (*least == 0 || now < *least)
		*least = now;
	if (known > 0)
		*least = known;
	return now;
}

void probe(const arguments &args, Machine *machine, double Probe::*when)
{
	machine->clock.*when = see(tw_bench_clock_ns(), &least_clock_ns, args.clock_ns);
	machine->sibling.*when = see(tw_bench_sibling_ns(), &least_sibling_ns, args.sibling_ns);
	machine->clock.limit = least_clock_ns * TW_BENCH_PROBE_FAIR;
	machine->sibling.limit = least_sibling_ns * TW_BENCH_PROBE_FAIR;
	if (machine->has_transfer) {
		machine->transfer.*when = tw_bench_transfer_ns();
		machine->transfer.limit = TW_BENCH_TRANSFER_FAIR_NS;
	}
}

// The results of one benchmark's repetitions.
class Collector : public benchmark::BenchmarkReporter
{
      public:
	explicit Collector(const tw_bench_entry &entry)
	    : per_iteration(entry.options.per_iteration ? double(entry.options.per_iteration) : 1)
	{
	}
	bool ReportContext(const Context &) override
	{
		return true;
	}
	void ReportRuns(const std::vector<Run> &runs) override
	{
		for (const Run &run : runs) {
			if (run.run_type != Run::RT_Iteration)
				continue;
			if (run.error_occurred) {
				why_skipped = run.error_message;
				continue;
			}
			ns.push_back(run.real_accumulated_time * 1e9 / double(run.iterations) * double(run.threads) /
				     per_iteration);
			cpu_ns.push_back(run.cpu_accumulated_time * 1e9 / double(run.iterations) / per_iteration);
			for (const auto &counter : run.counters)
				counters[counter.first].push_back(counter.second.value);
		}
	}

	double per_iteration;
	std::vector<double> ns;
	std::vector<double> cpu_ns; // of the benchmark's own threads
	std::map<std::string, std::vector<double>> counters;
	std::string why_skipped;
};

double median(std::vector<double> values)
{
	std::sort(values.begin(), values.end());
	size_t half = values.size() / 2;
	return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// What the threads of one benchmark said, in all its runs: the same each time.
struct Said {
	std::string name;
	std::mutex mutex;
	std::map<std::string, std::string> happened;
	unsigned count = 0;
	bool is_timed = true;
};

[[noreturn]] void fail(const std::string &name, const std::string &what)
{
	std::fflush(stdout);
	std::fprintf(stderr, "tracewheel-bench: %s: %s\n", name.c_str(), what.c_str());
	std::abort();
}

void say(struct tw_bench *bench, const std::string &what, const std::string &amount)
{
	auto *said = static_cast<Said *>(bench->said);
	std::lock_guard<std::mutex> guard(said->mutex);
	std::string &before = said->happened[what];
	if (before.size() && before != amount)
		fail(said->name, what + ": " + amount + ", and " + before + " before");
	before = amount;
	said->count++;
}

void check(struct tw_bench *bench, const char *what, uint64_t got, uint64_t expected)
{
	if (got != expected)
		fail(static_cast<Said *>(bench->said)->name, std::string(what) + ": " + std::to_string(got) +
								     " instead of " + std::to_string(expected) +
								     ": the row would show the time of something else");
}

void run_here(benchmark::State &state, const tw_bench_entry *entry, int64_t value, Said *said)
{
	unsigned before = said->count;
	tw_bench bench = {};
	bench.value = value;
	bench.thread_index = state.thread_index();
	bench.thread_count = state.threads();
	bench.state = &state;
	bench.said = said;
	bench.is_timed = said->is_timed;
	entry->run(&bench);
	if (said->count == before && !state.error_occurred())
		fail(said->name, "the row does not say what it makes happen: tw_bench_happened()");
}

void run_entry(benchmark::State &state, const tw_bench_entry *entry, int64_t value, Said *said)
{
	if (entry->options.is_apart)
		std::thread([&] { run_here(state, entry, value, said); }).join();
	else
		run_here(state, entry, value, said);
}

// Prints 12.3 M for 12300000, and small figures unchanged.
void print_figure(double value)
{
	static const struct {
		double from;
		const char *unit;
	} scale[] = {{1e9, " G"}, {1e6, " M"}, {1e4, " k"}};
	for (const auto &step : scale) {
		if (value >= step.from) {
			std::printf("%.4g%s", value / (step.from == 1e4 ? 1e3 : step.from), step.unit);
			return;
		}
	}
	std::printf("%.4g", value);
}

void print_row(const std::string &name, Collector &result, const Machine &machine)
{
	if (!result.why_skipped.empty() || result.ns.empty()) {
		std::printf("%-44s skipped: %s\n", name.c_str(),
			    result.why_skipped.empty() ? "nothing was measured" : result.why_skipped.c_str());
		return;
	}
	double middle = median(result.ns);
	double low = *std::min_element(result.ns.begin(), result.ns.end());
	double high = *std::max_element(result.ns.begin(), result.ns.end());
	std::printf("%-44s %9.2f %9.2f %9.2f %5.0f%% %9.2f", name.c_str(), middle, low, high,
		    middle > 0 ? (high - low) / middle * 100 : 0, median(result.cpu_ns));
	if (machine.transfer.before > 0)
		std::printf("  transfer %3.0f/%3.0f", machine.transfer.before, machine.transfer.after);
	std::printf("%s", machine.disturbed().c_str());
	for (const auto &counter : result.counters) {
		std::printf("  %s ", counter.first.c_str());
		print_figure(median(counter.second));
	}
	std::printf("\n");
	std::fflush(stdout);
}

// The machine as it is, and the columns.
void print_head(const arguments &args)
{
	Machine machine;
	machine.has_transfer = true;
	for (int i = 0; i < tries; i++)
		probe(args, &machine, &Probe::before);
	std::printf(
		"clock %.2f ns, transfer of a cache line %.0f ns, probe of the sibling %.3f ns; rows are repeated, %d times at most, while "
		"the clock or the probe take\nmore than %.2f times the least (%.2f and %.3f), or a row's own transfer more than %.0f ns\n",
		machine.clock.before, machine.transfer.before, machine.sibling.before, tries, TW_BENCH_PROBE_FAIR,
		least_clock_ns, least_sibling_ns, TW_BENCH_TRANSFER_FAIR_NS);
	std::printf("%-44s %9s %9s %9s %6s %9s\n", "ns for one operation, wall clock", "median", "min", "max", "spread",
		    "CPU");
}

void print_said(const Said &said, const Collector &result)
{
	std::printf("%s:", said.name.c_str());
	for (const auto &happened : said.happened)
		std::printf(" %s %s", happened.first.c_str(), happened.second.c_str());
	std::printf("%s%s\n", result.why_skipped.empty() ? "" : " skipped: ", result.why_skipped.c_str());
	std::fflush(stdout);
}

void print_json(const std::string &name, Collector &result, const Machine &machine, bool is_first)
{
	if (result.ns.empty())
		return;
	std::printf("%s{\"name\":\"%s\",\"median_ns\":%.4f,\"min_ns\":%.4f,\"max_ns\":%.4f,\"cpu_ns\":%.4f,"
		    "\"repetitions\":%zu",
		    is_first ? "" : ",\n ", name.c_str(), median(result.ns),
		    *std::min_element(result.ns.begin(), result.ns.end()),
		    *std::max_element(result.ns.begin(), result.ns.end()), median(result.cpu_ns), result.ns.size());
	std::printf(",\"clock_ns\":%.2f,\"sibling_ns\":%.3f,\"disturbed\":%s", machine.clock.most(),
		    machine.sibling.most(), machine.is_fair() ? "false" : "true");
	if (machine.transfer.before > 0)
		std::printf(",\"transfer_before_ns\":%.1f,\"transfer_after_ns\":%.1f", machine.transfer.before,
			    machine.transfer.after);
	for (const auto &counter : result.counters)
		std::printf(",\"%s\":%.6g", counter.first.c_str(), median(counter.second));
	std::printf("}");
}

// All repetitions of a row; with 0 iterations, as many as take args.seconds.
void run_row(const tw_bench_entry &entry, int64_t value, const arguments &args, Said *said, uint64_t iterations,
	     Collector *result)
{
	benchmark::ClearRegisteredBenchmarks();
	auto *registered = benchmark::RegisterBenchmark(said->name.c_str(), [&](benchmark::State &state) {
		run_entry(state, &entry, value, said);
	});
	int repetitions = args.repetitions ? args.repetitions : entry.options.repetitions;
	registered->Repetitions(repetitions ? repetitions : repetitions_default)->UseRealTime();
	registered->Threads(std::max(entry.options.threads, 1));
	if (iterations)
		registered->Iterations(benchmark::IterationCount(iterations));
	else
		registered->MinTime(args.seconds);
	benchmark::RunSpecifiedBenchmarks(result, std::string("."));
	tw_bench_unpin();
}

void run_one(const tw_bench_entry &entry, int64_t value, const arguments &args, int *shown)
{
	std::string name = entry.name;
	if (value)
		name += "/" + std::to_string(value);
	auto is_in = [&name](const std::string &part) { return name.find(part) != std::string::npos; };
	if (args.filters.size() && std::none_of(args.filters.begin(), args.filters.end(), is_in))
		return;
	if (args.list) {
		std::printf("%s\n", name.c_str());
		return;
	}
	Machine machine;
	machine.has_transfer = entry.options.is_cross_core;
	Said said;
	said.name = row_under_way = name;
	said.is_timed = !args.happened;
	for (int attempt = 0; attempt < tries; attempt++) {
		Collector result(entry);
		uint64_t iterations = entry.options.iterations;
		if (iterations && args.happened)
			iterations = std::min(iterations, iterations_untimed);
		if (!args.happened)
			probe(args, &machine, &Probe::before);
		if (!iterations && args.happened && args.seconds == 0) {
			run_row(entry, value, args, &said, 1, &result);
			double ns = result.ns.empty() ? ns_shortest : result.ns[0] * result.per_iteration;
			iterations = uint64_t(std::min(ns_shortest / ns, iterations_shortest));
			if (iterations > 1)
				run_row(entry, value, args, &said, iterations, &result);
		} else {
			run_row(entry, value, args, &said, iterations, &result);
		}
		if (!args.happened)
			probe(args, &machine, &Probe::after);
		if (!machine.is_fair() && attempt + 1 < tries && result.why_skipped.empty())
			continue;
		if (args.happened)
			print_said(said, result);
		else if (args.json)
			print_json(name, result, machine, *shown == 0);
		else
			print_row(name, result, machine);
		++*shown;
		return;
	}
}

bool parse(int argc, char **argv, arguments *out)
{
	for (int i = 1; i < argc; i++) {
		std::string word = argv[i];
		if (word == "--list")
			out->list = true;
		else if (word == "--json")
			out->json = true;
		else if (word == "--happened")
			out->happened = true;
		else if (word == "--reverse")
			out->reverse = true;
		else if (word == "--seconds" && i + 1 < argc)
			out->seconds = std::atof(argv[++i]);
		else if (word == "--clock" && i + 1 < argc)
			out->clock_ns = std::atof(argv[++i]);
		else if (word == "--sibling" && i + 1 < argc)
			out->sibling_ns = std::atof(argv[++i]);
		else if (word == "--repetitions" && i + 1 < argc)
			out->repetitions = std::max(1, std::atoi(argv[++i]));
		else if (word[0] != '-')
			out->filters.push_back(word);
		else
			return false;
	}
	if (!out->happened || out->seconds > 0)
		out->seconds = std::max(0.001, out->seconds);
	return true;
}

} // namespace

extern "C" void tw_bench_register(struct tw_bench_entry *entry)
{
	// By name, independent of the linker's order.
	tw_bench_entry **place = &first_entry;
	while (*place && std::strcmp((*place)->name, entry->name) < 0)
		place = &(*place)->next;
	entry->next = *place;
	*place = entry;
}

extern "C" uint64_t tw_bench_start(struct tw_bench *bench)
{
	auto *state = static_cast<benchmark::State *>(bench->state);
	return state->KeepRunningBatch(state->max_iterations) ? uint64_t(state->max_iterations) : 0;
}

extern "C" void tw_bench_stop(struct tw_bench *bench)
{
	auto *state = static_cast<benchmark::State *>(bench->state);
	// With no iterations left, this ends the run and stops the clock.
	while (!state->error_occurred() && state->KeepRunningBatch(state->max_iterations))
		;
}

extern "C" void tw_bench_happened(struct tw_bench *bench, const char *what, uint64_t got, uint64_t each)
{
	auto *state = static_cast<benchmark::State *>(bench->state);
	if (state->error_occurred())
		return;
	check(bench, what, got, each * uint64_t(state->max_iterations));
	say(bench, what, std::to_string(each) + " an iteration");
}

extern "C" void tw_bench_happened_in_all(struct tw_bench *bench, const char *what, uint64_t got, uint64_t expected)
{
	if (static_cast<benchmark::State *>(bench->state)->error_occurred())
		return;
	check(bench, what, got, expected);
	say(bench, what, std::to_string(expected) + " in all");
}

extern "C" void tw_bench_is_alone(struct tw_bench *bench)
{
	say(bench, "nothing", "but the loop");
}

extern "C" void tw_bench_fail(const char *file, int line, const char *what)
{
	fail(row_under_way, std::string(file) + ":" + std::to_string(line) + ": this is not so: " + what);
}

extern "C" void tw_bench_counter(struct tw_bench *bench, const char *name, double value)
{
	static_cast<benchmark::State *>(bench->state)->counters[name] = benchmark::Counter(value);
}

extern "C" void tw_bench_rate(struct tw_bench *bench, const char *name, double count)
{
	static_cast<benchmark::State *>(bench->state)->counters[name] =
		benchmark::Counter(count, benchmark::Counter::kIsRate);
}

extern "C" void tw_bench_skip(struct tw_bench *bench, const char *why)
{
	static_cast<benchmark::State *>(bench->state)->SkipWithError(why);
}

int main(int argc, char **argv)
{
	arguments args;
	if (!parse(argc, argv, &args)) {
		std::fprintf(
			stderr,
			"usage: tracewheel-bench [--list] [--json] [--happened] [--reverse] [--seconds S]\n"
			"                        [--repetitions N] [--clock NS] [--sibling NS] [FILTER ...]\n"
			"FILTER is a part of a benchmark's name. --happened shows what each row makes happen, not\n"
			"its time, and with --seconds 0 in a few iterations; --reverse runs the rows from the last\n"
			"to the first. --clock and --sibling: what the two probes take on this machine without other\n"
			"work; by default the least that is seen. Rows are repeated while one takes a quarter more.\n");
		return 2;
	}
	int zero = 1;
	benchmark::Initialize(&zero, argv);
	if (args.json)
		std::printf("[");
	else if (!args.list && !args.happened)
		print_head(args);
	int shown = 0;
	std::vector<std::pair<const tw_bench_entry *, int64_t>> rows;
	for (const tw_bench_entry *entry = first_entry; entry; entry = entry->next) {
		int i = 0;
		do
			rows.emplace_back(entry, entry->options.values[i]);
		while (entry->options.values[i] && entry->options.values[++i]);
	}
	if (args.reverse)
		std::reverse(rows.begin(), rows.end());
	for (const auto &row : rows)
		run_one(*row.first, row.second, args, &shown);
	if (args.json)
		std::printf("]\n");
	if (!args.list && !shown) {
		std::fprintf(stderr, "tracewheel-bench: no benchmark's name contains '%s'; --list shows them all.\n",
			     args.filters.empty() ? "" : args.filters[0].c_str());
		return 1;
	}
	return 0;
}
