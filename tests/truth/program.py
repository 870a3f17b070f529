# SPDX-License-Identifier: Apache-2.0
"""program.py - random C programs that keep an account of their own calls.

A program is four objects: the executable and an opened library with entry sleds, a library whose functions are called through
slots, and the account, which is not traced.  Every function of the first three notes when it was entered and left, by the
system's clock, in a log of its thread; the logs are written when a thread ends.  The log is the truth that views are compared
with: the order and nesting of calls exactly, times as a lower bound (the recorded interval encloses the noted one).

    Program(seed, folder).build()      compiles it
    program.run(command, environment)  runs it, plain or under a recorder
    program.truth()                    {thread: [(is_enter, function, ns, argument)]}
"""
import os
import random
import shutil
import struct
import subprocess

ACCOUNT_H = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>
#define QUIET __attribute__((always_inline, no_instrument_function)) static inline
#define FUNCTION __attribute__((noinline, noipa))
struct account_item { uint32_t what; int32_t argument; uint64_t ns; };
struct account { uint64_t count; struct account_item items[1 << 20]; };
extern __thread struct account *account_mine __attribute__((tls_model("initial-exec")));
extern volatile unsigned account_sink;
void account_begin(void);
void account_end(void);
QUIET void account_note(uint32_t what, int argument)
{
	struct account *mine = account_mine;
	struct timespec now;

	if (!mine || mine->count == sizeof mine->items / sizeof mine->items[0])
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	mine->items[mine->count++] = (struct account_item){ what, argument, now.tv_sec * 1000000000ull + now.tv_nsec };
}
#define ENTER(f, a) account_note((f) * 2, (int)(a))
#define LEAVE(f)    account_note((f) * 2 + 1, 0)
"""

ACCOUNT_C = r"""
#include "account.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <errno.h>
__thread struct account *account_mine __attribute__((tls_model("initial-exec")));
volatile unsigned account_sink;
static _Atomic unsigned numbers;
void account_begin(void)
{
	struct account *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (made == MAP_FAILED)
		abort();
	account_mine = made;
}
void account_end(void)
{
	struct account *mine = account_mine;
	char path[4096];
	FILE *file;

	account_mine = NULL;
	snprintf(path, sizeof path, "%s/truth.%u.%u.%u", getenv("TRUTH"), (unsigned)getpid(), (unsigned)syscall(SYS_gettid), numbers++);
	file = fopen(path, "w");
	if (!file || fwrite(mine->items, sizeof mine->items[0], mine->count, file) != mine->count || fclose(file))
		abort();
	munmap(mine, sizeof *mine);
}
"""


class Function:
    """One function: where it is, how it is called, what it does."""

    def __init__(self, number, module, rng):
        self.number, self.module = number, module
        self.name = "%s_%d" % (module, number)
        self.shape = rng.choice(["void", "int", "double", "text", "pair", "bare"])
        self.calls = []  # (function, times)
        self.sleep_us = 0
        self.recursion = 0

    def declaration(self):
        return {
            "void": "void %s(int a)",
            "int": "int %s(int a, long b)",
            "double": "double %s(int a, double x)",
            "text": "const char *%s(int a, const char *s)",
            "pair": "struct pair %s(int a, struct pair p)",
            "bare": "void %s(void)",
        }[self.shape] % self.name

    def call(self, argument):
        words = {
            "void": "%s(%s)",
            "int": "account_sink += (unsigned)%s(%s, 7)",
            "double": "account_sink += %s(%s, 0.5) > 1",
            "text": 'account_sink += (unsigned char)*%s(%s, "a text with \\"quotes\\" and \\\\")',
            "pair": "account_sink += (unsigned)%s(%s, (struct pair){ 1, 2 }).first",
            "bare": "%s()",
        }[self.shape]
        return words % ((self.name, argument) if self.shape != "bare" else self.name) + ";"

    def argument(self):
        return "0" if self.shape == "bare" else "a"

    def definition(self, functions, opened):
        body = ["\tENTER(%d, %s);" % (self.number, self.argument())]
        if self.sleep_us:
            body.append("\tusleep(%d);" % self.sleep_us)
        if self.recursion:
            body.append("\tif (a > 0 && a <= %d) { %s }" % (self.recursion, self.call("a - 1")))
        for callee, times in self.calls:
            target = functions[callee]
            if opened and target.module == "plug" and self.module != "plug":
                call = "if (p_%s) { %s }" % (target.name, target.call("i").replace(target.name + "(", "p_%s(" % target.name))
            else:
                call = target.call("i")
            body.append("\tfor (int i = 0; i < %d; i++) { %s }" % (times, call))
        body.append("\tLEAVE(%d);" % self.number)
        answer = {"void": None, "int": "a + (int)b", "double": "x * 2", "text": "s", "pair": "p", "bare": None}[self.shape]
        if answer:
            body.append("\treturn %s;" % answer)
        return "FUNCTION %s\n{\n%s\n}\n" % (self.declaration(), "\n".join(body))


class Program:
    """A random program in a folder of its own."""

    def __init__(self, seed, folder, calls=20000, threads=None):
        rng = random.Random(seed)
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.threads = rng.randint(3, 6) if threads is None else threads
        count = rng.randint(14, 24)
        modules = ["prog", "slots", "plug"] + [rng.choice(["prog", "prog", "slots", "plug"]) for _ in range(count - 3)]
        self.functions = [Function(n, module, rng) for n, module in enumerate(modules)]
        order = {"prog": 0, "slots": 1, "plug": 2}
        self.functions.sort(key=lambda f: order[f.module])
        for number, function in enumerate(self.functions):
            function.number, function.name = number, "%s_%d" % (function.module, number)
        sizes = [1] * count
        for number in range(count - 1, -1, -1):
            function = self.functions[number]
            # The compiler binds a function's calls of itself within the object: no slot sees them.
            if function.shape != "bare" and function.module != "slots" and rng.random() < 0.15:
                function.recursion = rng.randint(2, 6)
            later = [g for g in self.functions[number + 1:] if function.module != "slots" or g.module == "slots"]
            for callee in rng.sample(later, min(len(later), rng.choice([0, 0, 1, 2, 3]))):
                times = rng.randint(1, 6)
                if sizes[number] + times * sizes[callee.number] < calls // 8:
                    function.calls.append((callee.number, times))
                    sizes[number] += times * sizes[callee.number]
            # A recursive function does its work again at each depth.
            sizes[number] *= function.recursion + 1
            if rng.random() < 0.08 and sizes[number] < 50:
                function.sleep_us = rng.choice([50, 200, 1000])
        roots = [f for f in self.functions if f.module == "prog"]
        self.work = []
        for _ in range(self.threads + 1):
            rounds, total = [], 0
            while total < calls / (self.threads + 1) and len(rounds) < 400:
                root = rng.choice(roots)
                rounds.append(root)
                total += sizes[root.number]
            self.work.append(rounds)

    def _sources(self):
        functions = self.functions
        head = '#include "account.h"\n#include <unistd.h>\nstruct pair { long first, second; };\n'
        sources = {"account.h": ACCOUNT_H, "account.c": ACCOUNT_C}
        declarations = "".join("%s;\n" % f.declaration() for f in functions if f.module != "plug")
        plugs = [f for f in functions if f.module == "plug"]
        sources["slots.c"] = head + declarations + "".join(
            f.definition(functions, True) for f in functions if f.module == "slots") + "int slots_are_here;\n"
        sources["plug.c"] = head + "".join("%s;\n" % f.declaration() for f in functions if f.module != "prog") + "".join(
            f.definition(functions, False) for f in plugs) + "int plug_is_here;\n"
        pointers = "".join("static %s;\n" % f.declaration().replace(f.name + "(", "(*p_%s)(" % f.name) for f in plugs)
        opening = "".join('\t*(void **)&p_%s = dlsym(h, "%s");\n' % (f.name, f.name) for f in plugs)
        bodies = "".join(f.definition(functions, True) for f in functions if f.module == "prog")
        works = []
        for number, rounds in enumerate(self.work):
            lines = "".join("\t{ int i = %d; %s }\n" % (n % 7, f.call("i")) for n, f in enumerate(rounds))
            works.append("QUIET void work_%d(void)\n{\n%s}\n" % (number, lines))
        cases = "".join("\tcase %d: work_%d(); break;\n" % (n, n) for n in range(1, self.threads + 1))
        sources["prog.c"] = (
            head + "#include <dlfcn.h>\n#include <pthread.h>\n#include <stdlib.h>\n" + declarations + pointers + bodies +
            "".join(works) + r"""
static pthread_barrier_t together;
#define PLAIN __attribute__((patchable_function_entry(0, 0)))
PLAIN static void *run(void *arg)
{
	account_begin();
	pthread_barrier_wait(&together);
	switch ((int)(long)arg) {
%s	}
	account_end();
	return NULL;
}
PLAIN int main(void)
{
	pthread_t threads[%d];
	void *h = dlopen("./libplug.so", RTLD_NOW);

	if (!h)
		return 3;
%s	account_begin();
	pthread_barrier_init(&together, NULL, %d);
	for (long i = 1; i <= %d; i++)
		pthread_create(&threads[i - 1], NULL, run, (void *)i);
	work_0();
	for (int i = 0; i < %d; i++)
		pthread_join(threads[i], NULL);
	account_end();
	return 7;
}
""" % (cases, max(self.threads, 1), opening, max(self.threads, 1), self.threads, self.threads))
        return sources

    def build(self, compact):
        for name, text in self._sources().items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        sleds, flags = ["-fpatchable-function-entry=9"], ["-O2", "-g", "-w", "-fno-builtin"]
        for command in (
                ["gcc", *flags, "-shared", "-fPIC", "-o", "libaccount.so", "account.c"],
                ["gcc", *flags, "-shared", "-fPIC", "-o", "libslots.so", "slots.c", "-L.", "-laccount"],
                ["gcc", *flags, *sleds, "-shared", "-fPIC", "-o", "libplug.so", "plug.c", "-L.", "-laccount", "-lslots"],
                ["gcc", *flags, *sleds, "-o", "prog", "prog.c", "-L.", "-lslots", "-laccount", "-lpthread", "-ldl", "-Wl,-rpath,."],
                [compact, "compact", "--quiet", "libplug.so"],
        ):
            subprocess.run(command, cwd=self.folder, check=True)

    def run(self, command, seconds=120):
        """Runs COMMAND (a list that ends with the program) and returns its exit code; the truth is that of this run."""
        logs = os.path.join(self.folder, "truth")
        shutil.rmtree(logs, ignore_errors=True)
        os.makedirs(logs)
        env = dict(os.environ, TRUTH=logs, LC_ALL="C.UTF-8")
        env.pop("LD_PRELOAD", None)
        return subprocess.run(command, cwd=self.folder, env=env, timeout=seconds, check=False).returncode

    def truth(self):
        """By thread number in the system: what its functions noted, in order."""
        threads = {}
        logs = os.path.join(self.folder, "truth")
        for name in sorted(os.listdir(logs)):
            thread = int(name.split(".")[2])
            with open(os.path.join(logs, name), "rb") as file:
                items = struct.iter_unpack("=IiQ", file.read())
            if thread in threads:
                raise RuntimeError("the system gave the thread number %d twice" % thread)
            threads[thread] = [(what % 2 == 0, self.functions[what // 2], ns, argument) for what, argument, ns in items]
        return threads
