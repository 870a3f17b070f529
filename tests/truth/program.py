# SPDX-License-Identifier: Apache-2.0
"""program.py - random C programs that keep an account of their own calls.

A program is five objects: the executable and an opened library with entry sleds, one of C++ whose calls exceptions and longjmp
leave, a library whose functions are called through slots, and the account, which is not traced.  Every function of the first four
notes when it was entered and left, by the system's clock, in a log of its thread; the logs are written when a thread ends.  The log
is the truth that views are compared with: the order and nesting of calls exactly, times as a lower bound (the recorded interval
encloses the noted one).  The library is opened before the threads begin, or while they run.  Words in the environment ask for more:

    TRUTH_TIMER  handlers of a signal, this often (us), call functions of their own, which the log has apart
    TRUTH_LEAVE  calls are left by exceptions and by longjmp
    TRUTH_ROUNDS all threads but the first do their work so often
    TRUTH_FORK   a child, forked while threads run, does what a thread does

    Program(seed, folder).build()      compiles it
    program.run(command, words)        runs it, plain or under a recorder
    program.truth()                    {thread: [(kind, function, ns, argument)]}: kind ENTER, RETURN or LEFT
    program.handled()                  likewise what handlers called
"""
import os
import random
import shutil
import signal
import struct
import subprocess
import time

ENTER, RETURN, LEFT = range(3)
# The deepest of these throws or jumps; the first catches.
CHAIN = 4
HANDLERS = 3

ACCOUNT_H = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>
#define QUIET __attribute__((always_inline, no_instrument_function)) static inline
#define FUNCTION __attribute__((noinline, noipa))
struct account_item { uint32_t what; int32_t argument; uint64_t ns; };
struct account { uint64_t count; struct account_item items[1 << 20]; };
/* The logs of the thread's functions, and of its handlers. */
#ifdef __cplusplus
extern "C" {
#endif
extern __thread struct account *account_mine __attribute__((tls_model("initial-exec")));
extern __thread struct account *account_handled __attribute__((tls_model("initial-exec")));
extern volatile unsigned account_sink;
void account_begin(void);
void account_end(void);
#ifdef __cplusplus
}
#endif
QUIET void account_put(struct account *mine, uint32_t what, int argument)
{
	struct timespec now;
	struct account_item *item;

	if (!mine || mine->count == sizeof mine->items / sizeof mine->items[0])
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	item = &mine->items[mine->count++];
	item->what = what;
	item->argument = argument;
	item->ns = now.tv_sec * 1000000000ull + now.tv_nsec;
}
QUIET void account_note(uint32_t what, int argument) { account_put(account_mine, what, argument); }
#define ENTER(f, a) account_note((f) * 3, (int)(a))
#define LEAVE(f)    account_note((f) * 3 + 1, 0)
#define LEFT(f)     account_note((f) * 3 + 2, 0)
#define HENTER(f, a) account_put(account_handled, (f) * 3, (int)(a))
#define HLEAVE(f)    account_put(account_handled, (f) * 3 + 1, 0)
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
__thread struct account *account_handled __attribute__((tls_model("initial-exec")));
volatile unsigned account_sink;
int account_leaves;
static _Atomic unsigned numbers;
__attribute__((constructor)) static void look(void) { account_leaves = getenv("TRUTH_LEAVE") != NULL; }
static struct account *begin(void)
{
	struct account *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (made == MAP_FAILED)
		abort();
	return made;
}
void account_begin(void)
{
	account_mine = begin();
	account_handled = begin();
}
static void end(struct account *mine, const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s.%u.%u.%u", getenv("TRUTH"), name, (unsigned)getpid(), (unsigned)syscall(SYS_gettid), numbers++);
	file = fopen(path, "w");
	if (!file || fwrite(mine->items, sizeof mine->items[0], mine->count, file) != mine->count || fclose(file))
		abort();
	munmap(mine, sizeof *mine);
}
/* With the signal blocked, where there is one. */
void account_end(void)
{
	struct account *mine = account_mine, *handled = account_handled;

	account_mine = account_handled = NULL;
	end(mine, "truth");
	end(handled, "handled");
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
        self.leaves = None  # the number of a function that catches what it calls

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
                call = "if (p_%s) { %s }" % (target.name, target.call("i" if target.recursion < 24 else "i + 18").replace(target.name + "(", "p_%s(" % target.name))
            else:
                call = target.call("i" if target.recursion < 24 else "i + 18")
            body.append("\tfor (int i = 0; i < %d; i++) { %s }" % (times, call))
        if self.leaves is not None:
            body.append("\tleft_%d(%s);" % (self.leaves, self.argument()))
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
                function.recursion = rng.choice([2, 4, 6, 24])
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
        # Both come after the others, which do not call them.
        roots = [f for f in self.functions if f.module == "prog"]
        self.chain = [Function(count + n, "left", rng) for n in range(CHAIN + 1)]
        self.handlers = [Function(count + CHAIN + 1 + n, "prog", rng) for n in range(HANDLERS)]
        for function in roots:
            if sizes[function.number] < 200 and rng.random() < 0.2:
                function.leaves = self.chain[0].number
        for number, function in enumerate(self.chain + self.handlers):
            function.shape = "chain" if number <= CHAIN else "void"
            if 0 < number <= CHAIN:
                function.name = "app::" + function.name
        self.opens_at = rng.choice([None, None, rng.random()])
        self.work = []
        for _ in range(self.threads + 1):
            rounds, total = [], 0
            while total < calls / (self.threads + 1) and len(rounds) < 400:
                root = rng.choice(roots)
                rounds.append(root)
                total += sizes[root.number]
            self.work.append(rounds)
        self.functions += self.chain + self.handlers

    def _left(self):
        """The first of the chain catches what the last throws, or where it jumps to."""
        first, last = self.chain[0].number, self.chain[-1].number
        text = r"""#include "account.h"
#include <exception>
#include <setjmp.h>
static __thread jmp_buf *to;
extern "C" int account_leaves;
struct guard {
	unsigned f;
	guard(unsigned number, int a) : f(number) { ENTER(f, a); }
	~guard() { if (std::uncaught_exceptions()) LEFT(f); else LEAVE(f); }
};
namespace app {
FUNCTION void left_%d(int a, int how)
{
	guard here(%d, a);

	if (how == 1)
		throw a;
	if (how == 2) {
		for (unsigned f = %d; f > %d; f--)
			LEFT(f);
		longjmp(*to, 1);
	}
}
""" % (last, last, last, first)
        for function in reversed(self.chain[1:-1]):
            n = function.number
            text += "FUNCTION void left_%d(int a, int how)\n{\n\tguard here(%d, a);\n\n\tleft_%d(a, how);\n}\n" % (n, n, n + 1)
        return text + r"""}
extern "C" FUNCTION int left_%d(volatile int a)
{
	ENTER(%d, a);
	if (account_leaves && a %% 3 == 2) {
		jmp_buf here;

		to = &here;
		if (_setjmp(here) == 0)
			app::left_%d(a, 2);
	} else {
		try {
			app::left_%d(a, account_leaves ? a %% 3 : 0);
		} catch (int) {
		}
	}
	LEAVE(%d);
	return a;
}
""" % (first, first, first + 1, first + 1, first)

    def _handlers(self):
        first, *others = [f.number for f in self.handlers]
        text = "".join("FUNCTION void prog_%d(int a)\n{\n\tHENTER(%d, a);\n\tHLEAVE(%d);\n}\n" % (n, n, n) for n in others)
        calls = "".join("\tprog_%d(a);\n" % n for n in others)
        text += "FUNCTION void prog_%d(int a)\n{\n\tHENTER(%d, a);\n%s\tHLEAVE(%d);\n}\n" % (first, first, calls, first)
        return text + r"""
PLAIN static void on_alarm(int signal)
{
	int error = errno;

	if (account_handled)
		prog_%d(signal);
	errno = error;
}
PLAIN static void block(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}
PLAIN static void begin_alarms(void)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	const char *us = getenv("TRUTH_TIMER");

	if (!us)
		return;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, atoi(us) }, { 0, atoi(us) } }, NULL);
}
""" % first

    def _sources(self):
        functions = self.functions
        head = '#include "account.h"\n#include <unistd.h>\nstruct pair { long first, second; };\n'
        sources = {"account.h": ACCOUNT_H, "account.c": ACCOUNT_C}
        special = self.chain + self.handlers
        functions = [f for f in functions if f not in special]
        declarations = "".join("%s;\n" % f.declaration() for f in functions if f.module != "plug")
        sources["left.cc"] = self._left()
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
            each = ["\t{ int i = %d; %s }\n" % (n % 7, f.call("i")) for n, f in enumerate(rounds)]
            for a in range(0, len(each) * 2, 3):
                each.insert((a * 7) % len(each), "\tleft_%d(%d);\n" % (self.chain[0].number, a))
            if number == 0 and self.opens_at is not None:
                each.insert(int(len(each) * self.opens_at), "\tif (open_plug()) abort();\n")
            lines = "".join(each)
            works.append("QUIET void work_%d(void)\n{\n%s}\n" % (number, lines))
        cases = "".join("\tcase %d: for (int n = rounds(); n > 0; n--) work_%d(); break;\n" % (n, n) for n in range(1, self.threads + 1))
        sources["prog.c"] = (
            head + "#include <dlfcn.h>\n#include <errno.h>\n#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n"
            "#include <sys/time.h>\n#include <sys/wait.h>\n#define PLAIN __attribute__((patchable_function_entry(0, 0)))\n"
            "extern int left_%d(int);\n" % self.chain[0].number + declarations + pointers + bodies +
            "PLAIN static int open_plug(void)\n{\n\tvoid *h = dlopen(\"./libplug.so\", RTLD_NOW);\n\n\tif (!h)\n\t\treturn -1;\n" +
            opening + "\treturn 0;\n}\n" + "".join(works) + self._handlers() + r"""
static pthread_barrier_t together;
PLAIN static int rounds(void)
{
	return getenv("TRUTH_ROUNDS") ? atoi(getenv("TRUTH_ROUNDS")) : 1;
}
PLAIN static void *run(void *arg)
{
	account_begin();
	pthread_barrier_wait(&together);
	switch ((int)(long)arg) {
%s	}
	block();
	account_end();
	return NULL;
}
PLAIN int main(void)
{
	pthread_t threads[%d];
	int status = 0;
	pid_t child = 0;

	if (%d && open_plug())
		return 3;
	account_begin();
	begin_alarms();
	pthread_barrier_init(&together, NULL, %d);
	for (long i = 1; i <= %d; i++)
		pthread_create(&threads[i - 1], NULL, run, (void *)i);
	work_0();
	block();
	if (getenv("TRUTH_FORK") && (child = fork()) == 0) {
		account_begin();
		work_1();
		account_end();
		_exit(0);
	}
	for (int i = 0; i < %d; i++)
		pthread_join(threads[i], NULL);
	if (child && (waitpid(child, &status, 0) != child || status))
		return 4;
	account_end();
	return 7;
}
""" % (cases, max(self.threads, 1), self.opens_at is None, self.threads, self.threads, self.threads))
        return sources

    def build(self, compact):
        for name, text in self._sources().items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        sleds, flags = ["-fpatchable-function-entry=9"], ["-O2", "-g", "-w", "-fno-builtin"]
        for command in (
                ["gcc", *flags, "-shared", "-fPIC", "-o", "libaccount.so", "account.c"],
                # Without a build-id no entry is used: its functions are recorded through slots.
                ["gcc", *flags, "-shared", "-fPIC", "-Wl,--build-id=none", "-o", "libslots.so", "slots.c", "-L.", "-laccount"],
                ["gcc", *flags, *sleds, "-shared", "-fPIC", "-o", "libplug.so", "plug.c", "-L.", "-laccount", "-lslots"],
                ["g++", *flags, *sleds, "-shared", "-fPIC", "-o", "libleft.so", "left.cc", "-L.", "-laccount"],
                ["gcc", *flags, *sleds, "-o", "prog", "prog.c", "-L.", "-lslots", "-lleft", "-laccount", "-lpthread", "-ldl",
                 "-Wl,-rpath,."],
                [compact, "compact", "--quiet", "libplug.so"],
        ):
            subprocess.run(command, cwd=self.folder, check=True)

    def run(self, command, words=(), pauses=0, seconds=240):
        """
        Runs COMMAND (a list that ends with the program) and returns its exit code; the truth is that of this run.  The first process
        of the command, a recorder, is stopped so often for a tenth of a second.
        """
        logs = os.path.join(self.folder, "truth")
        shutil.rmtree(logs, ignore_errors=True)
        os.makedirs(logs)
        # However busy the machine is: plans of entries are waited for.
        env = dict(os.environ, TRUTH=logs, LC_ALL="C.UTF-8", TRACEWHEEL_PLAN_WAIT_MS="60000", **dict(words))
        env.pop("LD_PRELOAD", None)
        with subprocess.Popen(command, cwd=self.folder, env=env) as process:
            try:
                for _ in range(pauses):
                    time.sleep(0.02)
                    process.send_signal(signal.SIGSTOP)
                    time.sleep(0.1)
                    process.send_signal(signal.SIGCONT)
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise

    def _logs(self, kind):
        threads = {}
        logs = os.path.join(self.folder, "truth")
        for name in sorted(os.listdir(logs)):
            if not name.startswith(kind + "."):
                continue
            thread = int(name.split(".")[2])
            with open(os.path.join(logs, name), "rb") as file:
                items = struct.iter_unpack("=IiQ", file.read())
            if thread in threads:
                raise RuntimeError("the system gave the thread number %d twice" % thread)
            threads[thread] = [(what % 3, self.functions[what // 3], ns, argument) for what, argument, ns in items]
        return threads

    def truth(self):
        """By thread number in the system: what its functions noted, in order."""
        return self._logs("truth")

    def handled(self):
        """The same of what its signal handlers called."""
        return self._logs("handled")
